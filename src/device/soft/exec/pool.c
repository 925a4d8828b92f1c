/*
 * Creates the scheduler with its threads, and destroys it.
 */
#include <errno.h>
#include <limits.h>
#include <stdlib.h>

#include "device/soft/exec/sched_impl.h"

static int cond_init(pthread_cond_t *cond)
{
    pthread_condattr_t attr;
    pthread_condattr_init(&attr);
    pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    int r = pthread_cond_init(cond, &attr);
    pthread_condattr_destroy(&attr);
    return r;
}

int soft_sched_create(struct soft_sched **out, const struct soft_sched_config *config)
{
    struct soft_sched *s = calloc(1, sizeof(*s));
    if (!s)
        return -ENOMEM;
    if (pthread_mutex_init(&s->lock, NULL) || cond_init(&s->work) || cond_init(&s->drained) ||
        cond_init(&s->called) || cond_init(&s->ended)) {
        free(s);
        return -ENOMEM;
    }
    gm_list_init(&s->accounts);
    gm_list_init(&s->groups);
    gm_list_init(&s->workers);
    gm_list_init(&s->spares);
    atomic_init(&s->urgent, INT_MAX);
    s->slots = config->workers;
    s->block_timeout_ns = config->block_timeout_ns;

    int r = pthread_create(&s->supervisor, NULL, soft_supervisor_main, s);
    s->supervisor_started = r == 0;
    pthread_mutex_lock(&s->lock);
    while (r == 0 && s->active < s->slots)
        r = -soft_worker_call(s);
    pthread_mutex_unlock(&s->lock);
    if (r != 0) {
        soft_sched_destroy(s);
        return -r;
    }
    *out = s;
    return 0;
}

void soft_sched_destroy(struct soft_sched *s)
{
    if (!s)
        return;
    pthread_mutex_lock(&s->lock);
    s->quit = true;
    atomic_fetch_add_explicit(&s->bell, 1, memory_order_release);
    pthread_cond_broadcast(&s->work);
    pthread_cond_broadcast(&s->called);
    soft_supervisor_call(s);
    while (s->threads > 0)
        pthread_cond_wait(&s->ended, &s->lock);
    pthread_mutex_unlock(&s->lock);
    if (s->supervisor_started)
        pthread_join(s->supervisor, NULL);
    pthread_cond_destroy(&s->work);
    pthread_cond_destroy(&s->drained);
    pthread_cond_destroy(&s->called);
    pthread_cond_destroy(&s->ended);
    pthread_mutex_destroy(&s->lock);
    free(s);
}

uint32_t soft_sched_workers(const struct soft_sched *s)
{
    return s->slots;
}
