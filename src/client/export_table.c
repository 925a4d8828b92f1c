/*
 * cuGetExportTable: the private tables of functions that NVIDIA's libraries ask the driver for. Two
 * of them come from the genuine library only. The others are here, as far as the libraries need
 * them. They are built from public knowledge and from what was seen at the interface; docs/adr/0008
 * says from what, and why.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/log.h"
#include "base/uuid.h"
#include "client/entry/procaddr.h"
#include "client/gen/api.h"
#include "client/module/module.h"
#include "client/session/attach.h"
#include "client/session/companion.h"
#include "client/stream/local.h"

static struct gm_log_topic topic = GM_LOG_TOPIC("tables");

/* A word of a table is the table's size in bytes, or a function. */
typedef void table_fn(void);

#define SLOT(f) ((table_fn *)(void *)(f))

/* --- slots nobody has needed so far: an error, which callers take for an answer, and a line that
 * says which it was --- */

#define SLOTS_MAX 96

/* How that line names the tables. */
enum table_name {
    TABLE_HOOKS,
    TABLE_TLS,
    TABLE_CHECKS,
    TABLE_CONTEXT,
    TABLE_MODULE,
    TABLE_THIRD,
    TABLES
};

static CUresult unknown(enum table_name table, unsigned slot)
{
    static const char *const names[TABLES] = { "a094798c", "42d85a81", "263e8860",
                                               "21318c60", "6e163fbe", "1734dc26" };
    static atomic_bool said[TABLES][SLOTS_MAX];
    char text[64];
    (void)snprintf(text, sizeof(text), "slot %u of the driver's private table %s", slot,
                   names[table]);
    return rt_not_supported(text, &said[table][slot]);
}

