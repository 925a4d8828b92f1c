/*
 * Loading: the image goes to the server in a sealed memfd; back comes a memfd with the encoded
 * module_info, which stays mapped as long as the module because names are used where they lie. It
 * is checked once, here.
 */
#include "client/module/module.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "base/cleanup.h"
#include "base/log.h"
#include "client/memory/memory.h"
#include "client/memory/reference.h"
#include "fatbin/cubin.h"
#include "fatbin/fatbin.h"
#include "transport/memfd.h"

#define INFO_MAX (64u << 20)

static struct gm_log_topic topic = GM_LOG_TOPIC("module");

struct rt_table rt_modules = RT_TABLE(RT_KIND_MODULE, struct rt_module);
struct rt_table rt_functions = RT_TABLE(RT_KIND_FUNCTION, struct rt_function);

/* --- what the load said ----------------------------------------------------------------------- */

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

static int read_info(struct rt_module *m, int fd, uint64_t globals_address)
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

int rt_module_find_entry(struct rt_module *m, const char *name, struct rt_entry **out)
{
    const struct rt_entry key = { .name = name };
    if (m->by_name)
        return rt_lookup_entry(m, name, out);
    *out = bsearch(&key, m->entries, m->entries_count, sizeof(*m->entries), by_entry_name);
    return *out ? CUDA_SUCCESS : CUDA_ERROR_NOT_FOUND;
}

int rt_module_find_variable(struct rt_module *m, const char *name, const struct rt_variable **out)
{
    const struct rt_variable key = { .name = name };
    if (m->by_name)
        return rt_lookup_variable(m, name, false, out);
    *out = bsearch(&key, m->variables, m->variables_count, sizeof(*m->variables), by_variable_name);
    return *out ? CUDA_SUCCESS : CUDA_ERROR_NOT_FOUND;
}

int rt_module_find_managed(struct rt_module *m, const char *name, const struct rt_variable **out)
{
    if (m->by_name)
        return rt_lookup_variable(m, name, true, out);
    int r = rt_module_find_variable(m, name, out);
    return r || (*out)->managed ? r : CUDA_ERROR_NOT_FOUND;
}

int rt_module_list(struct rt_module *m, struct rt_entry **out, uint32_t capacity, uint32_t *count)
{
    if (m->by_name)
        return rt_lookup_list(m, out, capacity, count);
    for (uint32_t i = 0; i < GM_MIN(capacity, m->entries_count); i++)
        out[i] = &m->entries[i];
    *count = m->entries_count;
    return CUDA_SUCCESS;
}

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

/* --- logs ------------------------------------------------------------------------------------- */

int rt_jit_log_options(struct rt_jit_log *log, unsigned count, const CUjit_option *options,
                       void **values)
{
    *log = (struct rt_jit_log) { 0 };
    if (count && (!options || !values))
        return CUDA_ERROR_INVALID_VALUE;
    for (unsigned i = 0; i < count; i++) {
        switch (options[i]) {
        case CU_JIT_INFO_LOG_BUFFER:
            log->info = values[i];
            break;
        case CU_JIT_INFO_LOG_BUFFER_SIZE_BYTES:
            log->info_size = (uint32_t)(uintptr_t)values[i];
            log->info_used = &values[i];
            break;
        case CU_JIT_ERROR_LOG_BUFFER:
            log->error = values[i];
            break;
        case CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES:
            log->error_size = (uint32_t)(uintptr_t)values[i];
            log->error_used = &values[i];
            break;
        default: /* the rest steers a compiler we are not */
            if ((unsigned)options[i] >= CU_JIT_NUM_OPTIONS)
                return CUDA_ERROR_INVALID_VALUE;
            break;
        }
    }
    return CUDA_SUCCESS;
}

static void fill_log(char *buffer, uint32_t size, void **used, const char *text)
{
    size_t n = 0;
    if (buffer && size) {
        n = GM_MIN(strlen(text), (size_t)size - 1);
        memcpy(buffer, text, n);
        buffer[n] = '\0';
    }
    if (used)
        *used = (void *)(uintptr_t)n; /* the option's value takes the number of bytes written */
}

void rt_jit_log_give(const struct rt_jit_log *log, const char *info, const char *error)
{
    fill_log(log->info, log->info_size, log->info_used, info);
    fill_log(log->error, log->error_size, log->error_used, error);
}

static void give_logs(const struct rt_jit_log *log, const char *text, bool failed)
{
    if (log)
        rt_jit_log_give(log, failed ? "" : text, failed ? text : "");
}

/* --- load and unload -------------------------------------------------------------------------- */

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

/* The program's memory knows the variables from now on. */
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

static void free_info(struct rt_module *m)
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

void rt_module_destroy(struct rt_module *m)
{
    rt_library_finish(m);
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
    free_info(m);
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
    r = read_info(m, loaded.info_fd, loaded.globals_address);
    r = r ? r : rt_heap_enter(m);
    gm_close(loaded.info_fd);
    if (r)
        (void)rt_request_module_unload(rt_session, m->number);
    return r;
}

static int load_image(struct rt_module *m, const struct rt_image *image, struct rt_jit_log *log)
{
    GM_AUTO_FD int fd = tp_memfd_from_bytes("gmux-image", image->data, image->size);
    int r = fd < 0 ? (int)CUDA_ERROR_OUT_OF_MEMORY : load_fd(m, fd, image->size, image->kind, log);
    if (r == CUDA_SUCCESS && !m->context)
        rt_library_keep(m, fd, image->size, image->kind);
    return r;
}

/* The device would keep managed variables to itself: loads the image again, with those at addresses
 * of this process. */
static int load_again(struct rt_module *m, const struct rt_image *image, struct rt_jit_log *log)
{
    struct rt_image moved;
    int r = rt_module_managed_move(m, image, &moved);
    (void)rt_request_module_unload(rt_session, m->number);
    free_info(m);
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

/* `r`: what the load came to. */
static int finish_load(struct rt_module *m, int r, struct rt_module **out)
{
    if (r) {
        rt_library_finish(m);
        rt_lookup_finish(m);
        rt_module_managed_finish(m);
        free_info(m);
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

/* What a library has for other GPUs only is not found before something of it is wanted; a module is
 * loaded as a whole. */
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
