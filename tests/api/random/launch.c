/* Launches: with parameters as an array and as a buffer, good and bad shapes, shared memory,
 * attributes; and the fault that may end a program. */
#include <stdio.h>

#include "random.h"

#define ROOM 4096u /* what a kernel may write */

/* What a kernel is given: its buffer first, but for `mixed`. */
struct parameters {
    uint8_t a;
    uint16_t c;
    uint32_t d, e[3];
    uint64_t b, out;
    void *list[8];
    unsigned char packed[64];
    size_t packed_size;
};

enum kernel { STORE_INDEX, ADD_TO, MIXED, READ_GLOBALS, USES_SHARED, NOTHING, BOUNDED, POKE };

static void put(struct parameters *p, size_t at, const void *value, size_t size)
{
    memcpy(p->packed + at, value, size);
    p->packed_size = at + size;
}

static void fill_in(struct parameters *p, enum kernel kernel, CUdeviceptr out)
{
    *p = (struct parameters) { .out = out };
    p->a = (uint8_t)random_below(256);
    p->b = random_below(1000);
    p->c = (uint16_t)random_below(1000);
    p->d = kernel == STORE_INDEX ? random_below(ROOM / 4) : random_below(1000);
    p->e[0] = p->e[1] = p->e[2] = random_below(100);
    if (kernel == MIXED) {
        void *list[] = { &p->a, &p->b, &p->c, &p->d, p->e, &p->out };
        memcpy(p->list, list, sizeof(list));
        put(p, 0, &p->a, 1);
        put(p, 8, &p->b, 8);
        put(p, 16, &p->c, 2);
        put(p, 20, &p->d, 4);
        put(p, 24, p->e, 12);
        put(p, 40, &p->out, 8);
        return;
    }
    p->list[0] = &p->out;
    p->list[1] = &p->d;
    put(p, 0, &p->out, 8);
    if (kernel == STORE_INDEX || kernel == ADD_TO)
        put(p, 8, &p->d, 4);
}

/* A launch whose result does not depend on the order of its threads. */
struct shape {
    unsigned grid[3], block[3], shared;
};

static struct shape good_shape(enum kernel kernel)
{
    struct shape s = { { 1, 1, 1 }, { 1, 1, 1 }, 0 };
    s.block[0] = 1 + random_below(32);
    if (kernel == NOTHING || kernel == STORE_INDEX || kernel == USES_SHARED || kernel == MIXED)
        s.grid[0] = 1 + random_below(20);
    if (kernel == STORE_INDEX || kernel == USES_SHARED || kernel == NOTHING)
        s.block[0] = 1 + random_below(1024);
    if (kernel == NOTHING && random_chance(2)) {
        s.block[0] = 1 + random_below(16);
        s.block[1] = 1 + random_below(16);
        s.grid[1] = 1 + random_below(8);
        s.grid[2] = 1 + random_below(8);
    }
    if (random_chance(4))
        s.shared = ONE_OF(unsigned, 1, 1000, 16384, 45056);
    return s;
}

static void spoil(struct shape *s)
{
    unsigned what = random_below(8);
    if (what < 3)
        s->grid[what] = what ? ONE_OF(unsigned, 0, 65536, UINT32_MAX)
                             : ONE_OF(unsigned, 0, 0x80000000, UINT32_MAX);
    else if (what < 6)
        s->block[what - 3] = what == 5 ? ONE_OF(unsigned, 0, 65, 1024, UINT32_MAX)
                                       : ONE_OF(unsigned, 0, 1025, 2048, UINT32_MAX);
    else
        s->shared = ONE_OF(unsigned, 45057, 49152, 49153, 65536, 1 << 20, UINT32_MAX);
}

static const char *say_shape(const struct shape *s)
{
    static char text[120];
    snprintf(text, sizeof(text), "%u %u %u, %u %u %u, %u", s->grid[0], s->grid[1], s->grid[2],
             s->block[0], s->block[1], s->block[2], s->shared);
    return text;
}

/* Finds a function and a buffer for it; false if there are none. */
static bool prepare(int *f, int *b, struct parameters *p, struct shape *s)
{
    *f = random_pick_owned(FUNCTION);
    *b = random_buffer(ROOM);
    if (*f < 0 || *b < 0)
        return false;
    enum kernel kernel = (enum kernel)random_at(FUNCTION, *f)->mark;
    fill_in(p, kernel, random_handle(BUFFER, *b));
    *s = good_shape(kernel);
    if (random_chance(5))
        spoil(s);
    return true;
}