/* Each slot has a function of its own, so that the line can say which slot was called. */
#define SLOT_16(X, t, n)                                                                           \
    X(t, n##0)                                                                                     \
    X(t, n##1)                                                                                     \
    X(t, n##2)                                                                                     \
    X(t, n##3)                                                                                     \
    X(t, n##4)                                                                                     \
    X(t, n##5)                                                                                     \
    X(t, n##6)                                                                                     \
    X(t, n##7)                                                                                     \
    X(t, n##8) X(t, n##9) X(t, n##a) X(t, n##b) X(t, n##c) X(t, n##d) X(t, n##e) X(t, n##f)
#define SLOT_96(X, t)                                                                              \
    SLOT_16(X, t, 0)                                                                               \
    SLOT_16(X, t, 1) SLOT_16(X, t, 2) SLOT_16(X, t, 3) SLOT_16(X, t, 4) SLOT_16(X, t, 5)
#define DEFINE(t, n)                                                                               \
    static CUresult t##_##n(void)                                                                  \
    {                                                                                              \
        return unknown(t, 0x##n);                                                                  \
    }
#define NAME(t, n) SLOT(t##_##n),
#define UNKNOWN_SLOTS(t)                                                                           \
    SLOT_96(DEFINE, t)                                                                             \
    static table_fn *const t##_unknown[SLOTS_MAX] = { SLOT_96(NAME, t) };
UNKNOWN_SLOTS(TABLE_HOOKS)
UNKNOWN_SLOTS(TABLE_TLS)
UNKNOWN_SLOTS(TABLE_CHECKS)
UNKNOWN_SLOTS(TABLE_CONTEXT)
UNKNOWN_SLOTS(TABLE_MODULE)
UNKNOWN_SLOTS(TABLE_THIRD)

/* --- context-local storage -------------------------------------------------------------------- */

static table_fn *const local_table[] = { SLOT(rt_local_put), SLOT(rt_local_delete),
                                         SLOT(rt_local_get), NULL };

/* --- the runtime's callback hooks: arrays of flags, none of them set -------------------------- */

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

/* --- small questions about contexts ----------------------------------------------------------- */

static CUresult tls_current(CUcontext *out)
{
    *out = rt_stack_top();
    return CUDA_SUCCESS;
}

static CUresult checks_context(CUcontext handle GM_UNUSED, uint32_t *flags,
                               const void **more GM_UNUSED)
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
    struct rt_context *c = handle ? rt_context_find(handle, false) : rt_current.context;
    if (!c)
        return CUDA_ERROR_INVALID_CONTEXT;
    *id = c->id;
    return CUDA_SUCCESS;
}

/* Calls back for each kernel of a module. This is no CUresult: 1 means success. */
static int module_each(CUcontext handle GM_UNUSED, CUmodule module,
                       int (*each)(void *user, CUfunction f), void *user)
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

/* Finds the stream of a handle, and its number: cuBLAS keeps a workspace for each number. */
static CUresult stream_of(CUcontext context GM_UNUSED, CUstream handle, CUstream *out)
{
    struct rt_context *c;
    struct rt_stream *st;
    int r = rt_enter_stream(handle, &c, &st);
    if (r == CUDA_SUCCESS)
        *out = (CUstream)rt_object_handle(&rt_streams, &st->object);
    return r;
}

static CUresult stream_number(CUcontext context GM_UNUSED, CUstream handle, uint64_t *id)
{
    struct rt_context *c;
    struct rt_stream *st;
    int r = rt_enter_stream(handle, &c, &st);
    if (r == CUDA_SUCCESS)
        *id = st->id;
    return r;
}

/* --- the tables: their size in bytes, then their functions ------------------------------------ */

static table_fn *hooks_table[7];
static table_fn *tls_table[3];
static table_fn *checks_table[4];
static table_fn *context_table[95];
static table_fn *module_table[88];
static table_fn *third_table[16];

static void fill(table_fn **table, size_t count, table_fn *const *unknown_slots)
{
    table[0] = (table_fn *)(count * sizeof(*table));
    for (size_t i = 1; i < count; i++)
        table[i] = unknown_slots[i];
}

#define FILL(table, name) fill(table, GM_ARRAY_LEN(table), name##_unknown)

static void fill_tables(void)
{
    FILL(hooks_table, TABLE_HOOKS);
    hooks_table[2] = SLOT(hooks_calls);
    hooks_table[6] = SLOT(hooks_domains);
    FILL(tls_table, TABLE_TLS);
    tls_table[2] = SLOT(tls_current);
    FILL(checks_table, TABLE_CHECKS);
    checks_table[2] = SLOT(checks_context);
    checks_table[3] = SLOT(checks_start);
    FILL(context_table, TABLE_CONTEXT);
    context_table[4] = SLOT(context_number);
    context_table[39] = SLOT(stream_number);
    context_table[51] = SLOT(stream_of);
    FILL(module_table, TABLE_MODULE);
    module_table[7] = SLOT(module_each);
    FILL(third_table, TABLE_THIRD);
}

/* --- the tables by name ----------------------------------------------------------------------- */

static const struct {
    const char id[GM_UUID_TEXT];
    const void *table; /* NULL: the table comes from the genuine library only */
} tables[] = {
    { "d4082055-bde6-704b-8d34-ba123c66e1f2",
      NULL }, /* by this one the driver proves its authenticity */
    { RT_TABLE_RUNTIME, NULL },
    { "69a28e9f-2449-8b47-b030-c5da330ea4e9",
      NULL }, /* NVRTC's cache of what it has compiled; needs no context */
    { "da9151d3-3ae6-cc41-a5c0-4f26d533e328", NULL }, /* also NVRTC's cache */
    { "c693336e-1121-df11-a8c3-68f355d89593", local_table },
    { "a094798c-2e74-2e74-93f2-0800200c0a66", hooks_table },
    { "42d85a81-23f6-cb47-8298-f6e78a3aecdc", tls_table },
    { "263e8860-7cd2-6143-92f6-bbd5006dfa7e", checks_table },
    { "21318c60-9714-3248-8ca6-41ff7324c8f2", context_table },
    { "6e163fbe-b958-444d-835c-e182aff1991e", module_table },
    { "1734dc26-800d-4745-8726-c0f1e7dd8bca", third_table },
};

static atomic_bool given; /* one of our tables was given: its program must stay with the session */

static const void *find(const CUuuid *id, const char *text)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, fill_tables);
    for (size_t i = 0; i < GM_ARRAY_LEN(tables); i++) {
        if (strcmp(text, tables[i].id) != 0)
            continue;
        if (tables[i].table)
            atomic_store(&given, true);
        return tables[i].table ? tables[i].table : rt_companion_table(id);
    }
    return NULL;
}

/* The runtime interface is the first table that a runtime asks for. A runtime older than 12.0 would
 * use it to load modules into the genuine library's context. */
static CUresult leave_for_older(const void **table, const CUuuid *id)
{
    int r = rt_attach_leave(atomic_load(&given));
    *table = NULL;
    return r ? (CUresult)r : rt_api_current()->cuGetExportTable(table, id);
}

/* Says why no runtime can work here: the error with which the runtime goes on to fail does not. */
static void say_no_runtime(void)
{
    static atomic_bool said;
    if (!atomic_exchange(&said, true))
        (void)dprintf(STDERR_FILENO,
                      "gmux: %s uses NVIDIA's CUDA runtime library, which works with NVIDIA's own "
                      "driver only, and there "
                      "is none here: without a GPU programs of the driver API run\n",
                      program_invocation_short_name);
}

CUresult rt_cuGetExportTable(const void **ppExportTable, const CUuuid *pExportTableId)
{
    if (!ppExportTable || !pExportTableId)
        return CUDA_ERROR_INVALID_VALUE;
    char id[GM_UUID_TEXT];
    gm_uuid_text(id, (const uint8_t *)pExportTableId->bytes);
    *ppExportTable = find(pExportTableId, id);
    bool runtime = strcmp(id, RT_TABLE_RUNTIME) == 0;
    if (runtime && *ppExportTable && !rt_table_for_12)
        return leave_for_older(ppExportTable, pExportTableId);
    if (runtime && !*ppExportTable)
        say_no_runtime();
    gm_debug(&topic, "table %s: %s", id, *ppExportTable ? "given" : "none");
    return *ppExportTable ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}
