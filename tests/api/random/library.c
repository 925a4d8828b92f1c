/* Libraries, their kernels, and the linker. */
#include "random.h"

typedef const char *text;

static const char *library(int slot)
{
    return random_name(LIBRARY, slot);
}

static const char *kernel(int slot)
{
    return random_name(KERNEL, slot);
}

static void load(void)
{
    int slot = random_free_slot(LIBRARY);
    CUlibrary l = NULL;
    bool preserve = random_chance(4);
    CUlibraryOption option = CU_LIBRARY_BINARY_IS_PRESERVED;
    void *value = (void *)1;
    random_settle();
    random_say("cuLibraryLoadData(%s, kernels%s)", library(slot), preserve ? ", preserved" : "");
    if (random_done(cuLibraryLoadData(&l, tap_ptx, NULL, NULL, 0, preserve ? &option : NULL,
                                      preserve ? &value : NULL, preserve)) != CUDA_SUCCESS)
        return;
    random_keep(LIBRARY, slot, (uintptr_t)l, 0);
    random_at(LIBRARY, slot)->owner = -1;
    random_drop_of(KERNEL, slot);
}

static void unload(void)
{
    int slot = random_pick_or_null(LIBRARY);
    if (random_graphs())
        return;
    random_settle();
    random_say("cuLibraryUnload(%s)", library(slot));
    if (random_done(cuLibraryUnload(HANDLE(CUlibrary, LIBRARY, slot))) != CUDA_SUCCESS || slot < 0)
        return;
    random_drop(LIBRARY, slot);
    random_drop_of(KERNEL, slot);
}

static void get_kernel(void)
{
    int l = random_pick_or_null(LIBRARY), slot = random_free_slot(KERNEL);
    text name =
        ONE_OF(text, "store_index", "mixed", "uses_shared", "nothing", "bounded", "none", "", NULL);
    CUkernel k = NULL;
    random_say("cuLibraryGetKernel(%s, %s, %s)", kernel(slot), library(l), name ? name : "NULL");
    if (random_done(cuLibraryGetKernel(&k, HANDLE(CUlibrary, LIBRARY, l), name)) != CUDA_SUCCESS)
        return;
    random_keep(KERNEL, slot, (uintptr_t)k, 0);
    random_at(KERNEL, slot)->owner = -1;
    random_at(KERNEL, slot)->how = l;
}

static void count_kernels(void)
{
    int l = random_pick_or_null(LIBRARY);
    unsigned count = 0;
    CUkernel list[20];
    CUmodule m = NULL;
    random_say("cuLibraryGetKernelCount(%s)", library(l));
    if (random_done(cuLibraryGetKernelCount(&count, HANDLE(CUlibrary, LIBRARY, l))) == CUDA_SUCCESS)
        random_out("%u", count);
    count = random_below(20);
    random_say("cuLibraryEnumerateKernels(%u, %s)", count, library(l));
    random_done(cuLibraryEnumerateKernels(list, count, HANDLE(CUlibrary, LIBRARY, l)));
    random_say("cuLibraryGetModule(%s)", library(l));
    if (random_done(cuLibraryGetModule(&m, HANDLE(CUlibrary, LIBRARY, l))) == CUDA_SUCCESS)
        random_out("%s", m ? "a module" : "none");
}

static void variables(void)
{
    int l = random_pick_or_null(LIBRARY);
    text name = ONE_OF(text, "counter", "buffer", "table", "nothing", "none", "");
    CUdeviceptr p = 0;
    size_t size = 0;
    void *f = NULL;
    unsigned which = random_below(3);
    random_settle();
    random_say("cuLibraryGet%s(%s, %s)",
               which == 0   ? "Global"
               : which == 1 ? "Managed"
                            : "UnifiedFunction",
               library(l), name);
    CUresult r = random_done(
        which == 0   ? cuLibraryGetGlobal(&p, &size, HANDLE(CUlibrary, LIBRARY, l), name)
        : which == 1 ? cuLibraryGetManaged(&p, &size, HANDLE(CUlibrary, LIBRARY, l), name)
                     : cuLibraryGetUnifiedFunction(&f, HANDLE(CUlibrary, LIBRARY, l), name));
    if (r == CUDA_SUCCESS)
        random_out("%zu", size);
}

