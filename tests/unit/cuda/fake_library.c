/*
 * Libraries for tests that are not about them (test_library.c is): a kernel is a handle of its
 * library, and is loaded when a client first asks for it.
 */
#include <criterion/criterion.h>
#include <pthread.h>

#include "device/cuda/kernel.h"
#include "device/cuda/settle.h"
#include "fake.h"
#include "fake_library.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* of all below, and of the users */
static CUfunction loaded[64];
static unsigned loaded_count;

void cuda_library_keep(struct dev *d, struct cuda_library *l)
{
    pthread_mutex_lock(&lock);
    cr_assert_gt(l->users, 0);
    l->users++;
    pthread_mutex_unlock(&lock);
}

void cuda_library_close(struct dev *d, struct cuda_library *l)
{
    pthread_mutex_lock(&lock);
    cr_assert_gt(l->users, 0);
    l->users--;
    pthread_mutex_unlock(&lock);
}

void cuda_memory_trim(struct dev_client *c, uint32_t device)
{
}

/* Clients' threads ask, several at once. */
static CUfunction find_loaded(const struct cuda_gpu *g, CUkernel k)
{
    CUfunction f = fake_function_of((const struct cuda_library *)(void *)k, g);
    bool found = false;
    pthread_mutex_lock(&lock);
    for (unsigned i = 0; i < loaded_count && !found; i++)
        found = loaded[i] == f;
    pthread_mutex_unlock(&lock);
    return found ? f : NULL;
}

void cuda_libraries_follow(struct dev_client *c, struct cuda_gpu *g)
{
}

CUfunction cuda_library_known(struct dev_client *c, struct cuda_gpu *g, struct cuda_library *l,
                              CUkernel k)
{
    return find_loaded(g, k);
}

void cuda_kernel_allow(const struct dev *d, CUfunction f, uint32_t bytes)
{
}

CUresult cuda_library_launch(struct dev_client *c, uint32_t device, struct cuda_library *l,
                             CUkernel k, CUfunction *out)
{
    return cuda_library_function(c, device, l, k, out);
}

CUresult cuda_library_function(struct dev_client *c, uint32_t device, struct cuda_library *l,
                               CUkernel k, CUfunction *out)
{
    *out = find_loaded(cuda_home(c, device), k);
    if (*out)
        return CUDA_SUCCESS;
    struct cuda_gpu *g = cuda_settle(c, cuda_home(c, device), true);
    if (!g)
        return CUDA_ERROR_NOT_READY;
    cr_assert_eq(g, cuda_entered());
    fake_wait_for_all();
    *out = fake_function_of((const struct cuda_library *)(void *)k, g);
    pthread_mutex_lock(&lock);
    cr_assert_lt(loaded_count, GM_ARRAY_LEN(loaded));
    loaded[loaded_count++] = *out;
    pthread_mutex_unlock(&lock);
    cuda_settled(c, g);
    return CUDA_SUCCESS;
}
