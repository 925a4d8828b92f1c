#include "client/export_table.h"

#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "client/companion.h"
#include "client/gen/api.h"
#include "client/module.h"

static struct gm_log_topic topic = GM_LOG_TOPIC("tables");

/* A word of a table: the table's size in bytes, or a function. */
typedef void table_fn(void);

#define SLOT(f) ((table_fn *)(void *)(f))

/* Whatever else is asked: an error that callers understand, and a line for us. */
static CUresult unknown_slot(void)
{
    static atomic_bool said;
    return rt_not_supported("a private function of the driver", &said);
}

/* --- context-local storage: what a library keeps with a context, by its own key -------------------------------------
 * Read at nearly every call of the runtime: without a lock. Entries are only added, while the context lives. */

struct rt_local {
    struct rt_local *next;
    void *key;
    _Atomic(void *) value; /* NULL: deleted */
    void (*destructor)(CUcontext c, void *key, void *value);
};

static pthread_mutex_t local_lock = PTHREAD_MUTEX_INITIALIZER;

static struct rt_context *local_context(CUcontext handle)
{
    return handle ? rt_context_find(handle, false) : rt_current.context;
}

static struct rt_local *local_find(const struct rt_context *c, const void *key)
{
    struct rt_local *l = atomic_load_explicit(&c->locals, memory_order_acquire);
    while (l && l->key != key)
        l = l->next;
    return l;
}

static CUresult local_put(CUcontext handle, void *key, void *value, void (*destructor)(CUcontext, void *, void *))
{
    struct rt_context *c = local_context(handle);
    if (!c)
        return CUDA_ERROR_INVALID_CONTEXT;
    CUresult r = CUDA_SUCCESS;
    pthread_mutex_lock(&local_lock);
    struct rt_local *l = local_find(c, key);
    if (!l && (l = calloc(1, sizeof(*l))) != NULL) {
        l->key = key;
        l->next = atomic_load_explicit(&c->locals, memory_order_relaxed);
        atomic_store_explicit(&c->locals, l, memory_order_release);
    }
    if (l) {
        l->destructor = destructor;
        atomic_store_explicit(&l->value, value, memory_order_release);
    } else {
        r = CUDA_ERROR_OUT_OF_MEMORY;
    }
    pthread_mutex_unlock(&local_lock);
    return r;
}

static CUresult local_delete(CUcontext handle, void *key)
{
    struct rt_context *c = local_context(handle);
    struct rt_local *l = c ? local_find(c, key) : NULL;
    if (l)
        atomic_store_explicit(&l->value, NULL, memory_order_release);
    return CUDA_SUCCESS;
}

static CUresult local_get(void **value, CUcontext handle, void *key)
{
    struct rt_context *c = local_context(handle);
    struct rt_local *l = c ? local_find(c, key) : NULL;
    *value = l ? atomic_load_explicit(&l->value, memory_order_acquire) : NULL;
    return *value ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}

void rt_local_destroy_all(struct rt_context *c)
{
    struct rt_local *l = atomic_exchange(&c->locals, NULL);
    while (l) {
        struct rt_local *next = l->next;
        void *value = atomic_load(&l->value);
        if (value && l->destructor)
            l->destructor(rt_context_handle(c), l->key, value);
        free(l);
        l = next;
    }
}

static table_fn *const local_table[] = { SLOT(local_put), SLOT(local_delete), SLOT(local_get), NULL };

/* --- the runtime's callback hooks: arrays of flags, none of them set ------------------------------------------------ */

static CUresult hooks_calls(void **flags, size_t *count)
{
    static uint32_t none[1024];
    *flags = none;
    *count = GM_ARRAY_LEN(none);
    return CUDA_SUCCESS;
}

static CUresult hooks_domains(void **flags, size_t *count)
{
    static uint32_t none[14];
    *flags = none;
    *count = GM_ARRAY_LEN(none);
    return CUDA_SUCCESS;
}

#define UNKNOWN SLOT(unknown_slot)
static table_fn *const hooks_table[7] = {
    (table_fn *)sizeof(hooks_table), UNKNOWN, SLOT(hooks_calls), UNKNOWN, UNKNOWN, UNKNOWN, SLOT(hooks_domains)
};

/* --- small questions about contexts --------------------------------------------------------------------------------- */

static CUresult tls_current(CUcontext *out)
{
    *out = rt_stack_top();
    return CUDA_SUCCESS;
}

static CUresult checks_context(CUcontext handle GM_UNUSED, uint32_t *flags, const void **more GM_UNUSED)
{
    *flags = 0;
    return CUDA_SUCCESS;
}

static uint32_t checks_start(void)
{
    return 0;
}

static CUresult context_number(CUcontext handle, uint64_t *id)
{
    struct rt_context *c = local_context(handle);
    if (!c)
        return CUDA_ERROR_INVALID_CONTEXT;
    *id = c->id;
    return CUDA_SUCCESS;
}

static table_fn *const tls_table[3] = { (table_fn *)sizeof(tls_table), UNKNOWN, SLOT(tls_current) };
static table_fn *const checks_table[4] = { (table_fn *)sizeof(checks_table), UNKNOWN, SLOT(checks_context),
                                           SLOT(checks_start) };

/* --- long tables of which one function is used ---------------------------------------------------------------------- */

