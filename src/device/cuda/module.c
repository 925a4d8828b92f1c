/*
 * Modules. Each refers to a library of the driver (library.h). The client asks what is in it when
 * it needs to know (lookup.c). Variables live in the client's memory (variables.h), or else where
 * the driver has put them, outside the window.
 */
#include <stdlib.h>
#include <string.h>

#include "device/cuda/library.h"
#include "device/cuda/module.h"
#include "device/cuda/state.h"
#include "device/cuda/variables.h"
#include "device/modinfo.h"
#include "fatbin/move.h"

static int load(struct dev_client *c, uint32_t device, const void *image, size_t size,
                uint32_t kind, struct dev_module **out, struct dev_module_info *info)
{
    struct dev_module *m = calloc(1, sizeof(*m));
    struct dev_modinfo found;

    memset(info, 0, sizeof(*info));
    *out = NULL;
    if (!m)
        return GM_CUDA_OUT_OF_MEMORY;
    gm_list_init(&m->link);
    m->client = c;
    m->gpu = &c->dev->gpus[device];
    cuda_enter(m->gpu);
    int result = cuda_library_open(m->gpu, c, image, size, kind, &m->library, &info->log);
    if (result != GM_CUDA_SUCCESS) {
        free(m);
        cuda_die_if_lost(&c->dev->gpus[device]);
        return result;
    }
    m->handle = m->library->handle;
    cuda_variables_open(m);
    pthread_mutex_lock(&c->modules_lock);
    gm_list_append(&c->modules, &m->link);
    pthread_mutex_unlock(&c->modules_lock);
    dev_modinfo_init(&found);
    found.by_name = true;
    found.managed_apart = m->library->traits.has_managed;
    result = dev_modinfo_finish(&found, 0, 0, cuda_variables_size(m), FB_MOVE_ALIGN, info);
    if (result != 0) {
        cuda_module_unload(m);
        return result;
    }
    m->info = (void *)(uintptr_t)info->info.data;
    *out = m;
    return GM_CUDA_SUCCESS;
}

int cuda_module_load(struct dev_client *c, uint32_t device, const void *image, size_t size,
                     uint32_t kind, struct dev_module **out, struct dev_module_info *info)
{
    atomic_fetch_add(&c->dev->orders, 1);
    const int r = load(c, device, image, size, kind, out, info);
    atomic_fetch_sub(&c->dev->orders, 1);
    return r;
}

/* In a second executor, variables for which the driver has memory have lost the values that kernels
 * gave them. The client library knows by itself what the program has lost in constants, and in
 * variables whose addresses it has asked for (client/session/mortal.h). */
int cuda_module_place(struct dev_module *m, uint64_t globals_address, bool initialise)
{
    int r = m->variables ? cuda_variables_place(m, globals_address, initialise) : GM_CUDA_SUCCESS;
    return r || initialise || m->variables || !m->library->traits.loses_values
               ? r
               : GM_CUDA_LAUNCH_FAILED;
}

/* The driver keeps the code of launches that are queued until they have run. */
void cuda_module_unload(struct dev_module *m)
{
    if (!m)
        return;
    struct dev_client *c = m->client;
    cuda_enter(m->gpu);
    pthread_mutex_lock(&c->modules_lock);
    atomic_fetch_add_explicit(&c->runs.modules, 1, memory_order_release);
    gm_list_remove(&m->link);
    pthread_mutex_unlock(&c->modules_lock);
    cuda_library_close(c->dev, m->library);
    cuda_variables_close(m->variables);
    free(m->listed);
    free(m->functions);
    free(m->globals);
    free(m->info);
    free(m);
}
