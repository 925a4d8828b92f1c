/*
 * Clears a worker's vector registers before another client's blocks run: they still hold what the
 * last kernel computed. Compiled code reads no register that it has not written, as far as we know,
 * but secrecy between clients does not depend on that.
 */
#include "device/soft/exec/worker.h"

#if defined(__x86_64__)

#define CLEAR(n) "vpxord %%zmm" #n ", %%zmm" #n ", %%zmm" #n "\n\t"

__attribute__((target("avx512f"))) static void clear_upper(void)
{
    __asm__ volatile(
        CLEAR(16) CLEAR(17) CLEAR(18) CLEAR(19) CLEAR(20) CLEAR(21) CLEAR(22) CLEAR(23) CLEAR(24)
            CLEAR(25) CLEAR(26) CLEAR(27) CLEAR(28) CLEAR(29) CLEAR(30) CLEAR(
                31) "kxorw %%k1, %%k1, %%k1\n\tkxorw %%k2, %%k2, %%k2\n\tkxorw %%k3, %%k3, %%k3\n\t"
                    "kxorw %%k4, %%k4, %%k4\n\tkxorw %%k5, %%k5, %%k5\n\tkxorw %%k6, %%k6, %%k6\n\t"
                    "kxorw %%k7, %%k7, %%k7" ::
                        : "xmm16", "xmm17", "xmm18", "xmm19", "xmm20", "xmm21", "xmm22", "xmm23",
                          "xmm24", "xmm25", "xmm26", "xmm27", "xmm28", "xmm29", "xmm30", "xmm31",
                          "k1", "k2", "k3", "k4", "k5", "k6", "k7");
}

/* vzeroall clears the upper parts, too, however wide they are. */
__attribute__((target("avx"))) static void clear_lower(void)
{
    __asm__ volatile("vzeroall" ::
                         : "xmm0", "xmm1", "xmm2", "xmm3", "xmm4", "xmm5", "xmm6", "xmm7", "xmm8",
                           "xmm9", "xmm10", "xmm11", "xmm12", "xmm13", "xmm14", "xmm15");
}

void soft_registers_clear(void)
{
    if (__builtin_cpu_supports("avx512f"))
        clear_upper();
    if (__builtin_cpu_supports("avx"))
        clear_lower();
}

#elif defined(__aarch64__)

#define CLEAR(n) "movi v" #n ".2d, #0\n\t"

/* Kernels use no wider registers than these. */
void soft_registers_clear(void)
{
    __asm__ volatile(CLEAR(0) CLEAR(1) CLEAR(2) CLEAR(3) CLEAR(4) CLEAR(5) CLEAR(6) CLEAR(7)
                         CLEAR(16) CLEAR(17) CLEAR(18) CLEAR(19) CLEAR(20) CLEAR(21) CLEAR(22)
                             CLEAR(23) CLEAR(24) CLEAR(25) CLEAR(26) CLEAR(27) CLEAR(28) CLEAR(29)
                                 CLEAR(30) CLEAR(31)::
                                     : "v0", "v1", "v2", "v3", "v4", "v5", "v6", "v7", "v16", "v17",
                                       "v18", "v19", "v20", "v21", "v22", "v23", "v24", "v25",
                                       "v26", "v27", "v28", "v29", "v30", "v31");
}

#else

void soft_registers_clear(void)
{
}

#endif
