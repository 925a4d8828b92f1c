/*
 * Both ends of the ring of texts. The executor never waits for room. The client checks every length
 * that it reads.
 */
#include "transport/output.h"

#include <stdio.h>
#include <string.h>

/* Each text has a head with its size and where it goes. Records start at multiples of 4, so a head
 * never wraps. */
#define HEAD_BYTES   4u
#define ERROR_STREAM 0x80000000u
#define REPORT       0x40000000u

static uint32_t record_bytes(uint32_t size)
{
    return (HEAD_BYTES + size + 3) & ~3u;
}

void tp_output_init(struct tp_output *o, struct tp_session *s)
{
    memset(o, 0, sizeof(*o));
    pthread_mutex_init(&o->lock, NULL);
    o->shared = &s->control->output;
    o->data = s->output;
    o->written = atomic_load_explicit(&o->shared->written, memory_order_relaxed) & ~3u;
}

void tp_output_finish(struct tp_output *o)
{
    if (o->shared)
        pthread_mutex_destroy(&o->lock);
    o->shared = NULL;
}

/* Called with the lock held. */
static uint32_t room(const struct tp_output *o)
{
    uint32_t used = o->written - atomic_load_explicit(&o->shared->read, memory_order_acquire);
    return used <= TP_OUTPUT_BYTES ? TP_OUTPUT_BYTES - used : 0;
}

static void copy_in(struct tp_output *o, uint32_t at, const void *bytes, uint32_t size)
{
    uint32_t start = at % TP_OUTPUT_BYTES;
    uint32_t first = GM_MIN(size, TP_OUTPUT_BYTES - start);
    memcpy(o->data + start, bytes, first);
    memcpy(o->data, (const uint8_t *)bytes + first, size - first);
}

/* Called with the lock held; there is room. */
static void append(struct tp_output *o, int fd, const char *text, uint32_t size)
{
    const uint32_t head = size | (fd == 2 ? ERROR_STREAM : fd == TP_OUTPUT_REPORT ? REPORT : 0);
    copy_in(o, o->written, &head, HEAD_BYTES);
    copy_in(o, o->written + HEAD_BYTES, text, size);
    o->written += record_bytes(size);
    atomic_store_explicit(&o->shared->written, o->written, memory_order_release);
}

static bool append_or_lose(struct tp_output *o, int fd, const char *text, uint32_t size)
{
    char note[96];
    uint32_t note_size = 0;
    if (o->lost)
        note_size = (uint32_t)snprintf(note, sizeof(note),
                                       "[%llu texts that the device printed were lost here]\n",
                                       (unsigned long long)o->lost);
    if (room(o) < record_bytes(size) + (note_size ? record_bytes(note_size) : 0)) {
        o->lost++;
        return false;
    }
    if (note_size)
        append(o, 2, note, note_size);
    o->lost = 0;
    append(o, fd, text, size);
    return true;
}

bool tp_output_write(struct tp_output *o, int fd, const char *text, size_t size)
{
    bool all = true;
    pthread_mutex_lock(&o->lock);
    while (size) {
        uint32_t part = (uint32_t)GM_MIN(size, (size_t)TP_OUTPUT_TEXT_MAX);
        all &= append_or_lose(o, fd, text, part);
        text += part;
        size -= part;
    }
    pthread_mutex_unlock(&o->lock);
    return all;
}

void tp_output_lose(struct tp_output *o, uint64_t texts)
{
    if (!texts)
        return;
    pthread_mutex_lock(&o->lock);
    o->lost += texts;
    pthread_mutex_unlock(&o->lock);
}

void tp_input_init(struct tp_input *i, struct tp_session *s)
{
    i->shared = &s->control->output;
    i->data = s->output;
    i->read = atomic_load_explicit(&i->shared->read, memory_order_relaxed);
}

static void copy_out(const struct tp_input *i, uint32_t at, void *bytes, uint32_t size)
{
    uint32_t start = at % TP_OUTPUT_BYTES;
    uint32_t first = GM_MIN(size, TP_OUTPUT_BYTES - start);
    memcpy(bytes, i->data + start, first);
    memcpy((uint8_t *)bytes + first, i->data, size - first);
}

size_t tp_input_take(struct tp_input *i, int *fd, char text[static TP_OUTPUT_TEXT_MAX])
{
    uint32_t written = atomic_load_explicit(&i->shared->written, memory_order_acquire);
    uint32_t there = written - i->read, head, size = 0;
    if (there == 0)
        return 0;
    if (there >= HEAD_BYTES && there <= TP_OUTPUT_BYTES && i->read % 4 == 0) {
        copy_out(i, i->read, &head, HEAD_BYTES);
        size = head & ~(ERROR_STREAM | REPORT);
    }
    if (size == 0 || size > TP_OUTPUT_TEXT_MAX || record_bytes(size) > there) {
        i->read = written; /* the record is broken: continues from the present end */
        size = 0;
    } else {
        *fd = head & ERROR_STREAM ? 2 : head & REPORT ? TP_OUTPUT_REPORT : 1;
        copy_out(i, i->read + HEAD_BYTES, text, size);
        i->read += record_bytes(size);
    }
    atomic_store_explicit(&i->shared->read, i->read, memory_order_release);
    return size;
}
