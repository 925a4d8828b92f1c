/* Libraries that clients share: those who load the same at the same time load it once. And who
 * waits for a kernel that runs. */
#include <criterion/criterion.h>
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "base/clock.h"
#include "device/cuda/image.h"
#include "device/cuda/kernel.h"
#include "device/cuda/link.h"
#include "fake.h"

TestSuite(library, .timeout = 30);

#define THREADS 4u

static struct dev *d;
static struct cuda_gpu *gpu;
static struct dev_client *clients[2]; /* of users 1000 and 1001 */
static struct dev_queue *busy;        /* somebody's, whose kernel may run on */
static struct dev_client *somebody;
static bool is_first; /* its GPU is the first one */
static uint64_t seq;
static char kernel; /* what it stands for does not matter */
#define KERNEL ((CUkernel)(void *)&kernel)
static char *image;
static bool has_variables, allocates;
static CUresult outcome;

/* --- what there is of image.c and of the driver ----------------------------------------------- */

int cuda_image_open(struct cuda_image *i, const void *bytes, size_t size, uint32_t kind)
{
    *i = (struct cuda_image) { .data = bytes };
    return 0;
}

void cuda_image_close(struct cuda_image *i)
{
}

bool cuda_image_has_cubin(const void *bytes, size_t size, uint32_t kind, uint32_t sm)
{
    return kind != WIRE_IMAGE_KIND_PTX;
}

int cuda_code_open(struct cuda_code *c, const void *bytes, size_t size, uint32_t kind, uint32_t sm)
{
    *c = (struct cuda_code) {
        .bytes = bytes, .size = size, .is_ptx = kind == WIRE_IMAGE_KIND_PTX, .text_size = size
    };
    return 1;
}

void cuda_code_close(struct cuda_code *c)
{
    free(c->unpacked);
}

bool cuda_movable_compiled(struct cuda_movable *m, struct cuda_code *made)
{
    return false;
}

void cuda_movable_close(struct cuda_movable *m)
{
}

static bool links; /* texts */
static unsigned linked;

int cuda_link_text(struct dev *dev, const void *text, size_t size, void **cubin, size_t *cubin_size)
{
    linked++;
    *cubin = links ? strdup("code") : NULL;
    *cubin_size = 4;
    return links ? 0 : GM_CUDA_INVALID_PTX;
}

void cuda_image_look(const void *bytes, size_t size, uint32_t kind, uint32_t sm,
                     struct cuda_image_traits *t, struct cuda_movable *m)
{
    *t = (struct cuda_image_traits) { .keeps_values = has_variables, .allocates = allocates };
}

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static unsigned loads, loading, may_end, unloads, modules, functions;
static _Atomic bool runs; /* that kernel does */
static bool disturbed;    /* the driver was asked for something that waits while it ran */

/* Everybody would stand still with it. */
static void takes_a_lock(unsigned *count)
{
    bool away;
    (void)fake_entered(&away);
    pthread_mutex_lock(&lock);
    disturbed |= runs && !away;
    ++*count;
    pthread_cond_broadcast(&changed);
    pthread_mutex_unlock(&lock);
}

static CUresult get_module(CUmodule *out, CUlibrary l)
{
    takes_a_lock(&modules);
    return outcome;
}

static CUresult get_function(CUfunction *out, CUkernel k)
{
    takes_a_lock(&functions);
    *out = (CUfunction)(void *)k;
    return CUDA_SUCCESS;
}

static int local; /* of every kernel */

static CUresult get_attribute(int *value, CUfunction_attribute attribute, CUfunction f)
{
    cr_assert_eq(attribute, CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES);
    *value = local;
    return CUDA_SUCCESS;
}

static size_t shrunk = SIZE_MAX; /* what the limit was set to */

static CUresult set_limit(CUlimit limit, size_t value)
{
    cr_assert_eq(limit, CU_LIMIT_STACK_SIZE);
    shrunk = value;
    return CUDA_SUCCESS;
}