static const char *kernel_name(int f)
{
    return random_kernels[random_at(FUNCTION, f)->mark];
}

static void launch(void)
{
    int f, b, stream = random_pick_stream();
    struct parameters p;
    struct shape s;
    if (!prepare(&f, &b, &p, &s))
        return;
    random_use(stream);
    random_say("cuLaunchKernel(%s, %s, %s, buffer%d %u)", kernel_name(f), say_shape(&s),
               random_name(STREAM, stream), b, p.d);
    random_done(cuLaunchKernel(HANDLE(CUfunction, FUNCTION, f), s.grid[0], s.grid[1], s.grid[2],
                               s.block[0], s.block[1], s.block[2], s.shared, random_stream(stream),
                               p.list, NULL));
    random_used(stream);
}

static void launch_packed(void)
{
    int f, b, stream = random_pick_stream();
    unsigned wrong = random_below(12);
    struct parameters p;
    struct shape s;
    if (!prepare(&f, &b, &p, &s))
        return;
    size_t size = p.packed_size;
    void *extra[] = { CU_LAUNCH_PARAM_BUFFER_POINTER, p.packed, CU_LAUNCH_PARAM_BUFFER_SIZE, &size,
                      CU_LAUNCH_PARAM_END };
    /* With too few bytes a kernel is launched, and what it finds is not defined. */
    if (wrong == 0)
        size = ONE_OF(size_t, size + 4, size + 8, 60);
    else if (wrong == 1)
        extra[0] = (void *)7;
    else if (wrong == 2 && !size)
        extra[2] = CU_LAUNCH_PARAM_END;
    random_use(stream);
    random_say("cuLaunchKernel(%s, %s, %s, %s%zu bytes of buffer%d %u)", kernel_name(f),
               say_shape(&s), random_name(STREAM, stream),
               wrong == 1            ? "an unknown key, "
               : wrong == 2 && !size ? "without a size, "
                                     : "",
               size, b, p.d);
    random_done(cuLaunchKernel(HANDLE(CUfunction, FUNCTION, f), s.grid[0], s.grid[1], s.grid[2],
                               s.block[0], s.block[1], s.block[2], s.shared, random_stream(stream),
                               wrong == 3 ? p.list : NULL, extra));
    random_used(stream);
}

static void launch_cooperative(void)
{
    int f, b, stream = random_pick_stream();
    struct parameters p;
    struct shape s;
    if (!prepare(&f, &b, &p, &s))
        return;
    if (s.grid[0] > 1)
        s.grid[0] = 1;
    random_use(stream);
    random_say("cuLaunchCooperativeKernel(%s, %s, %s, buffer%d %u)", kernel_name(f), say_shape(&s),
               random_name(STREAM, stream), b, p.d);
    random_done(cuLaunchCooperativeKernel(HANDLE(CUfunction, FUNCTION, f), s.grid[0], s.grid[1],
                                          s.grid[2], s.block[0], s.block[1], s.block[2], s.shared,
                                          random_stream(stream), p.list));
    random_used(stream);
}

static void launch_extended(void)
{
    int f, b, stream = random_pick_stream();
    struct parameters p;
    struct shape s;
    CUlaunchAttribute attribute;
    memset(&attribute, 0, sizeof(attribute));
    attribute.id = (CUlaunchAttributeID)ONE_OF(int, 0, 2, 3, 8, 9, 9, 10, 77);
    attribute.value.priority = ONE_OF(int, 0, 1, 1, -1, 7);
    if (!prepare(&f, &b, &p, &s))
        return;
    CUlaunchConfig config = { .gridDimX = s.grid[0],
                              .gridDimY = s.grid[1],
                              .gridDimZ = s.grid[2],
                              .blockDimX = s.block[0],
                              .blockDimY = s.block[1],
                              .blockDimZ = s.block[2],
                              .sharedMemBytes = s.shared,
                              .hStream = random_stream(stream),
                              .attrs = &attribute,
                              .numAttrs = random_below(2) };
    random_use(stream);
    random_say("cuLaunchKernelEx(%s, %s, %s, %d: %d, buffer%d %u)", kernel_name(f), say_shape(&s),
               random_name(STREAM, stream), config.numAttrs ? (int)attribute.id : 0,
               config.numAttrs ? attribute.value.priority : 0, b, p.d);
    random_done(cuLaunchKernelEx(&config, HANDLE(CUfunction, FUNCTION, f), p.list, NULL));
    random_used(stream);
}

