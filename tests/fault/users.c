/*
 * One server, several users (-M). A user takes everything that he can get, of every kind; those who
 * come after him are served all the same, and he gets no more while they are there. In the end
 * nothing is left in the server's books.
 */
#include <stdio.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/result.h"
#include "raw.h"

#define PTX      ".version 7.0\n.target sm_70\n.address_size 64\n.visible .entry k()\n{\nret;\n}\n"
#define NOFILE   2048u
#define SESSIONS (NOFILE / 16) /* which the server makes of that */
#define MIB      (1u << 20)
#define CLIENTS  3u
#define WINDOWS  8u

enum { HOG = 5000, SECOND, THIRD };

static struct raw_server server;
static uint32_t next_pid = 100;
static uint8_t buffer[WIRE_PACKET_MAX];

static void open_client(struct raw_client *c, uint32_t uid)
{
    raw_client_open(c, raw_server_connect_as(&server, next_pid++, uid));
}

/* --- one of each kind; a CUresult ------------------------------------------------------------- */

static int take_host_bytes(struct raw_client *c, uint64_t size)
{
    int result;
    (void)raw_alloc(c, size, WIRE_MEMORY_KIND_HOST, &result);
    return result;
}

static int take_allocation(struct raw_client *c, uint64_t unused)
{
    int result;
    (void)unused;
    (void)raw_alloc(c, 1, WIRE_MEMORY_KIND_DEVICE, &result);
    return result;
}

/* What is aligned to more than a page is not cut from a slab. */
static int take_mapping(struct raw_client *c, uint64_t size)
{
    struct wire_memory_allocated m;
    RAW_ASK(c, memory_alloc, .size = size, .align = 8192, .kind = WIRE_MEMORY_KIND_DEVICE);
    wire_get_memory_allocated(&c->packet->body, &m);
    return m.result;
}

static int take_object(struct raw_client *c, uint64_t unused)
{
    struct wire_object_made m;
    (void)unused;
    RAW_ASK(c, object_create, .size = 4096, .kind = WIRE_MEMORY_KIND_HOST);
    wire_get_object_made(&c->packet->body, &m);
    tp_packet_finish(c->packet);
    return m.result;
}

static int take_name(struct raw_client *c, uint64_t size)
{
    struct wire_memory_allocated m;
    RAW_ASK(c, range_reserve, .size = size, .kind = WIRE_MEMORY_KIND_DEVICE);
    wire_get_memory_allocated(&c->packet->body, &m);
    return m.result;
}

static int take_module(struct raw_client *c, uint64_t unused)
{
    int result;
    (void)unused;
    (void)raw_load(c, PTX, &result);
    return result;
}

static int take_context(struct raw_client *c, uint64_t unused)
{
    static uint32_t number = 100;
    struct wire_status m;
    (void)unused;
    RAW_ASK(c, context_open, .context = number++);
    wire_get_status(&c->packet->body, &m);
    return m.result;
}

static const struct kind {
    const char *name;
    int (*take)(struct raw_client *c, uint64_t size);
    uint64_t size;
    unsigned at_least; /* of which everybody gets so many */
} kinds[] = {
    { "pinned memory", take_host_bytes, 64 * MIB, 1 },
    { "objects", take_object, 0, 8 },
    { "modules", take_module, 0, 8 },
    { "contexts", take_context, 0, 8 },
    { "names", take_name, 2 * MIB, 8 },
    { "mappings", take_mapping, 300000, 8 },
    { "allocations", take_allocation, 0, 8 },
};

/* --- the hog ---------------------------------------------------------------------------------- */

static unsigned take_all(struct raw_client *c, const struct kind *k)
{
    unsigned n = 0;
    int result;
    while ((result = k->take(c, k->size)) == 0)
        n++;
    if (result != GM_CUDA_OUT_OF_MEMORY)
        fprintf(stderr, "%s: error %d after %u\n", k->name, result, n);
    RAW_CHECK(result == GM_CUDA_OUT_OF_MEMORY);
    return n;
}

/* What he has after this is limited by his part, by what a session may have, or by the device. */
static void take_everything(struct raw_client *clients, unsigned count)
{
    for (size_t k = 0; k < GM_ARRAY_LEN(kinds); k++)
        for (unsigned i = 0; i < count; i++)
            if (i == 0 || kinds[k].take != take_allocation) /* which are many */
                (void)take_all(&clients[i], &kinds[k]);
}