/* Calls back for each kernel of a module; not a CUresult: 1 says that it was done. */
static int module_each(CUcontext handle GM_UNUSED, CUmodule module, int (*each)(void *user, CUfunction f), void *user)
{
    struct rt_module *m = rt_object_find(&rt_modules, module);
    uint32_t count = 0;
    if (!m || rt_module_list(m, NULL, 0, &count) != CUDA_SUCCESS)
        return 0;
    struct rt_entry **entries = calloc(GM_MAX(count, 1u), sizeof(struct rt_entry *));
    if (!entries || rt_module_list(m, entries, count, &count) != CUDA_SUCCESS) {
        free(entries);
        return 0;
    }
    for (uint32_t i = 0; i < count; i++) {
        struct rt_function *f = rt_module_function(m, entries[i]);
        if (f && each(user, (CUfunction)rt_object_handle(&rt_functions, &f->object)) != 0)
            break;
    }
    free(entries);
    return 1;
}

#define CONTEXT_SLOTS 95
#define MODULE_SLOTS  88
#define THIRD_SLOTS   16
static table_fn *context_table[CONTEXT_SLOTS];
static table_fn *module_table[MODULE_SLOTS];
static table_fn *third_table[THIRD_SLOTS]; /* its callers take an error for an answer */

static void fill(table_fn **table, size_t count)
{
    table[0] = (table_fn *)(count * sizeof(*table));
    for (size_t i = 1; i < count; i++)
        table[i] = UNKNOWN;
}

static void fill_tables(void)
{
    fill(context_table, CONTEXT_SLOTS);
    fill(module_table, MODULE_SLOTS);
    fill(third_table, THIRD_SLOTS);
    context_table[4] = SLOT(context_number);
    module_table[7] = SLOT(module_each);
}

/* --- the tables by name --------------------------------------------------------------------------------------------- */

#define ID(...)                                                                                                      \
    {                                                                                                                \
        {                                                                                                            \
            __VA_ARGS__                                                                                              \
        }                                                                                                            \
    }
#define B(x) (char)(x)

const CUuuid rt_table_runtime = ID(B(0x6b), B(0xd5), B(0xfb), B(0x6c), B(0x5b), B(0xf4), B(0xe7), B(0x4a), B(0x89),
                                   B(0x87), B(0xd9), B(0x39), B(0x12), B(0xfd), B(0x9d), B(0xf9));
/* The driver's word for its own authenticity: never ours to give. */
static const CUuuid authenticity = ID(B(0xd4), B(0x08), B(0x20), B(0x55), B(0xbd), B(0xe6), B(0x70), B(0x4b), B(0x8d),
                                      B(0x34), B(0xba), B(0x12), B(0x3c), B(0x66), B(0xe1), B(0xf2));

static const struct {
    CUuuid id;
    const void *table;
} own_tables[] = {
    { ID(B(0xc6), B(0x93), B(0x33), B(0x6e), B(0x11), B(0x21), B(0xdf), B(0x11), B(0xa8), B(0xc3), B(0x68), B(0xf3),
         B(0x55), B(0xd8), B(0x95), B(0x93)),
      local_table },
    { ID(B(0xa0), B(0x94), B(0x79), B(0x8c), B(0x2e), B(0x74), B(0x2e), B(0x74), B(0x93), B(0xf2), B(0x08), B(0x00),
         B(0x20), B(0x0c), B(0x0a), B(0x66)),
      hooks_table },
    { ID(B(0x42), B(0xd8), B(0x5a), B(0x81), B(0x23), B(0xf6), B(0xcb), B(0x47), B(0x82), B(0x98), B(0xf6), B(0xe7),
         B(0x8a), B(0x3a), B(0xec), B(0xdc)),
      tls_table },
    { ID(B(0x26), B(0x3e), B(0x88), B(0x60), B(0x7c), B(0xd2), B(0x61), B(0x43), B(0x92), B(0xf6), B(0xbb), B(0xd5),
         B(0x00), B(0x6d), B(0xfa), B(0x7e)),
      checks_table },
    { ID(B(0x21), B(0x31), B(0x8c), B(0x60), B(0x97), B(0x14), B(0x32), B(0x48), B(0x8c), B(0xa6), B(0x41), B(0xff),
         B(0x73), B(0x24), B(0xc8), B(0xf2)),
      context_table },
    { ID(B(0x6e), B(0x16), B(0x3f), B(0xbe), B(0xb9), B(0x58), B(0x44), B(0x4d), B(0x83), B(0x5c), B(0xe1), B(0x82),
         B(0xaf), B(0xf1), B(0x99), B(0x1e)),
      module_table },
    { ID(B(0x17), B(0x34), B(0xdc), B(0x26), B(0x80), B(0x0d), B(0x47), B(0x45), B(0xb9), B(0x26), B(0xc0), B(0xf1),
         B(0xe7), B(0xdd), B(0x8b), B(0xca)),
      third_table },
};

static const void *find(const CUuuid *id)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, fill_tables);
    if (memcmp(id, &authenticity, sizeof(*id)) == 0 || memcmp(id, &rt_table_runtime, sizeof(*id)) == 0)
        return rt_companion_table(id);
    for (size_t i = 0; i < GM_ARRAY_LEN(own_tables); i++)
        if (memcmp(id, &own_tables[i].id, sizeof(*id)) == 0)
            return own_tables[i].table;
    return NULL;
}

CUresult rt_cuGetExportTable(const void **ppExportTable, const CUuuid *pExportTableId)
{
    if (!ppExportTable || !pExportTableId)
        return CUDA_ERROR_INVALID_VALUE;
    const uint8_t *id = (const uint8_t *)pExportTableId->bytes;
    *ppExportTable = find(pExportTableId);
    gm_debug(&topic, "table %02x%02x%02x%02x-..: %s", id[0], id[1], id[2], id[3], *ppExportTable ? "given" : "none");
    return *ppExportTable ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}
