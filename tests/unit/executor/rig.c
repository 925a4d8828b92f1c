#include "rig.h"

#include <criterion/criterion.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "transport/memfd.h"

static struct dev_queue queues[TP_STREAMS];
static int server; /* its end of the socket */

struct dev_queue *rig_queue(uint32_t stream)
{
    return &queues[stream];
}

/* --- a device that does nothing --------------------------------------------------------------- */

static int client_create(struct dev *d, const struct dev_client_config *config,
                         struct dev_client **out)
{
    *out = (struct dev_client *)(void *)queues;
    return 0;
}

static void client_nothing(struct dev_client *c)
{
}

static int queue_create(struct dev_client *c, uint32_t device, uint32_t stream, uint64_t done,
                        int priority, struct dev_queue **out)
{
    queues[stream].stream = stream;
    queues[stream].done = done;
    *out = &queues[stream];
    return 0;
}

static void queue_destroy(struct dev_queue *q)
{
    q->gone++;
}

static void queue_reuse(struct dev_queue *q)
{
    q->reused++;
}

static int mark(struct dev_queue *q, uint64_t seq)
{
    return 0;
}

static int launch(struct dev_queue *q, uint64_t seq, const struct dev_launch *l)
{
    return 0;
}

static int fill(struct dev_queue *q, uint64_t seq, const struct wire_rec_fill *r)
{
    return 0;
}

static uint32_t backlog(struct dev_client *c)
{
    return 0;
}

/* --- the client ------------------------------------------------------------------------------- */

void rig_open(struct rig *r)
{
    const struct wire_engine_client_add m = { .client = 1,
                                              .pid = 1,
                                              .session_size = TP_SESSION_SIZE };
    int ends[2], session = tp_session_create();
    memset(r, 0, sizeof(*r));
    memset(queues, 0, sizeof(queues));
    r->ops = (struct dev_ops) { .client_create = client_create,
                                .client_stop = client_nothing,
                                .client_destroy = client_nothing,
                                .queue_create = queue_create,
                                .queue_destroy = queue_destroy,
                                .queue_reuse = queue_reuse,
                                .mark = mark,
                                .launch = launch,
                                .fill = fill,
                                .backlog = backlog };
    cr_assert_eq(tp_pair(ends), 0);
    server = ends[1];
    r->engine = (struct exe_engine) { .ops = &r->ops,
                                      .devices = 1,
                                      .info = &r->info,
                                      .server = ends[0],
                                      .failures = eventfd(0, EFD_NONBLOCK) };
    pthread_mutex_init(&r->engine.clients_lock, NULL);
    gm_list_init(&r->engine.clients);
    cr_assert_eq(tp_session_attach(&r->session, session, TP_SESSION_SIZE), 0);
    int fds[] = { session, tp_memfd_create("device", 4096), tp_memfd_create("host", 4096) };
    cr_assert_eq(exe_client_create(&r->engine, &m, &r->client), 0);
    cr_assert_eq(exe_client_open(r->client, &m, fds), 0);
    cr_assert_eq(fds[1] & fds[2], -1, "they are the client's");
    close(session);
    tp_ring_init_producer(&r->ring, &r->session.control->ring, r->session.ring_data,
                          r->session.ring_size);
}

int rig_take(struct rig *r, const void *record)
{
    const char *why;
    return exe_record_take(r->client, record, false, &why);
}

int rig_take_simple(struct rig *r, uint32_t op, uint32_t stream, uint64_t seq)
{
    const struct wire_record head = {
        .op = (uint16_t)op, .size = (uint32_t)sizeof(head), .stream = stream, .seq = seq
    };
    return rig_take(r, &head);
}

int rig_call(struct rig *r, uint32_t function, uint32_t module, uint64_t number)
{
    const struct wire_rec_call call = {
        .head = { .op = WIRE_OP_CALL, .size = sizeof(call), .seq = number },
        .number = number,
        .function = function,
        .module = module,
    };
    return rig_take(r, &call);
}

void rig_close(struct rig *r)
{
    exe_client_destroy(r->client);
    tp_session_detach(&r->session);
    close(r->engine.server);
    close(r->engine.failures);
    close(server);
}
