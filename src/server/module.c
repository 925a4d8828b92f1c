/*
 * Modules. The server keeps the image, sealed, and the memory of the module's variables; the
 * executor compiles. A load goes through the executor twice: the executor says how much memory the
 * variables need, is told where it is, and fills it.
 */
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/result.h"
#include "device/device.h"
#include "server/image.h"
#include "server/send.h"
#include "server/serve.h"
#include "server/server.h"
#include "transport/foreign.h"
#include "transport/memfd.h"

_Static_assert(SRV_SMALL_MAX <= DEV_GLOBALS_USED, "larger ones have pages of their own");

enum module_state {
    MODULE_LOADING,
    MODULE_LOADED, /* the executor knows it; its globals have no memory yet */
    MODULE_PLACED,
    MODULE_UNLOADING,
};

struct srv_module {
    struct gm_list link; /* session->modules */
    struct gm_index_link by_id;
    struct srv_session *session;
    struct srv_charge count;
    struct srv_charge bytes;
    struct srv_charge file; /* that the image came in; none if that is in the user's store */
    uint32_t id;
    enum module_state state;
    bool ready; /* the client has been told */
    uint32_t kind;
    uint32_t device;
    struct srv_image image;
    struct srv_allocation *globals; /* NULL if it has none */
    /* while it is being loaded */
    uint64_t serial;
    int info;
    char *log;
};

static void module_destroy(struct srv_module *m)
{
    gm_index_remove(&m->session->module_ids, &m->by_id);
    gm_list_remove(&m->link);
    srv_charge_release(&m->count);
    srv_charge_release(&m->bytes);
    srv_charge_release(&m->file);
    srv_image_remove(&m->image);
    gm_close(m->info);
    free(m->log);
    free(m);
}

bool srv_modules_free(struct srv_session *c, uint64_t until_ns)
{
    gm_list_for_each_safe (m, &c->modules, struct srv_module, link) {
        if (gm_now_ns() >= until_ns)
            return false;
        module_destroy(m); /* the variables go with the heap */
    }
    gm_index_finish(&c->module_ids);
    return true;
}

/* --- talking to the executor ------------------------------------------------------------------ */

static void load(struct srv_module *m, srv_answer_fn *done)
{
    const struct srv_extent *e = &m->image.extent;
    const struct wire_engine_module_load w = { m->session->id, m->id,   e->offset,
                                               e->size,        m->kind, m->device };
    srv_engine_module_load(m->session, &w, e->fd, done, m);
}

static bool is_replayed(const struct srv_module *m)
{
    return m->state == MODULE_LOADED || m->state == MODULE_PLACED;
}

static void place(struct srv_module *m, bool initialise, srv_answer_fn *done)
{
    const struct wire_engine_module_place w = { m->session->id, m->id,
                                                m->globals ? m->globals->block->address : 0,
                                                initialise };
    srv_engine_module_place(m->session, &w, done, m);
}

void srv_modules_replay(struct srv_session *c)
{
    gm_list_for_each (m, &c->modules, struct srv_module, link) {
        if (!is_replayed(m))
            continue;
        load(m, NULL);
        /* The memory has what the program made of it. */
        if (m->state == MODULE_PLACED)
            place(m, false, NULL);
    }
}

bool srv_modules_are_blamed(struct srv_session *c)
{
    gm_list_for_each (m, &c->modules, struct srv_module, link)
        if (is_replayed(m) && srv_is_blamed(&c->server->blame, c->uid, m->image.extent))
            return true;
    return false;
}

static void on_forgotten(void *arg, int result, struct tp_packet *answer)
{
    (void)result;
    (void)answer;
    module_destroy(arg);
}

/* Tells the executor to forget the module, then calls `done`. */
static void forget(struct srv_module *m, srv_answer_fn *done)
{
    struct srv_session *c = m->session;
    m->state = MODULE_UNLOADING;
    if (!c->in_executor) {
        done(m, 0, NULL);
        return;
    }
    srv_engine_module_unload(c, &(struct wire_engine_module_unload) { c->id, m->id }, done, m);
}

/* --- loading ---------------------------------------------------------------------------------- */

static void answer_load(struct srv_session *c, uint64_t serial, int result,
                        const struct srv_module *m)
{
    const struct wire_module_loaded w = {
        .result = result,
        .module = result == 0 ? m->id : 0,
        .globals_address = result == 0 && m->globals ? m->globals->block->address : 0,
        .log = m ? m->log : NULL,
    };
    srv_answer_module_loaded(c, serial, &w, result == 0 ? m->info : -1);
}

/* Ends a load. After a failure nothing of the module stays. */
static void finish_load(struct srv_module *m, int result)
{
    answer_load(m->session, m->serial, result, m);
    m->info = gm_close(m->info);
    free(gm_take_ptr(m->log));
    if (result == 0) {
        m->ready = true;
        return;
    }
    if (m->globals)
        srv_memory_free(gm_take_ptr(m->globals), NULL, NULL, 0);
    if (m->state == MODULE_LOADING)
        module_destroy(m);
    else
        forget(m, on_forgotten);
}

