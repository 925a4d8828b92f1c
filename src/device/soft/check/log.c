/*
 * A launch's log. It keeps each finding once, with how often it occurred. Threads add to it without
 * a lock.
 */
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "device/soft/check/check.h"

struct soft_check_log *soft_check_log_create(void)
{
    return calloc(1, sizeof(struct soft_check_log));
}

void soft_check_found(struct soft_block *b, const struct soft_check_finding *f)
{
    struct soft_check_log *log = b->check->log;
    uint64_t key = (uint64_t)f->kind << 56 | (uint64_t)f->space << 52 |
                   (uint64_t)(f->line & 0x3ffffff) << 26 | (f->other_line & 0x3ffffff);
    uint32_t slot = (uint32_t)(key * 0x9e3779b97f4a7c15ull >> 40);
    for (uint32_t i = 0; i < SOFT_CHECK_FINDINGS; i++) {
        struct soft_check_finding *to = &log->findings[(slot + i) % SOFT_CHECK_FINDINGS];
        uint64_t there = 0;
        if (__atomic_compare_exchange_n(&to->key, &there, key, false, __ATOMIC_RELAXED,
                                        __ATOMIC_RELAXED)) {
            memcpy(&to->address, &f->address,
                   sizeof(*f) - offsetof(struct soft_check_finding, address));
            to->block = b->block_linear;
            there = key;
        }
        if (there == key) {
            /* release: the entry is complete */
            __atomic_fetch_add(&to->times, 1, __ATOMIC_RELEASE);
            return;
        }
    }
    __atomic_fetch_add(&log->overflow, 1, __ATOMIC_RELAXED);
}
