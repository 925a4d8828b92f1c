/*
 * A list of entries that only grows. Its end moves after the entry is complete.
 */
#include "transport/names.h"

#include <string.h>

/* An entry is this head and the text without a NUL, rounded up to 4 bytes. */
struct head {
    uint32_t module;
    uint32_t index;
    uint32_t length;
};

static uint32_t entry_size(uint32_t length)
{
    return (uint32_t)sizeof(struct head) + ((length + 3) & ~3u);
}

bool tp_names_add(struct tp_session *s, uint32_t module, uint32_t index, const char *text)
{
    size_t length = strlen(text);
    uint32_t used = atomic_load_explicit(&s->control->names_used, memory_order_relaxed);
    if (length > TP_NAME_MAX || used > TP_NAMES_BYTES ||
        TP_NAMES_BYTES - used < entry_size((uint32_t)length))
        return false;
    const struct head h = { module, index, (uint32_t)length };
    memcpy(s->names + used, &h, sizeof(h));
    memcpy(s->names + used + sizeof(h), text, length);
    atomic_store_explicit(&s->control->names_used, used + entry_size((uint32_t)length),
                          memory_order_release);
    return true;
}

bool tp_names_next(const struct tp_session *s, uint32_t *at, struct tp_name *out)
{
    uint32_t used = atomic_load_explicit(&s->control->names_used, memory_order_acquire);
    struct head h;
    if (used > TP_NAMES_BYTES || *at > used || used - *at < sizeof(h))
        return false;
    memcpy(&h, s->names + *at, sizeof(h));
    if (h.length > TP_NAME_MAX || used - *at < entry_size(h.length))
        return false;
    out->module = h.module;
    out->index = h.index;
    memcpy(out->text, s->names + *at + sizeof(h), h.length);
    out->text[h.length] = '\0';
    *at += entry_size(h.length);
    return true;
}
