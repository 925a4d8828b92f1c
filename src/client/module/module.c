/*
 * Loads modules. The image goes to the server in a sealed memfd, and a memfd comes back that says
 * what the module contains (contents.c).
 */
#include "client/module/contents.h"

#include <fcntl.h>
#include <stdlib.h>

#include "base/cleanup.h"
#include "base/log.h"
#include "client/memory/memory.h"
#include "client/memory/reference.h"
#include "fatbin/cubin.h"
#include "fatbin/fatbin.h"
#include "transport/memfd.h"

static struct gm_log_topic topic = GM_LOG_TOPIC("module");

struct rt_table rt_modules = RT_TABLE(RT_KIND_MODULE, struct rt_module);

static void give_logs(const struct rt_jit_log *log, const char *text, bool failed)
{
    if (log)
        rt_jit_log_give(log, failed ? "" : text, failed ? text : "");
}

/* Enters the variables into the map of the program's memory. */
static int enter_variables(struct rt_module *m)
{
    int r = CUDA_SUCCESS;
    for (uint32_t i = 0; i < m->variables_count && r == CUDA_SUCCESS; i++) {
        const struct rt_variable *v = &m->variables[i];
        if (v->size)
            r = rt_variable_enter(m, v);
    }
    return r;
}

/* Ends the library's modules on other devices. */
static void end_elsewhere(struct rt_module *m)
{
    for (int i = 0; m->elsewhere && i < (int)RT_DEVICES; i++)
        if (m->elsewhere[i])
            rt_module_destroy(m->elsewhere[i]);
    free(m->elsewhere);
    m->elsewhere = NULL;
    m->image_fd = gm_close(m->image_fd);
}

void rt_module_destroy(struct rt_module *m)
{
    end_elsewhere(m);
    for (uint32_t i = 0; i < m->entries_count; i++)
        rt_function_end(atomic_load_explicit(&m->entries[i].function, memory_order_acquire));
    for (uint32_t i = 0; i < m->variables_count; i++) {
        if (m->variables[i].reference)
            rt_reference_forget(m->context, m->variables[i].address, m->variables[i].size);
        rt_variable_leave(&m->variables[i]);
    }
    rt_lookup_finish(m);
    (void)rt_request_module_unload(rt_session, m->number);
    rt_module_managed_finish(m);
    rt_contents_free(m);
    rt_object_release(&rt_modules, &m->object);
}

static void end_module(struct rt_object *o, void *arg)
{
    struct rt_module *m = (struct rt_module *)(void *)o;
    if (m->context == arg)
        rt_module_destroy(m);
}

void rt_module_destroy_all(struct rt_context *c)
{
    rt_table_each(&rt_modules, end_module, c);
}

static int load_fd(struct rt_module *m, int fd, size_t size, uint32_t kind, struct rt_jit_log *log)
{
    struct rt_loaded loaded;
    int r = rt_request_module_load(rt_session, fd, size, kind, m->device, &loaded);
    const char *text = loaded.log ? loaded.log : "";
    if (r)
        gm_info(&topic, "load failed (error %d): %s", r, text);
    give_logs(log, text, r != CUDA_SUCCESS);
    free(loaded.log);
    if (r)
        return r;
    m->number = loaded.module;
    m->globals = loaded.globals_address;
    r = rt_contents_read(m, loaded.info_fd, loaded.globals_address);
    r = r ? r : rt_heap_enter(m);
    gm_close(loaded.info_fd);
    if (r)
        (void)rt_request_module_unload(rt_session, m->number);
    return r;
}

/* Keeps the image, which another device may need of a library. */
static void keep_image(struct rt_module *m, int fd, size_t size, uint32_t kind)
{
    if (rt_session->device_count < 2)
        return;
    gm_close(m->image_fd);
    m->image_fd = fcntl(fd, F_DUPFD_CLOEXEC, 0);
    m->image_size = size;
    m->image_kind = kind;
}

