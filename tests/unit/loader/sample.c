/* A kernel-like object: code, constants of several alignments, a local call, an entry and a
 * description. */
#include "device/soft/exec/code.h"
#include "device/soft/loader/job.h"

#define VISIBLE __attribute__((visibility("default")))

enum soft_outcome soft_run_block(const struct soft_code *code, struct soft_block *b);

VISIBLE const struct soft_object_info soft_info = {
    .magic = SOFT_JOB_MAGIC,
    .abi = SOFT_ABI_VERSION,
    .save_bytes = 320,
    .local_bytes = 16,
};

static const uint32_t table[16] GM_ALIGNED(64) = { 3, 1, 4, 1, 5, 9, 2, 6, 5, 3, 5, 8, 9, 7, 9, 3 };
static const double factors[2] = { 0.5, 2.0 };

#ifdef EXTERNAL
extern int somewhere_else(int);
#endif

static __attribute__((noinline)) uint32_t mix(uint32_t x)
{
    return table[x & 15] + (uint32_t)(factors[x & 1] * x);
}

VISIBLE enum soft_outcome soft_run_block(const struct soft_code *code, struct soft_block *b)
{
    b->fault_address = mix(b->ctaid[0]);
#ifdef EXTERNAL
    b->fault_address += (uint64_t)somewhere_else(1);
#endif
    return SOFT_DONE;
}
