/*
 * Users over whose images executors died. While an executor is replaced nobody's work goes on. So
 * where a server has several users, a user who keeps sending such images would stop all of them.
 * Such a user waits with the next image for a hundred times as long as the replacement took, so
 * that it costs others at most a hundredth of their time; and twice as long each time, up to ten
 * minutes. Only the loading of images waits, and only for that user.
 *
 * Users are known by their ids, so leaving and coming back is of no use. Event loop only.
 */
#ifndef GMUX_SERVER_BACKOFF_H
#define GMUX_SERVER_BACKOFF_H

#include "base/attr.h"

#define SRV_OFFENDERS_MAX 64u

struct srv_offender {
    uint32_t uid;
    unsigned doubts;   /* deaths that this user may have caused; 0: the entry is unused */
    unsigned deaths;   /* deaths that this user did cause */
    bool owes;         /* the last one is not over yet, so nobody knows how long it takes */
    uint64_t until_ns; /* until then the user waits */
};

/* Zeroed, it knows nobody. */
struct srv_backoff {
    struct srv_offender offenders[SRV_OFFENDERS_MAX];
};

/* An executor died over an image of this user; not `sure`: or over another user's image. The second
 * doubtful death counts as caused by this user. */
void srv_backoff_blame(struct srv_backoff *b, uint32_t uid, bool sure, uint64_t now_ns);
/* The next executor has been told everything, `outage_ns` after the death. */
void srv_backoff_settle(struct srv_backoff *b, uint64_t outage_ns, uint64_t now_ns);
/* Until when the user has to wait; 0: not at all. */
uint64_t srv_backoff_until(const struct srv_backoff *b, uint32_t uid, uint64_t now_ns);

#endif
