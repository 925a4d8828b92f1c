/*
 * The kernels of the examples through the interpreter, against the same computations in C.
 */
#include <criterion/criterion.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "soft.h"

static struct soft_bench *bench;
static struct soft_code *code;
static char *text;
static uint8_t params[256];

static char *read_file(const char *name)
{
    char path[1024];
    char *data = NULL;
    size_t room = 0;
    snprintf(path, sizeof(path), "%s/%s/kernel.ptx", EXAMPLES_DIR, name);
    FILE *f = fopen(path, "r");
    cr_assert_not_null(f, "%s", path);
    cr_assert_gt(getdelim(&data, &room, 0, f), 0);
    fclose(f);
    return data;
}

static void begin(const char *example, const char *entry)
{
    char why[512] = "";
    bool unsupported;
    text = read_file(example);
    bench = soft_bench_create();
    cr_assert(soft_bench_place(bench, text, strlen(text), entry, why, sizeof(why)), "%s", why);
    code = soft_bench_code(bench, SOFT_TIER_INTERP, NULL, text, strlen(text), entry, &unsupported,
                           why, sizeof(why));
    cr_assert_not_null(code, "%s", why);
}

static void end(void)
{
    code->destroy(code);
    soft_bench_destroy(bench);
    free(text);
}

static void set_param(uint32_t k, const void *value, size_t size)
{
    memcpy(params + soft_bench_param(bench, k), value, size);
}

static void set_pointer(uint32_t k, const void *p)
{
    set_param(k, &p, sizeof(p));
}

static void set_int(uint32_t k, int v)
{
    set_param(k, &v, sizeof(v));
}

static void set_float(uint32_t k, float v)
{
    set_param(k, &v, sizeof(v));
}

static void set_double(uint32_t k, double v)
{
    set_param(k, &v, sizeof(v));
}

static void launch(uint32_t gx, uint32_t gy, uint32_t bx, uint32_t by)
{
    const uint32_t grid[3] = { gx, gy, 1 }, block[3] = { bx, by, 1 };
    cr_assert_eq(soft_bench_launch(bench, code, grid, block, 0, params, NULL, 0), PTX_FAULT_NONE);
}

static float random_unit(void)
{
    return (float)random() / (float)RAND_MAX;
}

Test(interp_examples, vecadd)
{
    enum { N = 1000 };
    begin("vecadd", "vecadd");
    float *buffers[3];
    for (uint32_t k = 0; k < 3; k++) {
        buffers[k] = soft_bench_alloc(bench, (N + 24) * sizeof(float));
        for (int i = 0; i < N + 24; i++)
            buffers[k][i] = random_unit();
        set_pointer(k, buffers[k]);
    }
    float guard[24];
    memcpy(guard, buffers[2] + N, sizeof(guard));
    set_int(3, N);
    launch(4, 1, 256, 1);
    for (int i = 0; i < N; i++)
        cr_assert_eq(buffers[2][i], buffers[0][i] + buffers[1][i], "%d", i);
    cr_assert_eq(memcmp(guard, buffers[2] + N, sizeof(guard)), 0,
                 "nothing behind the end is touched");
    end();
}

Test(interp_examples, reduction)
{
    enum { N = 10007 };
    begin("reduction", "reduce_sum");
    float *in = soft_bench_alloc(bench, N * sizeof(float)),
          *out = soft_bench_alloc(bench, sizeof(float));
    double sum = 0;
    for (int i = 0; i < N; i++) {
        in[i] = (float)(random() % 100);
        sum += (double)in[i];
    }
    *out = 0;
    set_pointer(0, in);
    set_pointer(1, out);
    set_int(2, N);
    launch(7, 1, 160, 1);
    cr_assert_eq(*out, (float)sum, "small integers add exactly: %g, %g", (double)*out, sum);
    end();
}

Test(interp_examples, mandelbrot)
{
    enum { W = 100, H = 70, LIMIT = 300 };
    begin("mandelbrot", "mandelbrot");
    unsigned *pixels = soft_bench_alloc(bench, W * H * sizeof(unsigned));
    float x0 = -2.2f, y0 = -1.2f, dx = 3.2f / W, dy = 2.4f / H;
    set_pointer(0, pixels);
    set_int(1, W);
    set_int(2, H);
    set_float(3, x0);
    set_float(4, y0);
    set_float(5, dx);
    set_float(6, dy);
    set_int(7, LIMIT);
    launch((W + 15) / 16, (H + 15) / 16, 16, 16);
    for (int py = 0; py < H; py++)
        for (int px = 0; px < W; px++) {
            /* Contracted as the kernel's PTX is. */
            float cx = fmaf((float)px, dx, x0), cy = fmaf((float)py, dy, y0), x = 0, y = 0;
            unsigned i = 0;
            for (; i < LIMIT; i++) {
                float yy = y * y;
                if (fmaf(x, x, yy) > 4.0f)
                    break;
                float xx = x * x;
                float t = cx + (xx - yy);
                y = fmaf(x + x, y, cy);
                x = t;
            }
            cr_assert_eq(pixels[py * W + px], i, "%d,%d: %u, %u", px, py, pixels[py * W + px], i);
        }
    end();
}

