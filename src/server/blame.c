#include "server/blame.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>
#include <xxhash.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/result.h"
#include "server/executor.h"
#include "server/server.h"

/* Of larger ones the beginning says who they are: nobody waits for long while it is read. */
#define READ_MAX (4ull << 20)
/* So often those who wait are looked at. */
#define LOOK_MS 100u

static bool describe(struct srv_blamed *i, uint32_t uid, int fd)
{
    static uint8_t part[64u << 10];
    XXH3_state_t *state = XXH3_createState();
    struct stat st;
    uint64_t at = 0;
    bool good =
        state && fstat(fd, &st) == 0 && st.st_size > 0 && XXH3_128bits_reset(state) == XXH_OK;
    while (good && at < GM_MIN((uint64_t)st.st_size, READ_MAX)) {
        ssize_t n = pread(fd, part, sizeof(part), (off_t)at);
        if (n < 0 && errno == EINTR)
            continue;
        good = n > 0 && XXH3_128bits_update(state, part, (size_t)n) == XXH_OK;
        at += good ? (uint64_t)n : 0;
    }
    if (good) {
        XXH128_hash_t h = XXH3_128bits_digest(state);
        *i = (struct srv_blamed) { .uid = uid,
                                   .size = (uint64_t)st.st_size,
                                   .digest = { h.low64, h.high64 } };
    }
    XXH3_freeState(state);
    return good;
}

/* NULL: none. Mostly there is none of that size, and nothing is read. */
static struct srv_blamed *find(struct srv_blame *b, uint32_t uid, int fd)
{
    struct srv_blamed i;
    struct stat st;
    bool may_be = false;
    if (fstat(fd, &st) < 0)
        return NULL;
    for (unsigned n = 0; n < SRV_BLAMED_MAX; n++)
        may_be |= b->images[n].deaths && b->images[n].size == (uint64_t)st.st_size &&
                  b->images[n].uid == uid;
    if (!may_be || !describe(&i, uid, fd))
        return NULL;
    for (unsigned n = 0; n < SRV_BLAMED_MAX; n++) {
        struct srv_blamed *other = &b->images[n];
        if (other->deaths && other->uid == uid && other->size == i.size &&
            other->digest[0] == i.digest[0] && other->digest[1] == i.digest[1])
            return other;
    }
    return NULL;
}

void srv_blame(struct srv_blame *b, uint32_t uid, int fd, uint64_t death, unsigned weight)
{
    struct srv_blamed *i = find(b, uid, fd), new;
    if (!i && describe(&new, uid, fd)) {
        i = &b->images[b->next++ % SRV_BLAMED_MAX];
        *i = new;
    }
    if (!i || (i->deaths && i->last == death)) /* several may have loaded it */
        return;
    i->deaths += weight;
    i->last = death;
}

void srv_acquit(struct srv_blame *b, uint32_t uid, int fd)
{
    struct srv_blamed *known = find(b, uid, fd);
    if (known)
        known->deaths = 0;
}

bool srv_is_blamed(struct srv_blame *b, uint32_t uid, int fd)
{
    const struct srv_blamed *known = find(b, uid, fd);
    return known && known->deaths >= SRV_CULPRIT;
}

uint64_t srv_oom_kills(void)
{
    const char *path = secure_getenv("GMUX_VMSTAT");
    unsigned long long kills = 0;
    char line[128];
    GM_AUTO_FILE FILE *f = fopen(path ? path : "/proc/vmstat", "re");
    while (f && fgets(line, sizeof(line), f))
        if (sscanf(line, "oom_kill %llu", &kills) == 1)
            break;
    return kills;
}

static bool is_load(const struct srv_request *r)
{
    return r->accused && r->type == WIRE_ENGINE_MODULE_LOAD && r->fds_count;
}

void srv_executor_blame(struct srv_executor *x, bool memory)
{
    const struct srv_session *one = NULL;
    bool several_users = false;
    x->wary &= !x->restored;
    gm_list_for_each (r, &x->sent, struct srv_request, link)
        if (is_load(r) && r->done) {
            several_users |= one && one->uid != r->session->uid;
            one = r->session;
        }
    gm_list_for_each (r, &x->sent, struct srv_request, link) {
        if (!is_load(r))
            continue;
        x->wary |= r->done != NULL;
        if (r->done)
            srv_backoff_blame(&x->backoff, r->session->uid, !several_users, gm_now_ns());
        srv_blame(&x->server->blame, r->session->uid, r->fds[0], x->started_ns,
                  memory && r->done ? SRV_CULPRIT : 1);
    }
}

void srv_executor_settle(struct srv_executor *x)
{
    const uint64_t now = gm_now_ns();
    srv_backoff_settle(&x->backoff, x->died_ns ? now - x->died_ns : 0, now);
}

static void on_patience(uv_timer_t *timer)
{
    srv_executor_go_on(GM_CONTAINER_OF(timer, struct srv_executor, patience));
}

/* Looked at again now and then: the others may have gone. */
bool srv_executor_makes_wait(struct srv_executor *x, const struct srv_session *c)
{
    const uint64_t now = gm_now_ns();
    if (x->server->users_count < 2 || !srv_backoff_until(&x->backoff, c->uid, now))
        return false;
    if (!uv_is_active((uv_handle_t *)&x->patience))
        uv_timer_start(&x->patience, on_patience, LOOK_MS, 0);
    return true;
}

/* --- clients ---------------------------------------------------------------------------------- */

/* How likely it is that a module of the session's, which was being loaded anew, was the cause. */
static unsigned suspicion(const struct srv_executor *x, const struct srv_session *c)
{
    unsigned most = 0;
    gm_list_for_each (r, &x->sent, struct srv_request, link)
        if (r->session == c && !r->done && r->type == WIRE_ENGINE_MODULE_LOAD)
            most = GM_MAX(most, r->suspected);
    return most;
}

/* Which clients the dead executor takes along: those with work in flight, and the client whose
 * module it was just loading anew, or for the second time at the same time as others'. */
void srv_executor_judge(struct srv_executor *x)
{
    gm_list_for_each (c, &x->server->sessions, struct srv_session, link) {
        if (!c->in_executor)
            continue;
        c->suspected += suspicion(x, c);
        if (c->failed || c->phase == SRV_DRAINING) {
            c->in_executor = false;
            if (c->failed) /* the executor was about to do it */
                tp_session_release_waiters(&c->shared);
        } else if (c->suspected >= SRV_CULPRIT) {
            srv_backoff_blame(&x->backoff, c->uid, true, gm_now_ns());
            srv_link_fault(x->server, c->pid, GM_CUDA_LAUNCH_FAILED,
                           "its module ended the executor");
            c->in_executor = false;
            srv_session_fail(c, GM_CUDA_LAUNCH_FAILED, 0, "its module ended the executor");
        } else if (srv_session_is_busy(c)) {
            c->in_executor = false;
            srv_session_fail(c, GM_CUDA_LAUNCH_FAILED, 0,
                             "it had work in flight when the executor ended");
        }
    }
}
