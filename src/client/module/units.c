/*
 * Before each text there is a line that begins a unit of that name. A first line makes the whole a
 * PTX text.
 */
#include "client/module/units.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client/entry/dispatch.h"

#define NAME_BYTES 60u
#define TEXT_MAX   (256u << 20)

static const char head[] = ".version 6.0\n.target sm_50\n.address_size 64\n\n.pragma \"gmux unit ";

bool rt_units_are(const void *data, size_t size)
{
    return size >= sizeof(head) && memcmp(data, head, sizeof(head) - 1) == 0;
}

int rt_units_append(struct rt_units *u, const char *text, size_t size)
{
    if (size > TEXT_MAX - u->size)
        return CUDA_ERROR_OUT_OF_MEMORY;
    if (u->size + size + 1 > u->room) {
        size_t room = (u->size + size + 1) * 2;
        char *grown = realloc(u->text, room);
        if (!grown)
            return CUDA_ERROR_OUT_OF_MEMORY;
        u->text = grown;
        u->room = room;
    }
    memcpy(u->text + u->size, text, size);
    u->size += size;
    u->text[u->size] = '\0';
    return CUDA_SUCCESS;
}

int rt_units_add(struct rt_units *u, enum rt_unit kind, const char *name, const char *text,
                 size_t size)
{
    char line[NAME_BYTES + sizeof(head) + 16], said[NAME_BYTES];
    u->count++;
    if (name && *name)
        (void)snprintf(said, sizeof(said), "%s", name);
    else
        (void)snprintf(said, sizeof(said), "input file %u", u->count);
    for (char *c = said; *c; c++)
        if (*c < ' ' || *c > '~' || *c == '"' || *c == '\\')
            *c = '_';
    int n = snprintf(line, sizeof(line), "%s%s %s\";\n", u->size ? "\n.pragma \"gmux unit " : head,
                     kind == RT_UNIT_OBJECT ? "object" : "library", said);
    int r = rt_units_append(u, line, (size_t)n);
    return r ? r : rt_units_append(u, text, strnlen(text, size));
}
