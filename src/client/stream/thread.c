/*
 * What each thread has: its stack of contexts and its per-thread default streams. The top of the
 * stack is in thread-local storage, because every call reads it. The rest is on the heap and is
 * freed when the thread ends.
 */
#include "client/stream/context.h"

#include <stdlib.h>
#include <string.h>

#include "client/session/attach.h"

struct stack_entry {
    struct rt_context *context;
    uint32_t generation;
};

struct thread_stream {
    struct rt_context *context;
    uint32_t generation;
    CUstream stream;
};

struct thread_data {
    struct stack_entry *stack; /* the contexts below the top */
    size_t depth, capacity;
    struct thread_stream *streams;
    size_t streams_count;
};

static __thread struct thread_data *thread_data;
static pthread_key_t key;
static pthread_once_t key_once = PTHREAD_ONCE_INIT;
static bool key_good;

static struct rt_stream *living_stream(const struct thread_stream *t)
{
    return rt_object_find(&rt_streams, t->stream);
}

static void thread_ends(void *arg)
{
    struct thread_data *d = arg;
    if (rt_ready() == CUDA_SUCCESS) { /* in the child of a fork the streams are not ours */
        for (size_t i = 0; i < d->streams_count; i++) {
            struct rt_stream *st = living_stream(&d->streams[i]);
            if (st)
                rt_stream_destroy(st);
        }
    }
    thread_data = NULL;
    free(d->stack);
    free(d->streams);
    free(d);
}

static void make_key(void)
{
    key_good = pthread_key_create(&key, thread_ends) == 0;
}

static struct thread_data *own_data(void)
{
    if (thread_data)
        return thread_data;
    pthread_once(&key_once, make_key);
    struct thread_data *d = key_good ? calloc(1, sizeof(*d)) : NULL;
    if (d && pthread_setspecific(key, d) != 0) {
        free(d);
        d = NULL;
    }
    thread_data = d;
    return d;
}

static void set_top(struct rt_context *c, uint32_t generation)
{
    rt_current.context = c;
    rt_current.generation = generation;
}

void rt_context_forget(void)
{
    set_top(NULL, 0);
    if (thread_data)
        thread_data->depth = 0;
}

int rt_stack_push(struct rt_context *c)
{
    struct thread_data *d = own_data();
    if (!d)
        return CUDA_ERROR_OUT_OF_MEMORY;
    if (rt_current.context) {
        if (d->depth == d->capacity) {
            size_t capacity = d->capacity ? d->capacity * 2 : 8;
            struct stack_entry *grown = realloc(d->stack, capacity * sizeof(*grown));
            if (!grown)
                return CUDA_ERROR_OUT_OF_MEMORY;
            d->stack = grown;
            d->capacity = capacity;
        }
        d->stack[d->depth++] = (struct stack_entry) { rt_current.context, rt_current.generation };
    }
    set_top(c, rt_object_generation(&c->object));
    return CUDA_SUCCESS;
}

CUcontext rt_stack_top(void)
{
    struct rt_context *c = rt_current.context;
    if (!c || atomic_load_explicit(&c->alias, memory_order_relaxed))
        return rt_context_handle(c);
    /* The handle that was pushed, whether or not its context has been destroyed. */
    uint64_t stale = (uint64_t)(rt_current.generation & 0xffffffu) << 32;
    uint64_t now = (uintptr_t)rt_object_handle(&rt_contexts, &c->object) & ~0x00ffffff00000000ull;
    return (CUcontext)(uintptr_t)(now | stale);
}

int rt_stack_pop(CUcontext *out)
{
    struct thread_data *d = thread_data;
    if (!rt_current.context)
        return CUDA_ERROR_INVALID_CONTEXT;
    if (out)
        *out = rt_stack_top();
    if (d && d->depth) {
        struct stack_entry e = d->stack[--d->depth];
        set_top(e.context, e.generation);
    } else {
        set_top(NULL, 0);
    }
    return CUDA_SUCCESS;
}

int rt_stack_set(struct rt_context *c)
{
    if (!rt_current.context)
        return rt_stack_push(c);
    set_top(c, rt_object_generation(&c->object));
    return CUDA_SUCCESS;
}

int rt_thread_stream(struct rt_context *c, struct rt_stream **out)
{
    struct thread_data *d = own_data();
    if (!d)
        return CUDA_ERROR_OUT_OF_MEMORY;
    uint32_t generation = rt_object_generation(&c->object);
    struct thread_stream *slot = NULL;
    for (size_t i = 0; i < d->streams_count; i++) {
        struct thread_stream *t = &d->streams[i];
        *out = living_stream(t);
        if (*out && t->context == c && t->generation == generation)
            return CUDA_SUCCESS;
        if (!*out)
            slot = t; /* the context of that stream was destroyed */
    }
    if (!slot) {
        struct thread_stream *grown = realloc(d->streams, (d->streams_count + 1) * sizeof(*grown));
        if (!grown)
            return CUDA_ERROR_OUT_OF_MEMORY;
        d->streams = grown;
        slot = &d->streams[d->streams_count++];
        *slot = (struct thread_stream) { 0 };
    }
    int r = rt_stream_create(c, RT_ROLE_BLOCKING, CU_STREAM_DEFAULT, 0, out);
    if (r == CUDA_SUCCESS)
        *slot = (struct thread_stream) { c, generation,
                                         (CUstream)rt_object_handle(&rt_streams, &(*out)->object) };
    return r;
}
