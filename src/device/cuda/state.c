/*
 * What is set up before there is a driver.
 */
#include "device/cuda/state.h"

#include "device/cuda/admit.h"
#include "device/cuda/fallback.h"
#include "device/cuda/library.h"
#include "device/cuda/lookahead.h"
#include "device/cuda/precedence.h"
#include "device/cuda/settle.h"

void cuda_dev_init(struct dev *d, const struct dev_events *events)
{
    struct gm_list *const lists[] = {
        &d->active,           &d->clients,           &d->gone,
        &d->libraries.shared, &d->libraries.loading, &d->libraries.kept,
        &d->libraries.unused, &d->output.printed,    &d->waiting
    };
    pthread_mutex_t *const locks[] = { &d->lock, &d->libraries.lock, &d->open_lock,
                                       &d->output.pipe_lock };
    pthread_cond_t *const conditions[] = { &d->work,
                                           &d->more_gone,
                                           &d->libraries.loaded,
                                           &d->libraries.more_unused,
                                           &d->output.work,
                                           &d->output.shown,
                                           &d->points };
    for (size_t i = 0; i < GM_ARRAY_LEN(lists); i++)
        gm_list_init(lists[i]);
    for (size_t i = 0; i < GM_ARRAY_LEN(locks); i++)
        pthread_mutex_init(locks[i], NULL);
    for (size_t i = 0; i < GM_ARRAY_LEN(conditions); i++)
        pthread_cond_init(conditions[i], NULL);
    d->events = *events;
    d->rest_ns = CUDA_REST_NS;
    d->rest_most_ns = CUDA_REST_MOST_NS;
    d->unknown_ns = CUDA_UNKNOWN_NS;
    d->held_ns = CUDA_HELD_NS;
    d->stays_ns = CUDA_STAYS_NS;
    d->blocked_ns = CUDA_BLOCKED_NS;
    d->away_ns = CUDA_AWAY_NS;
    d->returns_ns = CUDA_RETURNS_NS;
    d->ahead_ns = CUDA_AHEAD_NS;
    d->credit_ns = CUDA_CREDIT_NS;
    d->slice_ns = CUDA_SLICE_NS;
    d->libraries.kept_max = CUDA_KEPT_BYTES;
    d->output.pipe = -1;
}

int cuda_thread_start(void *arg, void *(*body)(void *))
{
    pthread_t thread;
    int r = pthread_create(&thread, NULL, body, arg);
    if (r == 0)
        pthread_detach(thread);
    return -r;
}
