/*
 * Text that grows up to a limit, for replies to UI commands; and functions that clean what
 * strangers wrote before it reaches a log or a terminal.
 */
#ifndef GMUX_CONTROL_TEXT_H
#define GMUX_CONTROL_TEXT_H

#include <stdarg.h>

#include "base/attr.h"

/* Longer replies are cut: a list of clients cannot exhaust the daemon. */
#define CTL_TEXT_MAX (1u << 20)

struct ctl_text {
    char *data; /* terminated; NULL while empty */
    size_t size;
    size_t capacity;
};

void ctl_text_vadd(struct ctl_text *t, const char *fmt, va_list ap) GM_PRINTF(2, 0);
void ctl_text_add(struct ctl_text *t, const char *fmt, ...) GM_PRINTF(2, 3);
/* Shortens the text to its first `size` bytes. */
void ctl_text_cut(struct ctl_text *t, size_t size);
void ctl_text_finish(struct ctl_text *t);

#endif
