/*
 * Memory that belongs to a thread until it ends. It is for what is too large for a thread-local
 * variable: a library that is loaded by dlopen() may have hardly any of those that are reached fast
 * (initial-exec), because they must fit in what the C library has set aside for all such libraries
 * together.
 */
#include <pthread.h>
#include <stdlib.h>

#include "cudart/cudart.h"

struct memory {
    struct memory *next; /* of the same thread */
    void **at;           /* the thread's variable that points to it */
    _Alignas(16) unsigned char bytes[];
};

static pthread_once_t once = PTHREAD_ONCE_INIT;
static pthread_key_t key; /* a thread's list */
static bool made;

/* Code that runs later in the thread's end finds the variables empty, and gets memory anew. */
static void give_back(void *list)
{
    for (struct memory *m = list, *next; m; m = next) {
        next = m->next;
        *m->at = NULL;
        free(m);
    }
}

static void make_key(void)
{
    made = pthread_key_create(&key, give_back) == 0;
}

void *crt_thread_memory(void **at, size_t size)
{
    (void)pthread_once(&once, make_key);
    struct memory *m = made ? calloc(1, sizeof(*m) + size) : NULL;
    if (!m)
        return NULL;
    m->at = at;
    m->next = pthread_getspecific(key);
    if (pthread_setspecific(key, m) != 0) {
        free(m);
        return NULL;
    }
    return *at = m->bytes;
}

/* When the library is unloaded, give_back() must not be called any more. */
static void __attribute__((destructor)) end(void)
{
    if (made)
        (void)pthread_key_delete(key);
}
