/*
 * CUDA_MPS_ENABLE_PER_CTX_DEVICE_MULTIPROCESSOR_PARTITIONING: each created context has the
 * percentage that CUDA_MPS_ACTIVE_THREAD_PERCENTAGE says when it is created, of the whole device
 * and never more than the program has. What a context is told agrees with it. Under a daemon only.
 */
#include "tap.h"

#include <stdlib.h>

#define SHARE "CUDA_MPS_ACTIVE_THREAD_PERCENTAGE"

static unsigned affinity_of_current(void)
{
    CUexecAffinityParam p = { .param.smCount.val = 0 };
    OK(cuCtxGetExecAffinity(&p, CU_EXEC_AFFINITY_TYPE_SM_COUNT));
    return p.param.smCount.val;
}

static unsigned count(void)
{
    int n;
    OK(cuDeviceGetAttribute(&n, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, 0));
    return (unsigned)n;
}

static unsigned step(void)
{
    CUdevResource all;
    OK(cuDeviceGetDevResource(0, &all, CU_DEV_RESOURCE_TYPE_SM));
    return all.sm.minSmPartitionSize;
}

static void need_parts(void)
{
    int supported = 0;
    OK(cuDeviceGetExecAffinitySupport(&supported, CU_EXEC_AFFINITY_TYPE_SM_COUNT, 0));
    if (!supported)
        tap_skip("contexts have percentages under a daemon only");
}

/* What a context has that is made while the variable says `share`. */
static unsigned made_with(const char *share)
{
    CUcontext c;
    setenv(SHARE, share, 1);
    OK(cuCtxCreate_v2(&c, 0, 0));
    unsigned n = affinity_of_current();
    EQ(count(), n);
    OK(cuCtxDestroy(c));
    unsetenv(SHARE);
    return n;
}

/* As MPS has it: down to whole steps, one at least; but all of them are all. DEVICE_SIZE, if set,
 * is what the device has, where the program has less. */
static unsigned expected(unsigned percent)
{
    const char *device = getenv("DEVICE_SIZE");
    unsigned size = device ? (unsigned)atoi(device) : count();
    unsigned n = percent == 100 ? size : size * percent / 100 / step() * step();
    n = n > step() ? n : step();
    return n < count() ? n : count();
}

static void each_its_own(void)
{
    unsigned all = count();
    char text[8];
    need_parts();
    for (unsigned percent = 1; percent <= 100; percent += 9) {
        snprintf(text, sizeof(text), "%u", percent);
        EQ(made_with(text), expected(percent));
    }
    EQ(made_with("100"), all);
    printf("# of %u: 10 %% are %u, 50 %% are %u\n", all, made_with("10"), made_with("50"));
}

static void what_is_no_percentage(void)
{
    static const char *const bad[] = { "",   "0",   "-5",  "101",      "abc",
                                       "5x", "nan", "1e9", "\xff\xfe", "99999999999999999999" };
    unsigned all = count();
    need_parts();
    for (size_t i = 0; i < COUNT(bad); i++)
        EQ(made_with(bad[i]), all);
}

static void the_current_context_counts(void)
{
    CUcontext primary, half, all;
    need_parts();
    OK(cuCtxGetCurrent(&primary));
    unsigned of_primary = count(), of_half = expected(50);
    setenv(SHARE, "50", 1);
    OK(cuCtxCreate_v2(&half, 0, 0));
    unsetenv(SHARE);
    OK(cuCtxCreate_v2(&all, 0, 0));
    EQ(count(), of_primary);
    OK(cuCtxSetCurrent(half));
    EQ(count(), of_half);
    OK(cuCtxSetCurrent(primary));
    EQ(count(), of_primary);
    OK(cuCtxDestroy(half));
    OK(cuCtxDestroy(all));
    OK(cuCtxSetCurrent(primary));
}

/* What a program asks for by itself goes before the variable. */
static void an_affinity_counts_more(void)
{
    CUcontext c;
    need_parts();
    CUexecAffinityParam p = { .type = CU_EXEC_AFFINITY_TYPE_SM_COUNT,
                              .param.smCount.val = count() };
    setenv(SHARE, "10", 1);
    OK(cuCtxCreate_v3(&c, &p, 1, 0, 0));
    unsetenv(SHARE);
    EQ(affinity_of_current(), p.param.smCount.val);
    OK(cuCtxDestroy(c));
}

int main(void)
{
    static const struct tap_test tests[] = {
        TEST(each_its_own),
        TEST(what_is_no_percentage),
        TEST(the_current_context_counts),
        TEST(an_affinity_counts_more),
    };
    setenv("CUDA_MPS_ENABLE_PER_CTX_DEVICE_MULTIPROCESSOR_PARTITIONING", "1", 1);
    return tap_main(tests, COUNT(tests));
}
