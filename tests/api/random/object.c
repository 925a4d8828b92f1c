/* The objects that a program has, and which of its streams have work. */
#include <stdio.h>

#include "random.h"

/* Behind its slots each kind has as many for what was there last and is destroyed. */
static struct random_object objects[KINDS][2 * SLOTS];
static const char *const names[KINDS] = {
    "context", "stream",  "event",   "buffer", "host",   "module",   "function",
    "arena",   "graph",   "node",    "exec",   "object", "pool",     "array",
    "mipmap",  "texture", "library", "kernel", "range",  "physical", "linker",
};
static bool busy[2 * SLOTS + 3]; /* by stream, after the three that are always there */
static bool unknown[SLOTS];      /* by context: it has work in a stream that is none of these */

struct random_object *random_at(enum random_kind kind, int slot)
{
    return &objects[kind][slot];
}

uint64_t random_handle(enum random_kind kind, int slot)
{
    return slot < 0 ? 0 : objects[kind][slot].handle;
}

static bool may_be_dead(enum random_kind kind)
{
    return random_dead && kind != BUFFER && kind != HOST && kind != ARENA && kind != RANGE &&
           kind != PHYSICAL;
}

static int pick(enum random_kind kind, int owner)
{
    if (may_be_dead(kind) && random_chance(8)) {
        unsigned slot = SLOTS + random_below(SLOTS);
        if (objects[kind][slot].handle)
            return (int)slot;
    }
    unsigned first = random_below(SLOTS);
    for (unsigned i = 0; i < SLOTS; i++) {
        unsigned slot = (first + i) % SLOTS;
        if (objects[kind][slot].handle && (owner < 0 || objects[kind][slot].owner == owner))
            return (int)slot;
    }
    return -1;
}

int random_pick(enum random_kind kind)
{
    return pick(kind, -1);
}

int random_pick_or_null(enum random_kind kind)
{
    return random_chance(16) ? -1 : pick(kind, -1);
}

int random_pick_owned(enum random_kind kind)
{
    int owner = random_current();
    return owner < 0 ? -1 : pick(kind, owner);
}

int random_free_slot(enum random_kind kind)
{
    unsigned first = random_below(SLOTS);
    for (unsigned i = 0; i < SLOTS; i++)
        if (!objects[kind][(first + i) % SLOTS].handle)
            return (int)((first + i) % SLOTS);
    return (int)first;
}

const char *random_name(enum random_kind kind, int slot)
{
    static char text[8][32];
    static unsigned turn;
    char *t = text[turn++ % 8];
    if (kind == STREAM && slot < -1)
        return slot == STREAM_LEGACY ? "legacy" : "per-thread";
    if (slot < 0)
        return "NULL";
    snprintf(t, sizeof(text[0]), slot < SLOTS ? "%s%d" : "dead %s%d", names[kind], slot % SLOTS);
    return t;
}

void random_keep(enum random_kind kind, int slot, uint64_t handle, size_t size)
{
    random_drop(kind, slot);
    objects[kind][slot] =
        (struct random_object) { .handle = handle, .size = size, .owner = random_current() };
}

void random_drop(enum random_kind kind, int slot)
{
    if (slot < 0)
        return;
    if (kind == STREAM && busy[slot + 3]) {
        if (objects[kind][slot].owner >= 0)
            unknown[objects[kind][slot].owner] = true;
        busy[slot + 3] = false;
    }
    if (slot < SLOTS && objects[kind][slot].handle)
        objects[kind][slot + SLOTS] = objects[kind][slot];
    objects[kind][slot].handle = 0;
}

void random_drop_of(enum random_kind kind, int how)
{
    for (int i = 0; i < SLOTS; i++)
        if (objects[kind][i].handle && objects[kind][i].how == how)
            random_drop(kind, i);
}

bool random_graphs(void)
{
    for (int i = 0; i < SLOTS; i++)
        if (objects[GRAPH][i].handle || objects[EXEC][i].handle)
            return true;
    return false;
}

void random_drop_context(int slot)
{
    for (unsigned kind = STREAM; kind < KINDS; kind++)
        for (int i = 0; i < SLOTS; i++)
            if (objects[kind][i].handle && objects[kind][i].owner == slot)
                random_drop((enum random_kind)kind, i);
    unknown[slot] = false;
}

int random_find(enum random_kind kind, uint64_t handle)
{
    for (int i = 0; i < SLOTS; i++)
        if (handle && objects[kind][i].handle == handle)
            return i;
    return -1;
}

int random_current(void)
{
    CUcontext c = NULL;
    return cuCtxGetCurrent(&c) == CUDA_SUCCESS ? random_find(CONTEXT, (uintptr_t)c) : -1;
}

CUstream random_stream(int slot)
{
    if (slot == STREAM_LEGACY)
        return CU_STREAM_LEGACY;
    return slot == STREAM_PER_THREAD ? CU_STREAM_PER_THREAD : HANDLE(CUstream, STREAM, slot);
}

int random_pick_stream(void)
{
    return random_below(4) ? random_pick(STREAM) : -1 - (int)random_below(3);
}

void random_used_context(int slot)
{
    if (slot >= 0)
        unknown[slot] = true;
}

bool random_capturing(void)
{
    for (int i = -3; i < SLOTS; i++) {
        CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
        if (i >= 0 && !objects[STREAM][i].handle)
            continue;
        if (cuStreamIsCapturing(random_stream(i), &status) != CUDA_SUCCESS ||
            status != CU_STREAM_CAPTURE_STATUS_NONE)
            return true;
    }
    return false;
}

bool random_busy(int stream)
{
    return busy[stream + 3];
}

static bool refused(CUresult r)
{
    return r >= CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED &&
           r <= CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD;
}

/* Waits also while a stream records, if the driver lets it. */
static void wait_for(int stream)
{
    CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_RELAXED;
    cuThreadExchangeStreamCaptureMode(&mode);
    random_say("cuStreamSynchronize(%s)", random_name(STREAM, stream));
    CUresult r = random_done(cuStreamSynchronize(random_stream(stream)));
    busy[stream + 3] = refused(r);
    cuThreadExchangeStreamCaptureMode(&mode);
}

void random_use(int stream)
{
    for (int i = -3; i < SLOTS; i++)
        if (busy[i + 3] && i != stream)
            wait_for(i);
    for (int i = 0; i < SLOTS; i++)
        if (unknown[i]) {
            random_say("cuCtxSynchronize_v2(%s)", random_name(CONTEXT, i));
            unknown[i] = refused(random_done(cuCtxSynchronize_v2(HANDLE(CUcontext, CONTEXT, i))));
        }
}

bool random_settle(void)
{
    random_use(-4);
    for (unsigned i = 0; i < COUNT(busy); i++)
        if (busy[i] || (i < SLOTS && unknown[i]))
            return false;
    return true;
}

void random_used(int stream)
{
    CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
    if (cuStreamIsCapturing(random_stream(stream), &status) == CUDA_SUCCESS &&
        status == CU_STREAM_CAPTURE_STATUS_NONE)
        busy[stream + 3] = true;
}
