/*
 * What a kernel may call in the host: vprintf and __assertfail; and what instructions mean that
 * both interpreter and compiled code leave to a C function. The table is one per client, because it
 * holds the client's print buffer.
 *
 * Helpers run inside run_block: code.h's rule holds for them, they neither allocate nor lock, and
 * they can be left at any instruction by a fault in memory they read for the kernel.
 */
#ifndef GMUX_SOFT_EXEC_HELPERS_H
#define GMUX_SOFT_EXEC_HELPERS_H

#include "device/soft/exec/code.h"

struct soft_print;
struct soft_texture_lanes;
struct ir_instr;

/* Compiled code calls through this table: new entries at the end, others change SOFT_ABI_VERSION.
 */
struct soft_helpers {
    /* Device vprintf for thread `thread` (linear number in the block): both addresses are generic
     * ones of the kernel. Returns what vprintf returns there: the number of arguments, -1 if format
     * is NULL or the text found no room. A wrong address sets b->fault_address and fault_thread and
     * returns SOFT_PRINT_FAULT: the block ends with SOFT_FAULT_ADDRESS. */
    int32_t (*vprintf)(struct soft_block *b, uint32_t thread, uint64_t format, uint64_t args);
    /* Prints the text of a failed assertion as the CUDA runtime does. Sets fault_thread; the block
     * ends with SOFT_FAULT_ASSERT. */
    void (*assert_fail)(struct soft_block *b, uint32_t thread, uint64_t message, uint64_t file,
                        uint32_t line, uint64_t function);
    struct soft_print *print; /* NULL: prints go nowhere */
    /* An instruction on values for 32 lanes, by operand and lane: its sources in, its result and
     * second, predicate result out. The interpreter's (interp_serve). */
    void (*compute)(const struct ir_instr *i, const uint64_t (*in)[SOFT_WARP],
                    uint64_t (*out)[SOFT_WARP]);
    /* A float addition of 16-bit elements (one, or a pair) to memory, atomic; returns what was
     * there. */
    uint32_t (*add_halves)(uint32_t type, void *at, uint32_t v);
    /* IR_OP_MMA for a warp, by register and lane: `in` has 7 registers, `out` 4; a, b: what A and B
     * consist of, enum ir_mma. */
    void (*mma)(uint32_t a, uint32_t b, const uint32_t (*in)[SOFT_WARP],
                uint32_t (*out)[SOFT_WARP]);
    /* IR_OP_TEX (texture/texture.h). */
    enum soft_outcome (*texture)(struct soft_block *b, uint32_t form, uint32_t first,
                                 uint32_t active, struct soft_texture_lanes *l);
    uint64_t (*wall_ns)(void); /* %globaltimer */
    /* Threads of the block may be waiting for another block's, whose thread may be waiting for this
     * processor. */
    void (*give_way)(struct soft_block *b);
    /* IR_OP_ATOM of IR_B128, exchange or (`compares`) compare and exchange: values and what was
     * there by halves. */
    void (*atomic_128)(uint32_t compares, void *at, const uint64_t *v, uint64_t old[2]);
};
#define SOFT_PRINT_FAULT INT32_MIN

void soft_helper_give_way(struct soft_block *b);
void soft_helper_mma(uint32_t a, uint32_t b, const uint32_t (*in)[SOFT_WARP],
                     uint32_t (*out)[SOFT_WARP]);
uint64_t soft_helper_wall_ns(void);

/* The entries above, but for the interpreter's; `print` is kept. */
void soft_helpers_init(struct soft_helpers *h, struct soft_print *print);

/* One call's text is cut at this length. */
#define SOFT_PRINT_MAX 1024u

/* Buffer of `bytes` (a power of two, at least 8 KiB). NULL if there is no memory. */
struct soft_print *soft_print_create(uint32_t bytes);
void soft_print_destroy(struct soft_print *p);

/* Appends one text for descriptor `fd`, 1 or 2; false, counted as dropped, if there is no room. Any
 * number of threads at once, lock-free; a writer that is stopped for ever in the middle loses this
 * and all later text, nothing else. */
bool soft_print_append(struct soft_print *p, int fd, const char *text, uint32_t size);

/* Hands over what has arrived, in order, and frees its room. One thread at a time. Returns how many
 * texts were dropped since the last call. */
uint32_t soft_print_drain(struct soft_print *p,
                          void (*take)(void *arg, int fd, const char *text, uint32_t size),
                          void *arg);

#endif
