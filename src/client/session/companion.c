/*
 * Loads NVIDIA's library and initialises it for the devices of the session. Variables of the
 * environment that would mislead it are removed meanwhile, and then put back.
 */
#include "client/session/companion.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/log.h"
#include "client/session/attach.h"
#include "device/genuine/genuine.h"

/* The slot of the runtime interface's table that returns the handle of a device's primary context
 * without making the context. */
#define SLOT_PRIMARY_CONTEXT 2

static struct gm_log_topic topic = GM_LOG_TOPIC("companion");

/* Both are set before the session's table becomes active. */
static CUresult (*get_table)(const void **, const CUuuid *);
static void *companion;
static CUcontext primaries[16];
static unsigned primaries_count;

/* Held while the environment is not what the program has set, and over a fork. */
static pthread_mutex_t environment_lock = PTHREAD_MUTEX_INITIALIZER;
/* This thread initialises the library, and may fork: the driver does so for its helper processes.
 */
static _Thread_local bool initialising;

/* An environment variable that was changed, and its value before. */
struct saved {
    const char *name;
    char *value; /* NULL: it was not set */
};

static struct saved replace(const char *name, const char *value)
{
    const char *old = getenv(name);
    struct saved s = { name, old ? strdup(old) : NULL };
    setenv(name, value, 1);
    return s;
}

static void restore(struct saved *s)
{
    if (s->value)
        setenv(s->name, s->value, 1);
    else
        unsetenv(s->name);
    free(s->value);
}

static void device_list(const struct rt_session *s, char *out, size_t size)
{
    size_t used = 0;
    out[0] = '\0';
    for (unsigned i = 0; i < s->device_count && used < size; i++) {
        char uuid[RT_UUID_TEXT];
        rt_device_uuid_text(s->devices[i].uuid, uuid);
        used += (size_t)snprintf(out + used, size - used, "%s%s", i ? "," : "", uuid);
    }
}

/* Initialises the library. It reads its environment once, now: it must find neither our daemon (or
 * NVIDIA's) nor other devices than the session's. Children of the program inherit what the program
 * had set. */
static CUresult initialise(void *library, const struct rt_session *s)
{
    CUresult (*init)(unsigned) = (CUresult(*)(unsigned))dlsym(library, "cuInit");
    char devices[16 * RT_UUID_TEXT];
    if (!init)
        return CUDA_ERROR_NOT_FOUND;
    device_list(s, devices, sizeof(devices));
    pthread_mutex_lock(&environment_lock);
    initialising = true;
    struct saved pipe = replace("CUDA_MPS_PIPE_DIRECTORY", "/nonexistent/gmux");
    struct saved visible = replace("CUDA_VISIBLE_DEVICES", devices);
    CUresult r = init(0);
    restore(&visible);
    restore(&pipe);
    initialising = false;
    pthread_mutex_unlock(&environment_lock);
    return r;
}

static bool id_parse(const char *text, CUuuid *out)
{
    for (size_t i = 0; i < sizeof(out->bytes); i++) {
        unsigned byte;
        text += *text == '-';
        if (sscanf(text, "%2x", &byte) != 1)
            return false;
        out->bytes[i] = (char)byte;
        text += 2;
    }
    return true;
}

static void learn_primaries(const struct rt_session *s)
{
    const void *const *table = NULL;
    CUuuid id;
    if (id_parse(RT_TABLE_RUNTIME, &id))
        table = rt_companion_table(&id);
    if (!table || (uintptr_t)table[0] <= SLOT_PRIMARY_CONTEXT * sizeof(void *) ||
        !table[SLOT_PRIMARY_CONTEXT])
        return;
    CUresult (*primary)(CUcontext *, CUdevice);
    memcpy(&primary, &table[SLOT_PRIMARY_CONTEXT], sizeof(primary));
    for (unsigned i = 0; i < s->device_count && i < GM_ARRAY_LEN(primaries); i++)
        if (primary(&primaries[i], (CUdevice)i) == CUDA_SUCCESS)
            primaries_count = i + 1;
}

void rt_companion_open(const struct rt_session *s)
{
    char why[256];
    void *library = dev_genuine_library(why, sizeof(why));
    if (!library) {
        gm_warn(
            &topic,
            "no genuine driver library (%s): programs of NVIDIA's runtime library will not start",
            why);
        return;
    }
    CUresult r = initialise(library, s);
    if (r != CUDA_SUCCESS) {
        gm_warn(&topic,
                "the genuine driver library does not start (error %d): nor will programs of "
                "NVIDIA's runtime "
                "library",
                (int)r);
        return;
    }
    get_table = (CUresult(*)(const void **, const CUuuid *))dlsym(library, "cuGetExportTable");
    companion = library;
    learn_primaries(s);
}

void rt_companion_fork_prepare(void)
{
    if (!initialising)
        pthread_mutex_lock(&environment_lock);
}

void rt_companion_fork_end(void)
{
    if (!initialising)
        pthread_mutex_unlock(&environment_lock);
}

const void *rt_companion_table(const CUuuid *id)
{
    const void *table = NULL;
    return get_table && get_table(&table, id) == CUDA_SUCCESS ? table : NULL;
}

CUcontext rt_companion_primary(CUdevice device)
{
    return device >= 0 && (unsigned)device < primaries_count ? primaries[device] : NULL;
}

int rt_companion_device(CUcontext handle)
{
    for (unsigned i = 0; i < primaries_count; i++)
        if (handle && primaries[i] == handle)
            return (int)i;
    return -1;
}

bool rt_companion_function(const char *name, void *out, size_t size)
{
    void *f = companion ? dlsym(companion, name) : NULL;
    memcpy(out, &f, size);
    return f != NULL;
}
