/*
 * A library made from the small specification, used as a program would: calls before and after
 * cuInit, variants with per-thread streams, functions that nobody wrote, a table loaded from
 * elsewhere, look-ups by name. Prints what happens; test_generator.py compares that with
 * tests/gen/expected/small_main.golden.
 */
#include "client/gen/api.h"

#include <stdio.h>
#include <string.h>

CUresult rt_cuGetErrorName(CUresult error, const char **pStr);
CUresult rt_cuGetErrorString(CUresult error, const char **pStr);

CUresult rt_cuInit(unsigned int Flags)
{
    printf("rt_cuInit(%u)\n", Flags);
    rt_api_activate(&rt_api_session);
    return CUDA_SUCCESS;
}

CUresult rt_cuMemAlloc_v2(CUdeviceptr *dptr, size_t bytesize)
{
    if (!bytesize)
        return CUDA_ERROR_INVALID_VALUE;
    *dptr = 0x400000000000;
    return CUDA_SUCCESS;
}

CUresult rt_cuMemcpy_v2(CUdeviceptr dst, const void *src, size_t count)
{
    (void)dst;
    (void)src;
    (void)count;
    printf("rt_cuMemcpy_v2 on default stream %p\n", (void *)rt_default_stream);
    return CUDA_SUCCESS;
}

static CUresult other_name(char *name, int len, CUkind kind)
{
    snprintf(name, (size_t)len, "the \"other\"\n%d", kind);
    return CUDA_SUCCESS;
}

static void *look_up(void *arg, const char *symbol)
{
    CUresult (*f)(char *, int, CUkind) = other_name;
    void *p;
    memcpy(&p, &f, sizeof(p));
    ++*(int *)arg;
    return strcmp(symbol, "cuGetName") == 0 ? p : NULL;
}

static void look_for(const char *name, int version, unsigned flags)
{
    void *found = &found;
    CUdriverProcAddressQueryResult status = CU_GET_PROC_ADDRESS_SUCCESS;
    CUresult r = cuGetProcAddress_v2(name, &found, version, flags, &status);
    const struct {
        const char *name;
        void *p;
    } known[] = {
        { "cuMemAlloc", (void *)cuMemAlloc },
        { "cuMemAlloc_v2", (void *)cuMemAlloc_v2 },
        { "cuMemcpy_v2", (void *)cuMemcpy_v2 },
        { "cuMemcpy_v2_ptds", (void *)cuMemcpy_v2_ptds },
        { "cuStreamSet", (void *)cuStreamSet },
        { "cuStreamSet_v2_ptsz", (void *)cuStreamSet_v2_ptsz },
        { "NULL", NULL },
    };
    const char *what = "something else";
    for (size_t i = 0; i < GM_ARRAY_LEN(known); i++)
        if (known[i].p == found)
            what = known[i].name;
    printf("look for %s %d %u: %d %s %d\n", name, version, flags, r, r == CUDA_SUCCESS ? what : "-",
           status);
}

static void show(const char *what, int result)
{
    printf("%s: %d\n", what, result);
}

int main(void)
{
    static struct rt_api other;
    CUdeviceptr p = 0;
    CUvalue value = { .number = 7 };
    unsigned int old = 0;
    char name[32] = "";
    int asked = 0;

    setvbuf(stdout, NULL, _IONBF, 0);
    show("before", cuMemAlloc_v2(&p, 1));
    show("before, per thread", cuMemcpy_v2_ptds(0, NULL, 0));
    look_for("cuMemAlloc", 13000, 0);
    show("init", cuInit(0));
    show("session", rt_api_current() == &rt_api_session);
    show("alloc", cuMemAlloc_v2(&p, 1));
    printf("allocated: %#llx\n", p);
    show("alloc nothing", cuMemAlloc_v2(&p, 0));
    show("missing", cuMemAlloc(&old, 1));
    show("missing again", cuMemAlloc(&old, 1));
    show("copy", cuMemcpy_v2(p, "abc", 3));
    show("copy, per thread", cuMemcpy_v2_ptds(p, "abc", 3));
    printf("default stream after it: %p\n", (void *)rt_default_stream);
    show("set", cuStreamSet(CU_STREAM_LEGACY, &value, NULL, "why", 1.5f, 0x11));
    show("set, per thread", cuStreamSet_v2_ptsz(NULL, value));
    unsigned found = rt_api_load(&other, look_up, &asked);
    printf("loaded %u of %d\n", found, asked);
    rt_api_activate(&other);
    show("other", cuGetName(name, sizeof(name), CU_KIND_B));
    printf("its name: %s\n", name);
    show("not in the other", cuMemAlloc_v2(&p, 1));
    rt_api_activate(&rt_api_session);
    look_for("cuMemAlloc", 2000, 0);
    look_for("cuMemAlloc", 3010, 2);
    look_for("cuMemAlloc", 1000, 0);
    look_for("cuMemAlloc_v2", 13000, 0);
    look_for("", 13000, 0);
    look_for("cuMemcpy", 13000, 1);
    look_for("cuMemcpy", 13000, 2);
    look_for("cuMemcpy", 5000, 2);
    look_for("cuStreamSet", 11000, 1);
    look_for("cuStreamSet", 13000, 2);
    look_for("cuMemAlloc", 13000, 4);
    look_for("cuMemAlloc", 13000, 3);
    void *pfn;
    show("first form", cuGetProcAddress("cuMemAlloc", &pfn, 2000, 0));
    show("first form, nothing", cuGetProcAddress("cuNothing", &pfn, 2000, 0));
    show("no status", cuGetProcAddress_v2("cuNothing", &pfn, 2000, 0, NULL));
    printf("texts: %s, %s, %s\n", rt_error_name(CUDA_ERROR_NOT_SUPPORTED),
           rt_error_text(CUDA_ERROR_NOT_SUPPORTED), rt_error_name((CUresult)4) ? "?" : "none");
    return 0;
}
