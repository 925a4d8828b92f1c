/*
 * The addresses of a session: its window, and earlier ones that its program could not use.
 */
#include <errno.h>

#include "server/server.h"

uint64_t srv_session_window_size(const struct srv_session *c)
{
    const struct srv_server *s = c->server;
    uint64_t left = srv_account_left(&c->account, SRV_WINDOW_BYTES);
    uint64_t device = 0;
    for (uint32_t d = 0; d < s->devices_count; d++)
        device += GM_MIN(c->account.limit[srv_device_bytes(d)], s->devices[d].memory_total);
    uint64_t size = SRV_WINDOW_MIN;
    /* Each area has several times what may be allocated on all devices, so that holes do not matter
     * and programs can reserve ranges as large as the devices. But it never has more than a part of
     * the addresses left to its user, so that the next client always finds some. */
    while (size / 16 < device && size * 2 <= left / SRV_WINDOWS_SHARE)
        size *= 2;
    return size;
}

int srv_session_take_window(struct srv_session *c)
{
    struct srv_server *s = c->server;
    if (c->windows_count == SRV_WINDOWS_MAX)
        return -ENOSPC;
    struct srv_charge *charge = &c->windows_charge[c->windows_count];
    if (srv_charge(charge, &c->account, SRV_WINDOW_BYTES, c->window_size) < 0)
        return -EDQUOT;
    struct srv_block *b = srv_ranges_alloc(&s->windows, c->window_size, c->window_size);
    if (!b) {
        srv_charge_release(charge);
        return -ENOMEM;
    }
    c->windows[c->windows_count++] = b;
    c->window_base = b->address;
    return 0;
}

void srv_session_free_windows(struct srv_session *c, unsigned keep)
{
    for (unsigned i = 0; i + keep < c->windows_count; i++) {
        if (c->windows[i])
            srv_ranges_free(&c->server->windows, c->windows[i]);
        c->windows[i] = NULL;
        srv_charge_release(&c->windows_charge[i]);
    }
}
