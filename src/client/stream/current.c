/*
 * The state that every call needs first: the tables of contexts and streams, and the thread's
 * current context.
 */
#include "client/session/attach.h"
#include "client/stream/context.h"

struct rt_table rt_contexts = RT_TABLE(RT_KIND_CONTEXT, struct rt_context);
struct rt_table rt_streams = RT_TABLE(RT_KIND_STREAM, struct rt_stream);
pthread_mutex_t rt_context_lock = PTHREAD_MUTEX_INITIALIZER;
__thread struct rt_current rt_current __attribute__((tls_model("initial-exec")));

/* Before there is a session no table has objects, and so the stack is empty in all other states. */
int rt_current_missing(void)
{
    if (rt_current.in_callback)
        return CUDA_ERROR_NOT_PERMITTED;
    int r = rt_ready();
    if (r != CUDA_SUCCESS)
        return r;
    return rt_current.context ? CUDA_ERROR_CONTEXT_IS_DESTROYED : CUDA_ERROR_INVALID_CONTEXT;
}

int rt_enter_plain(void)
{
    return rt_current.in_callback ? CUDA_ERROR_NOT_PERMITTED : rt_ready();
}

int rt_enter_any(void)
{
    return rt_current.in_callback ? CUDA_ERROR_NOT_PERMITTED : rt_enter_query();
}

int rt_enter_living(void)
{
    struct rt_context *c;
    return rt_current.context ? rt_enter(&c) : rt_enter_any();
}

int rt_enter_query(void)
{
    int r = rt_ready();
    if (r)
        return r;
    int error = rt_session_error(rt_session);
    return GM_LIKELY(!error) ? CUDA_SUCCESS : rt_session_failed(rt_session, error);
}
