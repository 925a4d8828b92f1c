/*
 * What a module contains, as the device reported when it loaded the module. The report is a memfd
 * with an encoded module_info. It is checked once, and stays mapped for as long as the module
 * exists, because names are used where they lie.
 */
#include "client/module/contents.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "client/memory/memory.h"
#include "transport/memfd.h"

#define INFO_MAX (64u << 20)

struct rt_table rt_functions = RT_TABLE(RT_KIND_FUNCTION, struct rt_function);

static uint32_t count_functions(struct wire_bytes list, uint64_t *params)
{
    struct wire_dec d;
    struct wire_function_info f;
    uint32_t n = 0;
    *params = 0;
    wire_dec_init(&d, list.data, list.size);
    while (!wire_dec_end(&d)) {
        wire_get_function_info(&d, &f);
        *params += f.params.size / sizeof(struct rt_param);
        n++;
    }
    return wire_dec_finish(&d) ? n : UINT32_MAX;
}

static uint32_t count_globals(struct wire_bytes list)
{
    struct wire_dec d;
    struct wire_global_info g;
    uint32_t n = 0;
    wire_dec_init(&d, list.data, list.size);
    while (!wire_dec_end(&d)) {
        wire_get_global_info(&d, &g);
        n++;
    }
    return wire_dec_finish(&d) ? n : UINT32_MAX;
}

bool rt_entry_read(struct rt_entry *e, const struct wire_function_info *f, struct rt_param *params)
{
    uint64_t sum = 0;
    e->name = f->name;
    e->param_bytes = f->param_bytes;
    e->param_count = f->params.size / (uint32_t)sizeof(*params);
    e->params = params;
    e->max_threads = f->max_threads;
    e->registers = f->registers;
    e->shared_bytes = f->shared_bytes;
    e->const_bytes = f->const_bytes;
    e->local_bytes = f->local_bytes;
    e->ptx_version = f->ptx_version;
    e->binary_version = f->binary_version;
    e->required[0] = f->required_x;
    e->required[1] = f->required_y;
    e->required[2] = f->required_z;
    e->lacks = *f->lacks ? f->lacks : NULL;
    e->cluster[0] = f->cluster_x;
    e->cluster[1] = f->cluster_y;
    e->cluster[2] = f->cluster_z;
    if (e->param_count)
        memcpy(params, f->params.data, e->param_count * sizeof(*params));
    for (uint32_t i = 0; i < e->param_count; i++) {
        if (params[i].offset > e->param_bytes || params[i].size > e->param_bytes - params[i].offset)
            return false;
        sum += params[i].size;
    }
    e->padded = sum != e->param_bytes;
    return e->param_bytes <= RT_PARAMS_MAX;
}

static bool read_functions(struct rt_module *m, struct wire_bytes list)
{
    struct wire_dec d;
    struct rt_param *params = m->params;
    wire_dec_init(&d, list.data, list.size);
    for (uint32_t i = 0; i < m->entries_count; i++) {
        struct wire_function_info f;
        struct rt_entry *e = &m->entries[i];
        wire_get_function_info(&d, &f);
        e->index = i;
        if (!rt_entry_read(e, &f, params))
            return false;
        params += e->param_count;
    }
    return true;
}

static bool read_globals(struct rt_module *m, const struct wire_module_info *info, uint64_t address)
{
    struct wire_dec d;
    wire_dec_init(&d, info->globals.data, info->globals.size);
    for (uint32_t i = 0; i < m->variables_count; i++) {
        struct wire_global_info g;
        wire_get_global_info(&d, &g);
        if (g.offset > info->globals_size || g.size > info->globals_size - g.offset)
            return false;
        m->variables[i] = (struct rt_variable) {
            .name = g.name,
            .address = address + g.offset,
            .size = g.size,
            .managed = g.is_managed != 0,
            .reference = (uint8_t)g.reference,
        };
    }
    return true;
}

static int by_entry_name(const void *a, const void *b)
{
    return strcmp(((const struct rt_entry *)a)->name, ((const struct rt_entry *)b)->name);
}

static int by_variable_name(const void *a, const void *b)
{
    return strcmp(((const struct rt_variable *)a)->name, ((const struct rt_variable *)b)->name);
}