static CUresult get_global(CUdeviceptr *address, size_t *size, CUlibrary l, const char *name)
{
    takes_a_lock(&functions);
    *address = *size = 16;
    return CUDA_SUCCESS;
}

/* Somebody has been waiting for a safe point for a while. */
static void wait_for_a_while(void)
{
    while (!fake_waiting(d))
        sched_yield();
    for (const uint64_t until = gm_now_ns() + 10 * GM_NS_PER_MS; gm_now_ns() < until;)
        sched_yield();
}

static CUresult load_data(CUlibrary *out, const void *code, CUjit_option *o, void **ov, unsigned on,
                          CUlibraryOption *l, void **lv, unsigned ln)
{
    pthread_mutex_lock(&lock);
    cr_assert(!links || code == image || strcmp(code, "code") == 0);
    *out = (CUlibrary)(uintptr_t)++loads;
    loading++;
    pthread_cond_broadcast(&changed);
    while (!may_end)
        pthread_cond_wait(&changed, &lock);
    loading--;
    pthread_mutex_unlock(&lock);
    return outcome;
}

static CUresult unload(CUlibrary l)
{
    takes_a_lock(&unloads);
    return CUDA_SUCCESS;
}

static void wait_for_unloads(unsigned count)
{
    pthread_mutex_lock(&lock);
    while (unloads < count)
        pthread_cond_wait(&changed, &lock);
    cr_assert_eq(unloads, count);
    pthread_mutex_unlock(&lock);
}

static void wait_for_loading(unsigned count)
{
    pthread_mutex_lock(&lock);
    while (loading < count)
        pthread_cond_wait(&changed, &lock);
    pthread_mutex_unlock(&lock);
}

static void let_go(void)
{
    pthread_mutex_lock(&lock);
    may_end = 1;
    pthread_cond_broadcast(&changed);
    pthread_mutex_unlock(&lock);
}

/* --- clients ---------------------------------------------------------------------------------- */

struct opener {
    pthread_t thread;
    struct dev_client *client;
    struct cuda_library *got;
    int result;
};

static void *open_it(void *arg)
{
    struct opener *o = arg;
    char *log;
    o->result =
        cuda_library_open(gpu, o->client, image, 4096, WIRE_IMAGE_KIND_CUBIN, &o->got, &log);
    free(log);
    return NULL;
}

static void start(struct opener *o, uint32_t uid)
{
    o->client = clients[uid - 1000];
    cr_assert_eq(pthread_create(&o->thread, NULL, open_it, o), 0);
}

static void begin_with(unsigned gpus)
{
    struct cuda_driver *api;
    d = fake_devices(gpus);
    gpu = fake_gpu(d, 0);
    clients[0] = fake_client_of(d, 1000);
    clients[1] = fake_client_of(d, 1001);
    somebody = fake_client_of(d, 1002);
    is_first = gpus == 1;
    busy = fake_queue_with_stream(somebody, gpus - 1, 1, 0);
    fake_refuse_fallbacks(true);
    fake_patience(d, 0, 0, 50 * GM_NS_PER_MS);
    fake_keep(d, 0);
    api = fake_driver(d);
    api->cuLibraryLoadData = load_data;
    api->cuLibraryUnload = unload;
    api->cuLibraryGetModule = get_module;
    api->cuKernelGetFunction = get_function;
    api->cuLibraryGetGlobal = get_global;
    api->cuFuncGetAttribute = get_attribute;
    api->cuCtxSetLimit = set_limit;
    fake_need_local(d, NULL, 1024);
    image = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    cr_assert_neq(image, MAP_FAILED);
    memset(image, 7, 4096);
}

static void begin(void)
{
    begin_with(1);
}

static void begin_with_two(void)
{
    begin_with(2);
}

