/* Contexts: created ones, the primary one, the stack, limits and flags. */
#include "random.h"

#define PRIMARY 0 /* the slot of the primary context */

static unsigned retained;

static const char *context(int slot)
{
    return random_name(CONTEXT, slot);
}

static CUdevice device(void)
{
    return random_chance(12) ? ONE_OF(CUdevice, -1, 99, INT32_MAX, INT32_MIN) : 0;
}

static unsigned flags(void)
{
    return ONE_OF(unsigned, 0, 0, 1, 2, 4, 8, 0x10, 0x14, 3, 7, 0x80, 0x100, 0x200);
}

static void create(void)
{
    int slot = 1 + (int)random_below(SLOTS - 1);
    unsigned f = flags();
    CUdevice d = device();
    CUcontext c = NULL;
    if (random_handle(CONTEXT, slot))
        return;
    random_settle();
    random_say("cuCtxCreate(%s, NULL, %#x, %d)", context(slot), f, d);
    if (random_done(cuCtxCreate(&c, NULL, f, d)) == CUDA_SUCCESS)
        random_keep(CONTEXT, slot, (uintptr_t)c, 0);
}

static void destroy(void)
{
    int slot = random_pick_or_null(CONTEXT);
    if (slot == PRIMARY)
        return;
    random_settle();
    random_say("cuCtxDestroy(%s)", context(slot));
    if (random_done(cuCtxDestroy(HANDLE(CUcontext, CONTEXT, slot))) == CUDA_SUCCESS && slot >= 0) {
        random_drop_context(slot);
        random_drop(CONTEXT, slot);
    }
}

static void push(void)
{
    int slot = random_pick_or_null(CONTEXT);
    random_settle();
    random_say("cuCtxPushCurrent(%s)", context(slot));
    random_done(cuCtxPushCurrent(HANDLE(CUcontext, CONTEXT, slot)));
}

static void pop(void)
{
    CUcontext c = NULL;
    bool none = random_chance(6);
    random_settle();
    random_say("cuCtxPopCurrent(%s)", none ? "NULL" : "&c");
    if (random_done(cuCtxPopCurrent(none ? NULL : &c)) == CUDA_SUCCESS && !none)
        random_out("%s", context(random_find(CONTEXT, (uintptr_t)c)));
}

static void set_current(void)
{
    int slot = random_pick_or_null(CONTEXT);
    random_settle();
    random_say("cuCtxSetCurrent(%s)", context(slot));
    random_done(cuCtxSetCurrent(HANDLE(CUcontext, CONTEXT, slot)));
}

static void get_current(void)
{
    CUcontext c = NULL;
    random_say("cuCtxGetCurrent()");
    if (random_done(cuCtxGetCurrent(&c)) == CUDA_SUCCESS)
        random_out("%s", context(random_find(CONTEXT, (uintptr_t)c)));
}

static void get_flags(void)
{
    unsigned f = 0;
    random_say("cuCtxGetFlags()");
    if (random_done(cuCtxGetFlags(&f)) == CUDA_SUCCESS)
        random_out("%#x", f);
}

static void set_flags(void)
{
    unsigned f = flags(), now;
    int active = 0;
    /* NVIDIA's library does not survive it in a context that is destroyed. */
    if (random_current() < 0 || cuDevicePrimaryCtxGetState(0, &now, &active) != CUDA_SUCCESS ||
        (random_current() == PRIMARY && !active))
        return;
    random_say("cuCtxSetFlags(%#x)", f);
    random_done(cuCtxSetFlags(f));
}

static void get_device(void)
{
    CUdevice d = -9;
    random_say("cuCtxGetDevice()");
    if (random_done(cuCtxGetDevice(&d)) == CUDA_SUCCESS)
        random_out("%d", d);
}

static void get_device_of(void)
{
    CUdevice d = -9;
    int slot = random_pick_or_null(CONTEXT);
    random_say("cuCtxGetDevice_v2(%s)", context(slot));
    if (random_done(cuCtxGetDevice_v2(&d, HANDLE(CUcontext, CONTEXT, slot))) == CUDA_SUCCESS)
        random_out("%d", d);
}

