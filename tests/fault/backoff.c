/*
 * One server, several users (-M), and a user who sends one image after the other that ends the
 * executor, from clients that come and go. He has to wait: what others launch and load takes about
 * as long as before he came.
 */
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/result.h"
#include "frame.h"
#include "transport/memfd.h"

#define INNOCENTS 4u
#define BOMBERS   3u
#define BOMBS     4u  /* of each at once */
#define LOADS     50u /* one in so many operations */
/* An operation of an innocent client takes at most BOUND_MS, or on a busy machine SLOWER times as
 * long as without the bomber, but for SHARE_MOST of the time: an executor is replaced once in the
 * time of so many replacements, and without end where nobody waits. */
#define BOUND_MS   10u
#define SLOWER     2u
#define SHARE_MOST 0.2
#define PARTS      30u
#define LEAST_S    2u
#define MOST_S     60u

enum { BOMBER = 1000, INNOCENT };

static struct raw_client innocents[INNOCENTS], bombers[BOMBERS];
static uint64_t memory[INNOCENTS];
static unsigned unanswered[BOMBERS];
static _Atomic uint32_t next_pid = 1000;
static _Atomic unsigned texts;
static unsigned sent, lost, restarts;

static const char *text_of(const char *entry)
{
    static _Thread_local char text[256];
    snprintf(text, sizeof(text), HEAD ".visible .entry %s()\n{\nret;\n}\n// %u\n", entry, texts++);
    return text;
}

/* --- the bomber ------------------------------------------------------------------------------- */

static void send_bomb(unsigned b)
{
    raw_send_load(&bombers[b], text_of(b % 2 ? "bomb" : "crash"));
    unanswered[b]++;
    sent++;
}

/* A new client for each handful: what is remembered is who he is. */
static void bomb(unsigned b)
{
    struct pollfd p = { bombers[b].fd, POLLIN, 0 };
    while (unanswered[b] && poll(&p, 1, 0) > 0) {
        RAW_CHECK(raw_client_receive(&bombers[b]));
        tp_packet_finish(bombers[b].packet);
        unanswered[b]--;
    }
    if (unanswered[b])
        return;
    raw_client_close(&bombers[b]);
    raw_client_open(&bombers[b], raw_server_connect_as(&server, next_pid++, BOMBER));
    for (unsigned n = 0; n < BOMBS; n++)
        send_bomb(b);
}

/* --- the others ------------------------------------------------------------------------------- */

static void innocent_begin(unsigned i)
{
    raw_client_open(&innocents[i], raw_server_connect_as(&server, next_pid++, INNOCENT));
    memory[i] = raw_alloc(&innocents[i], 4096, WIRE_MEMORY_KIND_DEVICE, NULL);
    RAW_CHECK(memory[i]);
}

/* One operation from begin to end, in ns; who has it in flight when an executor dies begins anew.
 */
static uint64_t work(unsigned i)
{
    struct raw_client *c = &innocents[i];
    uint64_t start = gm_now_ns();
    int r;
    while ((r = raw_wait(c, 0, raw_fill(c, 0, memory[i], 1, 1024))) != 0) {
        RAW_CHECK(r == GM_CUDA_LAUNCH_FAILED);
        raw_client_close(c);
        innocent_begin(i);
        lost++;
    }
    return gm_now_ns() - start;
}

static uint64_t load(unsigned i)
{
    uint64_t start = gm_now_ns();
    uint32_t module = raw_load(&innocents[i], text_of("fast"), NULL);
    uint64_t took = gm_now_ns() - start;
    if (module)
        RAW_CHECK(raw_unload(&innocents[i], module) == 0);
    else
        lost++; /* beside a bomb */
    return took;
}

/* What they do until they are told to end, one operation at a time. */
struct measure {
    pthread_t thread;
    _Atomic bool ends;
    uint64_t bound_ns; /* an operation may take so long */
    uint64_t over_ns;  /* by which operations took longer, all of them together */
    _Atomic uint64_t longest_ns;
    _Atomic uint64_t begun; /* the operation in flight */
    uint64_t longest_load_ns, all_ns;
    unsigned operations;
};

