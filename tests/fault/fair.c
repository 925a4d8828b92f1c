/*
 * Floods: a user with many sessions, one of which has all that it may have, asks for one thing over
 * and over, as fast as he is answered. Beside each kind of request another user's requests are
 * answered in time, the short ones and those that the executor has a part in, although nobody reads
 * what the server tells the control daemon. Prints what it measures.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "raw.h"
#include "transport/memfd.h"

#define HOGS    (RAW_SANITIZED ? 8u : 32u)
#define SLOTS   32u /* requests of a session that the server has at a time */
#define ROUNDS  (RAW_SANITIZED ? 10u : 20u)
#define MIB     (1u << 20)
#define PTX     ".version 7.0\n.target sm_70\n.address_size 64\n.visible .entry k()\n{\nret;\n}\n"
#define TOKEN   32u
#define OBJECTS 800u /* he may have more, but his others need some */

/* What another user may wait because of them, of the processor time of server and executor. */
#define BOUND_MS 20.0

enum { HOG_USER = 1000, OTHER_USER };

/* A session of the hog's. */
struct hog {
    struct raw_client c;
    uint64_t held[SLOTS]; /* what the slot's request gave; 0: nothing */
    uint64_t rounds[SLOTS];
    uint64_t range;       /* reserved, with room for a mapping of each slot */
    uint32_t object;      /* its own, host memory; */
    uint32_t exported;    /* device memory */
    uint8_t token[TOKEN]; /* of another session's */
    int foreign;          /* a descriptor of another session's object */
};

static struct raw_server server;
static struct hog hogs[HOGS], full;
static uint32_t next_pid = 100;
static int image = -1, memory = -1;

/* --- requests, and how they are undone -------------------------------------------------------- */

static int ask_info(struct hog *h, struct wire_enc *e, uint64_t serial)
{
    wire_pack_memory_info(e, serial, &(struct wire_memory_info) { 0 });
    return -1;
}

static int ask_alloc(struct hog *h, struct wire_enc *e, uint64_t serial)
{
    wire_pack_memory_alloc(
        e, serial, &(struct wire_memory_alloc) { .size = 512, .kind = WIRE_MEMORY_KIND_DEVICE });
    return -1;
}

static int ask_large(struct hog *h, struct wire_enc *e, uint64_t serial)
{
    wire_pack_memory_alloc(
        e, serial, &(struct wire_memory_alloc) { .size = MIB, .kind = WIRE_MEMORY_KIND_DEVICE });
    return -1;
}

static int ask_host(struct hog *h, struct wire_enc *e, uint64_t serial)
{
    wire_pack_memory_alloc(
        e, serial, &(struct wire_memory_alloc) { .size = MIB, .kind = WIRE_MEMORY_KIND_HOST });
    return -1;
}

static int give_memory(struct hog *h, struct wire_enc *e, uint64_t serial, uint64_t held)
{
    wire_pack_memory_free(e, serial, &(struct wire_memory_free) { held });
    return -1;
}

static int ask_object(struct hog *h, struct wire_enc *e, uint64_t serial)
{
    wire_pack_object_create(
        e, serial, &(struct wire_object_create) { .size = 4096, .kind = WIRE_MEMORY_KIND_HOST });
    return -1;
}

static int give_name(struct hog *h, struct wire_enc *e, uint64_t serial, uint64_t held)
{
    wire_pack_object_release(e, serial, &(struct wire_object_release) { (uint32_t)held });
    return -1;
}

static int ask_import(struct hog *h, struct wire_enc *e, uint64_t serial)
{
    wire_pack_object_import(e, serial, &(struct wire_object_import) { 0 });
    return h->foreign;
}

static int ask_import_nothing(struct hog *h, struct wire_enc *e, uint64_t serial)
{
    wire_pack_object_import(e, serial, &(struct wire_object_import) { 0 });
    return memory;
}

