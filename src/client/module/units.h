/*
 * Joins several PTX texts into one, which the software device links when it loads it;
 * device/soft/ptx/link.c has the format. The bytes are the program's, and their reader trusts them
 * no more than any text.
 */
#ifndef GMUX_CLIENT_MODULE_UNITS_H
#define GMUX_CLIENT_MODULE_UNITS_H

#include <stdbool.h>
#include <stddef.h>

struct rt_units {
    char *text; /* followed by a zero; the caller frees it */
    size_t size;
    size_t room;
    unsigned count;
};

/* An "object" has to find everything that it refers to. Definitions in a "library" give way to
 * others, and it may refer to something that is missing. */
enum rt_unit {
    RT_UNIT_OBJECT,
    RT_UNIT_LIBRARY,
};

/* Whether the bytes begin like such a text. */
bool rt_units_are(const void *data, size_t size);
/* Appends text as it is. These functions return a CUresult. */
int rt_units_append(struct rt_units *u, const char *text, size_t size);
/* Adds a text. `name` is used in messages; NULL: a number is used. */
int rt_units_add(struct rt_units *u, enum rt_unit kind, const char *name, const char *text,
                 size_t size);

#endif