static void kernel_attribute(void)
{
    int k = random_pick_or_null(KERNEL), value = 0,
        what = ONE_OF(int, 0, 1, 2, 3, 4, 8, 8, 8, 9, 9, 10, 16);
    CUdevice d = random_chance(10) ? 99 : 0;
    if (random_chance(2)) {
        value = what == CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES
                    ? ONE_OF(int, 0, 1000, 49152, 49153, -1, 1 << 20)
                    : ONE_OF(int, 0, 1, 50, 101, -1, -2);
        random_say("cuKernelSetAttribute(%d, %d, %s, %d)", what, value, kernel(k), d);
        random_done(cuKernelSetAttribute((CUfunction_attribute)what, value,
                                         HANDLE(CUkernel, KERNEL, k), d));
    }
    random_say("cuKernelGetAttribute(%d, %s, %d)", what, kernel(k), d);
    if (random_done(cuKernelGetAttribute(&value, (CUfunction_attribute)what,
                                         HANDLE(CUkernel, KERNEL, k), d)) == CUDA_SUCCESS &&
        (what == 1 || what >= CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES))
        random_out("%d", value);
}

static void ask_kernel(void)
{
    int k = random_pick_or_null(KERNEL), config = ONE_OF(int, 0, 1, 4, -1);
    CUlibrary l = NULL;
    CUfunction f = NULL;
    text name = NULL;
    size_t index = random_below(7), offset = 0, size = 0;
    random_say("cuKernelGetName(%s)", kernel(k));
    if (random_done(cuKernelGetName(&name, HANDLE(CUkernel, KERNEL, k))) == CUDA_SUCCESS)
        random_out("%s", name);
    random_say("cuKernelGetLibrary(%s)", kernel(k));
    if (random_done(cuKernelGetLibrary(&l, HANDLE(CUkernel, KERNEL, k))) == CUDA_SUCCESS)
        random_out("%s", library(random_find(LIBRARY, (uintptr_t)l)));
    random_say("cuKernelGetParamInfo(%s, %zu)", kernel(k), index);
    if (random_done(cuKernelGetParamInfo(HANDLE(CUkernel, KERNEL, k), index, &offset, &size)) ==
        CUDA_SUCCESS)
        random_out("%zu %zu", offset, size);
    random_say("cuKernelGetFunction(%s)", kernel(k));
    random_done(cuKernelGetFunction(&f, HANDLE(CUkernel, KERNEL, k)));
    random_say("cuKernelSetCacheConfig(%s, %d)", kernel(k), config);
    random_done(cuKernelSetCacheConfig(HANDLE(CUkernel, KERNEL, k), (CUfunc_cache)config, 0));
}

/* A kernel is launched as a function, in whatever context is current. */
static void launch(void)
{
    int k = random_pick(KERNEL), s = random_pick_stream(), b = random_buffer(4096);
    text name = NULL;
    uint64_t out;
    uint32_t n = 100;
    void *list[] = { &out, &n };
    if (k < 0 || b < 0 || cuKernelGetName(&name, HANDLE(CUkernel, KERNEL, k)) != CUDA_SUCCESS ||
        strcmp(name, "mixed") == 0)
        return;
    out = random_handle(BUFFER, b);
    random_use(s);
    random_say("cuLaunchKernel(%s of %s, buffer%d, %s)", name, kernel(k), b,
               random_name(STREAM, s));
    random_done(cuLaunchKernel(HANDLE(CUfunction, KERNEL, k), 1, 1, 1, 32, 1, 1, 0,
                               random_stream(s), list, NULL));
    random_used(s);
}

