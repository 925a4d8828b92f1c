/*
 * Decisions about a list of requests: which is next, how long to wait, which ones to suspect.
 * executor.c sends and completes requests.
 */
#include "server/request.h"

#include <stdlib.h>
#include <string.h>

#include "wire/messages.h"

/* a request that others wait for and that takes longer than this: the executor hangs, and is
 * replaced */
#define BOUND_MS 30000u
/* Pinning pages of host memory may take longer: bytes that a millisecond is enough for. */
#define PINNED_IN_MS (256u << 10)
/* a driver that compiles for another client may take longer, too */
#define LOAD_BOUND_MS 120000u
/* after its client is gone nothing of it may run for longer: an endless kernel is a burden to the
 * others */
#define STOP_BOUND_MS 600000u

struct srv_request *srv_request_create(struct srv_session *c, uint64_t serial,
                                       const struct wire_enc *e, const int *fds, unsigned fds_count)
{
    struct srv_request *r = calloc(1, sizeof(*r) + e->size);
    struct wire_header h;
    if (!r || e->fatal) {
        free(r);
        return NULL;
    }
    gm_list_init(&r->link);
    r->session = c;
    r->serial = serial;
    r->size = e->size;
    for (unsigned i = 0; i < fds_count; i++)
        r->fds[r->fds_count++] = fds[i];
    memcpy(&h, e->data, sizeof(h));
    h.serial = r->serial;
    r->type = h.type;
    memcpy(r->packet, e->data, e->size);
    memcpy(r->packet, &h, sizeof(h));
    return r;
}

struct srv_request *srv_requests_current(const struct gm_list *sent)
{
    gm_list_for_each (r, sent, struct srv_request, link)
        if (!r->later)
            return r;
    return NULL;
}

struct srv_request *srv_requests_find(const struct gm_list *sent, uint64_t serial)
{
    struct srv_request *current = srv_requests_current(sent);
    gm_list_for_each (r, sent, struct srv_request, link)
        if (r->serial == serial)
            return !r->unsent && (r->later || r == current) ? r : NULL;
    return NULL;
}

struct srv_extent srv_request_image(const struct srv_request *load)
{
    struct wire_dec d;
    struct wire_engine_module_load m;
    (void)wire_dec_begin(&d, load->packet, load->size);
    wire_get_engine_module_load(&d, &m);
    return (struct srv_extent) { load->fds[0], m.offset, m.size };
}

void srv_request_put_off(struct srv_request *r, bool working)
{
    if (!r->later)
        r->until_ms = 0;
    r->later = true;
    r->working = working;
}

/* --- time ------------------------------------------------------------------------------------- */

static uint64_t bytes_of(const struct srv_request *r)
{
    struct wire_dec d;
    struct wire_engine_map m;
    struct wire_engine_attach a;
    (void)wire_dec_begin(&d, r->packet, r->size);
    if (r->type == WIRE_ENGINE_MAP) {
        wire_get_engine_map(&d, &m);
        return m.size;
    }
    if (r->type != WIRE_ENGINE_ATTACH)
        return 0;
    wire_get_engine_attach(&d, &a);
    return a.size;
}

/* How long the executor may take for it while it does nothing else. */
static uint64_t bound_alone(const struct srv_request *r)
{
    return r->type == WIRE_ENGINE_MODULE_LOAD ? LOAD_BOUND_MS
                                              : BOUND_MS + bytes_of(r) / PINNED_IN_MS;
}

/* A driver may make requests wait for what it does beside them. */
static uint64_t bound(const struct gm_list *sent, const struct srv_request *current)
{
    uint64_t most = bound_alone(current);
    gm_list_for_each (r, sent, struct srv_request, link) {
        if (r->unsent)
            break; /* as are all behind it */
        if (r->working)
            most = GM_MAX(most, bound_alone(r));
    }
    return most;
}

/* Until when the executor may take for it. Only its own client waits for a request that waits or is
 * carried out beside others, so that may take as long as the program has patience. Nobody waits for
 * what a stopped program leaves behind. */
static uint64_t until(const struct gm_list *sent, const struct srv_request *r, bool is_current,
                      uint64_t now_ms)
{
    if (!is_current && !(r->later && r->type == WIRE_ENGINE_CLIENT_STOP))
        return 0;
    if (r->until_ms)
        return r->until_ms;
    return now_ms + (is_current ? bound(sent, r) : STOP_BOUND_MS);
}

uint64_t srv_requests_patience(struct gm_list *sent, uint64_t now_ms)
{
    const struct srv_request *current = srv_requests_current(sent);
    uint64_t first = 0;
    gm_list_for_each (r, sent, struct srv_request, link) {
        r->until_ms = until(sent, r, r == current, now_ms);
        if (r->until_ms && (!first || r->until_ms < first))
            first = r->until_ms;
        if (r->unsent)
            break; /* as are all behind it, and a replay may have thousands */
    }
    return first;
}

bool srv_requests_are_settled(const struct gm_list *sent)
{
    gm_list_for_each (r, sent, struct srv_request, link)
        if (!r->later || !r->done)
            return false;
    return true;
}

/* --- suspicion -------------------------------------------------------------------------------- */

static bool is_suspect(const struct srv_request *r, const struct srv_request *current)
{
    return !r->unsent && (r == current || r->working);
}

static unsigned guilt(const struct srv_request *r, bool several, bool memory, bool alone)
{
    if (r->type != WIRE_ENGINE_MODULE_LOAD)
        return 1;
    bool is_sure = r->done ? memory || !several : alone && !several;
    return is_sure ? SRV_CULPRIT : 1;
}

void srv_requests_accuse(struct gm_list *sent, bool memory, bool alone)
{
    const struct srv_request *current = srv_requests_current(sent);
    const struct srv_session *one = NULL;
    bool several = false;
    gm_list_for_each (r, sent, struct srv_request, link)
        if (is_suspect(r, current)) {
            several |= one && r->session != one;
            one = r->session;
        }
    gm_list_for_each (r, sent, struct srv_request, link) {
        r->accused = is_suspect(r, current);
        if (r->accused)
            r->suspected += guilt(r, several, memory, alone);
    }
}