/* Somebody's kernel runs on, on the last GPU; or it ends. */
static void run_a_kernel(bool on)
{
    if (!on)
        runs = false;
    fake_hold(fake_stream(busy), on);
    if (on) {
        cr_assert_eq(cuda.stamp(busy, ++seq, 0), 0);
        cuda.flush(somebody);
        while (fake_is_resting(busy))
            sched_yield();
    } else {
        while (!fake_is_over(busy))
            sched_yield();
    }
    if (on)
        runs = is_first;
}

static struct cuda_library *opened(uint32_t kind, int expected)
{
    struct cuda_library *l;
    char *log;
    may_end = 1;
    cr_assert_eq(cuda_library_open(gpu, clients[0], image, 4096, kind, &l, &log), expected);
    free(log);
    return l;
}

static struct cuda_library *opened_as(uint32_t uid)
{
    struct opener o;
    let_go();
    start(&o, uid);
    pthread_join(o.thread, NULL);
    cr_assert_eq(o.result, 0);
    return o.got;
}

static void open_all(struct opener *o)
{
    for (unsigned i = 0; i < THREADS; i++)
        start(&o[i], 1000);
    wait_for_loading(1);
    let_go();
    for (unsigned i = 0; i < THREADS; i++)
        pthread_join(o[i].thread, NULL);
}

Test(library, who_loads_the_same_at_the_same_time_shares_it, .init = begin)
{
    struct opener o[THREADS];
    open_all(o);
    cr_assert_eq(loads, 1);
    for (unsigned i = 0; i < THREADS; i++) {
        cr_assert_eq(o[i].result, 0);
        cr_assert_eq(o[i].got, o[0].got);
    }
    for (unsigned i = 0; i < THREADS; i++)
        cuda_library_close(d, o[i].got);
    wait_for_unloads(1);
    (void)opened_as(1000);
    cr_assert_eq(loads, 2, "it is gone");
}

Test(library, what_has_variables_is_everybodys_own, .init = begin)
{
    struct opener o[THREADS];
    has_variables = true;
    open_all(o);
    cr_assert_eq(loads, THREADS);
    for (unsigned i = 0; i < THREADS; i++) {
        cr_assert_eq(o[i].result, 0);
        cuda_library_close(d, o[i].got);
    }
    wait_for_unloads(THREADS);
}

/* Each hears of it from the driver. */
Test(library, a_load_that_fails_is_nobody_elses, .init = begin)
{
    struct opener o[THREADS];
    outcome = CUDA_ERROR_INVALID_IMAGE;
    open_all(o);
    for (unsigned i = 0; i < THREADS; i++)
        cr_assert_eq(o[i].result, CUDA_ERROR_INVALID_IMAGE);
    outcome = CUDA_SUCCESS;
    (void)opened_as(1000); /* and nobody waits for those */
}

/* The next one to load the same finds it, and its kernels. */
Test(library, without_users_it_stays, .init = begin)
{
    struct opener a, b;
    CUfunction f;
    fake_keep(d, 4096);
    let_go();
    start(&a, 1000);
    pthread_join(a.thread, NULL);
    cr_assert_eq(cuda_library_function(clients[0], 0, a.got, KERNEL, &f), CUDA_SUCCESS);
    cuda_library_close(d, a.got);
    start(&b, 1000);
    pthread_join(b.thread, NULL);
    cr_assert_eq(b.got, a.got);
    cr_assert_eq(loads, 1);
    cr_assert_eq(fake_kept(d), 0, "it has a user");
    cr_assert_eq(cuda_library_function(clients[0], 0, b.got, KERNEL, &f), CUDA_SUCCESS);
    cr_assert_eq(functions, 1);
    cuda_library_close(d, b.got);
    start(&b, 1001); /* another user's is another one */
    pthread_join(b.thread, NULL);
    cr_assert_eq(loads, 2);
    cuda_library_close(d, b.got); /* and there is room for one */
    wait_for_unloads(1);
    cr_assert_eq(fake_kept(d), 4096);
}

