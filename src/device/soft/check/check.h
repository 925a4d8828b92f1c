/*
 * The checker: kernels of a client that asked for it are interpreted, each access to memory is
 * looked at before it is made, and what is wrong with it is told in the client's report
 * (docs/adr/0023-checker.md).
 *
 * Three parts. struct soft_check is the client's: what of its window is allocated and what has been
 * written, one bit for each byte, and the places where something was found. struct soft_check_log
 * is a launch's: findings of its blocks, until it ends. struct soft_check_block is a worker's: who
 * used each byte of shared memory last, and what each warp knows of the others' time.
 *
 * What is called while a block runs neither allocates nor locks (exec/code.h).
 */
#ifndef GMUX_SOFT_CHECK_CHECK_H
#define GMUX_SOFT_CHECK_CHECK_H

#include <pthread.h>

#include "device/soft/exec/code.h"
#include "wire/messages.h"

struct dev_op;
struct dev_window;
struct tp_output;

/* --- findings --------------------------------------------------------------------------------- */

enum soft_check_kind {
    SOFT_CHECK_NOTHING,
    SOFT_CHECK_BOUNDS,
    SOFT_CHECK_MISALIGNED,
    SOFT_CHECK_UNINIT,
    SOFT_CHECK_RACE_RAW, /* read after write, write after read, write after write */
    SOFT_CHECK_RACE_WAR,
    SOFT_CHECK_RACE_WAW,
    SOFT_CHECK_BARRIER_SPLIT,   /* lanes of a warp at different instructions of one barrier */
    SOFT_CHECK_BARRIER_ENDLESS, /* nobody comes who could complete it */
    SOFT_CHECK_BARRIER_MASK,    /* a lane is not in the mask that it names */
};

struct soft_check_finding {
    uint64_t key; /* kind and lines; 0: free. Taken by compare and swap */
    uint64_t times;
    uint64_t address;
    uint32_t line, other_line; /* of the PTX; the other is the earlier access of a race */
    uint32_t thread, other_thread, block;
    uint8_t kind;  /* enum soft_check_kind */
    uint8_t space; /* enum ir_space */
    uint8_t size;
    bool is_store, is_atomic, other_is_store;
};

#define SOFT_CHECK_FINDINGS 256u /* of one launch; a power of two */
/* Accesses of one launch that are not made: a kernel that goes on for ever without them is ended.
 */
#define SOFT_CHECK_INVALID_MOST (1u << 20)

struct soft_check_log {
    uint64_t invalid;  /* accesses that were not made */
    uint64_t overflow; /* findings without a place */
    struct soft_check_finding findings[SOFT_CHECK_FINDINGS];
};

/* What a report needs to know of a launch. */
struct soft_check_launch {
    const char *kernel;
    const char *text; /* its PTX */
    size_t text_size;
    uint32_t grid[3], block[3];
};

/* --- the client's part (memory.c, report.c) --------------------------------------------------- */

struct soft_check_range {
    uint64_t base, size;
};

#define SOFT_CHECK_FREED 64u
#define SOFT_CHECK_SHOWN 100u /* places that are told in full */

struct soft_check_place {
    uint64_t key; /* of the lines of the PTX, or those of the source, with the kernel's name */
};

struct soft_check {
    uint32_t checks; /* enum wire_check */
    uint64_t base, size;
    uint64_t *valid, *written; /* of the window, bit by bit */
    pthread_mutex_t lock;      /* of the rest */
    struct soft_check_range *ranges;
    uint32_t range_count, range_room;
    struct soft_check_range freed[SOFT_CHECK_FREED]; /* lately */
    uint32_t freed_next;
    struct soft_check_place *places;
    uint32_t place_count, place_room;
    uint64_t errors; /* different ones */
    uint64_t times;
};

/* NULL: no memory. */
struct soft_check *soft_check_create(const struct dev_window *w, uint32_t checks);
void soft_check_destroy(struct soft_check *c); /* NULL is fine */
/* Any of enum wire_check_note. False: not inside the window. */
bool soft_check_note(struct soft_check *c, uint32_t note, uint64_t address, uint64_t size);
/* A copy, fill or write has been done. */
void soft_check_moved(struct soft_check *c, const struct dev_op *op);

struct soft_check_log *soft_check_log_create(void);
/* Tells what is new in the log, and counts. Blocks of the launch may still be running. */
void soft_check_report(struct soft_check *c, struct soft_check_log *log,
                       const struct soft_check_launch *l, struct tp_output *out);