static void synchronize(void)
{
    random_settle();
    random_say("cuCtxSynchronize()");
    random_done(cuCtxSynchronize());
}

static void synchronize_one(void)
{
    int slot = random_pick_or_null(CONTEXT);
    random_settle();
    random_say("cuCtxSynchronize_v2(%s)", context(slot));
    random_done(cuCtxSynchronize_v2(HANDLE(CUcontext, CONTEXT, slot)));
}

/* What a limit is at first is the machine's affair, and how it is rounded, too, but for these. */
static void limit(void)
{
    CUlimit which =
        ONE_OF(CUlimit, CU_LIMIT_STACK_SIZE, CU_LIMIT_PRINTF_FIFO_SIZE, CU_LIMIT_MALLOC_HEAP_SIZE,
               CU_LIMIT_DEV_RUNTIME_SYNC_DEPTH, CU_LIMIT_DEV_RUNTIME_PENDING_LAUNCH_COUNT,
               CU_LIMIT_MAX, CU_LIMIT_CIG_ENABLED, CU_LIMIT_SHMEM_SIZE, (CUlimit)-1);
    size_t value = ONE_OF(size_t, 0, 1, 16, 1024, 2000, 4096, 65536, 1 << 20, 16 << 20), got = 0;
    random_settle();
    random_say("cuCtxSetLimit(%d, %zu)", (int)which, value);
    CUresult r = random_done(cuCtxSetLimit(which, value));
    random_say("cuCtxGetLimit(%d)", (int)which);
    if (random_done(cuCtxGetLimit(&got, which)) == CUDA_SUCCESS && r == CUDA_SUCCESS)
        random_out("%zu", got);
}

static void cache_config(void)
{
    CUfunc_cache config = (CUfunc_cache)ONE_OF(int, 0, 1, 2, 3, 4, -1), got = (CUfunc_cache)9;
    random_say("cuCtxSetCacheConfig(%d)", (int)config);
    random_done(cuCtxSetCacheConfig(config));
    random_say("cuCtxGetCacheConfig()");
    if (random_done(cuCtxGetCacheConfig(&got)) == CUDA_SUCCESS)
        random_out("%d", (int)got);
}

static void shared_config(void)
{
    CUsharedconfig config = (CUsharedconfig)ONE_OF(int, 0, 1, 2, 3, -1), got = (CUsharedconfig)9;
    random_say("cuCtxSetSharedMemConfig(%d)", (int)config);
    random_done(cuCtxSetSharedMemConfig(config));
    random_say("cuCtxGetSharedMemConfig()");
    if (random_done(cuCtxGetSharedMemConfig(&got)) == CUDA_SUCCESS)
        random_out("%d", (int)got);
}

static void api_version(void)
{
    int slot = random_pick_or_null(CONTEXT);
    unsigned version = 0;
    random_say("cuCtxGetApiVersion(%s)", context(slot));
    if (random_done(cuCtxGetApiVersion(HANDLE(CUcontext, CONTEXT, slot), &version)) == CUDA_SUCCESS)
        random_out("%u", version);
}

static void priorities(void)
{
    int least = 9, greatest = 9;
    unsigned none = random_below(8);
    random_say("cuCtxGetStreamPriorityRange(%s, %s)", none & 1 ? "&" : "NULL",
               none & 2 ? "&" : "NULL");
    random_done(cuCtxGetStreamPriorityRange(none & 1 ? &least : NULL, none & 2 ? &greatest : NULL));
    random_out("%d %d", least, greatest);
}

static void primary_retain(void)
{
    CUdevice d = device();
    CUcontext c = NULL;
    random_say("cuDevicePrimaryCtxRetain(%d)", d);
    if (random_done(cuDevicePrimaryCtxRetain(&c, d)) != CUDA_SUCCESS)
        return;
    retained++;
    if (random_handle(CONTEXT, PRIMARY) != (uintptr_t)c) {
        random_out("another handle: %s", random_handle(CONTEXT, PRIMARY) ? "yes" : "first");
        random_keep(CONTEXT, PRIMARY, (uintptr_t)c, 0);
    }
}

