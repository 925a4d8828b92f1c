/*
 * Appends elements to a buffer that grows, and seals it in a memfd at the end.
 */
#include "device/modinfo.h"

#include <stdlib.h>
#include <string.h>

/* Every field of an encoded element takes at most this beside its strings and bytes. */
#define ELEMENT_SLACK 256u

void dev_modinfo_init(struct dev_modinfo *m)
{
    memset(m, 0, sizeof(*m));
}

static bool reserve(struct dev_modinfo *m, struct wire_enc *e, size_t more)
{
    if (m->failed)
        return false;
    if (e->capacity - e->size >= more)
        return true;
    size_t capacity = GM_MAX(2 * e->capacity, e->size + more);
    uint8_t *data = capacity <= WIRE_LIST_MAX ? realloc(e->data, capacity) : NULL;
    if (!data) {
        m->failed = true;
        return false;
    }
    e->data = data;
    e->capacity = capacity;
    return true;
}

void dev_modinfo_function(struct dev_modinfo *m, const struct wire_function_info *info,
                          const struct dev_param *params, uint32_t param_count)
{
    struct wire_function_info full = *info;
    full.params =
        (struct wire_bytes) { .data = params, .size = param_count * (uint32_t)sizeof(*params) };
    if (!reserve(m, &m->functions,
                 ELEMENT_SLACK + strlen(info->name) + (info->lacks ? strlen(info->lacks) : 0) +
                     full.params.size))
        return;
    wire_put_function_info(&m->functions, &full);
    m->function_count++;
}

void dev_modinfo_global(struct dev_modinfo *m, const struct wire_global_info *info)
{
    if (reserve(m, &m->globals, ELEMENT_SLACK + strlen(info->name)))
        wire_put_global_info(&m->globals, info);
}

int dev_modinfo_finish(struct dev_modinfo *m, uint32_t ptx_version, uint32_t target,
                       uint64_t globals_size, uint64_t globals_align, struct dev_module_info *out)
{
    const struct wire_module_info info = {
        .ptx_version = ptx_version,
        .target = target,
        .by_name = m->by_name,
        .managed_apart = m->managed_apart,
        .globals_size = globals_size,
        .globals_align = globals_align,
        .functions = { .data = m->functions.data, .size = (uint32_t)m->functions.size },
        .globals = { .data = m->globals.data, .size = (uint32_t)m->globals.size },
    };
    size_t capacity = ELEMENT_SLACK + m->functions.size + m->globals.size;
    void *data = m->failed || m->functions.fatal || m->globals.fatal ? NULL : malloc(capacity);
    if (!data) {
        dev_modinfo_drop(m);
        return GM_CUDA_OUT_OF_MEMORY;
    }
    struct wire_enc e;
    wire_enc_init(&e, data, capacity);
    wire_put_module_info(&e, &info);
    bool fatal = e.fatal;
    dev_modinfo_drop(m);
    if (fatal) {
        free(data);
        return GM_CUDA_OUT_OF_MEMORY;
    }
    out->info = (struct wire_bytes) { .data = data, .size = (uint32_t)e.size };
    out->globals_size = globals_size;
    out->globals_align = globals_align;
    return GM_CUDA_SUCCESS;
}

void dev_modinfo_drop(struct dev_modinfo *m)
{
    free(m->functions.data);
    free(m->globals.data);
    memset(m, 0, sizeof(*m));
}
