/*
 * Several clients at once, each with a thread of its own that submits whatever comes to its mind,
 * faults now and then, is stopped in the middle of everything and comes back. Every result is
 * checked; run under the thread sanitizer too.
 */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "fake.h"

#define MIB     (1ull << 20)
#define STREAMS 4
#define LIVES   60
#define STEPS   150

static struct rig rig;
static pthread_mutex_t main_thread =
    PTHREAD_MUTEX_INITIALIZER; /* its holder plays the executor's main thread */

static uint64_t chance(uint64_t *state, uint64_t n)
{
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return (*state >> 33) % n;
}

struct life {
    struct rig_client *c;
    struct dev_module *m;
    uint64_t adds;            /* that stream 0 .. have been told to make, all to one word */
    uint64_t gates[STREAMS];  /* last one of each stream */
    uint64_t filled[STREAMS]; /* last value of each stream's own area */
};

static uint64_t area(const struct life *l, int stream)
{
    return l->c->base + MIB * (uint64_t)(1 + 2 * stream);
}

static void step(struct life *l, uint64_t *random)
{
    int stream = (int)chance(random, STREAMS);
    int other = (int)chance(random, STREAMS);
    switch (chance(random, 8)) {
    case 0:
    case 1: {
        uint32_t blocks = 1 + (uint32_t)chance(random, 200);
        fake_launch(&rig, l->c, stream, l->m, FAKE_ADD, blocks, l->c->base, 0);
        l->adds += blocks;
        break;
    }
    case 2: { /* small or large enough for the workers, then copied: the copy must see the fill */
        uint64_t bytes = chance(random, 2) ? 4096 : MIB;
        l->filled[stream] = 1 + chance(random, 200);
        rig_fill(&rig, l->c, stream, area(l, stream), bytes, (uint32_t)l->filled[stream], 1);
        rig_copy(&rig, l->c, stream, area(l, stream) + MIB, area(l, stream), bytes);
        break;
    }
    case 3:
        if (l->c->seq[other])
            rig_wait_op(&rig, l->c, stream, other, l->c->seq[other]);
        break;
    case 4:
        l->gates[stream] = rig_gate(&rig, l->c, stream);
        break;
    case 5:
        rig_open_gate(&rig, l->c, other, l->gates[other]);
        break;
    case 6:
        rig_stamp(&rig, l->c, stream, (uint32_t)chance(random, 100));
        break;
    default:
        fake_launch(&rig, l->c, stream, l->m, FAKE_SPIN, 1 + (uint32_t)chance(random, 4), 20000, 0);
        break;
    }
}

/* Opens all gates and waits. As in the executor, a flush comes before a wait: the device may hold a
 * short launch for the client's thread until then. */
static void wait_for_all(struct life *l)
{
    for (int s = 0; s < STREAMS; s++)
        rig_open_gate(&rig, l->c, s, UINT64_MAX);
    rig.ops->flush(l->c->client);
    for (int s = 0; s < STREAMS; s++)
        if (l->c->seq[s])
            rig_wait(l->c, s, 0);
}

static void finish(struct life *l)
{
    wait_for_all(l);
    cr_assert_eq(atomic_load(&l->c->fault), 0, "%s", l->c->fault_text);
    cr_assert_eq(*(uint64_t *)rig_at(l->c, 0), l->adds);
    for (int s = 0; s < STREAMS; s++)
        if (l->filled[s])
            cr_assert_eq(*(uint8_t *)(uintptr_t)(area(l, s) + MIB), l->filled[s]);
    cr_assert_eq(rig.ops->backlog(l->c->client), 0);
}

static void *client_main(void *arg)
{
    int index = (int)(intptr_t)arg;
    uint64_t random = 12345u + (uint64_t)index;
    for (int i = 0; i < LIVES; i++) {
        struct life l = { 0 };
        pthread_mutex_lock(&main_thread);
        l.c = rig_client_add(&rig, index, chance(&random, 2) ? 100 : 60, 0, STREAMS, 16 * MIB);
        l.m = fake_module(l.c);
        pthread_mutex_unlock(&main_thread);
        for (int n = 0; n < STEPS; n++)
            step(&l, &random);
        switch (chance(&random, 3)) {
        case 0:
            finish(&l);
            break;
        case 1: /* everybody is released, whatever they stand at */
            fake_launch(&rig, l.c, 0, l.m, FAKE_WILD, 4, l.c->base + 32 * MIB, 2);
            wait_for_all(&l);
            cr_assert_eq(atomic_load(&l.c->fault), 700);
            break;
        default: /* leaves with everything under way */
            fake_launch(&rig, l.c, 0, l.m, FAKE_ENDLESS, 3, 0, 0);
            break;
        }
        pthread_mutex_lock(&main_thread);
        if (chance(&random, 2))
            rig.ops->client_set_share(l.c->client, 40, 0, 0);
        rig_client_remove(&rig, index);
        pthread_mutex_unlock(&main_thread);
    }
    return NULL;
}

Test(stress, clients_come_and_go, .timeout = 120)
{
    pthread_t threads[3];
    setenv("GMUX_SOFT_WORKERS", "2", 1);
    setenv("GMUX_SOFT_JIT", "0", 1);
    rig_open(&rig, &gmux_device);
    for (int i = 0; i < (int)GM_ARRAY_LEN(threads); i++)
        cr_assert_eq(pthread_create(&threads[i], NULL, client_main, (void *)(intptr_t)i), 0);
    for (int i = 0; i < (int)GM_ARRAY_LEN(threads); i++)
        pthread_join(threads[i], NULL);
    rig_close(&rig);
}