static void primary_release(void)
{
    CUdevice d = device();
    random_settle();
    random_say("cuDevicePrimaryCtxRelease(%d)", d);
    if (random_done(cuDevicePrimaryCtxRelease(d)) == CUDA_SUCCESS && retained && --retained == 0)
        random_drop_context(PRIMARY);
}

static void primary_reset(void)
{
    CUdevice d = device();
    if (d == 0 && random_below(3))
        return;
    random_settle();
    random_say("cuDevicePrimaryCtxReset(%d)", d);
    if (random_done(cuDevicePrimaryCtxReset(d)) == CUDA_SUCCESS)
        random_drop_context(PRIMARY);
}

static void primary_flags(void)
{
    CUdevice d = device();
    unsigned f = flags();
    random_say("cuDevicePrimaryCtxSetFlags(%d, %#x)", d, f);
    random_done(cuDevicePrimaryCtxSetFlags(d, f));
}

static void primary_state(void)
{
    CUdevice d = device();
    unsigned f = 99;
    int active = 99;
    random_say("cuDevicePrimaryCtxGetState(%d)", d);
    if (random_done(cuDevicePrimaryCtxGetState(d, &f, &active)) == CUDA_SUCCESS)
        random_out("%#x %d", f, active);
}

static void record_event(void)
{
    int slot = random_pick_or_null(CONTEXT), e = random_pick_or_null(EVENT);
    random_settle();
    random_say("cuCtxRecordEvent(%s, %s)", context(slot), random_name(EVENT, e));
    random_done(cuCtxRecordEvent(HANDLE(CUcontext, CONTEXT, slot), HANDLE(CUevent, EVENT, e)));
    random_used_context(slot);
}

static void wait_event(void)
{
    int slot = random_pick_or_null(CONTEXT), e = random_pick_or_null(EVENT);
    random_settle();
    random_say("cuCtxWaitEvent(%s, %s)", context(slot), random_name(EVENT, e));
    random_done(cuCtxWaitEvent(HANDLE(CUcontext, CONTEXT, slot), HANDLE(CUevent, EVENT, e)));
    random_used_context(slot);
}

static void exec_affinity(void)
{
    CUexecAffinityParam p = { .type = (CUexecAffinityType)9 };
    CUexecAffinityType type = (CUexecAffinityType)ONE_OF(int, 0, 1, -1);
    random_say("cuCtxGetExecAffinity(%d)", (int)type);
    if (random_done(cuCtxGetExecAffinity(&p, type)) == CUDA_SUCCESS)
        random_out("%d", (int)p.type);
}

static void persisting_cache(void)
{
    random_say("cuCtxResetPersistingL2Cache()");
    random_done(cuCtxResetPersistingL2Cache());
}

void random_context_begin(void)
{
    retained = 0;
    primary_retain();
    random_say("cuCtxSetCurrent(context0)");
    random_done(cuCtxSetCurrent(HANDLE(CUcontext, CONTEXT, PRIMARY)));
}

void random_context_again(void)
{
    if (random_chance(2))
        primary_retain();
    set_current();
}

static const struct random_generator contexts[] = {
    GENERATOR(create, 2),
    GENERATOR(destroy, 2),
    GENERATOR(push, 4),
    GENERATOR(pop, 4),
    GENERATOR(set_current, 4),
    GENERATOR(get_current, 3),
    GENERATOR(get_flags, 2),
    GENERATOR(set_flags, 2),
    GENERATOR(get_device, 2),
    GENERATOR(get_device_of, 2),
    GENERATOR(synchronize, 2),
    GENERATOR(synchronize_one, 2),
    GENERATOR(limit, 3),
    GENERATOR(cache_config, 1),
    GENERATOR(shared_config, 1),
    GENERATOR(api_version, 1),
    GENERATOR(priorities, 1),
    GENERATOR(primary_retain, 2),
    GENERATOR(primary_release, 1),
    GENERATOR(primary_reset, 1),
    GENERATOR(primary_flags, 1),
    GENERATOR(primary_state, 3),
    GENERATOR(record_event, 1),
    GENERATOR(wait_event, 1),
    GENERATOR(exec_affinity, 1),
    GENERATOR(persisting_cache, 1),
};
const struct random_subject random_contexts = SUBJECT(contexts, NULL);