Test(interp_examples, matmul)
{
    enum { N = 96 };
    begin("matmul", "matmul");
    float *m[3];
    for (uint32_t k = 0; k < 3; k++) {
        m[k] = soft_bench_alloc(bench, N * N * sizeof(float));
        for (int i = 0; i < N * N; i++)
            m[k][i] = random_unit();
        set_pointer(k, m[k]);
    }
    set_int(3, N);
    launch(N / 32, N / 32, 32, 32);
    for (int row = 0; row < N; row++)
        for (int col = 0; col < N; col++) {
            float sum = 0;
            for (int k = 0; k < N; k++)
                sum = fmaf(m[0][row * N + k], m[1][k * N + col], sum);
            cr_assert_eq(m[2][row * N + col], sum, "%d,%d", row, col);
        }
    end();
}

Test(interp_examples, nbody_f32)
{
    enum { N = 512 };
    const float dt = 0.016f, damping = 0.995f, softening = 0.01f;
    begin("nbody", "nbody_f32");
    float *m[3], before[N * 4];
    for (uint32_t k = 0; k < 3; k++) {
        m[k] = soft_bench_alloc(bench, N * 4 * sizeof(float));
        for (int i = 0; i < N * 4; i++)
            m[k][i] = random_unit();
        set_pointer(k, m[k]);
    }
    memcpy(before, m[2], sizeof(before));
    set_int(3, N);
    set_float(4, dt);
    set_float(5, damping);
    set_float(6, softening);
    launch(N / 256, 1, 256, 1);
    for (int i = 0; i < N; i++) {
        double a[3] = { 0 };
        for (int j = 0; j < N; j++) {
            double d[3], d2 = (double)softening;
            for (int c = 0; c < 3; c++) {
                d[c] = (double)m[1][4 * j + c] - (double)m[1][4 * i + c];
                d2 += d[c] * d[c];
            }
            double s = (double)m[1][4 * j + 3] / (d2 * sqrt(d2));
            for (int c = 0; c < 3; c++)
                a[c] += d[c] * s;
        }
        for (int c = 0; c < 3; c++) {
            double v = ((double)before[4 * i + c] + a[c] * (double)dt) * (double)damping;
            double p = (double)m[1][4 * i + c] + v * (double)dt;
            cr_assert_lt(fabs(v - (double)m[2][4 * i + c]), 1e-4 * (fabs(v) + 1), "velocity %d.%d",
                         i, c);
            cr_assert_lt(fabs(p - (double)m[0][4 * i + c]), 1e-5 * (fabs(p) + 1), "position %d.%d",
                         i, c);
        }
    }
    end();
}

Test(interp_examples, nbody_f64)
{
    enum { N = 256 };
    const double dt = 0.016, damping = 0.995, softening = 0.01;
    begin("nbody", "nbody_f64");
    double *m[3], before[N * 4];
    for (uint32_t k = 0; k < 3; k++) {
        m[k] = soft_bench_alloc(bench, N * 4 * sizeof(double));
        for (int i = 0; i < N * 4; i++)
            m[k][i] = (double)random_unit();
        set_pointer(k, m[k]);
    }
    memcpy(before, m[2], sizeof(before));
    set_int(3, N);
    set_double(4, dt);
    set_double(5, damping);
    set_double(6, softening);
    launch(N / 256, 1, 256, 1);
    for (int i = 0; i < N; i++) {
        double a[3] = { 0 };
        for (int j = 0; j < N; j++) {
            double d[3], d2 = softening;
            for (int c = 0; c < 3; c++) {
                d[c] = m[1][4 * j + c] - m[1][4 * i + c];
                d2 += d[c] * d[c];
            }
            double s = m[1][4 * j + 3] / (d2 * sqrt(d2));
            for (int c = 0; c < 3; c++)
                a[c] += d[c] * s;
        }
        for (int c = 0; c < 3; c++) {
            double v = (before[4 * i + c] + a[c] * dt) * damping;
            cr_assert_lt(fabs(v - m[2][4 * i + c]), 1e-12 * (fabs(v) + 1), "velocity %d.%d", i, c);
            cr_assert_lt(fabs(m[1][4 * i + c] + v * dt - m[0][4 * i + c]), 1e-12, "position %d.%d",
                         i, c);
        }
    }
    end();
}
