/* Modules and their functions and variables. */
#include "random.h"

typedef const char *text;

static const char *module(int slot)
{
    return random_name(MODULE, slot);
}

static const char *function(int slot)
{
    return random_name(FUNCTION, slot);
}

const char *const random_kernels[] = { "store_index", "add_to",  "mixed",   "read_globals",
                                       "uses_shared", "nothing", "bounded", "poke" };

static void load(void)
{
    int slot = random_free_slot(MODULE);
    CUmodule m = NULL;
    random_settle();
    random_say("cuModuleLoadData(%s, kernels)", module(slot));
    if (random_done(cuModuleLoadData(&m, tap_ptx)) == CUDA_SUCCESS)
        random_keep(MODULE, slot, (uintptr_t)m, 0);
}

static void load_bad(void)
{
    static const struct {
        const char *name, *text;
    } bad[] = {
        { "empty", "" },
        { "nonsense", "nonsense" },
        { "version only", ".version 6.4\n" },
        { "no target", ".version 6.4\n.address_size 64\n.visible .entry k() { ret; }\n" },
        { "unknown target", ".version 6.4\n.target sm_61234\n.address_size 64\n" },
        { "future version", ".version 99.9\n.target sm_60\n.address_size 64\n" },
        { "no version", ".target sm_60\n.address_size 64\n.visible .entry k() { ret; }\n" },
        { "nothing in it", ".version 6.4\n.target sm_60\n.address_size 64\n" },
        { "truncated", ".version 6.4\n.target sm_60\n.address_size 64\n.visible .entry k() { re" },
        { "unknown instruction",
          ".version 6.4\n.target sm_60\n.address_size 64\n.visible .entry k() { rat; }\n" },
        { "unknown register", ".version 6.4\n.target sm_60\n.address_size 64\n"
                              ".visible .entry k() { mov.u32 %r1, %r2; ret; }\n" },
        { "unresolved", ".version 6.4\n.target sm_60\n.address_size 64\n.extern .func f ();\n"
                        ".visible .entry k() { call f, (); ret; }\n" },
        { "32 bits",
          ".version 6.4\n.target sm_60\n.address_size 32\n.visible .entry k() { ret; }\n" },
        { "named twice", ".version 6.4\n.target sm_60\n.address_size 64\n"
                         ".visible .entry k() { ret; }\n.visible .entry k() { ret; }\n" },
    };
    unsigned which = random_below((unsigned)COUNT(bad));
    bool extended = random_chance(2);
    CUmodule m = NULL;
    random_settle();
    random_say("cuModuleLoadData%s(&m, %s)", extended ? "Ex" : "", bad[which].name);
    if (random_done(extended ? cuModuleLoadDataEx(&m, bad[which].text, 0, NULL, NULL)
                             : cuModuleLoadData(&m, bad[which].text)) == CUDA_SUCCESS)
        random_done(cuModuleUnload(m));
}

static void load_with_options(void)
{
    int slot = random_free_slot(MODULE);
    CUmodule m = NULL;
    CUjit_option options[] = { CU_JIT_OPTIMIZATION_LEVEL, CU_JIT_MAX_REGISTERS };
    uintptr_t level = ONE_OF(uintptr_t, 0, 2, 4, 5, 100), registers = ONE_OF(uintptr_t, 0, 32, 255);
    void *values[] = { (void *)level, (void *)registers };
    if (random_chance(6))
        options[1] = (CUjit_option)ONE_OF(int, -1, 99, 1000);
    random_settle();
    random_say("cuModuleLoadDataEx(%s, kernels, %d: %zu, %d: %zu)", module(slot), (int)options[0],
               (size_t)level, (int)options[1], (size_t)registers);
    if (random_done(cuModuleLoadDataEx(&m, tap_ptx, 2, options, values)) == CUDA_SUCCESS)
        random_keep(MODULE, slot, (uintptr_t)m, 0);
}