static int ask_export(struct hog *h, struct wire_enc *e, uint64_t serial)
{
    wire_pack_object_export(e, serial, &(struct wire_object_export) { h->exported });
    return -1;
}

static int ask_share(struct hog *h, struct wire_enc *e, uint64_t serial)
{
    wire_pack_memory_share(e, serial, &(struct wire_memory_share) { .object = h->object });
    return -1;
}

static int ask_open(struct hog *h, struct wire_enc *e, uint64_t serial)
{
    wire_pack_memory_open(e, serial, &(struct wire_memory_open) { { h->token, TOKEN } });
    return -1;
}

static int ask_open_nothing(struct hog *h, struct wire_enc *e, uint64_t serial)
{
    static const uint8_t none[TOKEN];
    wire_pack_memory_open(e, serial, &(struct wire_memory_open) { { none, TOKEN } });
    return -1;
}

static int give_mapping(struct hog *h, struct wire_enc *e, uint64_t serial, uint64_t held)
{
    wire_pack_object_unmap(e, serial, &(struct wire_object_unmap) { held });
    return -1;
}

static int ask_range(struct hog *h, struct wire_enc *e, uint64_t serial)
{
    wire_pack_range_reserve(
        e, serial, &(struct wire_range_reserve) { .size = 4096, .kind = WIRE_MEMORY_KIND_HOST });
    return -1;
}

static int give_range(struct hog *h, struct wire_enc *e, uint64_t serial, uint64_t held)
{
    wire_pack_range_release(e, serial, &(struct wire_range_release) { held });
    return -1;
}

static uint64_t place_of(const struct hog *h, uint64_t serial)
{
    return h->range + serial % SLOTS * 4096;
}

static int ask_map(struct hog *h, struct wire_enc *e, uint64_t serial)
{
    wire_pack_object_map(e, serial,
                         &(struct wire_object_map) { h->object, WIRE_MEMORY_ACCESS_WRITE,
                                                     place_of(h, serial), 4096 });
    return -1;
}

static int give_map(struct hog *h, struct wire_enc *e, uint64_t serial, uint64_t held)
{
    wire_pack_object_unmap(e, serial, &(struct wire_object_unmap) { place_of(h, serial) });
    return -1;
}

static int ask_context(struct hog *h, struct wire_enc *e, uint64_t serial)
{
    wire_pack_context_open(
        e, serial, &(struct wire_context_open) { .context = (uint32_t)(serial % SLOTS) + 1 });
    return -1;
}

static int give_context(struct hog *h, struct wire_enc *e, uint64_t serial, uint64_t held)
{
    wire_pack_context_close(e, serial,
                            &(struct wire_context_close) { (uint32_t)(serial % SLOTS) + 1 });
    return -1;
}

static int ask_module(struct hog *h, struct wire_enc *e, uint64_t serial)
{
    wire_pack_module_load(
        e, serial, &(struct wire_module_load) { .size = sizeof(PTX), .kind = WIRE_IMAGE_KIND_PTX });
    return image;
}

static int give_module(struct hog *h, struct wire_enc *e, uint64_t serial, uint64_t held)
{
    wire_pack_module_unload(e, serial, &(struct wire_module_unload) { (uint32_t)held });
    return -1;
}

static int ask_nothing(struct hog *h, struct wire_enc *e, uint64_t serial)
{
    return give_name(h, e, serial, UINT32_MAX);
}

static int ask_no_mapping(struct hog *h, struct wire_enc *e, uint64_t serial)
{
    return give_mapping(h, e, serial, 1);
}

static int ask_no_range(struct hog *h, struct wire_enc *e, uint64_t serial)
{
    return give_range(h, e, serial, 1);
}

static int ask_no_module(struct hog *h, struct wire_enc *e, uint64_t serial)
{
    return give_module(h, e, serial, UINT32_MAX);
}

