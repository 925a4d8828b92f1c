/*
 * Several PTX texts as one, which the software device links when it loads it: ptx/link.c there has
 * the form. The bytes are the program's, and their reader believes them no more than any text.
 */
#ifndef GMUX_CLIENT_MODULE_UNITS_H
#define GMUX_CLIENT_MODULE_UNITS_H

#include <stdbool.h>
#include <stddef.h>

struct rt_units {
    char *text; /* the caller frees it; a zero is behind it */
    size_t size;
    size_t room;
    unsigned count;
};

/* An "object" has to find all it refers to. What a "library" defines gives way to others, and it
 * may lack something. */
enum rt_unit {
    RT_UNIT_OBJECT,
    RT_UNIT_LIBRARY,
};

/* True if the bytes begin as such a text does. */
bool rt_units_are(const void *data, size_t size);
/* Text as it is. CUresult, all. */
int rt_units_append(struct rt_units *u, const char *text, size_t size);
/* Adds a text. `name` is for messages, NULL: by number. */
int rt_units_add(struct rt_units *u, enum rt_unit kind, const char *name, const char *text,
                 size_t size);

#endif
