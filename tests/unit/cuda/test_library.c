/* Libraries that clients share: those who load the same at the same time load it once. */
#include <criterion/criterion.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "device/cuda/image.h"
#include "device/cuda/library.h"

TestSuite(library, .timeout = 30);

#define THREADS 4u

static struct dev d;
static struct cuda_gpu *const gpu = &d.gpus[0];
static char *image;
static bool has_variables;
static CUresult outcome;

/* --- what there is of image.c and of the driver ---------------------------------------------------------------------------- */

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
    return true;
}

void cuda_image_look(const void *bytes, size_t size, uint32_t kind, uint32_t sm, struct cuda_image_traits *t)
{
    *t = (struct cuda_image_traits) { .keeps_values = has_variables };
}

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static unsigned loads, loading, may_end, unloads;

static CUresult load_data(CUlibrary *out, const void *code, CUjit_option *o, void **ov, unsigned on,
                          CUlibraryOption *l, void **lv, unsigned ln)
{
    pthread_mutex_lock(&lock);
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
    unloads++;
    return CUDA_SUCCESS;
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

/* --- clients --------------------------------------------------------------------------------------------------------------- */

struct opener {
    pthread_t thread;
    uint32_t uid;
    struct cuda_library *got;
    int result;
};

static void *open_it(void *arg)
{
    struct opener *o = arg;
    char *log;
    o->result = cuda_library_open(gpu, o->uid, image, 4096, WIRE_IMAGE_KIND_CUBIN, &o->got, &log);
    free(log);
    return NULL;
}

static void start(struct opener *o, uint32_t uid)
{
    o->uid = uid;
    cr_assert_eq(pthread_create(&o->thread, NULL, open_it, o), 0);
}

static void begin(void)
{
    d.gpus[0].dev = &d;
    gm_list_init(&d.libraries);
    gm_list_init(&d.loading);
    pthread_mutex_init(&d.libraries_lock, NULL);
    pthread_cond_init(&d.library_loaded, NULL);
    d.api.cuLibraryLoadData = load_data;
    d.api.cuLibraryUnload = unload;
    image = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    cr_assert_neq(image, MAP_FAILED);
    memset(image, 7, 4096);
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
        cuda_library_close(&d, o[i].got);
    cr_assert_eq(unloads, 1);
    cr_assert(gm_list_empty(&d.libraries) && gm_list_empty(&d.loading));
}

Test(library, what_has_variables_is_everybodys_own, .init = begin)
{
    struct opener o[THREADS];
    has_variables = true;
    open_all(o);
    cr_assert_eq(loads, THREADS);
    for (unsigned i = 0; i < THREADS; i++) {
        cr_assert_eq(o[i].result, 0);
        cuda_library_close(&d, o[i].got);
    }
    cr_assert_eq(unloads, THREADS);
}

/* Each hears of it from the driver. */
Test(library, a_load_that_fails_is_nobody_elses, .init = begin)
{
    struct opener o[THREADS];
    outcome = CUDA_ERROR_INVALID_IMAGE;
    open_all(o);
    for (unsigned i = 0; i < THREADS; i++)
        cr_assert_eq(o[i].result, CUDA_ERROR_INVALID_IMAGE);
    cr_assert(gm_list_empty(&d.loading));
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
