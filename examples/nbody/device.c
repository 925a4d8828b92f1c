/*
 * The simulation on the device: two position buffers that swap roles every step, velocities in
 * place.
 */
#include <stdlib.h>

#include "example.h"
#include "nbody.h"

struct bodies {
    CUdeviceptr pos[2];
    CUdeviceptr vel;
    void *host[3]; /* with -hostmem: the pinned memory behind them */
    size_t bytes;
    bool fp64;
    int current; /* pos[current] holds the latest positions */
};

static CUdeviceptr allocate(bool hostmem, size_t bytes, void **host)
{
    CUdeviceptr p;
    if (!hostmem) {
        EX_CHECK(cuMemAlloc(&p, bytes));
        return p;
    }
    EX_CHECK(cuMemHostAlloc(host, bytes, CU_MEMHOSTALLOC_DEVICEMAP));
    EX_CHECK(cuMemHostGetDevicePointer(&p, *host, 0));
    return p;
}

static void put(CUdeviceptr dst, const double *src, long count, bool fp64)
{
    if (fp64) {
        EX_CHECK(cuMemcpyHtoD(dst, src, (size_t)count * sizeof(double)));
        return;
    }
    float *f = malloc((size_t)count * sizeof(float));
    if (!f)
        exit(1);
    for (long i = 0; i < count; i++)
        f[i] = (float)src[i];
    EX_CHECK(cuMemcpyHtoD(dst, f, (size_t)count * sizeof(float)));
    free(f);
}

static void get(double *dst, CUdeviceptr src, long count, bool fp64)
{
    if (fp64) {
        EX_CHECK(cuMemcpyDtoH(dst, src, (size_t)count * sizeof(double)));
        return;
    }
    float *f = malloc((size_t)count * sizeof(float));
    if (!f)
        exit(1);
    EX_CHECK(cuMemcpyDtoH(f, src, (size_t)count * sizeof(float)));
    for (long i = 0; i < count; i++)
        dst[i] = (double)f[i];
    free(f);
}

static void bodies_create(struct bodies *b, const struct nbody_options *o,
                          const struct nbody_state *s)
{
    b->fp64 = o->fp64;
    b->bytes = (size_t)s->n * 4 * (o->fp64 ? sizeof(double) : sizeof(float));
    b->current = 0;
    b->pos[0] = allocate(o->hostmem, b->bytes, &b->host[0]);
    b->pos[1] = allocate(o->hostmem, b->bytes, &b->host[1]);
    b->vel = allocate(o->hostmem, b->bytes, &b->host[2]);
    put(b->pos[0], s->pos, s->n * 4, o->fp64);
    put(b->vel, s->vel, s->n * 4, o->fp64);
}

static void bodies_destroy(struct bodies *b, bool hostmem)
{
    if (hostmem) {
        for (int i = 0; i < 3; i++)
            EX_CHECK(cuMemFreeHost(b->host[i]));
        return;
    }
    EX_CHECK(cuMemFree(b->pos[0]));
    EX_CHECK(cuMemFree(b->pos[1]));
    EX_CHECK(cuMemFree(b->vel));
}

static void bodies_get(const struct bodies *b, struct nbody_state *s)
{
    get(s->pos, b->pos[b->current], s->n * 4, b->fp64);
    get(s->vel, b->vel, s->n * 4, b->fp64);
}

static void bodies_step(struct bodies *b, CUfunction f, long n, const struct nbody_step *step,
                        CUstream stream)
{
    int count = (int)n;
    double dt = step->dt, damping = step->damping, softening2 = step->softening * step->softening;
    float dt32 = (float)dt, damping32 = (float)damping, softening232 = (float)softening2;
    CUdeviceptr *to = &b->pos[1 - b->current], *from = &b->pos[b->current];
    void *params32[] = { to, from, &b->vel, &count, &dt32, &damping32, &softening232 };
    void *params64[] = { to, from, &b->vel, &count, &dt, &damping, &softening2 };
    EX_CHECK(cuLaunchKernel(f, (unsigned)(n / NBODY_TILE), 1, 1, NBODY_TILE, 1, 1, 0, stream,
                            b->fp64 ? params64 : params32, NULL));
    b->current = 1 - b->current;
}

double nbody_device_run(const struct nbody_options *o, const struct nbody_state *start,
                        const struct nbody_step *step, struct nbody_state *before,
                        struct nbody_state *after)
{
    struct ex_device d = ex_open((int)o->device, ex_ptx);
    CUfunction f = ex_function(&d, o->fp64 ? "nbody_f64" : "nbody_f32");
    struct bodies b;
    CUevent begin, end;
    float ms = 0;

    bodies_create(&b, o, start);
    EX_CHECK(cuEventCreate(&begin, CU_EVENT_DEFAULT));
    EX_CHECK(cuEventCreate(&end, CU_EVENT_DEFAULT));
    if (o->benchmark) {
        bodies_step(&b, f, start->n, step, NULL); /* the first launch also loads and compiles */
        EX_CHECK(cuCtxSynchronize());
        ex_gate();
    }
    EX_CHECK(cuEventRecord(begin, NULL));
    for (long i = 0; i < o->iterations; i++)
        bodies_step(&b, f, start->n, step, NULL);
    EX_CHECK(cuEventRecord(end, NULL));
    EX_CHECK(cuEventSynchronize(end));
    EX_CHECK(cuEventElapsedTime(&ms, begin, end));

    if (before)
        bodies_get(&b, before);
    if (after) {
        bodies_step(&b, f, start->n, step, NULL);
        bodies_get(&b, after);
    }
    EX_CHECK(cuEventDestroy(begin));
    EX_CHECK(cuEventDestroy(end));
    bodies_destroy(&b, o->hostmem);
    ex_close(&d);
    return (double)ms;
}
