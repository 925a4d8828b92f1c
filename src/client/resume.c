#include "client/resume.h"

#include <cuda.h>

#include "client/module.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* before the lock of lookups */
static _Atomic int mortal;
_Atomic uint32_t rt_resumed_generation;

void rt_mortal_add(int count)
{
    atomic_fetch_add_explicit(&mortal, count, memory_order_relaxed);
}

int rt_resume_now(void)
{
    int r = CUDA_SUCCESS;
    pthread_mutex_lock(&lock);
    uint32_t now = rt_session_generation(rt_session);
    if (now != rt_resumed_generation) {
        r = atomic_load_explicit(&mortal, memory_order_relaxed) ? CUDA_ERROR_LAUNCH_FAILED : rt_lookup_replay();
        if (r == CUDA_SUCCESS)
            rt_resumed_generation = now;
        else
            tp_session_fail(&rt_session->shared, (uint32_t)r, 0);
    }
    pthread_mutex_unlock(&lock);
    return r ? rt_session_error(rt_session) : CUDA_SUCCESS;
}
