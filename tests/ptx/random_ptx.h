/*
 * Random kernels for comparing two ways of running them: structured and unstructured divergence,
 * loops with different trip counts, early exits, switches, barriers, shuffles, shared, local and
 * global memory, atomics, conversions.
 *
 * A kernel is a function of its seed. Its results do not depend on the order of warps or blocks,
 * and it ends after a bounded number of steps. Of what PTX leaves open it uses what this device
 * does as GPUs do: lanes that store to one place, shuffles from lanes that are not there. NaNs are
 * stored in one form.
 */
#ifndef GMUX_TESTS_PTX_RANDOM_PTX_H
#define GMUX_TESTS_PTX_RANDOM_PTX_H

#include "base/attr.h"

#define RANDOM_WORDS_IN   1024u /* words of the first parameter's buffer, read only */
#define RANDOM_WORDS_OUT  24u   /* words per thread that the kernel stores in the second one */
#define RANDOM_WORDS_ATOM 64u   /* words of the third one, for atomics; start at any value */

struct random_kernel {
    char *text; /* entry "k" (.param .u64 in, .param .u64 out, .param .u64 atoms); the caller frees
                   it */
    uint32_t grid[3], block[3];
};

/* `portable`: nothing in it that PTX leaves open, nor threads that wait for others in loops. NULL
 * text without memory. */
struct random_kernel random_kernel_make(uint64_t seed, bool portable);

/* A smaller kernel for which `differs` still holds, as it does for `text`. The caller frees it. */
char *random_reduce(const char *text, bool (*differs)(void *arg, const char *text), void *arg);

#endif
