/*
 * Libraries on several devices. A library belongs to no context. It is loaded at once on the device
 * of the current context, or on the first device, and on other devices when something of it is
 * first needed there. A handle of one of its functions means that function on every device. The
 * stream of a launch, or the current context, decides on which.
 */
#include <stdlib.h>

#include "client/module/module.h"
#include "client/stream/reach.h"

/* Taken before the locks of requests, functions and look-ups. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

/* Called with the lock held. */
static int load_on(struct rt_module *m, int device, struct rt_module **out)
{
    if (m->image_fd < 0)
        return CUDA_ERROR_OUT_OF_MEMORY;
    if (!m->elsewhere && !(m->elsewhere = calloc(RT_DEVICES, sizeof(struct rt_module *))))
        return CUDA_ERROR_OUT_OF_MEMORY;
    int r = CUDA_SUCCESS;
    if (!m->elsewhere[device]) {
        r = rt_module_load_fd(device, m->image_fd, m->image_size, m->image_kind,
                              &m->elsewhere[device]);
        if (r == CUDA_SUCCESS)
            m->elsewhere[device]->library = m->library;
    }
    *out = m->elsewhere[device];
    return r;
}

int rt_module_on(struct rt_module **m, int device)
{
    struct rt_module *there = NULL;
    if ((*m)->device == device || (*m)->context)
        return CUDA_SUCCESS;
    pthread_mutex_lock(&lock);
    int r = load_on(*m, device, &there);
    pthread_mutex_unlock(&lock);
    if (r == CUDA_SUCCESS)
        *m = there;
    return r;
}

/* Finds the function of the same name on that device. */
static int find_on(const struct rt_function *f, int device, struct rt_function **out)
{
    struct rt_module *m = f->module;
    struct rt_entry *e;
    int r = rt_module_on(&m, device);
    r = r ? r : rt_module_find_entry(m, f->entry->name, &e);
    if (r)
        return r;
    *out = rt_module_function(m, e);
    return *out ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

int rt_function_elsewhere(struct rt_function **f, int device)
{
    _Atomic(struct rt_function *) *known =
        atomic_load_explicit(&(*f)->elsewhere, memory_order_acquire);
    struct rt_function *there =
        known ? atomic_load_explicit(&known[device], memory_order_acquire) : NULL;
    if (GM_LIKELY(there != NULL)) {
        *f = there;
        return CUDA_SUCCESS;
    }
    int r = find_on(*f, device, &there);
    if (r)
        return r;
    pthread_mutex_lock(&lock);
    if (!known && !(known = atomic_load_explicit(&(*f)->elsewhere, memory_order_relaxed))) {
        known = calloc(RT_DEVICES, sizeof(*known));
        atomic_store_explicit(&(*f)->elsewhere, known, memory_order_release);
    }
    if (known)
        atomic_store_explicit(&known[device], there, memory_order_release);
    pthread_mutex_unlock(&lock);
    *f = there;
    return CUDA_SUCCESS;
}

uint32_t rt_library_reach(struct rt_module *m)
{
    pthread_mutex_lock(&lock);
    uint32_t devices = rt_reach_of_device(m->device);
    for (int i = 0; m->elsewhere && i < (int)rt_session->device_count; i++)
        devices |= m->elsewhere[i] ? rt_reach_of_device(i) : 0;
    pthread_mutex_unlock(&lock);
    return devices;
}