/* source.c. The place in the source that a line of a PTX text belongs to, as "file:line"; false:
 * the text does not say. */
bool soft_check_source(const char *text, size_t size, uint32_t line, char *out, size_t out_size);

/* --- a worker's part (access.c, race.c) ------------------------------------------------------- */

#define SOFT_CHECK_WARPS    32u
#define SOFT_CHECK_BARRIERS 16u
#define SOFT_CHECK_SIGNALS  64u

/* What is known of each warp's time. */
struct soft_check_clock {
    uint64_t of[SOFT_CHECK_WARPS];
};

struct soft_check_warp {
    uint64_t time;                   /* what it does now happens at */
    uint64_t together;               /* until then, its lanes know of each other */
    bool parted;                     /* some know more: struct soft_check_block.lanes */
    bool fenced_any, pending_any;    /* since the block began */
    struct soft_check_clock known;   /* happened before what it does now */
    struct soft_check_clock fenced;  /* at its last fence */
    struct soft_check_clock pending; /* was read, and counts from the next fence on */
};

/* Who used some bytes of shared memory: packed, see race.c. */
struct soft_check_cell {
    uint64_t write, weak, read[2]; /* weak: the last write that was not strong */
};

/* Four bytes: one cell, until somebody uses less than all of them. */
struct soft_check_word {
    struct soft_check_cell whole, bytes[4];
    uint64_t split;
};

struct soft_check_block {
    struct soft_check *check;
    struct soft_check_log *log;
    const void *program; /* whose instructions `line_of` knows */
    uint32_t (*line_of)(const void *program, uint32_t index);
    uint64_t *local; /* bit by bit: written */
    uint64_t now, start;
    struct soft_check_warp warps[SOFT_CHECK_WARPS];
    struct soft_check_clock barriers[SOFT_CHECK_BARRIERS];
    struct soft_check_clock signals[SOFT_CHECK_SIGNALS]; /* by address; several share one */
    uint64_t lanes[SOFT_CHECK_WARPS][SOFT_WARP][SOFT_WARP];
    struct soft_check_word words[]; /* of shared memory */
};

static inline size_t soft_check_block_bytes(uint64_t shared)
{
    return sizeof(struct soft_check_block) + (shared + 3) / 4 * sizeof(struct soft_check_word);
}
/* Of one thread; whole words, so that no access lies in two. */
static inline uint64_t soft_check_local_bits(uint64_t local_stride)
{
    return (local_stride + 63) & ~63ull;
}

/* One lane's access. */
struct soft_check_access {
    uint64_t at;          /* in its space */
    const uint8_t *bytes; /* that are stored, or NULL: not known */
    uint32_t index;       /* of the instruction's access */
    uint32_t thread;
    uint8_t space; /* enum ir_space; not generic */
    uint8_t size;  /* of an element */
    uint8_t count;
    uint8_t wanted; /* bit by bit: elements that are used */
    uint8_t copied; /* the same: that are only stored elsewhere */
    bool reads, writes;
    bool strong; /* not a plain access */
    bool acquires, releases;
};

/* A block begins. */
void soft_check_begin(struct soft_block *b, const void *program,
                      uint32_t (*line_of)(const void *program, uint32_t index));
/* Reports what is wrong; false: it must not be made. */
bool soft_check_access(struct soft_block *b, const struct soft_check_access *a);
void soft_check_found(struct soft_block *b, const struct soft_check_finding *f);
bool soft_check_is_over(const struct soft_block *b); /* too much was found */

/* race.c */
void soft_check_shared(struct soft_block *b, const struct soft_check_access *a);
/* Memory by which threads tell each other something. */
void soft_check_signal(struct soft_block *b, const struct soft_check_access *a);
void soft_check_fence(struct soft_block *b, uint32_t warp);
void soft_check_warp_sync(struct soft_block *b, uint32_t warp, uint32_t lanes);
/* A warp comes to a barrier, and goes on behind it. */
void soft_check_arrive(struct soft_block *b, uint32_t warp, uint32_t barrier);
void soft_check_leave(struct soft_block *b, uint32_t warp, uint32_t barrier);
void soft_check_barrier_done(struct soft_block *b, uint32_t barrier);
/* Something has been written there in this block. */
bool soft_check_shared_written(const struct soft_block *b, uint64_t at, uint32_t size);

#endif
