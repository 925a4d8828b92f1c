/*
 * The checker. Kernels of a client that asks for it are interpreted, each memory access is examined
 * before it is made, and mistakes are told in the client's report (docs/adr/0023-checker.md).
 *
 * It has three parts. struct soft_check belongs to a client: which memory of its window is
 * allocated and written, one bit per byte, and the places where mistakes were found. struct
 * soft_check_log belongs to a launch: findings of its blocks, until it ends. struct
 * soft_check_block belongs to a worker: who used each byte of shared memory last, and what each
 * warp knows of the other warps' time.
 *
 * Functions that are called while a block runs neither allocate nor lock (exec/code.h).
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
    SOFT_CHECK_BARRIER_ENDLESS, /* no thread is left that could complete it */
    SOFT_CHECK_BARRIER_MASK,    /* a lane is not in the member mask that it names */
};

struct soft_check_finding {
    uint64_t key; /* kind and lines; 0: free. Taken by compare and swap */
    uint64_t times;
    uint64_t address;
    uint32_t line, other_line; /* of the PTX; the other one is the earlier access of a race */
    uint32_t thread, other_thread, block;
    uint8_t kind;  /* enum soft_check_kind */
    uint8_t space; /* enum ir_space */
    uint8_t size;
    bool is_store, is_atomic, other_is_store;
};

#define SOFT_CHECK_FINDINGS 256u /* of one launch; a power of two */
/* An access that is not allowed is not made. A kernel with this many of them is ended, since
 * without them it might never end by itself. */
#define SOFT_CHECK_INVALID_MOST (1u << 20)

struct soft_check_log {
    uint64_t invalid;  /* accesses that were not made */
    uint64_t overflow; /* findings for which the table had no room */
    struct soft_check_finding findings[SOFT_CHECK_FINDINGS];
};

/* What a report says about a launch. */
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
#define SOFT_CHECK_SHOWN 100u /* how many places are told in full */

struct soft_check_place {
    /* hash of the kind, the kernel's name and the lines of the source, or else of the PTX */
    uint64_t key;
};

struct soft_check {
    uint32_t checks; /* enum wire_check */
    uint64_t base, size;
    uint64_t *valid, *written; /* of the window, one bit per byte */
    pthread_mutex_t lock;      /* protects the fields below */
    struct soft_check_range *ranges;
    uint32_t range_count, range_room;
    struct soft_check_range freed[SOFT_CHECK_FREED]; /* the ranges that were freed last */
    uint32_t freed_next;
    struct soft_check_place *places;
    uint32_t place_count, place_room;
    uint64_t errors; /* how many different ones */
    uint64_t times;
};

/* Creates a client's part; NULL: no memory. Destroying NULL is allowed. */
struct soft_check *soft_check_create(const struct dev_window *w, uint32_t checks);
void soft_check_destroy(struct soft_check *c);
/* Notes an allocation, a free or a write: one of enum wire_check_note. False: the range is not
 * inside the window. */
bool soft_check_note(struct soft_check *c, uint32_t note, uint64_t address, uint64_t size);
/* Notes that a copy, fill or write has been done. */
void soft_check_moved(struct soft_check *c, const struct dev_op *op);

struct soft_check_log *soft_check_log_create(void);
/* Reports findings that are new in the log and counts the others. Blocks of the launch may still
 * run. */
void soft_check_report(struct soft_check *c, struct soft_check_log *log,
                       const struct soft_check_launch *l, struct tp_output *out);

/* source.c. Finds the place in the source, as "file:line", that a line of a PTX text was compiled
 * from. False: the text does not say. */
bool soft_check_source(const char *text, size_t size, uint32_t line, char *out, size_t out_size);

/* --- a worker's part (access.c, race.c) ------------------------------------------------------- */

#define SOFT_CHECK_WARPS    32u
#define SOFT_CHECK_BARRIERS 16u
#define SOFT_CHECK_SIGNALS  64u

/* Up to which time of each other warp something is known. */
struct soft_check_clock {
    uint64_t of[SOFT_CHECK_WARPS];
};

