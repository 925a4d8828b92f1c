/*
 * What clients' modules take of this process: parsed text, the interpreter's code and compiled code. A little text can
 * become a lot of that, so it is bounded for all clients together, and one client gets at most half of what the others
 * have left: whoever comes later always finds some.
 */
#include "device/soft/kernel.h"

bool soft_charge(struct dev_module *m, uint64_t bytes)
{
    struct dev_client *c = m->client;
    struct dev *d = c->dev;
    pthread_mutex_lock(&d->code_lock);
    uint64_t others = d->code_bytes - c->code_bytes, most = d->code_max > others ? (d->code_max - others) / 2 : 0;
    bool fits = bytes <= most && c->code_bytes <= most - bytes;
    if (fits) {
        d->code_bytes += bytes;
        c->code_bytes += bytes;
        m->code_bytes += bytes;
    }
    pthread_mutex_unlock(&d->code_lock);
    return fits;
}

void soft_give_back(struct dev_module *m, uint64_t bytes)
{
    struct dev_client *c = m->client;
    pthread_mutex_lock(&c->dev->code_lock);
    bytes = GM_MIN(bytes, m->code_bytes);
    c->dev->code_bytes -= bytes;
    c->code_bytes -= bytes;
    m->code_bytes -= bytes;
    pthread_mutex_unlock(&c->dev->code_lock);
}
