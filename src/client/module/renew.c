/*
 * Libraries, and the end of a primary context. A library belongs to no context and keeps its
 * handles. But its module on a device ends with the device's primary context: in the next one
 * (cudaDeviceReset) its variables have their first values. So it is loaded anew, in place, when the
 * context begins again. The handles stay; its number and the addresses of its variables change.
 *
 * That needs the image, which the program has promised to keep (CU_LIBRARY_BINARY_IS_PRESERVED;
 * NVIDIA's runtime does). A library without that promise stays as it is. So does one that is not on
 * its own device and has managed variables.
 */
#include <stdlib.h>

#include "base/cleanup.h"
#include "base/log.h"
#include "client/module/contents.h"
#include "transport/memfd.h"

static struct gm_log_topic topic = GM_LOG_TOPIC("module");
/* One thread at a time loads anew. The lock is taken before all others. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static _Atomic bool some_ended; /* since the program began */

/* Finds the library's module on the device. Returns NULL if there is none that could be loaded
 * anew. */
static struct rt_module *instance_on(const struct rt_library *l, int device)
{
    struct rt_module *m = l->module;
    if (!l->image)
        return NULL;
    if (m->device == device)
        return m;
    return m->elsewhere && !m->managed ? m->elsewhere[device] : NULL;
}

static void mark(struct rt_object *o, void *arg)
{
    const struct rt_library *l = (const struct rt_library *)(void *)o;
    struct rt_module *m = instance_on(l, ((const struct rt_context *)arg)->device);
    if (!m)
        return;
    atomic_store(&m->ended, true);
    atomic_store(&some_ended, true);
}

void rt_library_context_ends(struct rt_context *c)
{
    if (c->primary)
        rt_table_each(&rt_libraries, mark, c);
}

static int load(const struct rt_module *m, const struct rt_image *image, struct rt_loaded *out)
{
    GM_AUTO_FD int fd = tp_memfd_from_bytes("gmux-image", image->data, image->size);
    int r = fd < 0
                ? (int)CUDA_ERROR_OUT_OF_MEMORY
                : rt_request_module_load(rt_session, fd, image->size, image->kind, m->device, out);
    if (r == CUDA_SUCCESS)
        gm_close(out->info_fd); /* the same as what is known */
    free(out->log);
    return r;
}

/* Loads the image. Its managed variables get their first values, at their old addresses. */
static int load_image(const struct rt_library *l, struct rt_module *m, struct rt_loaded *out)
{
    struct rt_image image, moved;
    int r = rt_image_look(l->image, &image);
    if (r)
        return r;
    if (!m->managed) {
        r = load(m, &image, out);
    } else if ((r = rt_module_managed_move(m, &image, &moved)) == CUDA_SUCCESS) {
        r = load(m, &moved, out);
        rt_image_drop(&moved);
    }
    rt_image_drop(&image);
    return r;
}

static int move_variables(struct rt_module *m, uint64_t globals)
{
    int r = CUDA_SUCCESS;
    for (uint32_t i = 0; i < m->variables_count && r == CUDA_SUCCESS; i++) {
        struct rt_variable *v = &m->variables[i];
        rt_variable_leave(v);
        v->address += globals - m->globals;
        r = v->size ? rt_variable_enter(m, v) : CUDA_SUCCESS;
    }
    m->globals = globals;
    return r;
}

static int renew(const struct rt_library *l, struct rt_module *m)
{
    struct rt_loaded loaded = { .info_fd = -1 };
    int r = load_image(l, m, &loaded);
    if (r)
        return r;
    const uint32_t old = m->number;
    m->number = loaded.module;
    r = m->by_name ? rt_lookup_again(m) : move_variables(m, loaded.globals_address);
    r = r ? r : rt_heap_enter(m);
    (void)rt_request_module_unload(rt_session, old);
    return r;
}

static void renew_if_ended(struct rt_object *o, void *arg)
{
    const struct rt_library *l = (const struct rt_library *)(void *)o;
    struct rt_module *m = instance_on(l, ((const struct rt_context *)arg)->device);
    if (!m || !atomic_exchange(&m->ended, false))
        return;
    int r = renew(l, m);
    if (r)
        gm_warn(&topic, "a library could not be loaded anew (error %d)", r);
}

/* Loads the libraries anew. The thread that begins the context waits for that. */
void rt_library_context_begins(struct rt_context *c)
{
    if (GM_LIKELY(!atomic_load(&some_ended)))
        return;
    pthread_mutex_lock(&lock);
    rt_table_each(&rt_libraries, renew_if_ended, c);
    pthread_mutex_unlock(&lock);
}
