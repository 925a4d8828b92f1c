/*
 * Records within records: the operations of runs, and those and the conditions of graphs. Whether
 * they keep the rules is decided here, before any of them is taken; like all of a ring, they are
 * the client's.
 */
#ifndef GMUX_EXECUTOR_INNER_H
#define GMUX_EXECUTOR_INNER_H

#include <stdbool.h>

#include "wire/messages.h"

/* How deep conditions may be in each other. */
#define EXE_CONDITIONS_DEEP 32u

static inline const struct wire_record *exe_inner(const void *records, uint32_t at)
{
    return (const struct wire_record *)(const void *)((const char *)records + at);
}

/* The record at *at, which fits, and steps over it. */
static inline const struct wire_record *exe_inner_next(const void *records, uint32_t *at)
{
    const struct wire_record *r = exe_inner(records, *at);
    *at += (uint32_t)gm_padded(r->size);
    return r;
}

/* The bytes of records within `r`, where its struct of `fields` bytes ends. */
static inline uint32_t exe_inner_size(const struct wire_record *r, size_t fields)
{
    return r->size - (uint32_t)fields;
}

bool exe_run_is_sound(const struct wire_rec_run *r);
/* Its handles are there; what they and the conditions say is for the device to check. */
bool exe_graph_is_sound(const struct wire_rec_graph *r);

#endif
