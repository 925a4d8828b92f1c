/*
 * A worker's scratch memory: shared memory, local memory and registers of the block that it runs. A
 * block may need hundreds of MiB, and a block that is set aside keeps them, so there is a bound for
 * all workers together. The blocks of one client have at most half of what the others have left, or
 * a small amount that everybody gets.
 */
#include <string.h>
#include <sys/mman.h>

#include "device/soft/exec/sched_impl.h"

#define UNIT (64u << 10)
/* more than that is given back when the worker turns to another client or sleeps */
#define KEPT       (16u << 20)
#define LEAST      (2ull << 20)
#define LEAST_PART 256u

void soft_sched_bound_scratch(struct soft_sched *s, uint64_t bytes)
{
    s->scratch_max = bytes;
}

/* With the lock held. */
static void count(struct soft_worker *w, int64_t bytes)
{
    w->scratch_bytes += (uint64_t)bytes;
    w->sched->scratch_bytes += (uint64_t)bytes;
    if (w->account)
        w->account->scratch_bytes += (uint64_t)bytes;
}

static bool charge(struct soft_worker *w, uint64_t bytes)
{
    struct soft_sched *s = w->sched;
    pthread_mutex_lock(&s->lock);
    uint64_t own = w->account ? w->account->scratch_bytes : 0, others = s->scratch_bytes - own;
    uint64_t most = s->scratch_max > others ? (s->scratch_max - others) / 2 : 0;
    most = GM_MAX(most, LEAST);
    most = GM_MAX(most, s->scratch_max / LEAST_PART);
    bool fits = s->scratch_max == 0 || own + bytes <= most;
    if (fits)
        count(w, (int64_t)bytes);
    pthread_mutex_unlock(&s->lock);
    return fits;
}

static void give_back(struct soft_worker *w, uint64_t bytes)
{
    pthread_mutex_lock(&w->sched->lock);
    count(w, -(int64_t)bytes);
    pthread_mutex_unlock(&w->sched->lock);
}

static void drop(struct soft_scratch *m)
{
    if (m->data)
        munmap(m->data, m->size);
    *m = (struct soft_scratch) { .data = NULL };
}

bool soft_scratch_reserve(struct soft_worker *w, struct soft_scratch *m, size_t size)
{
    if (GM_LIKELY(size <= m->size))
        return true;
    size_t bytes = (size + UNIT - 1) & ~(size_t)(UNIT - 1);
    if (!charge(w, bytes - m->size))
        return false;
    void *p = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE,
                   -1, 0);
    if (p == MAP_FAILED) {
        give_back(w, bytes - m->size);
        return false;
    }
    drop(m);
    m->data = p;
    m->size = bytes;
    return true;
}

static void wipe(struct soft_worker *w, struct soft_scratch *m)
{
    if (m->size > KEPT) {
        give_back(w, m->size);
        drop(m);
        return;
    }
    if (m->dirty)
        memset(m->data, 0, m->dirty);
    m->dirty = 0;
}

void soft_scratch_wipe(struct soft_worker *w)
{
    wipe(w, &w->shared);
    wipe(w, &w->local);
    wipe(w, &w->save);
    wipe(w, &w->check);
    wipe(w, &w->check_local);
}

bool soft_scratch_is_large(const struct soft_worker *w)
{
    return w->shared.size > KEPT || w->local.size > KEPT || w->save.size > KEPT ||
           w->check.size > KEPT || w->check_local.size > KEPT;
}

static void trim(struct soft_worker *w, struct soft_scratch *m)
{
    if (m->size <= KEPT)
        return;
    count(w, -(int64_t)m->size);
    drop(m);
}

void soft_scratch_trim(struct soft_worker *w)
{
    trim(w, &w->shared);
    trim(w, &w->local);
    trim(w, &w->save);
    trim(w, &w->check);
    trim(w, &w->check_local);
}

void soft_scratch_free(struct soft_worker *w)
{
    count(w, -(int64_t)w->scratch_bytes);
    drop(&w->shared);
    drop(&w->local);
    drop(&w->save);
    drop(&w->check);
    drop(&w->check_local);
}
