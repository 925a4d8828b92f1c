/* Events. */
#include "random.h"

static const char *event(int slot)
{
    return random_name(EVENT, slot);
}

static void create(void)
{
    int slot = random_free_slot(EVENT);
    unsigned flags = ONE_OF(unsigned, 0, 0, 1, 2, 3, 4, 6, 8, UINT32_MAX);
    CUevent e = NULL;
    random_say("cuEventCreate(%s, %#x)", event(slot), flags);
    if (random_done(cuEventCreate(&e, flags)) == CUDA_SUCCESS)
        random_keep(EVENT, slot, (uintptr_t)e, 0);
}

static void destroy(void)
{
    int slot = random_pick_or_null(EVENT);
    if (random_graphs())
        return;
    random_say("cuEventDestroy(%s)", event(slot));
    if (random_done(cuEventDestroy(HANDLE(CUevent, EVENT, slot))) == CUDA_SUCCESS)
        random_drop(EVENT, slot);
}

static void record(void)
{
    int slot = random_pick_or_null(EVENT), s = random_pick_stream();
    random_use(s);
    random_say("cuEventRecord(%s, %s)", event(slot), random_name(STREAM, s));
    random_done(cuEventRecord(HANDLE(CUevent, EVENT, slot), random_stream(s)));
    random_used(s);
}

static void record_with_flags(void)
{
    int slot = random_pick_or_null(EVENT), s = random_pick_stream();
    unsigned flags = ONE_OF(unsigned, 0, 1, 2, 3);
    random_use(s);
    random_say("cuEventRecordWithFlags(%s, %s, %u)", event(slot), random_name(STREAM, s), flags);
    random_done(cuEventRecordWithFlags(HANDLE(CUevent, EVENT, slot), random_stream(s), flags));
    random_used(s);
}

static void query(void)
{
    int slot = random_pick_or_null(EVENT);
    if (!random_settle())
        return;
    random_say("cuEventQuery(%s)", event(slot));
    random_done(cuEventQuery(HANDLE(CUevent, EVENT, slot)));
}

static void synchronize(void)
{
    int slot = random_pick_or_null(EVENT);
    random_settle();
    random_say("cuEventSynchronize(%s)", event(slot));
    random_done(cuEventSynchronize(HANDLE(CUevent, EVENT, slot)));
}

static void elapsed(void)
{
    int from = random_pick_or_null(EVENT), to = random_pick_or_null(EVENT);
    float ms = -1;
    if (!random_settle())
        return;
    random_say("cuEventElapsedTime(%s, %s)", event(from), event(to));
    random_done(cuEventElapsedTime(&ms, HANDLE(CUevent, EVENT, from), HANDLE(CUevent, EVENT, to)));
}

static void begin_events(void)
{
    create();
    create();
    create();
}

static const struct random_generator events[] = {
    GENERATOR(create, 4),  GENERATOR(destroy, 2),
    GENERATOR(record, 6),  GENERATOR(record_with_flags, 2),
    GENERATOR(query, 4),   GENERATOR(synchronize, 2),
    GENERATOR(elapsed, 3),
};
const struct random_subject random_events = SUBJECT(events, begin_events);
