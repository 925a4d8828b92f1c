/*
 * Kernels that launch kernels. Order, streams and errors are the CUDA C++ Programming Guide's,
 * "CUDA Dynamic Parallelism"; all of it also runs on a GPU with NVIDIA's device runtime, if
 * TAP_DEVRT names it (libcudadevrt.a).
 */
#include "tap.h"

#include <stdlib.h>
#include <string.h>

#define WORDS 8192

extern const char children_ptx[];

struct children {
    CUmodule module;
    CUdeviceptr out;
};

/* A GPU's driver needs NVIDIA's device runtime to link with. */
static CUmodule load(void)
{
    const char *runtime = getenv("TAP_DEVRT");
    CUmodule module;
    CUlinkState link;
    void *image;
    size_t size;
    if (!tap_gpu()) {
        OK(cuModuleLoadData(&module, children_ptx));
        return module;
    }
    if (!runtime)
        tap_skip("TAP_DEVRT does not name libcudadevrt.a");
    OK(cuLinkCreate(0, NULL, NULL, &link));
    OK(cuLinkAddData(link, CU_JIT_INPUT_PTX, (void *)(uintptr_t)children_ptx,
                     strlen(children_ptx) + 1, "children.ptx", 0, NULL, NULL));
    OK(cuLinkAddFile(link, CU_JIT_INPUT_LIBRARY, runtime, 0, NULL, NULL));
    OK(cuLinkComplete(link, &image, &size));
    OK(cuModuleLoadData(&module, image));
    OK(cuLinkDestroy(link));
    return module;
}

static struct children begin(void)
{
    struct children c;
    if (!tap_computes())
        tap_skip("a device that computes nothing");
    c.module = load();
    OK(cuMemAlloc(&c.out, WORDS * 4));
    OK(cuMemsetD32(c.out, 0, WORDS));
    return c;
}

static void end(struct children *c)
{
    OK(cuMemFree(c->out));
    OK(cuModuleUnload(c->module));
}

static void launch(const struct children *c, const char *name, unsigned blocks, unsigned threads,
                   uint32_t a, uint32_t b)
{
    CUfunction f;
    CUdeviceptr out = c->out;
    void *params[] = { &out, &a, &b };
    OK(cuModuleGetFunction(&f, c->module, name));
    OK(cuLaunchKernel(f, blocks, 1, 1, threads, 1, 1, 0, NULL, params, NULL));
}

/* In the order of their launches, each with its own children; those of the tail stream last. Ten
 * times, since compiled code takes over. */
static void in_order(void)
{
    static const uint32_t want[] = { 1, 11, 12, 121, 122, 1221, 1224, 1223, 124, 123, 14, 13 };
    struct children c = begin();
    for (unsigned round = 0; round < 10; round++) {
        uint32_t got[1 + COUNT(want)];
        OK(cuMemsetD32(c.out, 0, WORDS));
        launch(&c, "tree", 1, 1, 1, 0);
        OK(cuMemcpyDtoH(got, c.out, sizeof(got)));
        EQ(got[0], COUNT(want));
        for (unsigned i = 0; i < COUNT(want); i++)
            EQ(got[1 + i], want[i]);
    }
    end(&c);
}

/* What comes behind the parent in its stream finds all children done. */
static void by_many(void)
{
    static uint32_t got[1 + 4 * 96];
    struct children c = begin();
    for (unsigned round = 0; round < 10; round++) {
        OK(cuMemsetD32(c.out, 0, WORDS));
        launch(&c, "many", 4, 96, 5, 0);
        OK(cuMemcpyDtoH(got, c.out, sizeof(got)));
        EQ(got[0], 4 * 96);
        for (unsigned i = 0; i < 4 * 96; i++)
            EQ(got[1 + i], 5);
    }
    end(&c);
}

static void answer(const struct children *c, uint32_t threads, uint32_t shared, uint32_t *got)
{
    OK(cuMemsetD32(c->out, 0, WORDS));
    launch(c, "answer", 1, 1, threads, shared);
    OK(cuMemcpyDtoH(got, c->out, 18 * 4));
}

static void configurations(void)
{
    struct children c = begin();
    uint32_t got[18];
    answer(&c, 1, 0, got);
    EQ(got[0], 0);
    EQ(got[1], 0);
    EQ(got[16], 1);
    EQ(got[17], 7);
    static const struct {
        uint32_t threads, shared;
    } wrong[] = { { 0, 0 }, { 1025, 0 }, { 1, 1u << 24 } };
    for (unsigned i = 0; i < COUNT(wrong); i++) {
        answer(&c, wrong[i].threads, wrong[i].shared, got);
        EQ(got[16], 0);
        EQ(got[0], 9);
        EQ(got[1], 9);
        EQ(got[2], 9);
        EQ(got[3], 0);
    }
    answer(&c, 1, 0, got);
    EQ(got[0], 0);
    EQ(got[16], 1);
    end(&c);
}

/* NVIDIA's fills were not seen to do anything where this was tried (driver 580.159.04). */
static void copies(void)
{
    struct children c = begin();
    uint32_t got[112];
    if (tap_gpu())
        OK(cuMemsetD32(c.out, 0x5a5a5a5a, 10));
    else
        launch(&c, "fill", 1, 1, 0, 0);
    launch(&c, "move", 1, 1, 0, 0);
    OK(cuMemcpyDtoH(got, c.out, sizeof(got)));
    for (unsigned i = 0; i < 12; i++) {
        EQ(got[i], i < 10 ? 0x5a5a5a5a : 0);
        EQ(got[100 + i], i < 10 ? 0x5a5a5a5a : 0);
    }
    end(&c);
}

/* A thread's mistakes are its own, and nothing is left of them for the next launch. */
static void errors(void)
{
    static const uint32_t want[] = { 21, 1, 1, 1, 1, 1, 0, 0, 1, 0, 0, 0 };
    struct children c = begin();
    for (unsigned threads = 4; threads; threads -= 2) {
        uint32_t got[COUNT(want)];
        OK(cuMemsetD32(c.out, 0, WORDS));
        launch(&c, "errors", 1, threads, 0, 0);
        OK(cuMemcpyDtoH(got, c.out, sizeof(got)));
        for (unsigned i = 0; i < COUNT(want); i++)
            EQ(got[i], want[i]);
    }
    uint32_t got[18];
    answer(&c, 1, 0, got);
    EQ(got[1], 0);
    end(&c);
}

/* A child's fault is the launch's, and nothing runs behind it. */
static void fault(void)
{
    struct children c = begin();
    launch(&c, "fault", 1, 1, 0, 0);
    IS(cuCtxSynchronize(), CUDA_ERROR_ILLEGAL_ADDRESS);
    IS(cuMemFree(c.out), CUDA_ERROR_ILLEGAL_ADDRESS);
}

int main(void)
{
    static const struct tap_test tests[] = { TEST(in_order), TEST(by_many), TEST(configurations),
                                             TEST(copies),   TEST(errors),  TEST(fault) };
    return tap_main(tests, COUNT(tests));
}
