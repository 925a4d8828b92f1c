/*
 * A small table of users. An entry that is not needed any more is reused.
 */
#include "server/backoff.h"

#include "base/clock.h"

#define OUTAGES      100u
#define OUTAGE_LEAST (10 * GM_NS_PER_MS)
#define WAIT_MOST    (600 * GM_NS_PER_S)
#define DOUBLED_MOST 20u
/* a user who has sent no such image for this long is forgotten */
#define FORGET_NS (600 * GM_NS_PER_S)

static struct srv_offender *find(struct srv_backoff *b, uint32_t uid)
{
    for (unsigned i = 0; i < SRV_OFFENDERS_MAX; i++)
        if (b->offenders[i].doubts && b->offenders[i].uid == uid)
            return &b->offenders[i];
    return NULL;
}

static bool is_forgotten(const struct srv_offender *o, uint64_t now_ns)
{
    return !o->doubts || (!o->owes && now_ns > o->until_ns + FORGET_NS);
}

/* A free entry, or that of the user who has to wait for the shortest time. */
static struct srv_offender *take(struct srv_backoff *b, uint64_t now_ns)
{
    struct srv_offender *o = &b->offenders[0];
    for (unsigned i = 0; i < SRV_OFFENDERS_MAX; i++) {
        struct srv_offender *other = &b->offenders[i];
        if (is_forgotten(other, now_ns))
            return other;
        if (o->owes || (!other->owes && other->until_ns < o->until_ns))
            o = other;
    }
    return o;
}

void srv_backoff_blame(struct srv_backoff *b, uint32_t uid, bool sure, uint64_t now_ns)
{
    struct srv_offender *o = find(b, uid);
    if (!o)
        o = take(b, now_ns);
    if (o->uid != uid || is_forgotten(o, now_ns))
        *o = (struct srv_offender) { .uid = uid, .until_ns = now_ns };
    /* This user has sent several. */
    if (o->owes)
        return;
    o->doubts++;
    o->owes = sure || o->doubts > 1;
    o->deaths += o->owes;
}

void srv_backoff_settle(struct srv_backoff *b, uint64_t outage_ns, uint64_t now_ns)
{
    for (unsigned i = 0; i < SRV_OFFENDERS_MAX; i++) {
        struct srv_offender *o = &b->offenders[i];
        if (!o->owes)
            continue;
        uint64_t wait = GM_MIN(WAIT_MOST, outage_ns) * OUTAGES;
        wait = GM_MAX(wait, OUTAGE_LEAST * OUTAGES);
        wait = GM_MIN(wait, WAIT_MOST) << GM_MIN(o->deaths - 1, DOUBLED_MOST);
        o->owes = false;
        o->until_ns = now_ns + GM_MIN(wait, WAIT_MOST);
    }
}

uint64_t srv_backoff_until(const struct srv_backoff *b, uint32_t uid, uint64_t now_ns)
{
    for (unsigned i = 0; i < SRV_OFFENDERS_MAX; i++) {
        const struct srv_offender *o = &b->offenders[i];
        if (o->doubts && o->uid == uid)
            return o->owes ? UINT64_MAX : o->until_ns > now_ns ? o->until_ns : 0;
    }
    return 0;
}
