/*
 * Users over whose images executors died. While one executor is replaced by the next nobody's work
 * goes on, so where a server has several users, one who keeps on sending such images would stop all
 * of them. He waits with the next one: a hundred times as long as that took, so that it takes
 * others a hundredth of their time at most, and twice as long each time, up to ten minutes. Nobody
 * else waits, nor does anything else of his.
 *
 * Users are known by their ids: leaving and coming again is of no use. Event loop only.
 */
#ifndef GMUX_SERVER_BACKOFF_H
#define GMUX_SERVER_BACKOFF_H

#include "base/attr.h"

#define SRV_OFFENDERS_MAX 64u

struct srv_offender {
    uint32_t uid;
    unsigned doubts;   /* of deaths that may have been his; 0: unused */
    unsigned deaths;   /* that were his */
    bool owes;         /* the last one is not over: nobody knows how long it takes */
    uint64_t until_ns; /* he waits */
};

/* Zeroed: knows nobody. */
struct srv_backoff {
    struct srv_offender offenders[SRV_OFFENDERS_MAX];
};

/* An executor died over an image of his; not `sure`: or over another user's. The second time it is
 * his. */
void srv_backoff_blame(struct srv_backoff *b, uint32_t uid, bool sure, uint64_t now_ns);
/* The next one has been told everything, so long after that. */
void srv_backoff_settle(struct srv_backoff *b, uint64_t outage_ns, uint64_t now_ns);
/* Until when he waits; 0: he does not. */
uint64_t srv_backoff_until(const struct srv_backoff *b, uint32_t uid, uint64_t now_ns);

#endif