static void link_create(void)
{
    int slot = random_free_slot(LINKER);
    CUlinkState l = NULL;
    if (random_current() < 0)
        return;
    random_say("cuLinkCreate(%s)", random_name(LINKER, slot));
    if (random_done(cuLinkCreate(0, NULL, NULL, &l)) == CUDA_SUCCESS)
        random_keep(LINKER, slot, (uintptr_t)l, 0);
}

static void link_add(void)
{
    static char whole[] =
        ".version 6.4\n.target sm_60\n.address_size 64\n.visible .func (.param .b32 r) one()\n"
        "{ .reg .b32 %r<2>; mov.u32 %r1, 1; st.param.b32 [r], %r1; ret; }\n"
        ".visible .entry linked() { ret; }\n",
                bad[] =
                    ".version 6.4\n.target sm_60\n.address_size 64\n.visible .entry k() { rat; }\n",
                lacking[] =
                    ".version 6.4\n.target sm_60\n.address_size 64\n.extern .func lost ();\n"
                    ".visible .entry k2() { call lost, (); ret; }\n";
    int l = random_pick(LINKER);
    unsigned which = ONE_OF(unsigned, 0, 0, 1, 2, 3);
    int type = ONE_OF(int, 1, 1, 1, 1, 0, 2, 3, 99);
    char *data = which == 0 ? whole : which == 1 ? bad : lacking;
    size_t size = which == 3 ? 0 : strlen(data) + 1;
    if (l < 0)
        return;
    random_settle();
    random_say("cuLinkAddData(%s, %d, %s)", random_name(LINKER, l), type,
               which == 0   ? "whole"
               : which == 1 ? "bad"
               : which == 2 ? "lacking"
                            : "nothing");
    random_done(cuLinkAddData(HANDLE(CUlinkState, LINKER, l), (CUjitInputType)type, data, size,
                              "text", 0, NULL, NULL));
}

static void link_complete(void)
{
    int l = random_pick(LINKER);
    void *image = NULL;
    size_t size = 0;
    CUmodule m = NULL;
    if (l < 0)
        return;
    random_settle();
    random_say("cuLinkComplete(%s)", random_name(LINKER, l));
    if (random_done(cuLinkComplete(HANDLE(CUlinkState, LINKER, l), &image, &size)) ==
        CUDA_SUCCESS) {
        random_out("%s", image && size ? "an image" : "nothing");
        random_say("cuModuleLoadData(linked)");
        if (random_done(cuModuleLoadData(&m, image)) == CUDA_SUCCESS) {
            CUfunction f = NULL;
            random_say("cuModuleGetFunction(linked)");
            random_done(cuModuleGetFunction(&f, m, "linked"));
            random_say("cuModuleUnload(linked)");
            random_done(cuModuleUnload(m));
        }
    }
    random_say("cuLinkDestroy(%s)", random_name(LINKER, l));
    if (random_done(cuLinkDestroy(HANDLE(CUlinkState, LINKER, l))) == CUDA_SUCCESS)
        random_drop(LINKER, l);
}

static void begin_libraries(void)
{
    load();
    for (unsigned i = 0; i < 4; i++)
        get_kernel();
    link_create();
    link_add();
}

static const struct random_generator libraries[] = {
    GENERATOR(load, 3),          GENERATOR(unload, 1),        GENERATOR(get_kernel, 6),
    GENERATOR(count_kernels, 2), GENERATOR(variables, 4),     GENERATOR(kernel_attribute, 6),
    GENERATOR(ask_kernel, 3),    GENERATOR(launch, 6),        GENERATOR(link_create, 2),
    GENERATOR(link_add, 3),      GENERATOR(link_complete, 3),
};
const struct random_subject random_libraries = SUBJECT(libraries, begin_libraries);