/* Kept without users, with a kernel that is loaded on the device where its client is. */
static void keep_one(uint32_t uid, uint32_t device)
{
    CUfunction f;
    struct cuda_library *l = opened_as(uid);
    cr_assert_eq(cuda_library_function(clients[uid - 1000], device, l, KERNEL, &f), CUDA_SUCCESS);
    cuda_library_close(d, l);
}

/* Somebody is to have its memory. */
Test(library, without_users_it_gives_way, .init = begin)
{
    fake_keep(d, 1 << 20);
    keep_one(1000, 0);
    keep_one(1001, 0);
    cr_assert_eq(fake_kept(d), 2 * 4096);
    run_a_kernel(true);
    struct dev_client *leaves = fake_client_of(d, 1000);
    fake_leaves(leaves);
    cuda_memory_trim(leaves, 0); /* does not wait */
    cr_assert_eq(fake_kept(d), 0);
    run_a_kernel(false);
    wait_for_unloads(2);
    cr_assert_not(disturbed);
    cuda_library_close(d, opened_as(1000));
    cuda_memory_trim(clients[0], 0);
    cr_assert_eq(unloads, 3, "at once");
}

static void *trim(void *arg)
{
    cuda_memory_trim(clients[0], 0);
    return NULL;
}

/* Each library needs the contexts idle that it is loaded in, and no others. */
Test(library, memory_comes_first_from_where_nothing_runs, .init = begin)
{
    pthread_t thread;
    fake_keep(d, 1 << 20);
    keep_one(1000, 0);
    run_a_kernel(true); /* in the primary context */
    fake_refuse_fallbacks(false);
    keep_one(1001, 0); /* in the fallback context */
    cr_assert(fake_is_away(clients[1]));
    cr_assert_eq(pthread_create(&thread, NULL, trim, NULL), 0);
    wait_for_unloads(1);
    wait_for_a_while();
    wait_for_unloads(1); /* the client that wants the memory waits for the other one */
    run_a_kernel(false);
    pthread_join(thread, NULL);
    wait_for_unloads(2);
}

Test(library, other_devices_keep_what_they_have, .init = begin_with_two)
{
    fake_keep(d, 1 << 20);
    keep_one(1000, 1);
    cuda_memory_trim(clients[0], 0);
    cr_assert_eq(fake_kept(d), 4096);
    cuda_memory_trim(clients[0], 1);
    cr_assert_eq(unloads, 1);
    cr_assert_eq(fake_kept(d), 0);
}

/* Users share nothing: not even a wait. */
Test(library, users_do_not_wait_for_each_other, .init = begin)
{
    struct opener a, b;
    start(&a, 1000);
    wait_for_loading(1);
    start(&b, 1001);
    wait_for_loading(2);
    let_go();
    pthread_join(a.thread, NULL);
    pthread_join(b.thread, NULL);
    cr_assert_neq(a.got, b.got);
}

/* --- a kernel that runs on -------------------------------------------------------------------- */

Test(library, what_is_not_used_goes_when_the_gpu_is_quiet, .init = begin)
{
    struct cuda_library *l = opened(WIRE_IMAGE_KIND_CUBIN, 0);
    CUfunction f;
    cr_assert_eq(cuda_library_function(clients[0], 0, l, KERNEL, &f), CUDA_SUCCESS);
    run_a_kernel(true);
    cuda_library_close(d, l); /* nobody waits for that */
    struct cuda_library *again = opened(WIRE_IMAGE_KIND_CUBIN, 0);
    cr_assert_neq(again, l);
    wait_for_a_while();
    pthread_mutex_lock(&lock);
    cr_assert_eq(unloads, 0);
    pthread_mutex_unlock(&lock);
    cr_assert_not(disturbed);
    cuda_library_close(d, again); /* of which nothing is loaded on a GPU */
    wait_for_unloads(1);
    run_a_kernel(false);
    wait_for_unloads(2);
}

