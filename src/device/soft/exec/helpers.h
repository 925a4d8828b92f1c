/*
 * C functions that a kernel's code calls: vprintf and __assertfail, and the meaning of instructions
 * that both interpreter and compiled code leave to C. There is one table per client, because the
 * table holds the client's print buffer.
 *
 * Helpers run inside run_block, so the rule of code.h holds for them: they neither allocate nor
 * lock, and a fault in memory that they read for the kernel can end them at any instruction.
 */
#ifndef GMUX_SOFT_EXEC_HELPERS_H
#define GMUX_SOFT_EXEC_HELPERS_H

#include "device/soft/exec/code.h"

struct soft_print;
struct soft_texture_lanes;
struct soft_child_store;
struct ir_instr;

/* Called for thread `thread` (linear number in the block) with a call's two arguments. A wrong
 * address sets b->fault_address and fault_thread and returns SOFT_HELPER_FAULT: the block ends with
 * SOFT_FAULT_ADDRESS. */
typedef int32_t soft_helper(struct soft_block *b, uint32_t thread, uint64_t first, uint64_t second);
#define SOFT_HELPER_FAULT INT32_MIN

/* Compiled code calls through this table: new entries go to the end, any other change needs a new
 * SOFT_ABI_VERSION. */
struct soft_helpers {
    /* Device vprintf of a format and its arguments, both generic addresses of the kernel. Returns
     * what CUDA's vprintf returns: the number of arguments, or -1 if format is NULL or there was no
     * room for the text. */
    soft_helper *vprintf;
    /* Prints the text of a failed assertion as the CUDA runtime does. Sets fault_thread; the block
     * ends with SOFT_FAULT_ASSERT. */
    void (*assert_fail)(struct soft_block *b, uint32_t thread, uint64_t message, uint64_t file,
                        uint32_t line, uint64_t function);
    struct soft_print *print; /* NULL: prints go nowhere */
    /* One instruction on values of 32 lanes. `in` has its sources by operand and lane, `out` gets
     * its result, `p` the second result where it is a predicate. Set by interp_serve(). */
    void (*compute)(const struct ir_instr *i, const uint64_t (*in)[SOFT_WARP],
                    uint64_t (*out)[SOFT_WARP]);
    /* Atomically adds 16-bit floats (one, or a pair) to memory; returns the old value. */
    uint32_t (*add_halves)(uint32_t type, void *at, uint32_t v);
    /* IR_OP_MMA for a warp, by register and lane: `in` has 7 registers, `out` 4. a, b: element
     * types of A and B, enum ir_mma. */
    void (*mma)(uint32_t a, uint32_t b, const uint32_t (*in)[SOFT_WARP],
                uint32_t (*out)[SOFT_WARP]);
    /* IR_OP_TEX (texture/texture.h). */
    enum soft_outcome (*texture)(struct soft_block *b, uint32_t form, uint32_t first,
                                 uint32_t active, struct soft_texture_lanes *l);
    uint64_t (*wall_ns)(void); /* %globaltimer */
    /* Called by a block that seems to wait for another one, again and again: it gives the processor
     * to the thread that runs that block, and the multiprocessor if that block has none. */
    void (*give_way)(struct soft_block *b);
    /* IR_OP_ATOM of IR_B128: an exchange, or (`compares`) a compare and exchange. Values and the
     * old value come as two halves. */
    void (*atomic_128)(uint32_t compares, void *at, const uint64_t *v, uint64_t old[2]);
    /* For kernels that launch kernels (children.h). Set by soft_children_serve(); before, they
     * refuse. */
    soft_helper *child_bytes, *child_launch;
    struct soft_child_store *children; /* NULL: none of the client's kernels launches any */
};

void soft_helper_give_way(struct soft_block *b);
/* Which of the host code that is built for several sets of instructions this processor can run: 1,
 * 3 or 4, as x86-64-v3 and -v4 are numbered. */
unsigned soft_helper_isa(void);
typedef void soft_mma(uint32_t a, uint32_t b, const uint32_t (*in)[SOFT_WARP],
                      uint32_t (*out)[SOFT_WARP]);
/* The first one is for any processor; the others are mma.c for certain ones. */
soft_mma soft_helper_mma, soft_helper_mma_base, soft_helper_mma_v3, soft_helper_mma_v4;
uint64_t soft_helper_wall_ns(void);

/* Sets all entries except `print`, which is given, and those of interp_serve() and
 * soft_children_serve(). */
void soft_helpers_init(struct soft_helpers *h, struct soft_print *print);

/* The text of one call is cut off at this length. */
#define SOFT_PRINT_MAX 1024u

/* Creates a buffer of `bytes` (a power of two, at least 8 KiB). NULL: no memory. */
struct soft_print *soft_print_create(uint32_t bytes);
void soft_print_destroy(struct soft_print *p);

/* Appends one text for descriptor `fd`, 1 or 2. False if there is no room; the text then counts as
 * dropped. Lock-free, any number of threads at once. If a writer is stopped for ever in the middle,
 * its text and all later ones are lost, but nothing else. */
bool soft_print_append(struct soft_print *p, int fd, const char *text, uint32_t size);

/* Hands over the texts that have arrived, in order, and frees their room. One thread at a time.
 * Returns how many texts were dropped since the last call. */
uint32_t soft_print_drain(struct soft_print *p,
                          void (*take)(void *arg, int fd, const char *text, uint32_t size),
                          void *arg);

#endif
