/*
 * Cases on the software device: module placed in a window of memory, blocks run one after the other
 * on the calling thread, faults caught as the block scheduler does.
 */
#ifndef GMUX_TESTS_PTX_SOFT_H
#define GMUX_TESTS_PTX_SOFT_H

#include "case.h"
#include "device/soft/exec/code.h"
#include "device/soft/loader/job.h"

struct ir_module;

enum soft_tier { SOFT_TIER_INTERP, SOFT_TIER_JIT };

/* A window of 64 MiB and everything that a block needs besides; one per thread. Aborts without
 * memory. */
struct soft_bench;
struct soft_bench *soft_bench_create(void);
void soft_bench_destroy(struct soft_bench *s);
/* A launch that takes more processor time is taken for endless; 5,000 ms at first, more
 * under sanitizers. */
void soft_bench_limit(struct soft_bench *s, unsigned ms);

/* Whether there is a compiler. */
bool soft_bench_has_jit(struct soft_bench *s);

/* Code for an entry; the module is parsed anew. `options` is for the compiler; NULL: code for any
 * block size. NULL with the reason in `why`; *unsupported: the tier cannot do it. */
struct soft_code *soft_bench_code(struct soft_bench *s, enum soft_tier tier,
                                  const struct soft_job_options *options, const char *text,
                                  size_t size, const char *entry, bool *unsupported, char *why,
                                  size_t why_size);

/* Code that changes over in the middle of a launch, as the device does when compiled code arrives:
 * the first half of the blocks runs in `first`, the others in `then`. These must live longer. */
struct soft_code *soft_bench_switch(const struct soft_code *first, const struct soft_code *then);

/* Puts the module's globals at the start of the window, whose rest is then free. */
bool soft_bench_place(struct soft_bench *s, const char *text, size_t size, const char *entry,
                      char *why, size_t why_size);
/* `bytes` of the window, aligned to 256; NULL if there are none left. */
void *soft_bench_alloc(struct soft_bench *s, size_t bytes);
/* Everything placed so far. */
uint8_t *soft_bench_memory(struct soft_bench *s, size_t *bytes);
/* Forgets what kernels left in the rest of the window. */
void soft_bench_wipe_rest(struct soft_bench *s);
/* Runs the grid. After soft_bench_place(). `printed` may be NULL. */
enum ptx_fault soft_bench_launch(struct soft_bench *s, const struct soft_code *code,
                                 const uint32_t grid[3], const uint32_t block[3],
                                 uint32_t dynamic_shared, const void *params, char *printed,
                                 size_t printed_size);
/* From now on launches of interpreted code with scalar forms only tell `watch` of their accesses
 * (struct soft_block), and of each block that begins as of a barrier. NULL: no more. */
void soft_bench_watch(struct soft_bench *s,
                      void (*watch)(void *arg, uint32_t thread, const void *at, uint32_t bytes,
                                    const void *value),
                      void *arg);
/* Offset of parameter k of the placed entry. */
uint32_t soft_bench_param(const struct soft_bench *s, uint32_t k);
const struct soft_block *soft_bench_block(const struct soft_bench *s);

/* A whole case, with code for it. False if it could not be run: `why`. */
bool soft_bench_case(struct soft_bench *s, const struct soft_code *code, struct ptx_case *c,
                     enum ptx_fault *fault, char *why, size_t why_size);

#endif