/* When it has been waited for, the kernel is everybody's. */
Test(library, a_kernel_that_is_loaded_is_not_waited_for, .init = begin)
{
    struct cuda_library *l = opened(WIRE_IMAGE_KIND_CUBIN, 0);
    CUkernel k = KERNEL;
    CUfunction f = NULL;
    CUdeviceptr address;
    size_t size;
    cr_assert_eq(cuda_library_function(clients[0], 0, l, k, &f), CUDA_SUCCESS);
    cr_assert_eq(cuda_library_variable(clients[0], 0, l, "v", &address, &size), CUDA_SUCCESS);
    cr_assert_eq(functions, 2);
    run_a_kernel(true);
    f = NULL;
    cr_assert_eq(cuda_library_function(clients[1], 0, l, k, &f), CUDA_SUCCESS);
    cr_assert_eq((void *)f, (void *)k);
    cr_assert_eq(functions, 2);
    cuda_library_close(d, l);
    run_a_kernel(false);
    wait_for_unloads(1);
}

struct asker {
    pthread_t thread;
    struct cuda_library *library;
    bool launches;
    CUresult result;
};

static void *ask(void *arg)
{
    struct asker *a = arg;
    CUfunction f;
    CUkernel k = KERNEL;
    a->result = a->launches ? cuda_library_launch(clients[0], 0, a->library, k, &f)
                            : cuda_library_function(clients[0], 0, a->library, k, &f);
    return NULL;
}

Test(library, a_client_that_loads_a_kernel_waits_outside_of_the_driver, .init = begin)
{
    struct asker a = { .library = opened(WIRE_IMAGE_KIND_CUBIN, 0) };
    run_a_kernel(true);
    cr_assert_eq(pthread_create(&a.thread, NULL, ask, &a), 0);
    for (unsigned i = 0; i < 3; i++) /* others are not held up by those that wait */
        (void)opened(WIRE_IMAGE_KIND_FATBIN, 0);
    wait_for_a_while();
    pthread_mutex_lock(&lock);
    cr_assert_eq(functions + unloads, 0);
    pthread_mutex_unlock(&lock);
    run_a_kernel(false);
    pthread_join(a.thread, NULL);
    cr_assert_eq(a.result, CUDA_SUCCESS);
    cr_assert_not(disturbed);
}

Test(library, a_client_that_is_to_be_stopped_does_not_wait, .init = begin)
{
    struct asker a = { .library = opened(WIRE_IMAGE_KIND_CUBIN, 0) };
    run_a_kernel(true);
    cr_assert_eq(pthread_create(&a.thread, NULL, ask, &a), 0);
    wait_for_a_while();
    fake_leaves(clients[0]);
    pthread_join(a.thread, NULL);
    cr_assert_eq(a.result, CUDA_ERROR_NOT_READY);
    cr_assert_null(opened(WIRE_IMAGE_KIND_PTX, CUDA_ERROR_NOT_READY));
    cr_assert_eq(functions + modules, 0, "the driver was not asked");
    run_a_kernel(false);
    wait_for_unloads(1); /* of the text, which is loaded and not compiled */
}

/* To compile it may take seconds. */
Test(library, a_text_is_compiled_while_others_go_on, .init = begin)
{
    links = true;
    run_a_kernel(true);
    cuda_library_close(d, opened(WIRE_IMAGE_KIND_PTX, 0));
    wait_for_unloads(1); /* nothing of it is loaded on a GPU */
    cr_assert_eq(linked, 1);
    cr_assert_eq(loads, 1);
    cr_assert_eq(modules, 0);
    (void)opened(WIRE_IMAGE_KIND_CUBIN, 0);
    cr_assert_eq(linked, 1, "that is code");
}

/* The driver says what is wrong with it, which it does when it loads it. */
Test(library, what_does_not_link_is_loaded_as_it_is, .init = begin)
{
    outcome = CUDA_ERROR_INVALID_PTX;
    cr_assert_null(opened(WIRE_IMAGE_KIND_PTX, CUDA_ERROR_INVALID_PTX));
    cr_assert_eq(linked, 1);
}

