/*
 * A text that grows. What exceeds CTL_TEXT_MAX, or finds no memory, is left out.
 */
#include "control/text.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void ctl_text_vadd(struct ctl_text *t, const char *fmt, va_list ap)
{
    va_list again;
    va_copy(again, ap);
    int n = vsnprintf(NULL, 0, fmt, again);
    va_end(again);
    if (n < 0 || (size_t)n + 1 > CTL_TEXT_MAX - t->size)
        return;
    size_t needed = t->size + (size_t)n + 1;
    if (needed > t->capacity) {
        size_t capacity = GM_MAX(needed, t->capacity * 2);
        char *data = realloc(t->data, capacity);
        if (!data)
            return;
        t->data = data;
        t->capacity = capacity;
    }
    vsnprintf(t->data + t->size, (size_t)n + 1, fmt, ap);
    t->size += (size_t)n;
}

void ctl_text_add(struct ctl_text *t, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    ctl_text_vadd(t, fmt, ap);
    va_end(ap);
}

void ctl_text_cut(struct ctl_text *t, size_t size)
{
    if (size >= t->size)
        return;
    t->size = size;
    t->data[size] = '\0';
}

void ctl_text_finish(struct ctl_text *t)
{
    free(t->data);
    *t = (struct ctl_text) { 0 };
}