/* A module takes its functions with it. */
static void unload(void)
{
    int slot = random_pick_or_null(MODULE);
    if (random_graphs())
        return;
    random_settle();
    random_say("cuModuleUnload(%s)", module(slot));
    if (random_done(cuModuleUnload(HANDLE(CUmodule, MODULE, slot))) != CUDA_SUCCESS || slot < 0)
        return;
    random_drop(MODULE, slot);
    random_drop_of(FUNCTION, slot);
}

static void get_function(void)
{
    int m = random_pick_or_null(MODULE), slot = random_free_slot(FUNCTION);
    unsigned which = random_below((unsigned)COUNT(random_kernels));
    const char *name = random_kernels[which];
    CUfunction f = NULL;
    if (random_chance(10))
        name = ONE_OF(text, "", "counter", "no such kernel", "Nothing", NULL);
    random_say("cuModuleGetFunction(%s, %s, %s)", function(slot), module(m), name ? name : "NULL");
    if (random_done(cuModuleGetFunction(&f, HANDLE(CUmodule, MODULE, m), name)) != CUDA_SUCCESS)
        return;
    random_keep(FUNCTION, slot, (uintptr_t)f, 0);
    random_at(FUNCTION, slot)->owner = random_at(MODULE, m)->owner;
    random_at(FUNCTION, slot)->how = m;
    random_at(FUNCTION, slot)->mark = which;
}

static void get_global(void)
{
    int m = random_pick_or_null(MODULE);
    const char *name = ONE_OF(text, "counter", "buffer", "table", "nothing", "", "none");
    unsigned none = random_below(8), word = 0;
    CUdeviceptr p = 0;
    size_t size = 0;
    random_settle();
    random_say("cuModuleGetGlobal(%s, %s, %s, %s)", none & 3 ? "&" : "NULL",
               none & 5 ? "&" : "NULL", module(m), name);
    if (random_done(cuModuleGetGlobal(none & 3 ? &p : NULL, none & 5 ? &size : NULL,
                                      HANDLE(CUmodule, MODULE, m), name)) != CUDA_SUCCESS)
        return;
    random_out("%zu", size);
    if (!p)
        return;
    random_say("cuMemcpyDtoH(%s)", name);
    if (random_done(cuMemcpyDtoH(&word, p, sizeof(word))) == CUDA_SUCCESS)
        random_out("%u", word);
    word = random_below(1000);
    random_say("cuMemcpyHtoD(%s, %u)", name, word);
    random_done(cuMemcpyHtoD(p, &word, sizeof(word)));
    random_used(-1);
}

static void count_functions(void)
{
    int m = random_pick_or_null(MODULE);
    unsigned count = 0;
    CUfunction list[20];
    random_say("cuModuleGetFunctionCount(%s)", module(m));
    if (random_done(cuModuleGetFunctionCount(&count, HANDLE(CUmodule, MODULE, m))) == CUDA_SUCCESS)
        random_out("%u", count);
    count = random_below(20);
    random_say("cuModuleEnumerateFunctions(%u, %s)", count, module(m));
    random_done(cuModuleEnumerateFunctions(list, count, HANDLE(CUmodule, MODULE, m)));
}

static void function_names(void)
{
    int f = random_pick_or_null(FUNCTION);
    const char *name = NULL;
    CUmodule m = NULL;
    random_say("cuFuncGetName(%s)", function(f));
    if (random_done(cuFuncGetName(&name, HANDLE(CUfunction, FUNCTION, f))) == CUDA_SUCCESS)
        random_out("%s", name);
    random_say("cuFuncGetModule(%s)", function(f));
    if (random_done(cuFuncGetModule(&m, HANDLE(CUfunction, FUNCTION, f))) == CUDA_SUCCESS)
        random_out("%s", module(random_find(MODULE, (uintptr_t)m)));
}

