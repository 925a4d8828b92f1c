/*
 * Reads configuration files: TOML as far as a configuration of keys and values needs it. Comments,
 * tables and arrays of them, dotted and quoted keys, strings of one line, integers, floats and
 * booleans. Other arrays, inline tables, dates and strings of several lines are refused by name, as
 * is whatever is no TOML. A table of an array has its number, from 0 on, in its path: of the second
 * [[a.b]] the key c is a.b.1.c.
 *
 * No global state; any thread.
 */
#ifndef GMUX_BASE_TOML_H
#define GMUX_BASE_TOML_H

#include <stddef.h>

#include "base/attr.h"

#define GM_TOML_DEPTH_MAX 8
#define GM_TOML_TEXT_MAX  512

enum gm_toml_type { GM_TOML_STRING, GM_TOML_INTEGER, GM_TOML_FLOAT, GM_TOML_BOOLEAN };

struct gm_toml_item {
    unsigned line;
    unsigned depth;                      /* of the path: tables, then the key */
    const char *path[GM_TOML_DEPTH_MAX]; /* valid during the call */
    enum gm_toml_type type;
    /* the string, "true" or "false", or the number without its underscores, in decimal */
    const char *text;
};

/* NULL, or what is wrong with it. */
typedef const char *gm_toml_fn(void *arg, const struct gm_toml_item *item);

struct gm_toml_error {
    unsigned line;
    char key[GM_TOML_TEXT_MAX + 1]; /* dotted; "" if it is not about one */
    char why[256];
};

/* Calls `each` for each value, in their order. 0, or -EINVAL with *error at the first mistake, its
 * own or what `each` said. */
GM_MUST_CHECK int gm_toml_read(const char *text, size_t size, gm_toml_fn *each, void *arg,
                               struct gm_toml_error *error);

#endif
