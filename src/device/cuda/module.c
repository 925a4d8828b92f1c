/*
 * Modules: libraries of the driver. The image goes to the driver as it is; what is in it the client finds out as it needs
 * it (lookup.c). Variables live where the driver put them, outside the window.
 */
#include <stdlib.h>
#include <string.h>

#include "device/cuda/image.h"
#include "device/cuda/state.h"
#include "device/modinfo.h"

#define LOG_BYTES 16384u

/* PTX is compiled now, so that the program hears of its errors from the load. */
static CUresult load(struct dev_module *m, const void *image, uint32_t kind, char *errors)
{
    const struct cuda_driver *api = &m->client->dev->api;
    CUjit_option options[] = { CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES };
    void *values[] = { errors, (void *)(uintptr_t)LOG_BYTES };
    CUmodule loaded;
    CUresult r = api->cuLibraryLoadData(&m->handle, image, options, values, 2, NULL, NULL, 0);
    if (r == CUDA_SUCCESS && kind == WIRE_IMAGE_KIND_PTX) {
        r = api->cuLibraryGetModule(&loaded, m->handle);
        if (r != CUDA_SUCCESS)
            (void)api->cuLibraryUnload(m->handle);
    }
    return r;
}

static CUresult load_image(struct dev_module *m, const void *bytes, size_t size, uint32_t kind, char **log)
{
    char *errors = calloc(1, LOG_BYTES);
    struct cuda_image image;
    CUresult r = (CUresult)cuda_image_open(&image, bytes, size, kind);
    if (r == CUDA_SUCCESS)
        r = errors ? load(m, image.data, kind, errors) : CUDA_ERROR_OUT_OF_MEMORY;
    cuda_image_close(&image);
    if (errors && *errors) {
        *log = errors;
    } else {
        free(errors);
    }
    return r;
}

int cuda_module_load(struct dev_client *c, const void *image, size_t size, uint32_t kind, struct dev_module **out,
                     struct dev_module_info *info)
{
    struct dev_module *m = calloc(1, sizeof(*m));
    struct dev_modinfo found;

    memset(info, 0, sizeof(*info));
    *out = NULL;
    if (!m)
        return GM_CUDA_OUT_OF_MEMORY;
    gm_list_init(&m->link);
    m->client = c;
    cuda_enter(c->dev);
    CUresult r = load_image(m, image, size, kind, &info->log);
    if (r != CUDA_SUCCESS) {
        free(m);
        if (cuda_is_fatal(r) && r != CUDA_ERROR_UNKNOWN)
            cuda_die(c->dev, r);
        return (int)r;
    }
    pthread_mutex_lock(&c->modules_lock);
    gm_list_append(&c->modules, &m->link);
    pthread_mutex_unlock(&c->modules_lock);
    dev_modinfo_init(&found);
    found.by_name = true;
    int result = dev_modinfo_finish(&found, 0, 0, 0, 0, info);
    if (result != 0) {
        cuda_module_unload(m);
        return result;
    }
    m->info = (void *)(uintptr_t)info->info.data;
    *out = m;
    return GM_CUDA_SUCCESS;
}

/* The driver has given variables their memory. Under a second executor they have lost what the program made of them:
 * a client that knows of any says so itself (client/lookup.c). */
int cuda_module_place(struct dev_module *m, uint64_t globals_address, bool initialise)
{
    return GM_CUDA_SUCCESS;
}

/* Queued launches hold the module's code in the driver until they have run. */
void cuda_module_unload(struct dev_module *m)
{
    if (!m)
        return;
    struct dev_client *c = m->client;
    cuda_enter(c->dev);
    pthread_mutex_lock(&c->modules_lock);
    gm_list_remove(&m->link);
    pthread_mutex_unlock(&c->modules_lock);
    (void)c->dev->api.cuLibraryUnload(m->handle);
    free(m->listed);
    free(m->functions);
    free(m->globals);
    free(m->info);
    free(m);
}