/* Parameters are never asked for where the function has none; where it has some, NULL is wrong. */
static void launch_without(void)
{
    int f = random_pick_or_null(FUNCTION), stream = random_pick_stream();
    if (f >= 0 && random_at(FUNCTION, f)->owner != random_current())
        return;
    if (f >= 0 && random_at(FUNCTION, f)->mark != NOTHING &&
        random_at(FUNCTION, f)->mark != BOUNDED)
        return;
    random_use(stream);
    random_say("cuLaunchKernel(%s, 1 1 1, 65 1 1, 0, %s, NULL, NULL)",
               f < 0 ? "NULL" : kernel_name(f), random_name(STREAM, stream));
    random_done(cuLaunchKernel(HANDLE(CUfunction, FUNCTION, f), 1, 1, 1, 65, 1, 1, 0,
                               random_stream(stream), NULL, NULL));
    random_used(stream);
}

const char *random_node_kernel(CUDA_KERNEL_NODE_PARAMS *params, CUdeviceptr out)
{
    static struct parameters p;
    int f = random_pick_owned(FUNCTION);
    enum kernel kernel = f < 0 ? POKE : (enum kernel)random_at(FUNCTION, f)->mark;
    if (kernel == ADD_TO || kernel == READ_GLOBALS || kernel == POKE)
        return NULL;
    fill_in(&p, kernel, out);
    if (kernel == STORE_INDEX)
        p.d %= 33;
    *params = (CUDA_KERNEL_NODE_PARAMS) {
        .func = HANDLE(CUfunction, FUNCTION, f),
        .gridDimX = 1,
        .gridDimY = 1,
        .gridDimZ = 1,
        .blockDimX = random_below(33),
        .blockDimY = 1,
        .blockDimZ = 1,
        .sharedMemBytes = ONE_OF(unsigned, 0, 0, 0, 1000, 1 << 20),
        .kernelParams = p.list,
    };
    return kernel_name(f);
}

static void occupancy(void)
{
    int f = random_pick_or_null(FUNCTION), blocks = -1;
    int size = ONE_OF(int, 0, 1, 32, 64, 65, 1024, 1025, -1);
    size_t shared = ONE_OF(size_t, 0, 1000, 49152, 1 << 20);
    unsigned flags = ONE_OF(unsigned, 0, 0, 1, 2);
    random_say("cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(%s, %d, %zu, %u)",
               random_name(FUNCTION, f), size, shared, flags);
    if (random_done(cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(
            &blocks, HANDLE(CUfunction, FUNCTION, f), size, shared, flags)) == CUDA_SUCCESS)
        random_out("%s", blocks > 0 ? "some" : blocks == 0 ? "none" : "fewer than none");
}

/* Ends a program: a kernel that writes where there is nothing, and what is answered then. */
void random_fault(void)
{
    CUmodule m = NULL;
    CUfunction f = NULL;
    uint64_t nowhere = 16;
    void *list[] = { &nowhere };
    if (random_capturing())
        return;
    random_settle();
    random_say("cuModuleLoadData(kernels)");
    if (random_done(cuModuleLoadData(&m, tap_ptx)) != CUDA_SUCCESS)
        return;
    random_say("cuModuleGetFunction(poke)");
    if (random_done(cuModuleGetFunction(&f, m, "poke")) != CUDA_SUCCESS)
        return;
    random_say("cuLaunchKernel(poke, nowhere)");
    random_done(cuLaunchKernel(f, 1, 1, 1, 1, 1, 1, 0, NULL, list, NULL));
    random_say("cuCtxSynchronize()");
    random_done(cuCtxSynchronize());
}

static const struct random_generator launches[] = {
    GENERATOR(launch, 12),         GENERATOR(launch_packed, 4),  GENERATOR(launch_cooperative, 2),
    GENERATOR(launch_extended, 4), GENERATOR(launch_without, 2), GENERATOR(occupancy, 3),
    GENERATOR(random_look, 2),
};
const struct random_subject random_launches = SUBJECT(launches, NULL);
