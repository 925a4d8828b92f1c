/*
 * Which memory of a client's window is allocated, and which has been written: two bits per byte, in
 * memory that takes pages only where the window is used. The allocated ranges themselves are kept
 * as well, for the words of a report.
 *
 * The client's thread and all workers set bits at once, by atomic operations. Bits are cleared only
 * when no kernel of the client that could use the range is left (client/stream/check.c).
 */
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "device/queue.h"
#include "device/soft/check/check.h"
#include "device/window.h"

static uint64_t *bits_create(uint64_t bytes)
{
    void *p = mmap(NULL, bytes / 8, PROT_READ | PROT_WRITE,
                   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    return p == MAP_FAILED ? NULL : p;
}

static void bits_destroy(uint64_t *bits, uint64_t bytes)
{
    if (bits)
        munmap(bits, bytes / 8);
}

struct soft_check *soft_check_create(const struct dev_window *w, uint32_t checks)
{
    struct soft_check *c = calloc(1, sizeof(*c));
    if (!c)
        return NULL;
    c->checks = checks;
    c->base = w->base;
    c->size = w->size;
    pthread_mutex_init(&c->lock, NULL);
    c->valid = bits_create(w->size);
    c->written = bits_create(w->size);
    if (c->valid && c->written)
        return c;
    soft_check_destroy(c);
    return NULL;
}

void soft_check_destroy(struct soft_check *c)
{
    if (!c)
        return;
    bits_destroy(c->valid, c->size);
    bits_destroy(c->written, c->size);
    pthread_mutex_destroy(&c->lock);
    free(c->ranges);
    free(c->places);
    free(c);
}

/* Bits [from, from + count) of the word that `from` lies in. */
static void word_set(uint64_t *bits, uint64_t from, uint64_t count, bool on)
{
    uint64_t mask = (count == 64 ? UINT64_MAX : (1ull << count) - 1) << from % 64;
    if (on)
        __atomic_fetch_or(&bits[from / 64], mask, __ATOMIC_RELAXED);
    else
        __atomic_fetch_and(&bits[from / 64], ~mask, __ATOMIC_RELAXED);
}

static void bits_set(uint64_t *bits, uint64_t from, uint64_t count, bool on)
{
    uint64_t end = from + count;
    while (from < end && (from % 64 || end - from < 64)) {
        uint64_t n = GM_MIN(64 - from % 64, end - from);
        word_set(bits, from, n, on);
        from += n;
    }
    uint64_t words = (end - from) / 64;
    memset(bits + from / 64, on ? 0xff : 0, words * 8);
    from += words * 64;
    if (from < end)
        word_set(bits, from, end - from, on);
}

static bool bit(const uint64_t *bits, uint64_t at)
{
    return __atomic_load_n(&bits[at / 64], __ATOMIC_RELAXED) >> at % 64 & 1;
}

/* --- ranges; lock held ------------------------------------------------------------------------ */

/* Index of the first range that begins behind `address`. */
static uint32_t upper_bound(const struct soft_check *c, uint64_t address)
{
    uint32_t low = 0, high = c->range_count;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (c->ranges[middle].base <= address)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* Without memory for it the range is not entered, and reports say less. */
static void range_enter(struct soft_check *c, uint64_t base, uint64_t size)
{
    if (c->range_count == c->range_room) {
        uint32_t room = GM_MAX(c->range_room * 2, 64u);
        void *grown = realloc(c->ranges, room * sizeof(*c->ranges));
        if (!grown)
            return;
        c->ranges = grown;
        c->range_room = room;
    }
    uint32_t i = upper_bound(c, base);
    memmove(c->ranges + i + 1, c->ranges + i, (c->range_count - i) * sizeof(*c->ranges));
    c->ranges[i] = (struct soft_check_range) { base, size };
    c->range_count++;
}

/* Removes the ranges that begin in [base, base + size): an allocation, the variables of a module,
 * or a remainder of a range whose end was never told. */
static void ranges_leave(struct soft_check *c, uint64_t base, uint64_t size, bool freed)
{
    uint32_t end = upper_bound(c, base + size - 1), first = end;
    while (first > 0 && c->ranges[first - 1].base >= base) {
        first--;
        if (freed)
            c->freed[c->freed_next++ % SOFT_CHECK_FREED] = c->ranges[first];
    }
    memmove(c->ranges + first, c->ranges + end, (c->range_count - end) * sizeof(*c->ranges));
    c->range_count -= end - first;
}

bool soft_check_note(struct soft_check *c, uint32_t note, uint64_t address, uint64_t size)
{
    uint64_t at = address - c->base;
    if (address < c->base || size == 0 || at > c->size || size > c->size - at)
        return false;
    pthread_mutex_lock(&c->lock);
    switch (note) {
    case WIRE_CHECK_NOTE_MADE:
    case WIRE_CHECK_NOTE_LENT:
        bits_set(c->valid, at, size, true);
        bits_set(c->written, at, size, note == WIRE_CHECK_NOTE_LENT);
        ranges_leave(c, address, size, false);
        range_enter(c, address, size);
        break;
    case WIRE_CHECK_NOTE_GONE:
        bits_set(c->valid, at, size, false);
        ranges_leave(c, address, size, true);
        break;
    case WIRE_CHECK_NOTE_WROTE:
        bits_set(c->written, at, size, true);
        break;
    default:
        break;
    }
    pthread_mutex_unlock(&c->lock);
    return true;
}

/* --- copies ----------------------------------------------------------------------------------- */

/* Whether the byte that a copy reads counts as written. */
static bool source_bit(const struct soft_check *c, uint64_t at)
{
    return !bit(c->valid, at) || bit(c->written, at);
}

static uint64_t source_run(const struct soft_check *c, uint64_t at, uint64_t most, bool on)
{
    uint64_t n = 0;
    while (n < most) {
        uint64_t i = at + n, word = i / 64;
        if (i % 64 == 0 && most - n >= 64) {
            uint64_t w = ~__atomic_load_n(&c->valid[word], __ATOMIC_RELAXED) |
                         __atomic_load_n(&c->written[word], __ATOMIC_RELAXED);
            if (w == (on ? UINT64_MAX : 0)) {
                n += 64;
                continue;
            }
        }
        if (source_bit(c, i) != on)
            break;
        n++;
    }
    return n;
}

/* After a copy the destination counts as written where the source did. Memory outside the window
 * counts as written: copies pass through some. */
static void row_moved(struct soft_check *c, uint64_t dst, uint64_t src, uint64_t width)
{
    dst -= c->base;
    src -= c->base;
    for (uint64_t i = 0; i < width;) {
        bool on = source_bit(c, src + i);
        uint64_t n = source_run(c, src + i, width - i, on);
        bits_set(c->written, dst + i, n, on);
        i += n;
    }
}

/* The queue has checked that all of it lies in the window. */
void soft_check_moved(struct soft_check *c, const struct dev_op *op)
{
    const struct dev_box *b = &op->u.box;
    const struct dev_area *a = &op->u.area;
    switch (op->kind) {
    case DEV_OP_COPY:
        for (uint64_t z = 0; z < b->depth; z++)
            for (uint64_t y = 0; y < b->height; y++)
                row_moved(c, b->dst + z * b->dst_slice + y * b->dst_pitch,
                          b->src + z * b->src_slice + y * b->src_pitch, b->width);
        break;
    case DEV_OP_FILL:
        for (uint64_t y = 0; y < a->height; y++)
            bits_set(c->written, a->dst + y * a->pitch - c->base, a->width * a->element_size, true);
        break;
    case DEV_OP_WRITE:
        bits_set(c->written, op->u.write.dst - c->base, op->u.write.size, true);
        break;
    default:
        break;
    }
}
