/*
 * What is set up before there is a driver.
 */
#include "device/cuda/state.h"

#include "device/cuda/admit.h"
#include "device/cuda/fallback.h"
#include "device/cuda/library.h"
#include "device/cuda/lookahead.h"
#include "device/cuda/settle.h"

void cuda_dev_init(struct dev *d, const struct dev_events *events)
{
    struct gm_list *const lists[] = { &d->active,    &d->clients, &d->gone,
                                      &d->libraries, &d->loading, &d->kept,
                                      &d->unused,    &d->printed, &d->waiting };
    pthread_mutex_t *const locks[] = { &d->lock, &d->libraries_lock, &d->open_lock, &d->pipe_lock };
    pthread_cond_t *const conditions[] = { &d->work,        &d->more_gone,  &d->library_loaded,
                                           &d->more_unused, &d->print_work, &d->print_shown,
                                           &d->points };
    for (size_t i = 0; i < GM_ARRAY_LEN(lists); i++)
        gm_list_init(lists[i]);
    for (size_t i = 0; i < GM_ARRAY_LEN(locks); i++)
        pthread_mutex_init(locks[i], NULL);
    for (size_t i = 0; i < GM_ARRAY_LEN(conditions); i++)
        pthread_cond_init(conditions[i], NULL);
    d->events = *events;
    d->rest_ns = CUDA_REST_NS;
    d->unknown_ns = CUDA_UNKNOWN_NS;
    d->held_ns = CUDA_HELD_NS;
    d->away_ns = CUDA_AWAY_NS;
    d->returns_ns = CUDA_RETURNS_NS;
    d->ahead_ns = CUDA_AHEAD_NS;
    d->kept_max = CUDA_KEPT_BYTES;
    d->pipe = -1;
}

int cuda_thread_start(void *arg, void *(*body)(void *))
{
    pthread_t thread;
    int r = pthread_create(&thread, NULL, body, arg);
    if (r == 0)
        pthread_detach(thread);
    return -r;
}
