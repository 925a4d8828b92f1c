/*
 * A list of jobs, and a list of owners with the compiler's time that each has used.
 */
#include "device/soft/loader/queue.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "base/clock.h"

/* An owner that is new, or comes back, is ahead of the others by at most this much. */
#define CREDIT_NS GM_NS_PER_S
/* How many jobs are compared each time: everybody waits for the lock meanwhile. */
#define SEEN_MAX 256u

struct owner {
    struct gm_list link;
    const void *id;
    uint64_t used_ns;
    struct gm_list quick, slow; /* jobs */
};

void loader_queue_init(struct loader_queue *q)
{
    gm_list_init(&q->owners);
    q->reached_ns = 0;
}

void loader_queue_finish(struct loader_queue *q)
{
    gm_list_for_each_safe (o, &q->owners, struct owner, link) {
        gm_list_remove(&o->link);
        free(o);
    }
}

static struct owner *find(const struct loader_queue *q, const void *id)
{
    gm_list_for_each (o, &q->owners, struct owner, link)
        if (o->id == id)
            return o;
    return NULL;
}

int loader_queue_put(struct loader_queue *q, struct loader_job *j)
{
    struct owner *o = find(q, j->job.owner);
    if (!o) {
        o = calloc(1, sizeof(*o));
        if (!o)
            return -ENOMEM;
        o->id = j->job.owner;
        gm_list_init(&o->quick);
        gm_list_init(&o->slow);
        gm_list_append(&q->owners, &o->link);
    }
    if (gm_list_empty(&o->quick) && gm_list_empty(&o->slow) &&
        o->used_ns + CREDIT_NS < q->reached_ns)
        o->used_ns = q->reached_ns - CREDIT_NS;
    gm_list_append(j->slow ? &o->slow : &o->quick, &j->link);
    return 0;
}

static uint32_t launches(const struct loader_job *j)
{
    return j->job.launches ? atomic_load_explicit(j->job.launches, memory_order_relaxed) : 0;
}

/* Returns the one of the oldest jobs (there is at least one) whose kernel was launched most. */
static struct loader_job *most_launched(const struct gm_list *jobs)
{
    struct loader_job *best = gm_list_entry(jobs->next, struct loader_job, link);
    uint32_t most = launches(best), seen = 0;
    gm_list_for_each (j, jobs, struct loader_job, link) {
        uint32_t n = launches(j);
        if (n > most) {
            best = j;
            most = n;
        }
        if (++seen == SEEN_MAX)
            break;
    }
    return best;
}

struct loader_job *loader_queue_take(struct loader_queue *q, bool slow)
{
    struct owner *best = NULL;
    gm_list_for_each (o, &q->owners, struct owner, link)
        if (!gm_list_empty(slow ? &o->slow : &o->quick) && (!best || o->used_ns < best->used_ns))
            best = o;
    if (!best)
        return NULL;
    q->reached_ns = GM_MAX(q->reached_ns, best->used_ns);
    struct loader_job *j = most_launched(slow ? &best->slow : &best->quick);
    gm_list_remove(&j->link);
    return j;
}

bool loader_queue_others_wait(const struct loader_queue *q, const void *owner)
{
    gm_list_for_each (o, &q->owners, struct owner, link)
        if (o->id != owner && !gm_list_empty(&o->quick))
            return true;
    return false;
}

void loader_queue_charge(struct loader_queue *q, const void *owner, uint64_t ns)
{
    struct owner *o = find(q, owner);
    if (o)
        o->used_ns += ns;
}

void loader_queue_drop(struct loader_queue *q, const void *owner, struct gm_list *out)
{
    struct owner *o = find(q, owner);
    if (!o)
        return;
    for (int slow = 0; slow < 2; slow++) {
        struct gm_list *jobs = slow ? &o->slow : &o->quick;
        while (!gm_list_empty(jobs)) {
            struct gm_list *link = jobs->next;
            gm_list_remove(link);
            gm_list_append(out, link);
        }
    }
    gm_list_remove(&o->link);
    free(o);
}
