/*
 * Programs that end, or fail, with records of events under way that others wait for
 * (transport/signal.h). The others hear of it, but not before the device is rid of such a program's
 * work; and what the living have recorded stays theirs.
 */
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/result.h"
#include "frame.h"
#include "slow.h"
#include "transport/signal.h"

struct page {
    struct tp_signal_page *at; /* here */
    uint8_t token[32];
};

static struct raw_client owner, importer, third;

static void open_client(struct raw_client *c, uint32_t pid)
{
    raw_client_open(c, raw_server_connect(&server, pid));
}

/* A page of a client's, mapped for its device as well. */
static struct page make(struct raw_client *c)
{
    struct page page;
    struct wire_object_made made;
    struct wire_memory_allocated range;
    struct wire_memory_shared shared;
    RAW_ASK(c, object_create, .size = TP_SIGNAL_PAGE, .kind = WIRE_MEMORY_KIND_HOST);
    wire_get_object_made(&c->packet->body, &made);
    int fd = tp_packet_take_fd(c->packet, 0);
    RAW_CHECK(made.result == 0 && fd >= 0);
    page.at = mmap(NULL, TP_SIGNAL_PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    RAW_CHECK(page.at != MAP_FAILED);
    close(fd);
    RAW_ASK(c, range_reserve, .size = TP_SIGNAL_PAGE, .kind = WIRE_MEMORY_KIND_HOST);
    wire_get_memory_allocated(&c->packet->body, &range);
    RAW_CHECK(range.result == 0);
    RAW_ASK(c, object_map, .object = made.object, .access = WIRE_MEMORY_ACCESS_WRITE,
            .address = range.address, .size = TP_SIGNAL_PAGE);
    RAW_CHECK(raw_status(c) == 0);
    RAW_ASK(c, memory_share, .object = made.object);
    wire_get_memory_shared(&c->packet->body, &shared);
    RAW_CHECK(shared.result == 0 && shared.token.size == sizeof(page.token));
    memcpy(page.token, shared.token.data, sizeof(page.token));
    return page;
}

static void forget(const struct page *page)
{
    RAW_CHECK(munmap(page->at, TP_SIGNAL_PAGE) == 0);
}

static uint64_t open_page(struct raw_client *c, const struct page *page)
{
    struct wire_memory_opened m;
    RAW_ASK(c, memory_open, .token = { page->token, sizeof(page->token) });
    wire_get_memory_opened(&c->packet->body, &m);
    tp_packet_finish(c->packet);
    RAW_CHECK(m.result == 0);
    return m.address;
}

/* What a client does before it has its device store the number. */
static uint32_t take(struct raw_client *c, struct tp_signal *s)
{
    uint32_t number;
    RAW_CHECK(tp_signal_take(s, tp_signal_recorder(c->window_base, c->server_pid), TP_SIGNAL_NONE,
                             &number) == 0);
    return number;
}

static void ends_slowly(struct raw_client *c)
{
    struct wire_rec_call call = { .number = 1, .function = SLOW_STOP };
    RAW_CHECK(raw_wait(c, 0, raw_post(c, 0, WIRE_OP_CALL, &call, sizeof(call), NULL, 0)) == 0);
}

/* An importer's end, with other records before, between and behind. */
static void not_before_its_work_is_gone(void)
{
    uint32_t numbers[4];
    open_client(&owner, 203);
    open_client(&importer, 201);
    open_client(&third, 202);
    struct page page = make(&owner);
    struct tp_signal *s = &page.at->signals[TP_SIGNALS - 1], *other = &page.at->signals[0];
    open_page(&importer, &page);
    open_page(&third, &page);
    struct raw_client *const recorders[] = { &importer, &third, &importer, &owner };
    for (unsigned i = 0; i < 4; i++)
        numbers[i] = take(recorders[i], s);
    uint32_t last = take(&importer, other);
    ends_slowly(&importer);
    raw_client_close(&importer);
    int go = slow_begins();
    goes_on(&neighbour); /* the server has seen to all else */
    for (unsigned i = 0; i < 4; i++)
        RAW_CHECK(!tp_signal_reached(s, numbers[i]));
    RAW_CHECK(!tp_signal_reached(other, last));
    let_go(go);
    raw_server_settle(&server, 3);
    for (unsigned i = 0; i < 4; i++)
        RAW_CHECK(tp_signal_reached(s, numbers[i]) == (recorders[i] == &importer));
    RAW_CHECK(tp_signal_reached(other, last));
    tp_signal_store(s, numbers[3]);
    RAW_CHECK(tp_signal_reached(s, numbers[3]) && !tp_signal_reached(s, numbers[1]));

    /* The owner's end. */
    uint32_t its = take(&owner, s), thirds = take(&third, s);
    ends_slowly(&owner);
    raw_client_close(&owner);
    go = slow_begins();
    goes_on(&neighbour);
    RAW_CHECK(!tp_signal_reached(s, its));
    let_go(go);
    raw_server_settle(&server, 2);
    RAW_CHECK(tp_signal_reached(s, its) && !tp_signal_reached(s, thirds) &&
              !tp_signal_reached(s, numbers[1]));
    raw_client_close(&third);
    raw_server_settle(&server, 1);
    RAW_CHECK(tp_signal_reached(s, thirds) && tp_signal_reached(s, numbers[1]));
    forget(&page);
}

/* While the program still lives, and has the page. */
static void of_one_with_a_fault(void)
{
    struct wire_rec_launch nonsense = { .module = 999 };
    open_client(&owner, 205);
    open_client(&importer, 206);
    struct page page = make(&owner);
    struct tp_signal *s = &page.at->signals[0];
    uint64_t at = open_page(&importer, &page);
    uint32_t its = take(&importer, s), owners = take(&owner, s);
    ends_slowly(&importer);
    raw_post(&importer, 1, WIRE_OP_LAUNCH, &nonsense, sizeof(nonsense), NULL, 0);
    int go = slow_begins();
    RAW_CHECK(raw_server_says(&server, "gets error 400"));
    RAW_ASK(&importer, object_unmap, .address = at);
    RAW_CHECK(raw_status(&importer) == 0);
    goes_on(&neighbour);
    RAW_CHECK(!tp_signal_reached(s, its));
    let_go(go);
    while (!tp_signal_reached(s, its)) /* the test's bound is this one's */
        (void)poll(NULL, 0, 1);
    RAW_CHECK(!tp_signal_reached(s, owners));
    raw_client_close(&importer);
    raw_client_close(&owner);
    raw_server_settle(&server, 1);
    raw_server_forget_log(&server);
    forget(&page);
}

/* The event of a process that has failed because its executor has ended. */
static void of_one_that_failed(void)
{
    struct wire_rec_gate gate = { 0 };
    open_client(&owner, 210);
    open_client(&importer, 211);
    struct page pages[] = { make(&owner), make(&importer) };
    open_page(&importer, &pages[0]);
    uint32_t here = take(&importer, &pages[0].at->signals[3]),
             there = take(&importer, &pages[1].at->signals[4]);
    uint32_t owners = take(&owner, &pages[0].at->signals[3]);
    uint64_t standing = raw_post(&importer, 1, WIRE_OP_GATE, &gate, sizeof(gate), NULL, 0);
    while (atomic_load(&importer.shared.streams[1].arrived) < standing)
        ;
    RAW_CHECK(kill(raw_server_executor(&server), SIGKILL) == 0);
    RAW_CHECK(raw_wait(&importer, 1, standing) == GM_CUDA_LAUNCH_FAILED);
    RAW_CHECK(raw_server_says(&server, "takes over"));
    RAW_CHECK(tp_signal_reached(&pages[0].at->signals[3], here));
    RAW_CHECK(tp_signal_reached(&pages[1].at->signals[4], there));
    RAW_CHECK(!tp_signal_reached(&pages[0].at->signals[3], owners));
    goes_on(&owner);
    raw_client_close(&importer);
    raw_client_close(&owner);
    raw_server_settle(&server, 1);
    raw_server_forget_log(&server);
    for (unsigned i = 0; i < 2; i++)
        forget(&pages[i]);
}

/* Nothing of them is left that could run out; what they write into the page is theirs to regret. */
static void again_and_again(void)
{
    open_client(&owner, 220);
    struct page page = make(&owner);
    struct tp_signal *s = &page.at->signals[7], *nonsense = &page.at->signals[8];
    for (unsigned i = 0; i < 100; i++) {
        uint32_t numbers[TP_SIGNAL_WORDS], one_more;
        open_client(&importer, 221);
        uint64_t at = open_page(&importer, &page);
        uint32_t who = tp_signal_recorder(importer.window_base, importer.server_pid);
        for (unsigned k = 0; k < TP_SIGNAL_WORDS; k++)
            numbers[k] = take(&importer, s);
        RAW_CHECK(tp_signal_take(s, who, TP_SIGNAL_NONE, &one_more) < 0);
        if (i % 4 == 1) { /* it died having taken a number, and before it said so */
            atomic_fetch_sub(&s->recorded, 1);
        } else if (i % 4 == 2) {
            for (unsigned k = 0; k < TP_SIGNAL_WORDS; k++)
                atomic_store(&nonsense->records[k], (uint64_t)who << 32 | (0x9e3779b9u * (i + k)));
        } else if (i % 4 == 3) { /* it does not wait for its work */
            RAW_ASK(&importer, object_unmap, .address = at);
            RAW_CHECK(raw_status(&importer) == 0);
        }
        raw_client_close(&importer);
        raw_server_settle(&server, 2);
        for (unsigned k = 0; k < TP_SIGNAL_WORDS; k++)
            RAW_CHECK(tp_signal_reached(s, numbers[k]));
        uint32_t own = take(&owner, s);
        RAW_CHECK(own == numbers[TP_SIGNAL_WORDS - 1] + 1 && !tp_signal_reached(s, own));
        tp_signal_store(s, own);
        for (unsigned k = 0; k < TP_SIGNALS; k++)
            RAW_CHECK(k == 7 || k == 8 || atomic_load(&page.at->signals[k].recorded) == 0);
    }
    goes_on(&owner);
    raw_client_close(&owner);
    raw_server_settle(&server, 1);
    forget(&page);
}

int main(void)
{
    frame_begin(50);
    not_before_its_work_is_gone();
    of_one_with_a_fault();
    of_one_that_failed();
    again_and_again();
    frame_end();
    return 0;
}