static int ask_arrays(struct hog *h, struct wire_enc *e, uint64_t serial)
{
    wire_pack_array_memory(e, serial, &(struct wire_array_memory) { .bytes = serial % 2 * 4096 });
    return -1;
}

/* How an object is asked for and given back; without `give` it is only asked for. */
struct kind {
    const char *name;
    int (*ask)(struct hog *h, struct wire_enc *e, uint64_t serial);
    int (*give)(struct hog *h, struct wire_enc *e, uint64_t serial, uint64_t held);
};

static const struct kind kinds[] = {
    { "questions", ask_info, NULL },
    { "small allocations", ask_alloc, give_memory },
    { "large allocations", ask_large, give_memory },
    { "host allocations", ask_host, give_memory },
    { "objects", ask_object, give_name },
    { "imports", ask_import, give_name },
    { "imports of nothing", ask_import_nothing, NULL },
    { "exports", ask_export, NULL },
    { "shares", ask_share, NULL },
    { "tokens", ask_open, give_mapping },
    { "tokens of nothing", ask_open_nothing, NULL },
    { "ranges", ask_range, give_range },
    { "mappings", ask_map, give_map },
    { "contexts", ask_context, give_context },
    { "modules", ask_module, give_module },
    { "names of nothing", ask_nothing, NULL },
    { "mappings of nothing", ask_no_mapping, NULL },
    { "ranges of nothing", ask_no_range, NULL },
    { "modules of nothing", ask_no_module, NULL },
    { "memory of arrays", ask_arrays, NULL },
};

/* --- the hog ---------------------------------------------------------------------------------- */

static uint64_t read_held(struct tp_packet *p)
{
    struct wire_memory_allocated allocated;
    struct wire_object_made made;
    struct wire_memory_opened opened;
    struct wire_module_loaded loaded;
    struct wire_status status;
    switch (p->header.type) {
    case WIRE_MEMORY_ALLOCATED:
        wire_get_memory_allocated(&p->body, &allocated);
        return allocated.result ? 0 : allocated.address;
    case WIRE_OBJECT_MADE:
        wire_get_object_made(&p->body, &made);
        return made.result ? 0 : made.object;
    case WIRE_MEMORY_OPENED:
        wire_get_memory_opened(&p->body, &opened);
        return opened.result ? 0 : opened.address;
    case WIRE_MODULE_LOADED:
        wire_get_module_loaded(&p->body, &loaded);
        return loaded.result ? 0 : loaded.module;
    case WIRE_STATUS:
        wire_get_status(&p->body, &status);
        return status.result == 0;
    default:
        return 0;
    }
}

static void ask_next(const struct kind *k, struct hog *h, unsigned slot)
{
    uint8_t buffer[256];
    struct wire_enc e;
    const uint64_t serial = ++h->rounds[slot] * SLOTS + slot;
    wire_enc_init(&e, buffer, sizeof(buffer));
    int fd =
        k->give && h->held[slot] ? k->give(h, &e, serial, h->held[slot]) : k->ask(h, &e, serial);
    RAW_CHECK(tp_send(h->c.fd, &e, &fd, fd >= 0) == 0);
}

/* Until it is killed: who was answered asks again. */
GM_NORETURN static void flood(const struct kind *k, int started)
{
    static struct pollfd polls[HOGS];
    RAW_CHECK(prctl(PR_SET_PDEATHSIG, SIGKILL) == 0);
    for (unsigned i = 0; i < HOGS; i++) {
        polls[i] = (struct pollfd) { hogs[i].c.fd, POLLIN, 0 };
        for (unsigned s = 0; s < SLOTS; s++)
            ask_next(k, &hogs[i], s);
    }
    RAW_CHECK(write(started, "", 1) == 1);
    for (;;) {
        RAW_CHECK(poll(polls, HOGS, -1) > 0);
        for (unsigned i = 0; i < HOGS; i++) {
            struct hog *h = &hogs[i];
            if (!polls[i].revents)
                continue;
            RAW_CHECK(tp_recv(h->c.fd, h->c.packet) == 1);
            const unsigned slot = (unsigned)(h->c.packet->header.serial % SLOTS);
            const bool gave = k->give && h->held[slot];
            h->held[slot] = gave ? 0 : read_held(h->c.packet);
            tp_packet_finish(h->c.packet);
            ask_next(k, h, slot);
        }
    }
}

