/*
 * Modules: each refers to a library of the driver (library.c). What is in it the client finds out as it needs
 * it (lookup.c). Variables live where the driver put them, outside the window.
 */
#include <stdlib.h>
#include <string.h>

#include "device/cuda/library.h"
#include "device/cuda/state.h"
#include "device/modinfo.h"

int cuda_module_load(struct dev_client *c, uint32_t device, const void *image, size_t size, uint32_t kind,
                     struct dev_module **out, struct dev_module_info *info)
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
    int result = cuda_library_open(m->gpu, c->uid, image, size, kind, &m->library, &info->log);
    if (result != GM_CUDA_SUCCESS) {
        free(m);
        cuda_die_if_lost(&c->dev->gpus[device]);
        return result;
    }
    m->handle = m->library->handle;
    pthread_mutex_lock(&c->modules_lock);
    gm_list_append(&c->modules, &m->link);
    pthread_mutex_unlock(&c->modules_lock);
    dev_modinfo_init(&found);
    found.by_name = true;
    found.managed_apart = m->library->managed_apart;
    result = dev_modinfo_finish(&found, 0, 0, 0, 0, info);
    if (result != 0) {
        cuda_module_unload(m);
        return result;
    }
    m->info = (void *)(uintptr_t)info->info.data;
    *out = m;
    return GM_CUDA_SUCCESS;
}

/* The driver has given variables their memory. Under a second executor they have lost what the program made of them. */
int cuda_module_place(struct dev_module *m, uint64_t globals_address, bool initialise)
{
    return initialise || !m->library->keeps_values ? GM_CUDA_SUCCESS : GM_CUDA_LAUNCH_FAILED;
}

/* Queued launches hold the module's code in the driver until they have run. */
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
    free(m->listed);
    free(m->functions);
    free(m->globals);
    free(m->info);
    free(m);
}
