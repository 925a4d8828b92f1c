/*
 * Compiler attributes under short names, and the few arithmetic helpers that every folder needs.
 */
#ifndef GMUX_BASE_ATTR_H
#define GMUX_BASE_ATTR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define GM_PRINTF(fmt, args) __attribute__((format(printf, fmt, args)))
#define GM_UNUSED            __attribute__((unused))
#define GM_MUST_CHECK        __attribute__((warn_unused_result))
#define GM_EXPORT            __attribute__((visibility("default")))
#define GM_NORETURN          __attribute__((noreturn))
#define GM_COLD              __attribute__((cold))
#define GM_CACHELINE         64
#define GM_ALIGNED(n)        __attribute__((aligned(n)))

#define GM_ARRAY_LEN(a) (sizeof(a) / sizeof((a)[0]))

#define GM_LIKELY(x)   __builtin_expect(!!(x), 1)
#define GM_UNLIKELY(x) __builtin_expect(!!(x), 0)

/* The struct that embeds `member` at `ptr`. */
#define GM_CONTAINER_OF(ptr, type, member) ((type *)((char *)(ptr)-offsetof(type, member)))

#define GM_MIN(a, b)                                                                               \
    ({                                                                                             \
        __typeof__(a) gm_a_ = (a);                                                                 \
        __typeof__(b) gm_b_ = (b);                                                                 \
        gm_a_ < gm_b_ ? gm_a_ : gm_b_;                                                             \
    })
#define GM_MAX(a, b)                                                                               \
    ({                                                                                             \
        __typeof__(a) gm_a_ = (a);                                                                 \
        __typeof__(b) gm_b_ = (b);                                                                 \
        gm_a_ > gm_b_ ? gm_a_ : gm_b_;                                                             \
    })

static inline bool gm_is_pow2(uint64_t x)
{
    return x != 0 && (x & (x - 1)) == 0;
}

/* `size` and what fills it up to 8 bytes, as records and images in a row have it. */
static inline uint64_t gm_padded(uint64_t size)
{
    return (size + 7) & ~(uint64_t)7;
}

/* Rounds up to a multiple of `align` (a power of two). False if the result does not fit. */
static inline GM_MUST_CHECK bool gm_align_up(uint64_t x, uint64_t align, uint64_t *out)
{
    uint64_t sum;
    if (__builtin_add_overflow(x, align - 1, &sum))
        return false;
    *out = sum & ~(align - 1);
    return true;
}

#endif