static void open_hog(struct hog *h)
{
    memset(h, 0, sizeof(*h));
    struct wire_object_made made;
    struct wire_memory_allocated range;
    raw_client_open(&h->c, raw_server_connect_as(&server, next_pid++, HOG_USER));
    RAW_ASK(&h->c, object_create, .size = 4096, .kind = WIRE_MEMORY_KIND_HOST);
    wire_get_object_made(&h->c.packet->body, &made);
    tp_packet_finish(h->c.packet);
    RAW_CHECK(made.result == 0);
    h->object = made.object;
    RAW_ASK(&h->c, object_create, .size = 2 * MIB, .kind = WIRE_MEMORY_KIND_DEVICE);
    wire_get_object_made(&h->c.packet->body, &made);
    RAW_CHECK(made.result == 0);
    h->exported = made.object;
    RAW_ASK(&h->c, range_reserve, .size = SLOTS * 4096, .kind = WIRE_MEMORY_KIND_HOST);
    wire_get_memory_allocated(&h->c.packet->body, &range);
    RAW_CHECK(range.result == 0);
    h->range = range.address;
}

/* As much of everything as he gets. */
static void fill(struct hog *h)
{
    for (unsigned n = 0; n < OBJECTS; n++) {
        struct wire_object_made made;
        RAW_ASK(&h->c, object_create, .size = 4096, .kind = WIRE_MEMORY_KIND_HOST);
        wire_get_object_made(&h->c.packet->body, &made);
        tp_packet_finish(h->c.packet);
        if (made.result)
            break;
        RAW_ASK(&h->c, memory_share, .object = made.object);
    }
    for (;;) {
        struct wire_memory_allocated range;
        RAW_ASK(&h->c, range_reserve, .size = 4096, .kind = WIRE_MEMORY_KIND_HOST);
        wire_get_memory_allocated(&h->c.packet->body, &range);
        if (range.result)
            break;
    }
}

/* Gives each session the token of the one before it. */
static void share_around(void)
{
    for (unsigned i = 0; i < HOGS; i++) {
        struct hog *h = &hogs[i], *other = &hogs[(i + 1) % HOGS];
        struct wire_memory_shared m;
        RAW_ASK(&h->c, memory_share, .object = h->object);
        wire_get_memory_shared(&h->c.packet->body, &m);
        RAW_CHECK(m.result == 0);
        memcpy(other->token, m.token.data, TOKEN);
        RAW_ASK(&h->c, object_export, .object = h->exported);
        other->foreign = tp_packet_take_fd(h->c.packet, 0);
        RAW_CHECK(other->foreign >= 0);
    }
}

/* --- the other -------------------------------------------------------------------------------- */

static uint64_t worked_ns(pid_t pid)
{
    char path[64], text[64] = "";
    snprintf(path, sizeof(path), "/proc/%d/task/%d/schedstat", (int)pid, (int)pid);
    FILE *f = fopen(path, "re");
    RAW_CHECK(f && fgets(text, sizeof(text), f));
    fclose(f);
    return strtoull(text, NULL, 10);
}

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* The most that nearly all have to wait for an answer, of the time that server and executor work,
 * and altogether. */
struct samples {
    double worked[ROUNDS], waited[ROUNDS];
    unsigned count;
    uint64_t worked_ns, began_ns;
};

static void begin(struct samples *s, pid_t executor)
{
    s->worked_ns = worked_ns(server.pid) + worked_ns(executor);
    s->began_ns = gm_now_ns();
}