static void *measure_main(void *arg)
{
    struct measure *m = arg;
    const uint64_t start = gm_now_ns();
    for (unsigned n = 0; !m->ends; n++) {
        m->begun = gm_now_ns();
        uint64_t took = work(n % INNOCENTS);
        m->operations++;
        m->longest_ns = GM_MAX(m->longest_ns, took);
        m->over_ns += took > m->bound_ns ? took - m->bound_ns : 0;
        if (n % LOADS == LOADS - 1)
            m->longest_load_ns = GM_MAX(m->longest_load_ns, load(n % INNOCENTS));
    }
    m->all_ns = gm_now_ns() - start;
    return NULL;
}

static void measure_begin(struct measure *m)
{
    RAW_CHECK(pthread_create(&m->thread, NULL, measure_main, m) == 0);
}

/* The longest one so far, also if it has not ended yet. */
static uint64_t longest(const struct measure *m)
{
    const uint64_t begun = m->begun, now = gm_now_ns();
    return GM_MAX(m->longest_ns, now > begun ? now - begun : 0);
}

static double ms(uint64_t ns)
{
    return (double)ns / (double)GM_NS_PER_MS;
}

static void measure_end(struct measure *m, const char *beside)
{
    m->ends = true;
    RAW_CHECK(pthread_join(m->thread, NULL) == 0);
    printf("beside %s: %u operations in %.0f ms, at most %.1f ms, a load at most %.1f\n", beside,
           m->operations, ms(m->all_ns), ms(m->longest_ns), ms(m->longest_load_ns));
}

int main(void)
{
    char vmstat[] = "/tmp/gmux-vmstat-XXXXXX";
    alarm(110);
    signal(SIGPIPE, SIG_IGN);
    int fd = mkstemp(vmstat);
    RAW_CHECK(fd >= 0 && close(fd) == 0 && setenv("GMUX_VMSTAT", vmstat, 1) == 0);
    raw_server_start_multiuser(&server, "slow");
    for (unsigned i = 0; i < INNOCENTS; i++)
        innocent_begin(i);
    struct measure alone = { .bound_ns = UINT64_MAX }, beside = { 0 };
    measure_begin(&alone);
    const uint64_t until = gm_now_ns() + GM_NS_PER_S;
    while (gm_now_ns() < until)
        raw_server_read(&server, 10);
    measure_end(&alone, "nobody");

    beside.bound_ns = GM_MAX(BOUND_MS * GM_NS_PER_MS, SLOWER * alone.longest_ns);
    pid_t executor = raw_server_executor(&server); /* before the first bomb may end it */
    measure_begin(&beside);
    for (unsigned b = 0; b < BOMBERS; b++) {
        raw_client_open(&bombers[b], raw_server_connect_as(&server, next_pid++, BOMBER));
        send_bomb(b);
    }
    const uint64_t start = gm_now_ns(), end = start + MOST_S * GM_NS_PER_S;
    while (gm_now_ns() < end) {
        for (unsigned b = 0; b < BOMBERS; b++)
            bomb(b);
        raw_server_read(&server, 10);
        raw_server_forget_log(&server);
        pid_t now = raw_server_executor(&server);
        restarts += now != executor;
        executor = now;
        if (restarts &&
            gm_now_ns() - start > GM_MAX(LEAST_S * GM_NS_PER_S, PARTS * longest(&beside)))
            break;
    }
    measure_end(&beside, "a bomber");
    const double share = (double)beside.over_ns / (double)beside.all_ns;
    printf("%u bombs sent, executor replaced %u times, %u operations lost; one begun at any time "
           "takes more than "
           "%.0f ms "
           "with a probability of %.2f %%\n",
           sent, restarts, lost, ms(beside.bound_ns), share * 100);
    RAW_CHECK(restarts >= 1 && unanswered[0] + unanswered[1] + unanswered[2] > 0);
    RAW_CHECK(share < SHARE_MOST);
    /* An operation that waits ends with its client. */
    for (unsigned b = 1; b < BOMBERS; b++)
        raw_client_close(&bombers[b]);
    raw_server_settle(&server, INNOCENTS + 1);
    /* A bomber who harms nobody else does not have to wait. */
    for (unsigned i = 0; i < INNOCENTS; i++)
        raw_client_close(&innocents[i]);
    raw_server_settle(&server, 1);
    while (unanswered[0]) {
        RAW_CHECK(raw_client_receive(&bombers[0]));
        tp_packet_finish(bombers[0].packet);
        unanswered[0]--;
    }
    raw_client_close(&bombers[0]);
    raw_server_finish(&server);
    unlink(vmstat);
    puts("ok");
    return 0;
}