int rt_contents_read(struct rt_module *m, int fd, uint64_t globals_address)
{
    struct stat st;
    struct wire_dec d;
    struct wire_module_info info;
    uint64_t params;

    if (fstat(fd, &st) != 0 || st.st_size <= 0 || st.st_size > INFO_MAX ||
        tp_memfd_check(fd, (uint64_t)st.st_size, true) != 0)
        return CUDA_ERROR_INVALID_IMAGE;
    m->info = tp_memfd_map(fd, (size_t)st.st_size, false);
    if (!m->info)
        return CUDA_ERROR_OUT_OF_MEMORY;
    m->info_size = (size_t)st.st_size;
    wire_dec_init(&d, m->info, m->info_size);
    wire_get_module_info(&d, &info);
    if (!wire_dec_finish(&d))
        return CUDA_ERROR_INVALID_IMAGE;
    m->by_name = info.by_name != 0;
    m->managed_apart = info.managed_apart != 0;
    m->entries_count = count_functions(info.functions, &params);
    m->variables_count = count_globals(info.globals);
    if (m->entries_count == UINT32_MAX || m->variables_count == UINT32_MAX)
        return CUDA_ERROR_INVALID_IMAGE;
    m->entries = calloc(GM_MAX(m->entries_count, 1u), sizeof(*m->entries));
    m->variables = calloc(GM_MAX(m->variables_count, 1u), sizeof(*m->variables));
    m->params = calloc(GM_MAX(params, (uint64_t)1), sizeof(*m->params));
    if (!m->entries || !m->variables || !m->params)
        return CUDA_ERROR_OUT_OF_MEMORY;
    if (!read_functions(m, info.functions) || !read_globals(m, &info, globals_address))
        return CUDA_ERROR_INVALID_IMAGE;
    qsort(m->entries, m->entries_count, sizeof(*m->entries), by_entry_name);
    qsort(m->variables, m->variables_count, sizeof(*m->variables), by_variable_name);
    return CUDA_SUCCESS;
}

struct rt_entry *rt_contents_entry(const struct rt_module *m, const char *name)
{
    const struct rt_entry key = { .name = name };
    return bsearch(&key, m->entries, m->entries_count, sizeof(*m->entries), by_entry_name);
}

const struct rt_variable *rt_contents_variable(const struct rt_module *m, const char *name)
{
    const struct rt_variable key = { .name = name };
    return bsearch(&key, m->variables, m->variables_count, sizeof(*m->variables), by_variable_name);
}

void rt_contents_free(struct rt_module *m)
{
    free(m->entries);
    free(m->variables);
    free(m->params);
    if (m->info)
        munmap(m->info, m->info_size);
    m->entries = NULL;
    m->variables = NULL;
    m->params = NULL;
    m->info = NULL;
}

/* --- functions and variables ------------------------------------------------------------------ */

struct rt_function *rt_module_function(struct rt_module *m, struct rt_entry *e)
{
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    struct rt_function *f = atomic_load_explicit(&e->function, memory_order_acquire);
    if (f)
        return f;
    pthread_mutex_lock(&lock);
    f = atomic_load_explicit(&e->function, memory_order_relaxed);
    if (!f && (f = rt_object_take(&rt_functions)) != NULL) {
        const uint32_t usual = 48u << 10;
        f->module = m;
        f->entry = e;
        f->context = m->context;
        f->carveout = -1;
        f->dynamic_limit = usual > e->shared_bytes ? usual - e->shared_bytes : 0;
        rt_object_publish(&f->object);
        atomic_store_explicit(&e->function, f, memory_order_release);
    }
    pthread_mutex_unlock(&lock);
    return f;
}

void rt_function_end(struct rt_function *f)
{
    if (!f)
        return;
    free(atomic_load_explicit(&f->elsewhere, memory_order_acquire));
    f->elsewhere = NULL;
    free(f->old_launch);
    f->old_launch = NULL;
    rt_object_release(&rt_functions, &f->object);
}

int rt_variable_enter(const struct rt_module *m, const struct rt_variable *v)
{
    struct rt_range range = { .base = v->address,
                              .size = v->size,
                              .window = v->address,
                              .kind = v->managed ? RT_MEMORY_GLOBAL_MANAGED : RT_MEMORY_GLOBAL,
                              .flags = v->managed ? CU_MEM_ATTACH_GLOBAL : 0,
                              .context = m->context,
                              .device = m->device };
    return rt_memory_insert(&range);
}

void rt_variable_leave(const struct rt_variable *v)
{
    struct rt_range gone;
    bool was = rt_memory_remove(v->address, 1u << RT_MEMORY_GLOBAL | 1u << RT_MEMORY_GLOBAL_MANAGED,
                                &gone);
    if (was && v->managed)
        rt_managed_forget(gone.base, gone.size);
}
