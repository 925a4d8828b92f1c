/*
 * Speed of the software device's tiers on the n-body kernel, one thread: GFLOPS at 20 operations
 * per interaction.
 *
 *     bench KERNEL.ptx [BODIES]
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "soft.h"

static char *read_file(const char *path)
{
    char *data = NULL;
    size_t room = 0;
    FILE *f = fopen(path, "r");
    if (!f || getdelim(&data, &room, 0, f) <= 0) {
        perror(path);
        exit(1);
    }
    fclose(f);
    return data;
}

static void measure(struct soft_bench *s, enum soft_tier tier, const char *text, uint32_t n)
{
    static uint8_t params[64];
    const float values[3] = { 0.016f, 0.995f, 0.01f };
    const uint32_t grid[3] = { n / 256, 1, 1 }, block[3] = { 256, 1, 1 };
    char why[512];
    bool unsupported;
    double best = 0;
    if (!soft_bench_place(s, text, strlen(text), "nbody_f32", why, sizeof(why)))
        return;
    struct soft_code *code = soft_bench_code(s, tier, NULL, text, strlen(text), "nbody_f32",
                                             &unsupported, why, sizeof(why));
    if (!code) {
        fprintf(stderr, "%s\n", why);
        return;
    }
    for (uint32_t k = 0; k < 3; k++) {
        float *m = soft_bench_alloc(s, n * 16);
        for (uint32_t i = 0; i < 4 * n; i++)
            m[i] = (float)random() / (float)RAND_MAX;
        memcpy(params + soft_bench_param(s, k), &m, sizeof(m));
        memcpy(params + soft_bench_param(s, 4 + k), &values[k], sizeof(float));
    }
    memcpy(params + soft_bench_param(s, 3), &n, sizeof(n));
    for (int k = 0; k < 5; k++) {
        uint64_t start = gm_thread_cpu_ns();
        if (soft_bench_launch(s, code, grid, block, 0, params, NULL, 0) != PTX_FAULT_NONE)
            return;
        double gflops = 20.0 * n * n / (double)(gm_thread_cpu_ns() - start);
        best = gflops > best ? gflops : best;
    }
    printf("nbody_f32 %u bodies, %s: %.2f GFLOPS (frame of a warp: %u bytes)\n", n, code->tier,
           best, code->save_bytes);
    code->destroy(code);
}

int main(int argc, char **argv)
{
    if (argc < 2) {
        fprintf(stderr, "usage: bench KERNEL.ptx [BODIES]\n");
        return 2;
    }
    char *text = read_file(argv[1]);
    uint32_t n = argc > 2 ? (uint32_t)strtoul(argv[2], NULL, 0) & ~255u : 4096;
    struct soft_bench *s = soft_bench_create();
    measure(s, SOFT_TIER_INTERP, text, n);
    if (soft_bench_has_jit(s))
        measure(s, SOFT_TIER_JIT, text, n);
    soft_bench_destroy(s);
    free(text);
    return 0;
}
