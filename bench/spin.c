/*
 * Kernels one after the other, each of -blocks blocks (8) of -threads threads (128) that run for
 * -us microseconds. The program waits for a kernel before it launches the next, as one does that
 * uses a fraction of a GPU; with -batch, it launches so many and then waits for the last. With
 * -queued it does not wait for a kernel before the next one is launched, but two launches later.
 * Runs for -ms milliseconds or, with -kernels, until so many are done. Prints: name, kernels per
 * second, seconds; the fewest in any of its seconds; and from one wait to the next, without the
 * first second: their number, median and 99th percentile in milliseconds.
 */
#include <cuda.h>
#include <stdio.h>
#include <stdlib.h>

#include "example.h"

struct seconds {
    double begin;
    long count, least; /* -1: none is over */
};

static void count(struct seconds *s, double now)
{
    s->count++;
    if (now - s->begin < 1)
        return;
    s->least = s->least < 0 || s->count < s->least ? s->count : s->least;
    s->begin = now;
    s->count = 0;
}

#define WAITS   100000
#define WARM_UP 1.0 /* seconds */

/* Milliseconds from one wait's end to the next one's. */
static struct {
    double ms[WAITS], last;
    int n;
} waits;

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static void waited(double since_start, double now)
{
    if (since_start > WARM_UP && waits.last > 0 && waits.n < WAITS)
        waits.ms[waits.n++] = 1e3 * (now - waits.last);
    waits.last = now;
}

static void print_waits(void)
{
    qsort(waits.ms, (size_t)waits.n, sizeof(waits.ms[0]), by_value);
    if (waits.n)
        printf("waits %d %.2f %.2f\n", waits.n, waits.ms[waits.n / 2],
               waits.ms[waits.n * 99 / 100]);
}

int main(int argc, char **argv)
{
    long us = 50, ms = 2000, kernels = 0, blocks = 8, threads = 128, batch = 1, n = 0;
    bool queued = false;
    for (int i = 1; i < argc; i++)
        if (!ex_option(argv[i], "us", 1, 60000000, &us) &&
            !ex_option(argv[i], "ms", 1, 600000, &ms) &&
            !ex_option(argv[i], "kernels", 1, 1 << 30, &kernels) &&
            !ex_option(argv[i], "blocks", 1, 1 << 30, &blocks) &&
            !ex_option(argv[i], "threads", 1, 1024, &threads) &&
            !ex_option(argv[i], "batch", 1, 1000, &batch) &&
            !(queued |= ex_flag(argv[i], "queued")))
            return 2;
    struct ex_device d = ex_open(0, ex_ptx);
    CUfunction f = ex_function(&d, "spin");
    CUstream s;
    unsigned long long ns = 1000; /* the first one also loads */
    void *params[] = { &ns };
    CUevent events[2];

    EX_CHECK(cuEventCreate(&events[0], CU_EVENT_DISABLE_TIMING));
    EX_CHECK(cuEventCreate(&events[1], CU_EVENT_DISABLE_TIMING));
    EX_CHECK(cuStreamCreate(&s, CU_STREAM_NON_BLOCKING));
    EX_CHECK(
        cuLaunchKernel(f, (unsigned)blocks, 1, 1, (unsigned)threads, 1, 1, 0, s, params, NULL));
    EX_CHECK(cuStreamSynchronize(s));
    ns *= (unsigned long long)us;
    ex_gate();
    double start = ex_seconds(), now = start;
    struct seconds each = { start, 0, -1 };
    while (kernels ? n < kernels : now - start < 1e-3 * (double)ms) {
        EX_CHECK(
            cuLaunchKernel(f, (unsigned)blocks, 1, 1, (unsigned)threads, 1, 1, 0, s, params, NULL));
        if (queued)
            EX_CHECK(cuEventRecord(events[n % 2], s));
        if (queued && n > 0)
            EX_CHECK(cuEventSynchronize(events[(n + 1) % 2]));
        n++;
        bool waits_now = !queued && n % batch == 0;
        if (waits_now)
            EX_CHECK(cuStreamSynchronize(s));
        now = ex_seconds();
        if (waits_now || queued)
            waited(now - start, now);
        count(&each, now);
    }
    printf("kernels %.1f %.4f\nworst_second %ld\n", (double)n / (now - start), now - start,
           each.least);
    print_waits();
    EX_CHECK(cuStreamSynchronize(s));
    EX_CHECK(cuEventDestroy(events[0]));
    EX_CHECK(cuEventDestroy(events[1]));
    EX_CHECK(cuStreamDestroy(s));
    ex_close(&d);
    return 0;
}
