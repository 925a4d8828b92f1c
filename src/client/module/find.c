/*
 * Finds functions and variables by name, in modules of both kinds.
 */
#include "client/module/contents.h"

int rt_module_find_entry(struct rt_module *m, const char *name, struct rt_entry **out)
{
    if (m->by_name)
        return rt_lookup_entry(m, name, out);
    *out = rt_contents_entry(m, name);
    return *out ? CUDA_SUCCESS : CUDA_ERROR_NOT_FOUND;
}

int rt_module_find_variable(struct rt_module *m, const char *name, const struct rt_variable **out)
{
    if (m->by_name)
        return rt_lookup_variable(m, name, false, out);
    *out = rt_contents_variable(m, name);
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