Test(library, another_gpus_kernel_is_of_no_interest, .init = begin_with_two)
{
    run_a_kernel(true);
    (void)opened(WIRE_IMAGE_KIND_PTX, 0);
    cr_assert_eq(modules, 1);
}

/* The driver waits with the launch: the kernel has been loaded before. */
static void launch_beside_a_kernel(struct cuda_library *l)
{
    struct asker a = { .library = l };
    (void)ask(&a);
    cr_assert_null(cuda_library_known(clients[0], gpu, l, KERNEL));
    run_a_kernel(true);
    a.launches = true;
    cr_assert_eq(pthread_create(&a.thread, NULL, ask, &a), 0);
    wait_for_a_while();
    cr_assert_null(cuda_library_known(clients[1], gpu, l, KERNEL));
    run_a_kernel(false);
    pthread_join(a.thread, NULL);
    cr_assert_eq(a.result, CUDA_SUCCESS);
    run_a_kernel(true);
    (void)ask(&a);
    cr_assert_eq(a.result, CUDA_SUCCESS, "from now on there is room for it");
    cr_assert_not_null(cuda_library_known(clients[1], gpu, l, KERNEL));
    run_a_kernel(false);
}

Test(library, a_client_that_needs_more_local_memory_than_there_is_waits, .init = begin)
{
    local = 1025;
    launch_beside_a_kernel(opened(WIRE_IMAGE_KIND_CUBIN, 0));
}

Test(library, a_client_that_is_the_first_to_need_the_heap_waits, .init = begin)
{
    allocates = true;
    launch_beside_a_kernel(opened(WIRE_IMAGE_KIND_CUBIN, 0));
}

static void launch_with(struct dev_client *c, struct cuda_library *l, int bytes)
{
    CUfunction f;
    local = bytes;
    cr_assert_eq(cuda_library_launch(c, 0, l, KERNEL, &f), CUDA_SUCCESS);
}

/* But for a little, and what others need. */
Test(library, much_local_memory_goes_with_a_client_that_needed_it, .init = begin)
{
    struct cuda_library *l = opened(WIRE_IMAGE_KIND_CUBIN, 0);
    struct dev_client *little = fake_client_of(d, 1000), *much = fake_client_of(d, 1000);
    launch_with(little, l, 8 << 10);
    fake_client_end(little);
    fake_need_local(d, NULL, 0);
    cr_assert_eq(shrunk, SIZE_MAX, "so little stays");
    launch_with(much, l, 128 << 10);
    launch_with(clients[1], l, 4 << 10); /* there is room for it */
    fake_client_end(much);
    fake_need_local(d, NULL, 0);
    cr_assert_eq(shrunk, 4 << 10);
    cr_assert_eq(fake_local(d), 4 << 10);
}

/* As it claimed; what others have there is. */
Test(library, a_client_that_fails_to_get_local_memory_leaves_no_claim, .init = begin)
{
    struct cuda_library *l = opened(WIRE_IMAGE_KIND_CUBIN, 0);
    launch_with(clients[1], l, 4 << 10);
    launch_with(clients[0], l, 512 << 10);
    fake_launch_fails(clients[0]);
    cr_assert_null(cuda_library_known(clients[1], gpu, l, KERNEL));
    local = 4 << 10;
    cr_assert_not_null(cuda_library_known(clients[1], gpu, l, KERNEL));
}

/* Completions come one for many operations. */
Test(library, a_pace_is_a_mean)
{
    const uint64_t ms = GM_NS_PER_MS;
    const struct fake_progress p[] = {
        { 5 * ms, 0 }, { 9 * ms, 0 }, { 69 * ms, 64 }, { 74 * ms, 1 }
    };
    cr_assert_eq(fake_pace_of(p, 2), 0, "nothing is done");
    cr_assert_eq(fake_pace_of(p, 3), ms, "64 operations of a millisecond each");
    cr_assert_eq(fake_pace_of(p, 4), 2 * ms, "later ones count for a quarter");
}
