/*
 * Settings of core dumps. When a kernel faults, its client's work on the device ends and no core is
 * written. The settings are only kept: a program reads what it set, for the process or for one
 * context. A new context begins with those of the process.
 */
#include <string.h>

#include "client/gen/api.h"
#include "client/session/attach.h"
#include "client/stream/context.h"

#define NAME_BYTES 1024u

struct settings {
    uint64_t context; /* the context's id; 0: the settings are the process's */
    bool flags[CU_COREDUMP_FILE];
    char file[NAME_BYTES], pipe[NAME_BYTES];
    unsigned generation;
};

/* How many contexts can have settings of their own; the oldest are forgotten. */
#define CONTEXTS 16u

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct settings process = { .flags = { [CU_COREDUMP_TRIGGER_HOST] = true },
                                   .file = "core_%t_%h_%p",
                                   .pipe = "corepipe.cuda.%h.%p" };
static struct settings contexts[CONTEXTS];
static unsigned next;

/* Finds the settings that hold for the context; with `own` only settings of its own. Called with
 * the lock held. */
static struct settings *settings_of(const struct rt_context *c, bool own)
{
    for (unsigned i = 0; c && i < CONTEXTS; i++)
        if (contexts[i].context == c->id)
            return &contexts[i];
    if (!c || !own)
        return &process;
    struct settings *s = &contexts[next++ % CONTEXTS];
    *s = process;
    s->context = c->id;
    return s;
}

static void *value_of(struct settings *s, CUcoredumpSettings attribute, size_t *size)
{
    switch (attribute) {
    case CU_COREDUMP_ENABLE_ON_EXCEPTION:
    case CU_COREDUMP_TRIGGER_HOST:
    case CU_COREDUMP_LIGHTWEIGHT:
    case CU_COREDUMP_ENABLE_USER_TRIGGER:
        *size = sizeof(bool);
        return &s->flags[attribute];
    case CU_COREDUMP_FILE:
        *size = NAME_BYTES;
        return s->file;
    case CU_COREDUMP_PIPE:
        *size = NAME_BYTES;
        return s->pipe;
    case CU_COREDUMP_GENERATION_FLAGS:
        *size = sizeof(s->generation);
        return &s->generation;
    default:
        return NULL;
    }
}

static bool is_text(CUcoredumpSettings attribute)
{
    return attribute == CU_COREDUMP_FILE || attribute == CU_COREDUMP_PIPE;
}

/* Reads a setting. With `value` NULL it returns its size only. */
static int get(const struct rt_context *c, CUcoredumpSettings attribute, void *value, size_t *size)
{
    size_t want;
    int r = CUDA_SUCCESS;
    pthread_mutex_lock(&lock);
    const void *from = value_of(settings_of(c, false), attribute, &want);
    if (!from || !size || (value && *size < (is_text(attribute) ? 1 : want))) {
        r = CUDA_ERROR_INVALID_VALUE;
    } else {
        if (value && is_text(attribute)) {
            want = GM_MIN(*size, want);
            memset(value, 0, want);
            memcpy(value, from, strnlen(from, want - 1));
        } else if (value) {
            memcpy(value, from, want);
        }
        *size = want;
    }
    pthread_mutex_unlock(&lock);
    return r;
}

static int set(const struct rt_context *c, CUcoredumpSettings attribute, const void *value,
               const size_t *size)
{
    static atomic_bool said;
    size_t want;
    int r = CUDA_SUCCESS;
    if (!value || !size || !value_of(&process, attribute, &want))
        return CUDA_ERROR_INVALID_VALUE;
    if (is_text(attribute) ? *size == 0 || *size > want : *size < want)
        return CUDA_ERROR_INVALID_VALUE;
    if (attribute <= CU_COREDUMP_ENABLE_USER_TRIGGER && attribute != CU_COREDUMP_LIGHTWEIGHT &&
        *(const bool *)value)
        (void)rt_not_supported("a core dump of the device",
                               &said); /* says so once; the setting is kept */
    pthread_mutex_lock(&lock);
    char *to = value_of(settings_of(c, true), attribute, &want);
    if (is_text(attribute)) {
        memset(to, 0, want);
        memcpy(to, value, strnlen(value, GM_MIN(*size, want - 1)));
    } else {
        memcpy(to, value, want);
    }
    pthread_mutex_unlock(&lock);
    return r;
}

CUresult rt_cuCoredumpGetAttribute(CUcoredumpSettings attrib, void *value, size_t *size)
{
    struct rt_context *c;
    int r = rt_enter(&c);
    return r ? r : get(c, attrib, value, size);
}

CUresult rt_cuCoredumpGetAttributeGlobal(CUcoredumpSettings attrib, void *value, size_t *size)
{
    int r = rt_ready();
    return r ? r : get(NULL, attrib, value, size);
}

CUresult rt_cuCoredumpSetAttribute(CUcoredumpSettings attrib, void *value, size_t *size)
{
    struct rt_context *c;
    int r = rt_enter(&c);
    return r ? r : set(c, attrib, value, size);
}

CUresult rt_cuCoredumpSetAttributeGlobal(CUcoredumpSettings attrib, void *value, size_t *size)
{
    int r = rt_ready();
    return r ? r : set(NULL, attrib, value, size);
}
