/*
 * Modules whose functions and variables are looked up one by one, by name. The device loads a
 * function when it is first asked for, so that a program which uses ten functions of a thousand
 * pays for ten.
 *
 * The client numbers what it has found in each module, and launches name functions by these
 * numbers. A new executor learns the modules from the server, and from session memory which
 * function has which number (transport/names.h). A variable whose memory comes from the device's
 * driver, and not from the server, is lost with the executor (mortal.h).
 */
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "client/memory/memory.h"
#include "client/module/contents.h"
#include "client/session/mortal.h"
#include "client/stream/call.h"
#include "transport/names.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* taken before the lock of calls */

/* --- functions -------------------------------------------------------------------------------- */

/* Makes an entry, with its parameters and its name behind it. */
static struct rt_entry *entry_create(const struct wire_function_info *f, const char *name,
                                     uint32_t index)
{
    size_t length = strlen(name) + 1;
    uint32_t count = f->params.size / (uint32_t)sizeof(struct rt_param);
    struct {
        struct rt_entry entry;
        struct rt_param params[];
    } *e = calloc(1, sizeof(*e) + count * sizeof(struct rt_param) + length);
    if (!e)
        return NULL;
    if (!rt_entry_read(&e->entry, f, e->params)) {
        free(e);
        return NULL;
    }
    e->entry.index = index;
    e->entry.lacks = NULL; /* a device that loads functions this late has checked that already */
    e->entry.name = memcpy(e->params + count, name, length);
    return &e->entry;
}

/* Asks the device for a function, and tells it the function's number. CUresult. */
static int find(const struct rt_module *m, uint32_t index, const char *name, struct rt_entry **out)
{
    struct rt_call c;
    struct wire_function_info f;
    rt_call_begin(&c, WIRE_CALL_FUNCTION_FIND, m->number);
    wire_put_call_function_find(&c.args,
                                &(struct wire_call_function_find) { .index = index, .name = name });
    int r = rt_call_run(&c);
    if (r == CUDA_SUCCESS) {
        wire_get_function_info(&c.reply, &f);
        *out = c.reply.fatal ? NULL : entry_create(&f, name, index);
        r = *out ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
    }
    return rt_call_end(&c, r);
}

static int lookup_locked(struct rt_module *m, const char *name, struct rt_entry **out)
{
    for (uint32_t i = 0; i < m->found_count; i++)
        if (strcmp(m->found[i]->name, name) == 0) {
            *out = m->found[i];
            return CUDA_SUCCESS;
        }
    if (!gm_array_room(&m->found, sizeof(*m->found), m->found_count, UINT32_MAX))
        return CUDA_ERROR_OUT_OF_MEMORY;
    int r = find(m, m->found_count, name, out);
    if (r == CUDA_SUCCESS) {
        (void)tp_names_add(&rt_session->shared, m->number, m->found_count,
                           name); /* if there is no room, the name is lost with the executor */
        m->found[m->found_count++] = *out;
    }
    return r;
}

int rt_lookup_entry(struct rt_module *m, const char *name, struct rt_entry **out)
{
    pthread_mutex_lock(&lock);
    int r = lookup_locked(m, name, out);
    pthread_mutex_unlock(&lock);
    return r;
}

/* Reads one page of names, and adds those that there is room for. *seen: how many have been looked
 * at. */
