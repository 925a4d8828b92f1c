/*
 * The kernels of a library that are loaded in each context. Only the first one of a library waits
 * for a safe point, since with it the driver loads what the others need, too.
 */
#include "device/cuda/kernel.h"
#include "device/cuda/module.h"

#include "base/array.h"
#include "device/cuda/admit.h"
#include "device/cuda/settle.h"
#include "device/cuda/local.h"

#define KERNELS_MAX 65536u

struct cuda_loaded {
    CUkernel kernel; /* NULL: its variables */
    CUfunction function;
    const struct cuda_gpu *gpu;
};

static bool find_loaded(struct cuda_library *l, const struct cuda_gpu *g, CUkernel k,
                        CUfunction *out)
{
    bool found = false;
    pthread_mutex_lock(&g->dev->libraries.lock);
    for (uint32_t i = 0; i < l->loaded_count && !found; i++)
        if ((found = l->loaded[i].kernel == k && l->loaded[i].gpu == g))
            *out = l->loaded[i].function;
    pthread_mutex_unlock(&g->dev->libraries.lock);
    return found;
}

/* If there is no memory for the note, the next one to ask waits in vain. */
static void keep_loaded(struct cuda_library *l, const struct cuda_gpu *g, CUkernel k,
                        CUfunction function)
{
    pthread_mutex_lock(&g->dev->libraries.lock);
    if (gm_array_room(&l->loaded, sizeof(*l->loaded), l->loaded_count, KERNELS_MAX))
        l->loaded[l->loaded_count++] = (struct cuda_loaded) { k, function, g };
    l->gpus |= CUDA_GPU_BIT(g);
    pthread_mutex_unlock(&g->dev->libraries.lock);
}

CUfunction cuda_library_known(struct dev_client *c, struct cuda_gpu *g, struct cuda_library *l,
                              CUkernel k)
{
    CUfunction f;
    return find_loaded(l, g, k, &f) && cuda_local_has(c, g, l, f) ? f : NULL;
}

/* Something of the library is about to be loaded in the client's context, which is entered. For the
 * first thing of a library, waits for a safe point, for which the client may go to the other
 * context. NULL: the client is about to be stopped. */
static struct cuda_gpu *begin_load(struct dev_client *c, uint32_t device,
                                   const struct cuda_library *l, enum cuda_move move, bool *waits)
{
    struct cuda_gpu *g = cuda_home(c, device);
    pthread_mutex_lock(&g->dev->libraries.lock);
    *waits =
        !(l->gpus & CUDA_GPU_BIT(g)); /* the driver loads further kernels of it without waiting */
    pthread_mutex_unlock(&g->dev->libraries.lock);
    if (*waits && !(g = cuda_settle(c, g, move)))
        return NULL;
    cuda_enter(g);
    return g;
}

CUresult cuda_library_function(struct dev_client *c, uint32_t device, struct cuda_library *l,
                               CUkernel k, CUfunction *out)
{
    CUresult r = CUDA_SUCCESS;
    bool waits;
    if (find_loaded(l, cuda_home(c, device), k, out))
        return CUDA_SUCCESS;
    struct cuda_gpu *g = begin_load(c, device, l, CUDA_MOVES, &waits);
    if (!g)
        return CUDA_ERROR_NOT_READY;
    if (!find_loaded(l, g, k, out)) {
        r = CUDA_CALL(g->dev, CUDA_GPU_BIT(g), cuKernelGetFunction, out, k);
        if (r == CUDA_SUCCESS)
            keep_loaded(l, g, k, *out);
    }
    if (waits)
        cuda_settled(c, g);
    return r;
}

/* If this fails, the kernel is loaded with its next launch, and the client hears of the error then.
 */
