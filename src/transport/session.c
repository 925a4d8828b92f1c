/*
 * Makes session memory, and checks the geometry that its header states before anything is computed
 * from it.
 */
#include "transport/session.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>

#include "base/cleanup.h"
#include "transport/memfd.h"

int tp_session_create(void)
{
    GM_AUTO_FD int fd = tp_memfd_create("gmux-session", TP_SESSION_SIZE);
    if (fd < 0)
        return fd;
    const struct tp_session_header h = {
        .magic = TP_SESSION_MAGIC,
        .version = TP_SESSION_VERSION,
        .size = TP_SESSION_SIZE,
        .streams_at = TP_STREAMS_AT,
        .streams = TP_STREAMS,
        .events_at = TP_EVENTS_AT,
        .events = TP_EVENTS,
        .ring_at = TP_RING_AT,
        .ring_size = TP_RING_BYTES,
        .reply_at = TP_REPLY_AT,
        .reply_size = TP_REPLY_BYTES,
        .output_at = TP_OUTPUT_AT,
        .output_size = TP_OUTPUT_BYTES,
        .parts_at = TP_PARTS_AT,
        .parts = TP_PARTS,
        .names_at = TP_NAMES_AT,
        .names_size = TP_NAMES_BYTES,
    };
    ssize_t n = pwrite(fd, &h, sizeof(h), 0);
    if (n != (ssize_t)sizeof(h))
        return n < 0 ? -errno : -EIO;
    return gm_take_fd(&fd);
}

static bool table_fits(uint64_t at, uint64_t count, uint64_t each, uint64_t size)
{
    return at >= TP_STREAMS_AT && at % GM_CACHELINE == 0 && count != 0 && at <= size &&
           count <= (size - at) / each;
}

static bool header_is_sane(const struct tp_session_header *h, uint64_t size)
{
    if (h->magic != TP_SESSION_MAGIC || h->version != TP_SESSION_VERSION || h->size != size)
        return false;
    if (!table_fits(h->streams_at, h->streams, sizeof(struct tp_stream_slot), size) ||
        !table_fits(h->events_at, h->events, sizeof(struct tp_event_slot), size) ||
        !table_fits(h->ring_at, h->ring_size, 1, size) ||
        !table_fits(h->reply_at, h->reply_size, 1, size) ||
        !table_fits(h->output_at, h->output_size, 1, size) ||
        !table_fits(h->parts_at, h->parts, sizeof(struct tp_part), size) ||
        !table_fits(h->names_at, h->names_size, 1, size))
        return false;
    if (h->streams > TP_STREAMS || h->events > TP_EVENTS) /* other tables have so many places */
        return false;
    if (h->names_size != TP_NAMES_BYTES || h->parts != TP_PARTS || h->parts_at > h->names_at ||
        h->names_at - h->parts_at < TP_PARTS * sizeof(struct tp_part) ||
        (uint64_t)h->output_at + h->output_size > h->parts_at)
        return false;
    if (h->output_size != TP_OUTPUT_BYTES || (uint64_t)h->reply_at + h->reply_size > h->output_at)
        return false;
    if (h->reply_size != sizeof(struct tp_reply) || !gm_is_pow2(h->ring_size) ||
        h->ring_size < 2 * WIRE_RECORD_MAX)
        return false;
    uint64_t streams_end = h->streams_at + (uint64_t)h->streams * sizeof(struct tp_stream_slot);
    uint64_t events_end = h->events_at + (uint64_t)h->events * sizeof(struct tp_event_slot);
    return streams_end <= h->events_at && events_end <= h->ring_at &&
           (uint64_t)h->ring_at + h->ring_size <= h->reply_at;
}

int tp_session_attach(struct tp_session *s, int fd, uint64_t size)
{
    struct tp_session_header h;

    memset(s, 0, sizeof(*s));
    if (size < TP_STREAMS_AT || size > (1u << 30))
        return -EBADMSG;
    int r = tp_memfd_check(fd, size, false);
    if (r < 0)
        return r;
    uint8_t *base = tp_memfd_map(fd, size, true);
    if (!base)
        return -errno;
    memcpy(&h, base, sizeof(h));
    if (!header_is_sane(&h, size)) {
        munmap(base, size);
        return -EBADMSG;
    }
    (void)madvise(base, size,
                  MADV_DONTFORK); /* a ring is not inherited: the child of a fork has no session */
    s->base = base;
    s->size = size;
    s->control = (struct tp_session_control *)(void *)(base + TP_CONTROL_AT);
    s->streams = (struct tp_stream_slot *)(void *)(base + h.streams_at);
    s->streams_count = h.streams;
    s->events = (struct tp_event_slot *)(void *)(base + h.events_at);
    s->events_count = h.events;
    s->ring_data = base + h.ring_at;
    s->ring_size = h.ring_size;
    s->reply = (struct tp_reply *)(void *)(base + h.reply_at);
    s->output = base + h.output_at;
    s->parts = (struct tp_part *)(void *)(base + h.parts_at);
    s->names = base + h.names_at;
    return 0;
}

void tp_session_detach(struct tp_session *s)
{
    if (s->base)
        munmap(s->base, s->size);
    memset(s, 0, sizeof(*s));
}

bool tp_session_fail(struct tp_session *s, uint32_t result, uint64_t fault_address)
{
    uint32_t none = 0;
    if (atomic_load_explicit(&s->control->error, memory_order_relaxed) != 0)
        return false;
    atomic_store_explicit(&s->control->fault_address, fault_address, memory_order_relaxed);
    return atomic_compare_exchange_strong_explicit(&s->control->error, &none, result,
                                                   memory_order_release, memory_order_relaxed);
}

void tp_session_release_waiters(struct tp_session *s)
{
    struct tp_session_control *c = s->control;
    for (uint32_t i = 0; i < s->streams_count; i++)
        tp_word_publish(&s->streams[i].completed, TP_SEQ_FAILED);
    tp_word_publish(&c->replied, TP_SEQ_FAILED);
    /* The host-function thread, and a producer that waits for room, look at the error when they are
     * woken. */
    tp_word_publish(&c->arrivals,
                    atomic_load_explicit(&c->arrivals.value, memory_order_relaxed) + 1);
    tp_futex_wake(&c->ring.head);
}