static int list_page(struct rt_module *m, char **names, uint32_t capacity, uint32_t *seen,
                     uint32_t *total)
{
    struct rt_call c;
    struct wire_call_names_are answer;
    rt_call_begin(&c, WIRE_CALL_FUNCTION_NAMES, m->number);
    wire_put_call_names(&c.args, &(struct wire_call_names) { .first = *seen });
    int r = rt_call_run(&c);
    if (r == CUDA_SUCCESS) {
        struct wire_dec d;
        uint32_t before = *seen;
        wire_get_call_names_are(&c.reply, &answer);
        *total = answer.total;
        wire_dec_init(&d, answer.names.data, answer.names.size);
        while (*seen < capacity && !c.reply.fatal && !wire_dec_end(&d)) {
            struct wire_call_name n;
            wire_get_call_name(&d, &n);
            names[*seen] = strdup(n.text ? n.text : "");
            if (!names[(*seen)++])
                r = CUDA_ERROR_OUT_OF_MEMORY;
        }
        if (r == CUDA_SUCCESS && *seen == before && *seen < GM_MIN(capacity, *total))
            r = CUDA_ERROR_UNKNOWN;
    }
    return rt_call_end(&c, r);
}

int rt_lookup_list(struct rt_module *m, struct rt_entry **out, uint32_t capacity, uint32_t *count)
{
    uint32_t seen = 0;
    char **names = capacity ? calloc(capacity, sizeof(*names)) : NULL;
    int r =
        capacity && !names ? CUDA_ERROR_OUT_OF_MEMORY : list_page(m, names, capacity, &seen, count);
    while (r == CUDA_SUCCESS && seen < GM_MIN(capacity, *count))
        r = list_page(m, names, capacity, &seen, count);
    for (uint32_t i = 0; i < seen; i++) {
        if (r == CUDA_SUCCESS)
            r = rt_lookup_entry(m, names[i], &out[i]);
        free(names[i]);
    }
    free(names);
    return r;
}

int rt_lookup_get_attribute(const struct rt_function *f, CUfunction_attribute attribute, int *value)
{
    struct rt_call c;
    struct wire_call_value v;
    rt_call_begin(&c, WIRE_CALL_ATTRIBUTE_GET, f->module->number);
    wire_put_call_attribute(&c.args,
                            &(struct wire_call_attribute) { f->entry->index, (uint32_t)attribute });
    int r = rt_call_run(&c);
    if (r == CUDA_SUCCESS) {
        wire_get_call_value(&c.reply, &v);
        *value = v.value;
    }
    return rt_call_end(&c, r);
}

int rt_lookup_set_attribute(const struct rt_function *f, CUfunction_attribute attribute, int value)
{
    struct rt_call c;
    rt_call_begin(&c, WIRE_CALL_ATTRIBUTE_SET, f->module->number);
    wire_put_call_attribute_set(
        &c.args, &(struct wire_call_attribute_set) { f->entry->index, (uint32_t)attribute, value });
    return rt_call_end(&c, rt_call_run(&c));
}

/* --- variables -------------------------------------------------------------------------------- */

static int ask_variable(const struct rt_module *m, const char *name, bool managed,
                        struct rt_variable *out)
{
    struct rt_call c;
    struct wire_call_variable_found v = { 0 };
    rt_call_begin(&c, WIRE_CALL_VARIABLE_FIND, m->number);
    wire_put_call_variable_find(
        &c.args, &(struct wire_call_variable_find) { .managed = managed, .name = name });
    int r = rt_call_run(&c);
    if (r == CUDA_SUCCESS)
        wire_get_call_variable_found(&c.reply, &v);
    out->address = v.address;
    out->size = v.size;
    return rt_call_end(&c, r);
}

/* Whether the variable is lost with the executor. The server keeps what lies in the window. */
static bool is_mortal(const struct rt_variable *v)
{
    return v->address - rt_session->window_base >= 2 * rt_session->window_half;
}

/* Called with the lock held. */
static int keep_variable(struct rt_module *m, const char *name, const struct rt_variable *found,
                         const struct rt_variable **out)
{
    size_t length = strlen(name) + 1;
    struct rt_variable *v = malloc(sizeof(*v) + length);
    int r = v && gm_array_room(&m->found_variables, sizeof(*m->found_variables),
                               m->found_variables_count, UINT32_MAX)
                ? CUDA_SUCCESS
                : CUDA_ERROR_OUT_OF_MEMORY;
    if (r == CUDA_SUCCESS && found->size)
        r = rt_variable_enter(m, found);
    if (r) {
        free(v);
        return r;
    }
    *v = *found;
    v->name = memcpy(v + 1, name, length);
    m->found_variables[m->found_variables_count++] = v;
    *out = v;
    return CUDA_SUCCESS;
}