static void follow(struct dev_module *m, struct cuda_gpu *g)
{
    CUfunction f;
    if (!m->functions_count || find_loaded(m->library, g, m->functions[0].handle, &f))
        return;
    if (CUDA_CALL(g->dev, CUDA_GPU_BIT(g), cuKernelGetFunction, &f, m->functions[0].handle) ==
        CUDA_SUCCESS)
        keep_loaded(m->library, g, m->functions[0].handle, f);
}

void cuda_libraries_follow(struct dev_client *c, struct cuda_gpu *g)
{
    pthread_mutex_lock(&c->modules_lock);
    gm_list_for_each (m, &c->modules, struct dev_module, link)
        if (m->gpu->index == g->index)
            follow(m, g);
    pthread_mutex_unlock(&c->modules_lock);
}

CUresult cuda_library_find(struct dev_client *c, uint32_t device, struct cuda_library *l,
                           struct cuda_function *f)
{
    CUfunction loaded;
    CUresult r = cuda_library_function(c, device, l, f->handle, &loaded);
    struct cuda_gpu *g = cuda_home(c, device);
    f->loaded =
        r == CUDA_SUCCESS && !g->is_fallback && cuda_local_has(c, g, l, loaded) ? loaded : NULL;
    return r;
}

/* While it waits, the client may go to the other context, where the kernel is another function. */
CUresult cuda_library_launch(struct dev_client *c, uint32_t device, struct cuda_library *l,
                             CUkernel k, CUfunction *out)
{
    CUresult r = cuda_library_function(c, device, l, k, out);
    if (r != CUDA_SUCCESS || cuda_local_has(c, cuda_home(c, device), l, *out))
        return r;
    struct cuda_gpu *g = cuda_settle(c, cuda_home(c, device), CUDA_MOVES);
    if (!g)
        return CUDA_ERROR_NOT_READY;
    cuda_settled(c, g);
    r = cuda_library_function(c, device, l, k, out);
    if (r == CUDA_SUCCESS)
        cuda_local_take(c, cuda_home(c, device), l, *out);
    return r;
}

CUresult cuda_library_variable(struct dev_client *c, uint32_t device, struct cuda_library *l,
                               const char *name, CUdeviceptr *address, size_t *size)
{
    CUfunction none;
    bool waits;
    struct cuda_gpu *g = begin_load(c, device, l, CUDA_MOVES_LATE, &waits);
    if (!g)
        return CUDA_ERROR_NOT_READY;
    CUresult r =
        CUDA_CALL(g->dev, CUDA_GPU_BIT(g), cuLibraryGetGlobal, address, size, l->handle, name);
    if (r == CUDA_SUCCESS && !find_loaded(l, g, NULL, &none))
        keep_loaded(l, g, NULL, NULL);
    if (waits)
        cuda_settled(c, g);
    return r;
}

/* --- dynamic shared memory -------------------------------------------------------------------- */

bool cuda_library_raise_dynamic(struct cuda_gpu *g, CUkernel kernel, uint32_t bytes)
{
    struct dev *d = g->dev;
    const CUfunction_attribute a = CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES;
    int now = 0;
    pthread_mutex_lock(
        &d->libraries.lock); /* between looking and raising nobody else may raise it more */
    CUresult r = d->api.cuKernelGetAttribute(&now, a, kernel, g->device);
    if (r != CUDA_SUCCESS || now < 0 || (uint32_t)now < bytes)
        r = d->api.cuKernelSetAttribute(a, (int)bytes, kernel, g->device);
    pthread_mutex_unlock(&d->libraries.lock);
    return r == CUDA_SUCCESS;
}

void cuda_kernel_allow(const struct dev *d, CUfunction f, uint32_t bytes)
{
    const CUfunction_attribute a = CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES;
    int now = 0;
    if (bytes > INT32_MAX || d->api.cuFuncGetAttribute(&now, a, f) != CUDA_SUCCESS ||
        (uint32_t)now >= bytes)
        return; /* if it wants too much, the launch reports that */
    (void)d->api.cuFuncSetAttribute(f, a, (int)bytes);
}
