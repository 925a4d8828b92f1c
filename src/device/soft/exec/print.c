/*
 * A client's print buffer: texts of device printf and of assertions wait in it until the executor
 * fetches them.
 *
 * It is a byte ring. Writers reserve room with a compare-and-swap on `head`, copy, and then store
 * the record's header with release. The reader takes records in order until it finds a header that
 * is still zero, and zeroes what it took before it moves `tail`. So a header is always either zero
 * or complete, and nobody waits for anybody.
 */
#include "device/soft/exec/helpers.h"

#include <string.h>
#include <sys/mman.h>

#define PRINT_MIN   8192u
#define PRINT_ALIGN 8u
#define PRINT_READY 0x80000000u /* in a header: the text is complete; low bits: its size */
#define PRINT_ERROR 0x40000000u /* it is for standard error */

struct soft_print {
    uint32_t mask;
    uint32_t dropped;                       /* atomic */
    GM_ALIGNED(GM_CACHELINE) uint32_t head; /* atomic; writers */
    GM_ALIGNED(GM_CACHELINE) uint32_t tail; /* atomic; the reader */
    GM_ALIGNED(GM_CACHELINE) uint8_t ring[];
};

struct soft_print *soft_print_create(uint32_t bytes)
{
    if (!gm_is_pow2(bytes) || bytes < PRINT_MIN || bytes > UINT32_MAX / 4)
        return NULL;
    /* Pages in which nothing is printed stay untouched: most clients never print. */
    void *memory = mmap(NULL, sizeof(struct soft_print) + bytes, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED)
        return NULL;
    struct soft_print *p = memory;
    p->mask = bytes - 1;
    return p;
}

void soft_print_destroy(struct soft_print *p)
{
    if (p)
        munmap(p, sizeof(struct soft_print) + p->mask + 1);
}

/* Bytes that a record takes: header and text, rounded up to whole units. */
static uint32_t record_size(uint32_t text_size)
{
    return (text_size + (uint32_t)sizeof(uint32_t) + PRINT_ALIGN - 1) & ~(PRINT_ALIGN - 1);
}

static void ring_copy_in(struct soft_print *p, uint32_t at, const char *text, uint32_t size)
{
    uint32_t start = at & p->mask;
    uint32_t first = GM_MIN(size, p->mask + 1 - start);
    memcpy(p->ring + start, text, first);
    memcpy(p->ring, text + first, size - first);
}

static void ring_copy_out(struct soft_print *p, uint32_t at, char *text, uint32_t size)
{
    uint32_t start = at & p->mask;
    uint32_t first = GM_MIN(size, p->mask + 1 - start);
    memcpy(text, p->ring + start, first);
    memcpy(text + first, p->ring, size - first);
}

static void ring_zero(struct soft_print *p, uint32_t at, uint32_t size)
{
    uint32_t start = at & p->mask;
    uint32_t first = GM_MIN(size, p->mask + 1 - start);
    memset(p->ring + start, 0, first);
    memset(p->ring, 0, size - first);
}

/* Records are multiples of 8 bytes, so a header never wraps. */
static uint32_t *ring_header(struct soft_print *p, uint32_t at)
{
    return (uint32_t *)(void *)(p->ring + (at & p->mask));
}

/* *head: the value last read; afterwards where the record lies. False: no room. */
static bool reserve(struct soft_print *p, uint32_t need, uint32_t *head)
{
    for (;;) {
        /* Acquire: the reader's zeroes are seen before room that it freed is used. */
        uint32_t used = *head - __atomic_load_n(&p->tail, __ATOMIC_ACQUIRE);
        /* The reader is beyond that value: other writers have moved `head` since. */
        if (used > p->mask + 1) {
            *head = __atomic_load_n(&p->head, __ATOMIC_RELAXED);
            continue;
        }
        if (used > p->mask + 1 - need)
            return false;
        if (__atomic_compare_exchange_n(&p->head, head, *head + need, true, __ATOMIC_RELAXED,
                                        __ATOMIC_RELAXED))
            return true;
    }
}

bool soft_print_append(struct soft_print *p, int fd, const char *text, uint32_t size)
{
    if (size > SOFT_PRINT_MAX)
        size = SOFT_PRINT_MAX;
    uint32_t head = __atomic_load_n(&p->head, __ATOMIC_RELAXED);
    if (!reserve(p, record_size(size), &head)) {
        __atomic_fetch_add(&p->dropped, 1, __ATOMIC_RELAXED);
        return false;
    }
    ring_copy_in(p, head + (uint32_t)sizeof(uint32_t), text, size);
    __atomic_store_n(ring_header(p, head), PRINT_READY | (fd == 2 ? PRINT_ERROR : 0) | size,
                     __ATOMIC_RELEASE);
    return true;
}

uint32_t soft_print_drain(struct soft_print *p,
                          void (*take)(void *arg, int fd, const char *text, uint32_t size),
                          void *arg)
{
    char text[SOFT_PRINT_MAX + 1];
    uint32_t tail = __atomic_load_n(&p->tail, __ATOMIC_RELAXED);
    for (;;) {
        uint32_t head = __atomic_load_n(&p->head, __ATOMIC_RELAXED);
        if (head == tail)
            break;
        uint32_t header = __atomic_load_n(ring_header(p, tail), __ATOMIC_ACQUIRE);
        if (!(header & PRINT_READY))
            break;
        uint32_t size = GM_MIN(header & ~(PRINT_READY | PRINT_ERROR), SOFT_PRINT_MAX);
        ring_copy_out(p, tail + (uint32_t)sizeof(uint32_t), text, size);
        text[size] = 0;
        uint32_t taken = record_size(size);
        ring_zero(p, tail, taken);
        tail += taken;
        __atomic_store_n(&p->tail, tail, __ATOMIC_RELEASE);
        take(arg, header & PRINT_ERROR ? 2 : 1, text, size);
    }
    return __atomic_exchange_n(&p->dropped, 0, __ATOMIC_RELAXED);
}