int rt_lookup_add_managed(struct rt_module *m, const char *name, uint64_t address, uint64_t size)
{
    const struct rt_variable *added, found = { .address = address, .size = size, .managed = true };
    pthread_mutex_lock(&lock);
    int r = keep_variable(m, name, &found, &added);
    pthread_mutex_unlock(&lock);
    return r;
}

static int variable_locked(struct rt_module *m, const char *name, bool managed,
                           const struct rt_variable **out)
{
    struct rt_variable found = { 0 };
    for (uint32_t i = 0; i < m->found_variables_count; i++)
        if (strcmp(m->found_variables[i]->name, name) == 0) {
            *out = m->found_variables[i];
            return CUDA_SUCCESS;
        }
    int r = ask_variable(m, name, managed, &found);
    if (r)
        return r;
    r = keep_variable(m, name, &found, out);
    if (r == CUDA_SUCCESS && is_mortal(*out))
        rt_mortal_add(1);
    return r;
}

int rt_lookup_variable(struct rt_module *m, const char *name, bool managed,
                       const struct rt_variable **out)
{
    pthread_mutex_lock(&lock);
    int r = variable_locked(m, name, managed, out);
    pthread_mutex_unlock(&lock);
    return r;
}

/* --- anew (renew.c) --------------------------------------------------------------------------- */

/* Tells the device the function's number again; this happens in the order of the numbers.
 * Attributes that were set on the device are lost. Called with the lock held. */
static int function_again(struct rt_module *m, uint32_t index)
{
    struct rt_entry *same = NULL;
    const char *name = m->found[index]->name;
    int r = find(m, index, name, &same);
    free(same);
    if (r == CUDA_SUCCESS)
        (void)tp_names_add(&rt_session->shared, m->number, index, name);
    return r;
}

/* Called with the lock held. */
static int variable_again(struct rt_module *m, struct rt_variable *v)
{
    struct rt_variable found = *v;
    if (v->managed) /* they have their old addresses */
        return CUDA_SUCCESS;
    int r = ask_variable(m, v->name, false, &found);
    if (r)
        return r;
    rt_variable_leave(v);
    if (is_mortal(v))
        rt_mortal_add(-1);
    *v = found;
    if (is_mortal(v))
        rt_mortal_add(1);
    return v->size ? rt_variable_enter(m, v) : CUDA_SUCCESS;
}

int rt_lookup_again(struct rt_module *m)
{
    int r = CUDA_SUCCESS;
    pthread_mutex_lock(&lock);
    for (uint32_t i = 0; i < m->found_count && r == CUDA_SUCCESS; i++)
        r = function_again(m, i);
    for (uint32_t i = 0; i < m->found_variables_count && r == CUDA_SUCCESS; i++)
        r = variable_again(m, m->found_variables[i]);
    pthread_mutex_unlock(&lock);
    return r;
}

/* --- the module's end, the executor's end ----------------------------------------------------- */

void rt_lookup_finish(struct rt_module *m)
{
    for (uint32_t i = 0; i < m->found_count; i++) {
        rt_function_end(atomic_load_explicit(&m->found[i]->function, memory_order_acquire));
        free(m->found[i]);
    }
    for (uint32_t i = 0; i < m->found_variables_count; i++) {
        rt_variable_leave(m->found_variables[i]);
        if (is_mortal(m->found_variables[i]))
            rt_mortal_add(-1);
        free(m->found_variables[i]);
    }
    free(m->found);
    free(m->found_variables);
    m->found_count = m->found_variables_count = 0;
}
