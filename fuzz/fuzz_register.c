/*
 * What programs register before main(), as no compiler would write it: handles that were not given
 * out or are given back, one address twice, names that are none, images that do not load; and
 * look-ups and resets in between. A model says what each look-up is to find. The driver is one of
 * the fuzzer's own, which counts what is loaded.
 */
#include <stdlib.h>
#include <string.h>

#include "cudart/cudart.h"

#define IMAGES 6
#define HOSTS  64
#define SLOTS  8

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool fact)
{
    if (!fact)
        abort();
}

/* --- the driver: an image's name is what its wrapper points to ----------------------------------
 */

static const struct wrapper {
    uint32_t magic, version;
    const void *data, *list;
} wrappers[] = {
    { 0x466243b1u, 1, "a", NULL },
    { 0x466243b1u, 1, "b", NULL },
    { 0x466243b1u, 1, "!", NULL }, /* does not load */
    { 0, 1, "c", NULL },
};

static struct library {
    const char *image; /* NULL: not loaded */
} libraries[64];

cudaError_t crt_enter(void)
{
    return cudaSuccess;
}

static const struct library *loaded(CUlibrary l)
{
    const struct library *at = (const struct library *)l;
    require(at >= libraries && at < libraries + 64 && at->image);
    return at;
}

CUresult cuLibraryLoadData(CUlibrary *library, const void *code, CUjit_option *a, void **b,
                           unsigned c, CUlibraryOption *d, void **e, unsigned f)
{
    const struct wrapper *w = code;
    if (strcmp(w->data, "!") == 0)
        return CUDA_ERROR_INVALID_PTX;
    for (int i = 0; i < 64; i++)
        if (!libraries[i].image) {
            libraries[i].image = w->data;
            *library = (CUlibrary)&libraries[i];
            return CUDA_SUCCESS;
        }
    abort();
}

CUresult cuLibraryUnload(CUlibrary library)
{
    ((struct library *)(uintptr_t)loaded(library))->image = NULL;
    return CUDA_SUCCESS;
}

/* What is found: the image's letter and the name's. */
static uint64_t thing(const char *image, const char *name)
{
    return (uint64_t)*image << 32 | (uint64_t)(unsigned char)*name << 16 | 1;
}

static CUresult look(CUlibrary library, const char *name, uint64_t *out)
{
    if (*name == 'x')
        return CUDA_ERROR_NOT_FOUND;
    *out = thing(loaded(library)->image, name);
    return CUDA_SUCCESS;
}

CUresult cuLibraryGetKernel(CUkernel *kernel, CUlibrary library, const char *name)
{
    uint64_t v;
    CUresult r = look(library, name, &v);
    if (!r)
        *kernel = (CUkernel)(uintptr_t)v;
    return r;
}

CUresult cuLibraryGetGlobal(CUdeviceptr *p, size_t *bytes, CUlibrary library, const char *name)
{
    uint64_t v;
    CUresult r = look(library, name, &v);
    if (!r)
        *p = v;
    return r;
}

CUresult cuLibraryGetManaged(CUdeviceptr *p, size_t *bytes, CUlibrary library, const char *name)
{
    return cuLibraryGetGlobal(p, bytes, library, name);
}

CUresult cuKernelGetFunction(CUfunction *function, CUkernel kernel)
{
    *function = (CUfunction)kernel;
    return CUDA_SUCCESS;
}

/* --- the model ----------------------------------------------------------------------------------
 */

static char hosts[HOSTS], long_name[70000];
static void *slots[SLOTS];

static struct {
    void **handle; /* NULL: not registered */
    unsigned wrapper;
    bool tried, lacks_managed;
    cudaError_t result;
} images[IMAGES];

static struct symbol {
    int image; /* -1: none */
    bool is_kernel;
    const char *name;
} symbols[HOSTS + SLOTS];

static cudaError_t load(int i)
{
    if (images[i].tried)
        return images[i].result;
    images[i].tried = true;
    images[i].result = images[i].wrapper == 3    ? cudaErrorInvalidKernelImage
                       : images[i].wrapper == 2  ? cudaErrorInvalidPtx
                       : images[i].lacks_managed ? cudaErrorSymbolNotFound
                                                 : cudaSuccess;
    return images[i].result;
}

