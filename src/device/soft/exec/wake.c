/*
 * Wakes threads of the scheduler: workers that have nothing to do, and the supervisor.
 */
#include "base/futex.h"
#include "device/soft/exec/sched_impl.h"

static _Thread_local bool looks_next;

void soft_sched_looks_next(bool yes)
{
    looks_next = yes;
}

void soft_sched_wake(struct soft_sched *s, uint64_t count)
{
    atomic_fetch_add_explicit(&s->bell, 1, memory_order_release);
    /* Each of these takes one piece of work; for the next piece another worker is woken. */
    if (s->spinning && count > 0) {
        s->spinning = false;
        count--;
    }
    if (looks_next && count > 0) {
        looks_next = false;
        count--;
    }
    if (count >= s->idle)
        pthread_cond_broadcast(&s->work);
    else
        for (; count > 0; count--)
            pthread_cond_signal(&s->work);
}

void soft_supervisor_call(struct soft_sched *s)
{
    if (!s->supervised) {
        s->supervised = true;
        gm_futex_ring(&s->call);
    }
}