/* The next message: another window, or false. */
static bool is_offered(int fd, uint64_t *window)
{
    static struct raw_client c; /* for its packet */
    struct wire_session_open m;
    c.fd = fd;
    c.packet = server.packet;
    if (!raw_client_receive(&c))
        return false;
    bool offered = c.packet->header.type == WIRE_SESSION_OPEN;
    if (offered) {
        wire_get_session_open(&c.packet->body, &m);
        *window = m.window_base;
    }
    tp_packet_finish(c.packet);
    return offered;
}

/* A client that cannot use the windows it is offered, or says so, as often as is allowed. Its
 * socket; -1: it has none. */
static int claim_windows(void)
{
    int fd = raw_server_connect_as(&server, next_pid++, HOG);
    uint64_t window;
    bool offered = is_offered(fd, &window);
    for (unsigned i = 1; i < WINDOWS && offered; i++) {
        struct wire_enc e;
        wire_enc_init(&e, buffer, sizeof(buffer));
        wire_pack_session_window_busy(&e, 0, &(struct wire_session_window_busy) { window });
        RAW_CHECK(tp_send(fd, &e, NULL, 0) == 0);
        offered = is_offered(fd, &window);
    }
    if (offered)
        return fd;
    close(fd);
    return -1;
}

/* --- the others ------------------------------------------------------------------------------- */

static void is_served(uint32_t uid)
{
    static struct raw_client c;
    open_client(&c, uid);
    for (size_t k = 0; k < GM_ARRAY_LEN(kinds); k++)
        for (unsigned n = 0; n < kinds[k].at_least; n++) {
            int result = kinds[k].take(&c, kinds[k].size);
            if (result != 0)
                fprintf(stderr, "user %u, %s: error %d after %u\n", uid, kinds[k].name, result, n);
            RAW_CHECK(result == 0);
        }
    uint64_t memory = raw_alloc(&c, 4096, WIRE_MEMORY_KIND_DEVICE, NULL);
    RAW_CHECK(memory != 0);
    raw_work_and_check(&c, memory);
    raw_client_close(&c);
}

static void gets_no_more(struct raw_client *c)
{
    for (size_t k = 0; k < GM_ARRAY_LEN(kinds); k++)
        if (kinds[k].take != take_mapping &&
            kinds[k].take != take_allocation) /* the device's memory is not shared out */
            RAW_CHECK(kinds[k].take(c, kinds[k].size) == GM_CUDA_OUT_OF_MEMORY);
}

int main(void)
{
    static struct raw_client hog[CLIENTS];
    static int claims[SESSIONS];
    unsigned claimed = 0;
    const struct rlimit limit = { NOFILE, NOFILE };

    RAW_CHECK(setrlimit(RLIMIT_NOFILE, &limit) == 0);
    raw_server_start_multiuser(&server, "null");
    raw_server_settle(&server, 0);
    uint64_t before = raw_server_charged(&server);
    unsigned descriptors = raw_descriptors(server.pid);

    for (unsigned i = 0; i < CLIENTS; i++)
        open_client(&hog[i], HOG);
    take_everything(hog, CLIENTS);
    raw_client_close(
        &hog[CLIENTS - 1]); /* some of the device's memory for others; nobody is promised that */
    raw_server_settle(&server, CLIENTS - 1);
    for (size_t k = 0; k < GM_ARRAY_LEN(kinds); k++)
        if (kinds[k].take != take_mapping && kinds[k].take != take_allocation)
            (void)take_all(&hog[0], &kinds[k]);

    for (unsigned refused = 0; refused < 3;) {
        int fd = claim_windows();
        refused += fd < 0;
        if (fd >= 0)
            claims[claimed++] = fd;
        RAW_CHECK(claimed <= SESSIONS / 2);
    }
    RAW_CHECK(claimed > 4);

    is_served(SECOND);
    is_served(THIRD);
    gets_no_more(&hog[0]);
    static struct raw_client second, third;
    open_client(&second, SECOND);
    open_client(&third, THIRD);
    gets_no_more(&hog[1]);
    raw_client_close(&second);
    raw_client_close(&third);

    while (claimed)
        close(claims[--claimed]);
    for (unsigned i = 0; i + 1 < CLIENTS; i++)
        raw_client_close(&hog[i]);
    raw_server_drain(&server);
    RAW_CHECK(raw_server_charged(&server) == before);
    raw_expect_descriptors(server.pid, descriptors);
    raw_server_stop(&server);
    return 0;
}