static void note(void **handle, unsigned at, bool is_kernel, const char *name)
{
    for (int i = 0; i < IMAGES; i++)
        if (handle && images[i].handle == handle && name && name != long_name)
            symbols[at] = (struct symbol) { i, is_kernel, name };
}

static void check(unsigned at, bool want_kernel)
{
    const void *host = at < HOSTS ? (const void *)&hosts[at] : (const void *)&slots[at - HOSTS];
    const struct symbol *s = &symbols[at];
    const cudaError_t missing =
        want_kernel ? cudaErrorInvalidDeviceFunction : cudaErrorInvalidSymbol;
    const cudaError_t unknown =
        want_kernel && CUDART_VERSION >= 13000 ? cudaErrorInvalidResourceHandle : missing;
    cudaError_t r, want = unknown;
    uint64_t found = 0;
    if (s->image >= 0 && s->is_kernel == want_kernel) {
        cudaError_t l = load(s->image);
        want = l ? l : *s->name == 'x' ? missing : cudaSuccess;
    }
    if (want_kernel) {
        CUkernel k = NULL;
        r = crt_kernel(host, &k);
        found = (uintptr_t)k;
    } else {
        CUdeviceptr p = 0;
        size_t size;
        r = crt_variable(host, &p, &size);
        found = p;
    }
    require(r == want);
    require(r || found == thing(wrappers[images[s->image].wrapper].data, s->name));
}

static void unregister(int i)
{
    __cudaUnregisterFatBinary(images[i].handle);
    images[i].handle = NULL;
    for (int k = 0; k < HOSTS + SLOTS; k++)
        if (symbols[k].image == i)
            symbols[k].image = -1;
}

/* A handle that is registered, was, never was, or none. */
static void **some_handle(unsigned a)
{
    unsigned i = a % IMAGES;
    switch (a >> 6) {
    case 2:
        return images[i].handle ? images[i].handle : (void **)images;
    case 3:
        return a & 32 ? NULL : (void **)&hosts[1];
    default:
        return images[i].handle;
    }
}

static void step(unsigned op, unsigned a, unsigned b)
{
    static const char *const names[] = { "k", "v", "x", "", NULL, long_name };
    const char *name = names[a / IMAGES % 6];
    int i = (int)(a % IMAGES);
    void **handle = some_handle(a);
    unsigned at = b % (HOSTS + SLOTS);
    switch (op) {
    case 0:
        if (images[i].handle)
            unregister(i);
        else {
            memset(&images[i], 0, sizeof(images[i]));
            images[i].wrapper = b % 4;
            images[i].handle = __cudaRegisterFatBinary((void *)(uintptr_t)&wrappers[b % 4]);
        }
        return;
    case 1:
        __cudaRegisterFunction(handle, &hosts[b % HOSTS], NULL, name, -1, NULL, NULL, NULL, NULL,
                               NULL);
        note(handle, b % HOSTS, true, name);
        return;
    case 2:
        __cudaRegisterVar(handle, &hosts[b % HOSTS], NULL, name, 0, b, 0, 0);
        note(handle, b % HOSTS, false, name);
        return;
    case 3:
        __cudaRegisterManagedVar(handle, &slots[b % SLOTS], NULL, name, 0, b, 0, 0);
        note(handle, HOSTS + b % SLOTS, false, name);
        for (int k = 0; k < IMAGES; k++)
            if (handle && images[k].handle == handle && name && *name == 'x')
                images[k].lacks_managed = true;
        return;
    case 4:
        crt_forget_images();
        for (int k = 0; k < IMAGES; k++)
            images[k].tried = false;
        return;
    case 5:
        if (handle && handle == images[i].handle)
            require(__cudaInitModule(handle) == !load(i));
        else if (handle)
            require(!__cudaInitModule(handle));
        return;
    case 6:
        check(at, true);
        return;
    default:
        check(at, false);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (!*long_name)
        memset(long_name, 'k', sizeof(long_name) - 1);
    for (int k = 0; k < HOSTS + SLOTS; k++)
        symbols[k].image = -1;
    for (size_t i = 0; i + 3 <= size; i += 3)
        step(data[i] % 8, data[i + 1], data[i + 2]);
    for (int i = 0; i < IMAGES; i++)
        if (images[i].handle)
            unregister(i);
    for (int i = 0; i < 64; i++)
        require(!libraries[i].image);
    return 0;
}