static void end(struct samples *s, pid_t executor)
{
    s->waited[s->count] = (double)(gm_now_ns() - s->began_ns) / (double)GM_NS_PER_MS;
    s->worked[s->count++] =
        (double)(worked_ns(server.pid) + worked_ns(executor) - s->worked_ns) / (double)GM_NS_PER_MS;
}

/* As a rule: a machine that runs other tests may take any time for one. */
static void judge(const char *name, const char *what, struct samples *s)
{
    const unsigned half = ROUNDS / 2, p99 = ROUNDS * 99 / 100;
    qsort(s->worked, ROUNDS, sizeof(double), by_value);
    qsort(s->waited, ROUNDS, sizeof(double), by_value);
    printf("beside %s, %s: %.2f ms, p99 %.2f, of it worked %.2f, p99 %.2f\n", name, what,
           s->waited[half], s->waited[p99], s->worked[half], s->worked[p99]);
    fflush(stdout);
    RAW_CHECK(s->worked[half] < BOUND_MS);
}

static void measure(const char *name, struct raw_client *c, pid_t executor)
{
    static struct samples questions, allocations, frees;
    questions.count = allocations.count = frees.count = 0;
    for (unsigned i = 0; i < ROUNDS; i++) {
        begin(&questions, executor);
        (void)raw_memory_free(c);
        end(&questions, executor);
        begin(&allocations, executor);
        uint64_t address = raw_alloc(c, MIB, WIRE_MEMORY_KIND_DEVICE, NULL);
        end(&allocations, executor);
        begin(&frees, executor);
        RAW_CHECK(address && raw_free(c, address) == 0);
        end(&frees, executor);
    }
    judge(name, "a question", &questions);
    judge(name, "an allocation", &allocations);
    judge(name, "to free it", &frees);
}

static void beside(const struct kind *k, struct raw_client *c, pid_t executor)
{
    int started[2];
    char byte;
    RAW_CHECK(pipe2(started, O_CLOEXEC) == 0);
    for (unsigned i = 0; i < HOGS; i++)
        open_hog(&hogs[i]);
    share_around();
    pid_t hog = fork();
    RAW_CHECK(hog >= 0);
    if (hog == 0)
        flood(k, started[1]);
    for (unsigned i = 0; i < HOGS; i++)
        raw_client_close(&hogs[i].c), close(hogs[i].foreign);
    close(started[1]);
    RAW_CHECK(read(started[0], &byte, 1) == 1);
    close(started[0]);
    measure(k->name, c, executor);
    RAW_CHECK(kill(hog, SIGKILL) == 0 && waitpid(hog, NULL, 0) == hog);
    raw_server_settle(&server, 2);
    raw_server_forget_log(&server);
}

int main(int argc, char **argv)
{
    static struct raw_client c;
    struct rlimit l;
    RAW_CHECK(getrlimit(RLIMIT_NOFILE, &l) == 0);
    l.rlim_cur = l.rlim_max;
    RAW_CHECK(setrlimit(RLIMIT_NOFILE, &l) == 0);
    image = tp_memfd_from_bytes("image", PTX, sizeof(PTX));
    memory = tp_memfd_create("memory", 4096);
    RAW_CHECK(image >= 0 && memory >= 0);
    raw_server_start_multiuser(&server, "null");
    raw_client_open(&c, raw_server_connect_as(&server, next_pid++, OTHER_USER));
    pid_t executor = raw_server_executor(&server);
    open_hog(&full);
    fill(&full);
    for (unsigned i = 0; i < GM_ARRAY_LEN(kinds); i++)
        if (argc == 1 || strstr(kinds[i].name, argv[1]))
            beside(&kinds[i], &c, executor);
    raw_client_close(&full.c);
    raw_client_close(&c);
    raw_server_drain(&server);
    RAW_CHECK(raw_server_charged(&server) == 0);
    raw_server_stop(&server);
    return 0;
}