static void on_placed(void *arg, int result, struct tp_packet *answer)
{
    struct srv_module *m = arg;
    (void)answer;
    if (result == 0)
        m->state = MODULE_PLACED;
    finish_load(m, result);
}

static void on_globals(void *arg, uint64_t serial, int result, struct srv_allocation *a)
{
    struct srv_module *m = arg;
    (void)serial;
    if (result != 0) {
        finish_load(m, result);
        return;
    }
    m->globals = a;
    place(m, true, on_placed);
}

/* The description goes to the client as the executor made it. All that we check is that it cannot
 * change under its reader. */
static bool info_is_safe(int fd)
{
    struct stat st;
    return tp_is_memory(fd) && fstat(fd, &st) == 0 && st.st_size > 0 &&
           tp_memfd_check(fd, (uint64_t)st.st_size, true) == 0;
}

static void on_loaded(void *arg, int result, struct tp_packet *answer)
{
    struct srv_module *m = arg;
    struct wire_engine_module_loaded w = { 0 };

    if (answer) {
        wire_get_engine_module_loaded(&answer->body, &w);
        m->log = *w.log ? strdup(w.log) : NULL;
    }
    if (result == 0) {
        m->state = MODULE_LOADED;
        m->info = tp_packet_take_fd(answer, 0);
        if (!info_is_safe(m->info))
            result = GM_CUDA_UNKNOWN;
    }
    if (result == 0 && w.globals_size != 0)
        srv_memory_alloc(&m->session->heaps[m->device], w.globals_size, w.globals_align, true,
                         on_globals, m, 0);
    else if (result == 0)
        on_globals(m, 0, 0, NULL);
    else
        finish_load(m, result);
}

/* A new module with its charges. NULL, with a CUresult. */
static struct srv_module *module_create(struct srv_session *c, const struct wire_module_load *w,
                                        int *result)
{
    struct srv_module *m = calloc(1, sizeof(*m));
    *result = GM_CUDA_OUT_OF_MEMORY;
    if (!m)
        return NULL;
    gm_list_init(&m->link);
    m->session = c;
    m->info = -1;
    m->kind = w->kind;
    m->device = w->device;
    if (srv_charge(&m->count, &c->account, SRV_MODULES, 1) < 0 ||
        srv_charge(&m->bytes, &c->account, SRV_IMAGE_BYTES, w->size) < 0 ||
        srv_charge(&m->file, &c->account, SRV_IMAGE_FILES, 1) < 0 ||
        !gm_index_room(&c->module_ids)) {
        module_destroy(m);
        return NULL;
    }
    m->id = ++c->next_module;
    gm_index_add(&c->module_ids, &m->by_id, m->id);
    gm_list_append(&c->modules, &m->link);
    *result = 0;
    return m;
}

const char *srv_on_module_load(struct srv_session *c, const struct wire_module_load *w,
                               struct tp_packet *p, uint64_t serial)
{
    int result = c->failed;
    struct srv_module *m = NULL;

    if (w->kind < WIRE_IMAGE_KIND_PTX || w->kind > WIRE_IMAGE_KIND_FATBIN_LIST)
        return "an image of an unknown kind";
    if (w->device >= c->server->devices_count)
        return "an image for a device that there is not";
    if (w->size == 0 || tp_memfd_check(p->fds[0], w->size, true) < 0)
        return "an image that is not sealed, or not of the size it says";
    if (result == 0)
        m = module_create(c, w, &result);
    if (!m) {
        answer_load(c, serial, result, NULL);
        return NULL;
    }
    m->serial = serial;
    const struct srv_extent sent = { p->fds[0], 0, w->size };
    if (srv_is_blamed(&c->server->blame, c->uid, sent)) {
        srv_say(c->server,
                "An image of client {PID: %u, Context ID: 0} has ended an executor and is refused",
                c->pid);
        m->log =
            strdup("This image was being loaded when an executor ended: it is not tried again");
        finish_load(m, GM_CUDA_INVALID_IMAGE);
        return NULL;
    }
    srv_image_add(&c->user->images, &m->image, tp_packet_take_fd(p, 0), w->size);
    if (m->image.stored)
        srv_charge_release(&m->file);
    load(m, on_loaded);
    return NULL;
}

/* --- unloading -------------------------------------------------------------------------------- */

static void on_unload_freed(void *arg, uint64_t serial)
{
    srv_session_status(arg, serial, 0);
}

static void on_unloaded(void *arg, int result, struct tp_packet *answer)
{
    struct srv_module *m = arg;
    struct srv_session *c = m->session;
    struct srv_allocation *globals = m->globals;
    uint64_t serial = m->serial;
    (void)result;
    (void)answer;
    module_destroy(m);
    if (globals)
        srv_memory_free(globals, on_unload_freed, c, serial);
    else
        srv_session_status(c, serial, 0);
}

const char *srv_on_module_unload(struct srv_session *c, const struct wire_module_unload *w,
                                 uint64_t serial)
{
    gm_index_for_each (m, &c->module_ids, w->module, struct srv_module, by_id)
        if (m->ready && m->state != MODULE_UNLOADING) {
            m->serial = serial;
            forget(m, on_unloaded);
            return NULL;
        }
    srv_session_status(c, serial, GM_CUDA_INVALID_HANDLE);
    return NULL;
}
