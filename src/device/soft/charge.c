/*
 * Accounts for the memory that clients' modules take in this process: parsed text, the
 * interpreter's code and compiled code.
 *
 * A short text can need a lot of memory, so one bound holds for all clients together. A user gets
 * at most three quarters of what the other users have left, however many clients that user has. A
 * client gets at most two thirds of what its user's other clients have left of that. So a client
 * that comes later always finds some memory.
 */
#include <stdlib.h>
#include <string.h>

#include "device/soft/ir/raw.h"
#include "device/soft/kernel.h"

/* Estimates of the memory that parsing needs: per byte of text, per register that it declares
 * ("%r<100>"), and for inlined calls (ir/inline.c) a least amount and an amount per byte of text.
 */
#define PARSE_BYTES        60u
#define INLINED_LEAST      (52ull << 20)
#define INLINED_BYTES      3200u
#define REGISTER_BYTES     24u
#define PARSE_MOST         (1600ull << 20) /* what the limits of a module allow */
#define SMALL_PART_OF_GATE 4u

struct soft_user *soft_user_get(struct dev *d, uint32_t uid)
{
    struct soft_user *u = NULL;
    pthread_mutex_lock(&d->code_lock);
    gm_list_for_each (i, &d->users, struct soft_user, link)
        if (i->uid == uid)
            u = i;
    if (!u && (u = calloc(1, sizeof(*u))) != NULL) {
        u->uid = uid;
        gm_list_append(&d->users, &u->link);
    }
    if (u)
        u->clients++;
    pthread_mutex_unlock(&d->code_lock);
    return u;
}

void soft_user_put(struct dev *d, struct soft_user *u)
{
    pthread_mutex_lock(&d->code_lock);
    bool last = --u->clients == 0;
    if (last)
        gm_list_remove(&u->link);
    pthread_mutex_unlock(&d->code_lock);
    if (last)
        free(u);
}

static uint64_t left_of(uint64_t all, uint64_t others)
{
    return all > others ? all - others : 0;
}

bool soft_charge(struct dev_module *m, uint64_t bytes)
{
    struct dev_client *c = m->client;
    struct dev *d = c->dev;
    pthread_mutex_lock(&d->code_lock);
    const uint64_t users = left_of(d->code_max, d->code_bytes - c->user->code_bytes) / 4 * 3,
                   most = left_of(users, c->user->code_bytes - c->code_bytes) / 3 * 2;
    bool fits = bytes <= most && c->code_bytes <= most - bytes;
    if (fits) {
        d->code_bytes += bytes;
        c->user->code_bytes += bytes;
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
    c->user->code_bytes -= bytes;
    c->code_bytes -= bytes;
    m->code_bytes -= bytes;
    pthread_mutex_unlock(&c->dev->code_lock);
}

void soft_gate_init(struct soft_gate *g, uint64_t most)
{
    *g = (struct soft_gate) { .most = most };
    pthread_mutex_init(&g->lock, NULL);
    pthread_cond_init(&g->moved, NULL);
}

void soft_gate_finish(struct soft_gate *g)
{
    pthread_mutex_destroy(&g->lock);
    pthread_cond_destroy(&g->moved);
}

/* Waits for room. A text that needs more than the whole gate goes through alone. */
static uint64_t gate_enter(struct soft_gate *g, uint64_t bytes)
{
    bytes = GM_MIN(bytes, g->most);
    pthread_mutex_lock(&g->lock);
    uint64_t ticket = g->next++;
    while (ticket != g->serving || g->used + bytes > g->most)
        pthread_cond_wait(&g->moved, &g->lock);
    g->serving++;
    g->used += bytes;
    pthread_cond_broadcast(&g->moved);
    pthread_mutex_unlock(&g->lock);
    return bytes;
}

/* An upper bound for the registers that the text declares. A number that is not written in plain
 * digits counts as the most registers that a function may have. */
static uint64_t registers_in(const char *text, size_t size)
{
    const char *end = text + size;
    uint64_t all = 0;
    while (all < IR_MAX_MODULE_REGS && (text = memchr(text, '<', (size_t)(end - text))) != NULL) {
        uint64_t n = 0;
        for (text++; text < end && *text >= '0' && *text <= '9' && n < IR_MAX_REGS; text++)
            n = n * 10 + (uint64_t)(*text - '0');
        all += text < end && *text == '>' ? GM_MIN(n, IR_MAX_REGS) : IR_MAX_REGS;
    }
    return GM_MIN(all, IR_MAX_MODULE_REGS);
}

struct soft_gate *soft_parse_begin(struct dev *d, const char *text, size_t size, uint64_t *bytes)
{
    uint64_t need = size * PARSE_BYTES + registers_in(text, size) * REGISTER_BYTES;
    if (memmem(text, size, "call", 4))
        need += GM_MAX(INLINED_LEAST, size * (uint64_t)INLINED_BYTES);
    need = GM_MIN(need, PARSE_MOST);
    struct soft_gate *g = &d->parses[need > d->parses[0].most / SMALL_PART_OF_GATE];
    *bytes = gate_enter(g, need);
    return g;
}

void soft_parse_end(struct soft_gate *g, uint64_t bytes)
{
    pthread_mutex_lock(&g->lock);
    g->used -= bytes;
    pthread_cond_broadcast(&g->moved);
    pthread_mutex_unlock(&g->lock);
}