static int load_image(struct rt_module *m, const struct rt_image *image, struct rt_jit_log *log)
{
    GM_AUTO_FD int fd = tp_memfd_from_bytes("gmux-image", image->data, image->size);
    int r = fd < 0 ? (int)CUDA_ERROR_OUT_OF_MEMORY : load_fd(m, fd, image->size, image->kind, log);
    if (r == CUDA_SUCCESS && !m->context)
        keep_image(m, fd, image->size, image->kind);
    return r;
}

/* Loads the image again, with its managed variables at addresses of this process: otherwise the
 * device would keep them to itself. */
static int load_again(struct rt_module *m, const struct rt_image *image, struct rt_jit_log *log)
{
    struct rt_image moved;
    int r = rt_module_managed_move(m, image, &moved);
    (void)rt_request_module_unload(rt_session, m->number);
    rt_contents_free(m);
    if (r)
        return r;
    r = load_image(m, &moved, log);
    rt_image_drop(&moved);
    return r;
}

static struct rt_module *module_new(struct rt_context *c, int device)
{
    struct rt_module *m = rt_object_take(&rt_modules);
    if (!m)
        return NULL;
    m->context = rt_context_owner(c);
    m->device = device;
    m->image_fd = -1;
    return m;
}

/* Finishes a load, whose result is `r`. */
static int finish_load(struct rt_module *m, int r, struct rt_module **out)
{
    if (r) {
        end_elsewhere(m);
        rt_lookup_finish(m);
        rt_module_managed_finish(m);
        rt_contents_free(m);
        rt_object_release(&rt_modules, &m->object);
        return r;
    }
    r = enter_variables(m);
    if (r) {
        rt_module_destroy(m);
        return r;
    }
    rt_object_publish(&m->object);
    *out = m;
    return CUDA_SUCCESS;
}

int rt_module_load_fd(int device, int fd, size_t size, uint32_t kind, struct rt_module **out)
{
    struct rt_module *m = module_new(NULL, device);
    return m ? finish_load(m, load_fd(m, fd, size, kind, NULL), out) : CUDA_ERROR_OUT_OF_MEMORY;
}

/* Whether the image has code for other GPUs only. The device does not notice before something of it
 * is wanted. A program expects that error when it loads a module, which is loaded as a whole. */
static bool is_for_others(const struct rt_image *image)
{
    if (!rt_session || !rt_session->memory_apart)
        return false;
    return (image->kind == WIRE_IMAGE_KIND_FATBIN &&
            !fb_serves(image->data, image->size, rt_image_capability())) ||
           (image->kind == WIRE_IMAGE_KIND_CUBIN &&
            !fb_cubin_serves(image->data, rt_image_capability()));
}

int rt_module_load(struct rt_context *c, const void *data, struct rt_jit_log *log,
                   struct rt_module **out)
{
    struct rt_image image;
    give_logs(log, "", false);
    int r = rt_image_look(data, &image);
    if (r == CUDA_SUCCESS && c && is_for_others(&image)) {
        snprintf(image.why, sizeof(image.why), "code for other GPUs only");
        rt_image_drop(&image);
        r = CUDA_ERROR_NO_BINARY_FOR_GPU;
    }
    if (r) {
        give_logs(log, image.why, true);
        gm_info(&topic, "no image to load (error %d): %s", r, image.why);
        return r;
    }
    struct rt_module *m = module_new(c, c ? c->device : rt_current_device());
    if (!m) {
        rt_image_drop(&image);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    r = load_image(m, &image, log);
    if (r == CUDA_SUCCESS && m->managed_apart)
        r = load_again(m, &image, log);
    rt_image_drop(&image);
    return finish_load(m, r, out);
}

int rt_module_load_file(struct rt_context *c, const char *path, struct rt_jit_log *log,
                        struct rt_module **out)
{
    GM_AUTO_FREE char *data = NULL;
    size_t size;
    int r = rt_image_read(path, SIZE_MAX, &data, &size);
    return r ? r : rt_module_load(c, data, log, out);
}
