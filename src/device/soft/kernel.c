/*
 * A kernel's two forms. The interpreter's code exists from the start, so that a launch never waits
 * for a compiler. At the first launch with a new block size the compiled form is taken from the
 * cache on disk (0.1 ms) or ordered from gmux-jit. When it arrives, the launches that are running
 * change over to it between blocks.
 *
 * All forms live as long as their kernel, so nobody has to count who still runs an old one.
 */
#include "device/soft/kernel.h"

#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "device/soft/loader/compiler.h"

static struct gm_log_topic topic = GM_LOG_TOPIC("soft");

/* Makes the compiled form available, if the client may have that much more memory. */
static void variant_take(struct soft_variant *v, struct soft_code *code)
{
    if (soft_charge(v->kernel->module, code->bytes)) {
        atomic_store_explicit(&v->code, code, memory_order_release);
        return;
    }
    gm_info(&topic, "kernel %s stays in the interpreter: the client's modules take too much memory",
            v->kernel->name);
    soft_code_destroy(code);
}

static void compiled(void *arg, struct soft_code *code, bool unsupported, const char *reason)
{
    struct soft_variant *v = arg;
    struct soft_kernel *k = v->kernel;
    if (code)
        gm_debug(&topic, "kernel %s: compiled for blocks of %ux%ux%u", k->name, v->ntid[0],
                 v->ntid[1], v->ntid[2]);
    else
        gm_info(&topic, "kernel %s stays in the interpreter: %s", k->name, reason);
    if (code)
        variant_take(v, code);
    if (v->settled)
        sem_post(v->settled);
    soft_module_unref(k->module);
}

static void variant_order(struct soft_variant *v)
{
    struct soft_kernel *k = v->kernel;
    struct dev_module *m = k->module;
    struct soft_compiler *compiler = m->client->dev->compiler;
    struct soft_job job = { .owner = m->client,
                            .uid = m->client->user->uid,
                            .text = m->text,
                            .text_size = m->text_size,
                            .entry = k->name,
                            .launches = &v->launches };

    if (!compiler || !m->text)
        return;
    memcpy(job.options.ntid, v->ntid, sizeof(job.options.ntid));
    struct soft_code *code = soft_compiler_lookup(compiler, &job);
    if (code) {
        variant_take(v, code);
        return;
    }
    sem_t settled;
    sem_init(&settled, 0, 0);
    v->settled = m->client->dev->compiles_first ? &settled : NULL;
    soft_module_ref(m);
    int r = soft_compiler_submit(compiler, &job, compiled, v);
    if (r < 0) {
        gm_debug(&topic, "kernel %s is not compiled: %s", k->name, strerror(-r));
        soft_module_unref(m);
    } else if (m->client->dev->compiles_first) {
        while (sem_wait(&settled) < 0)
            ; /* interrupted by a signal */
        v->settled = NULL;
    }
    sem_destroy(&settled);
}

static struct soft_variant *variant_find(struct soft_kernel *k, const uint32_t ntid[3])
{
    static const uint32_t any[3];
    uint32_t count = atomic_load_explicit(&k->variant_count, memory_order_acquire);
    for (uint32_t i = 0; i < count; i++) {
        struct soft_variant *v = &k->variants[i];
        if (memcmp(v->ntid, ntid, sizeof(v->ntid)) == 0 || memcmp(v->ntid, any, sizeof(any)) == 0)
            return v;
    }
    return NULL;
}

static struct soft_variant *variant_add(struct soft_kernel *k, const uint32_t ntid[3])
{
    uint32_t count = atomic_load_explicit(&k->variant_count, memory_order_relaxed);
    struct soft_variant *v = &k->variants[count];
    v->kernel = k;
    if (count + 1 < SOFT_VARIANTS)
        memcpy(v->ntid, ntid, sizeof(v->ntid));
    atomic_store_explicit(&k->variant_count, count + 1, memory_order_release);
    return v;
}

struct soft_variant *soft_kernel_variant(struct soft_kernel *k, const uint32_t ntid[3])
{
    struct soft_variant *v = variant_find(k, ntid);
    if (GM_LIKELY(v != NULL)) {
        atomic_fetch_add_explicit(&v->launches, 1, memory_order_relaxed);
        return v;
    }
    pthread_mutex_t *lock = &k->module->client->modules_lock;
    pthread_mutex_lock(lock);
    v = variant_find(k, ntid);
    bool is_new = v == NULL;
    if (is_new)
        v = variant_add(k, ntid);
    pthread_mutex_unlock(lock);
    if (is_new)
        variant_order(v);
    return v;
}