static void parameter(void)
{
    int f = random_pick_or_null(FUNCTION);
    size_t index = ONE_OF(size_t, 0, 1, 2, 4, 5, 6, SIZE_MAX), offset = 99, size = 99;
    bool none = random_chance(4);
    random_say("cuFuncGetParamInfo(%s, %zu, &, %s)", function(f), index, none ? "NULL" : "&");
    if (random_done(cuFuncGetParamInfo(HANDLE(CUfunction, FUNCTION, f), index, &offset,
                                       none ? NULL : &size)) == CUDA_SUCCESS)
        random_out("%zu %zu", offset, size);
}

static void loaded(void)
{
    int f = random_pick_or_null(FUNCTION);
    CUfunctionLoadingState state = (CUfunctionLoadingState)9;
    random_say("cuFuncLoad(%s)", function(f));
    random_done(cuFuncLoad(HANDLE(CUfunction, FUNCTION, f)));
    random_say("cuFuncIsLoaded(%s)", function(f));
    if (random_done(cuFuncIsLoaded(&state, HANDLE(CUfunction, FUNCTION, f))) == CUDA_SUCCESS)
        random_out("%d", (int)state);
}

/* Registers, local memory and versions are the machine's affair. */
static void get_attribute(void)
{
    int f = random_pick_or_null(FUNCTION), value = -99;
    CUfunction_attribute what = (CUfunction_attribute)ONE_OF(int, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10,
                                                             11, 12, 13, 14, 15, 16, -1);
    random_say("cuFuncGetAttribute(%d, %s)", (int)what, function(f));
    if (random_done(cuFuncGetAttribute(&value, what, HANDLE(CUfunction, FUNCTION, f))) !=
        CUDA_SUCCESS)
        return;
    if (what == CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES || what >= CU_FUNC_ATTRIBUTE_CACHE_MODE_CA)
        random_out("%d", value);
}

static void set_attribute(void)
{
    int f = random_pick_or_null(FUNCTION), value;
    CUfunction_attribute what = (CUfunction_attribute)ONE_OF(int, 8, 8, 8, 9, 9, 1, 0, 7, 10, 16);
    value = what == CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES
                ? ONE_OF(int, 0, 1000, 40000, 49152, 49153, 60000, -1, 1 << 20, INT32_MIN)
                : ONE_OF(int, 0, 1, 2, 50, 100, 101, -1, -2);
    random_say("cuFuncSetAttribute(%s, %d, %d)", function(f), (int)what, value);
    random_done(cuFuncSetAttribute(HANDLE(CUfunction, FUNCTION, f), what, value));
}

static void cache(void)
{
    int f = random_pick_or_null(FUNCTION), config = ONE_OF(int, 0, 1, 2, 3, 4, -1);
    random_say("cuFuncSetCacheConfig(%s, %d)", function(f), config);
    random_done(cuFuncSetCacheConfig(HANDLE(CUfunction, FUNCTION, f), (CUfunc_cache)config));
    random_say("cuFuncSetSharedMemConfig(%s, %d)", function(f), config);
    random_done(cuFuncSetSharedMemConfig(HANDLE(CUfunction, FUNCTION, f), (CUsharedconfig)config));
}

void random_module_begin(void)
{
    load();
    for (unsigned i = 0; i < 4; i++)
        get_function();
}

static const struct random_generator modules[] = {
    GENERATOR(load, 3),
    GENERATOR(load_bad, 3),
    GENERATOR(load_with_options, 1),
    GENERATOR(unload, 2),
    GENERATOR(get_function, 8),
    GENERATOR(get_global, 4),
    GENERATOR(count_functions, 1),
    GENERATOR(function_names, 2),
    GENERATOR(parameter, 3),
    GENERATOR(loaded, 1),
    GENERATOR(get_attribute, 5),
    GENERATOR(set_attribute, 5),
    GENERATOR(cache, 1),
};
const struct random_subject random_modules = SUBJECT(modules, NULL);