struct soft_check_warp {
    uint64_t time;                   /* the time of what the warp does now */
    uint64_t together;               /* up to this time its lanes know of each other's accesses */
    bool parted;                     /* some of its lanes know more: see soft_check_block.lanes */
    bool fenced_any, pending_any;    /* whether `fenced` and `pending` were used in this block */
    struct soft_check_clock known;   /* what happened before the warp's next access */
    struct soft_check_clock fenced;  /* `known` at its last fence */
    struct soft_check_clock pending; /* learned by reading; becomes `known` at the next fence */
};

/* The last uses of some bytes of shared memory, packed (race.c). */
struct soft_check_cell {
    uint64_t write, weak, read[2]; /* `weak`: the last write that was not strong */
};

/* Four bytes of shared memory: one cell, until an access uses only some of them. */
struct soft_check_word {
    struct soft_check_cell whole, bytes[4];
    uint64_t split;
};

struct soft_check_block {
    struct soft_check *check;
    struct soft_check_log *log;
    const void *program; /* the program whose instructions `line_of` knows */
    uint32_t (*line_of)(const void *program, uint32_t index);
    uint64_t *local; /* which bytes of local memory were written, one bit per byte */
    uint64_t now, start;
    struct soft_check_warp warps[SOFT_CHECK_WARPS];
    struct soft_check_clock barriers[SOFT_CHECK_BARRIERS];
    /* what threads told each other through memory, by hash of its address */
    struct soft_check_clock signals[SOFT_CHECK_SIGNALS];
    uint64_t lanes[SOFT_CHECK_WARPS][SOFT_WARP][SOFT_WARP];
    struct soft_check_word words[]; /* one for each word of shared memory */
};

static inline size_t soft_check_block_bytes(uint64_t shared)
{
    return sizeof(struct soft_check_block) + (shared + 3) / 4 * sizeof(struct soft_check_word);
}
/* Words of `local` for one thread. Rounded up, so that no access lies in two words. */
static inline uint64_t soft_check_local_bits(uint64_t local_stride)
{
    return (local_stride + 63) & ~63ull;
}

/* One access of one lane. */
struct soft_check_access {
    uint64_t at;          /* address in its space */
    const uint8_t *bytes; /* what is stored; NULL: not known */
    uint32_t index;       /* the instruction, for race.c and for the line */
    uint32_t thread;
    uint8_t space; /* enum ir_space; not generic */
    uint8_t size;  /* of an element */
    uint8_t count;
    uint8_t wanted; /* one bit per element: it is used */
    uint8_t copied; /* one bit per element: it is only copied elsewhere */
    bool reads, writes;
    bool strong; /* volatile, relaxed or atomic */
    bool acquires, releases;
};

/* Called when a block begins. */
void soft_check_begin(struct soft_block *b, const void *program,
                      uint32_t (*line_of)(const void *program, uint32_t index));
/* Examines an access and reports what is wrong with it. False: it must not be made. */
bool soft_check_access(struct soft_block *b, const struct soft_check_access *a);
void soft_check_found(struct soft_block *b, const struct soft_check_finding *f);
/* so much was found that the kernel has to end */
bool soft_check_is_over(const struct soft_block *b);

/* race.c */
void soft_check_shared(struct soft_block *b, const struct soft_check_access *a);
/* Notes an access through which threads may synchronise with each other: what one wrote, another
 * has read. */
void soft_check_signal(struct soft_block *b, const struct soft_check_access *a);
void soft_check_fence(struct soft_block *b, uint32_t warp);
void soft_check_warp_sync(struct soft_block *b, uint32_t warp, uint32_t lanes);
/* soft_check_arrive(): a warp comes to a barrier; soft_check_leave(): it goes on behind it. */
void soft_check_arrive(struct soft_block *b, uint32_t warp, uint32_t barrier);
void soft_check_leave(struct soft_block *b, uint32_t warp, uint32_t barrier);
void soft_check_barrier_done(struct soft_block *b, uint32_t barrier);
/* Whether all of that shared memory has been written in this block. */
bool soft_check_shared_written(const struct soft_block *b, uint64_t at, uint32_t size);

#endif
