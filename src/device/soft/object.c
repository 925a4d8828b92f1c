/*
 * Module objects: their creation, and what is freed with the last reference to one.
 */
#include <stdlib.h>

#include "device/soft/ir/ir.h"
#include "device/soft/kernel.h"

struct dev_module *soft_module_create(struct dev_client *c, uint32_t kernels)
{
    struct dev_module *m = calloc(1, sizeof(*m));
    if (!m)
        return NULL;
    m->kernels = calloc(GM_MAX(kernels, 1u), sizeof(*m->kernels));
    if (!m->kernels) {
        free(m);
        return NULL;
    }
    m->client = c;
    m->kernel_count = kernels;
    atomic_init(&m->refs, 1);
    for (uint32_t i = 0; i < kernels; i++)
        m->kernels[i].module = m;
    pthread_mutex_lock(&c->modules_lock);
    gm_list_append(&c->modules, &m->link);
    pthread_mutex_unlock(&c->modules_lock);
    return m;
}

void soft_module_ref(struct dev_module *m)
{
    atomic_fetch_add_explicit(&m->refs, 1, memory_order_relaxed);
}

static void kernel_finish(struct soft_kernel *k)
{
    for (uint32_t i = 0; i < k->variant_count; i++)
        soft_code_destroy(atomic_load_explicit(&k->variants[i].code, memory_order_acquire));
    soft_code_destroy(k->interpreter);
    free(k->lacks);
}

void soft_module_unref(struct dev_module *m)
{
    if (atomic_fetch_sub_explicit(&m->refs, 1, memory_order_acq_rel) != 1)
        return;
    for (uint32_t i = 0; i < m->kernel_count; i++)
        kernel_finish(&m->kernels[i]);
    soft_give_back(m, UINT64_MAX);
    ir_module_destroy(m->ir);
    free(m->kernels);
    free(m->globals);
    free(m->info);
    free(m->names);
    free(m->text);
    free(m);
}
