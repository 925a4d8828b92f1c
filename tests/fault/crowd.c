/*
 * Many clients, and some that give the server much to do: nobody else waits for that. Prints what
 * it measures.
 */
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "raw.h"

#define CROWD        (RAW_SANITIZED ? 24u : 400u)
#define OTHERS       4u
#define IMAGE_BYTES  (256u << 20)
#define MEMORY_BYTES (512u << 20)
#define LARGE_BYTES  (RAW_SANITIZED ? 256u << 20 : 1u << 30)
#define ROUNDS       40u
#define KEPT         3u
#define PAGE         4096u
#define MAPPINGS     8000u
#define OBJECTS      16384u /* or as many as there are descriptors for */
#define NAMES        16384u /* of objects and ranges */
#define MODULES      8000u
#define ALLOCATIONS  (RAW_SANITIZED ? 16384u : 65000u)
#define GRANULE      512u
#define AT_ONCE      16u
#define ANSWERS      400u

#define PTX ".version 7.0\n.target sm_70\n.address_size 64\n.visible .entry k()\n{\nret;\n}\n"

/* What a client may wait because of others. */
#define ALLOCATION_MS 20.0
#define GIFT_PARTS    8u
#define CONNECTION_MS 100.0

enum { HEAVY_USER = 1000, OTHER_USER };

static struct raw_server server;
static struct raw_client crowd[400];
static uint32_t next_pid = 100;

static double since_ms(uint64_t start)
{
    return (double)(gm_now_ns() - start) / (double)GM_NS_PER_MS;
}

static void open_client(struct raw_client *c, uint32_t uid)
{
    raw_client_open(c, raw_server_connect_as(&server, next_pid++, uid));
}

static void fill_place(unsigned count)
{
    int fds[GM_ARRAY_LEN(crowd)];
    uint64_t start = gm_now_ns();
    for (unsigned i = 0; i < count; i++)
        fds[i] = raw_server_connect(&server, next_pid++);
    for (unsigned i = 0; i < count; i++)
        raw_client_open(&crowd[i], fds[i]);
    printf("%u clients at once: %.0f ms\n", count, since_ms(start));
    raw_server_forget_log(&server);
}

static void empty_place(unsigned count)
{
    uint64_t start = gm_now_ns();
    for (unsigned i = 0; i < count; i++)
        raw_client_close(&crowd[i]);
    raw_server_drain(&server);
    printf("%u clients end: %.0f ms\n", count, since_ms(start));
}

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* What an allocation takes, and a connection: as a rule and at most. A machine that runs other
 * tests may take any time for one. */
static void wait_for_server(const char *beside)
{
    static struct raw_client c, newcomer;
    double allocation[ROUNDS], connection[ROUNDS];
    open_client(&c, OTHER_USER);
    for (unsigned i = 0; i < ROUNDS; i++) {
        uint64_t start = gm_now_ns();
        uint64_t address = raw_alloc(&c, 1 << 20, WIRE_MEMORY_KIND_DEVICE, NULL);
        allocation[i] = since_ms(start);
        RAW_CHECK(address && raw_free(&c, address) == 0);
        start = gm_now_ns();
        open_client(&newcomer, OTHER_USER);
        connection[i] = since_ms(start);
        raw_client_close(&newcomer);
    }
    raw_client_close(&c);
    qsort(allocation, ROUNDS, sizeof(double), by_value);
    qsort(connection, ROUNDS, sizeof(double), by_value);
    printf("beside %s: an allocation takes %.2f ms, at most %.1f, a connection %.2f ms, at most "
           "%.1f\n",
           beside, allocation[ROUNDS / 2], allocation[ROUNDS - 1], connection[ROUNDS / 2],
           connection[ROUNDS - 1]);
    RAW_CHECK(allocation[ROUNDS / 2] < ALLOCATION_MS);
    RAW_CHECK(connection[ROUNDS / 2] < CONNECTION_MS);
}

/* --- large images ----------------------------------------------------------------------------- */

static int large_image(void)
{
    int fd = memfd_create("image", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    RAW_CHECK(fd >= 0 && write(fd, PTX, sizeof(PTX)) == sizeof(PTX) &&
              ftruncate(fd, IMAGE_BYTES) == 0);
    RAW_CHECK(fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE) == 0);
    return fd;
}

/* Loads one after the other and keeps some. */
static GM_NORETURN void load_images(int connection)
{
    static struct raw_client c;
    uint32_t kept[KEPT] = { 0 };
    uint8_t buffer[128];
    int fd = large_image();
    raw_client_open(&c, connection);
    for (unsigned i = 0;; i++) {
        struct wire_enc e;
        struct wire_module_loaded m;
        uint32_t *k = &kept[i % KEPT];
        if (*k)
            RAW_CHECK(raw_unload(&c, *k) == 0);
        wire_enc_init(&e, buffer, sizeof(buffer));
        wire_pack_module_load(
            &e, ++c.serial,
            &(struct wire_module_load) { .size = IMAGE_BYTES, .kind = WIRE_IMAGE_KIND_PTX });
        raw_client_ask(&c, &e, &fd, 1);
        wire_get_module_loaded(&c.packet->body, &m);
        RAW_CHECK(m.result == 0);
        *k = m.module;
        tp_packet_finish(c.packet);
    }
}

/* --- large memory ----------------------------------------------------------------------------- */

static GM_NORETURN void free_memory(int connection)
{
    static struct raw_client c;
    raw_client_open(&c, connection);
    for (;;) {
        uint64_t address = raw_alloc(&c, MEMORY_BYTES, WIRE_MEMORY_KIND_DEVICE, NULL);
        RAW_CHECK(address &&
                  madvise((void *)(uintptr_t)address, MEMORY_BYTES, MADV_POPULATE_WRITE) == 0);
        RAW_CHECK(raw_free(&c, address) == 0);
    }
}

/* What the server's thread has worked. */
static uint64_t server_worked_ns(void)
{
    char path[64], text[64] = "";
    snprintf(path, sizeof(path), "/proc/%d/task/%d/schedstat", (int)server.pid, (int)server.pid);
    FILE *f = fopen(path, "re");
    RAW_CHECK(f && fgets(text, sizeof(text), f));
    fclose(f);
    return strtoull(text, NULL, 10);
}

/* Encodes the message by which the client gives back LARGE_BYTES that have pages. */
static void give_allocation(struct raw_client *c, struct wire_enc *e)
{
    uint64_t address = raw_alloc(c, LARGE_BYTES, WIRE_MEMORY_KIND_DEVICE, NULL);
    RAW_CHECK(address &&
              madvise((void *)(uintptr_t)address, LARGE_BYTES, MADV_POPULATE_WRITE) == 0);
    RAW_CHECK(madvise((void *)(uintptr_t)address, LARGE_BYTES, MADV_DONTNEED) == 0);
    wire_pack_memory_free(e, ++c->serial, &(struct wire_memory_free) { address });
}

static void give_object(struct raw_client *c, struct wire_enc *e)
{
    struct wire_object_made made;
    RAW_ASK(c, object_create, .size = LARGE_BYTES, .kind = WIRE_MEMORY_KIND_HOST);
    wire_get_object_made(&c->packet->body, &made);
    RAW_CHECK(made.result == 0 && c->packet->fds_count == 1);
    void *p = mmap(NULL, LARGE_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE,
                   c->packet->fds[0], 0);
    RAW_CHECK(p != MAP_FAILED && munmap(p, LARGE_BYTES) == 0);
    tp_packet_finish(c->packet);
    wire_pack_object_release(e, ++c->serial, &(struct wire_object_release) { made.object });
}

/* What the server works on something else before it answers another client: little, or, where the
 * machine is so busy that everything takes its time, a small part of what it works for the gift
 * altogether. */
static void beside_gift(void (*give)(struct raw_client *c, struct wire_enc *e), const char *name)
{
    static struct raw_client heavy, other;
    uint8_t buffer[64];
    struct wire_enc e;
    uint64_t longest_ns = 0, waited_ns = 0;
    unsigned answers = 0;
    open_client(&heavy, HEAVY_USER);
    open_client(&other, OTHER_USER);
    wire_enc_init(&e, buffer, sizeof(buffer));
    give(&heavy, &e);
    const uint64_t begin_ns = server_worked_ns();
    RAW_CHECK(tp_send(heavy.fd, &e, NULL, 0) == 0);
    for (struct pollfd done = { heavy.fd, POLLIN, 0 }; answers == 0 || poll(&done, 1, 0) == 0;
         answers++) {
        uint64_t start = gm_now_ns(), worked = server_worked_ns();
        (void)raw_memory_free(&other);
        longest_ns = GM_MAX(longest_ns, server_worked_ns() - worked);
        waited_ns = GM_MAX(waited_ns, gm_now_ns() - start);
    }
    RAW_CHECK(raw_client_receive(&heavy));
    tp_packet_finish(heavy.packet);
    const uint64_t all_ns = server_worked_ns() - begin_ns;
    double longest_ms = (double)longest_ns / (double)GM_NS_PER_MS,
           waited_ms = (double)waited_ns / (double)GM_NS_PER_MS;
    printf("beside one that frees %u MiB %s: %u answers, each after %.1f ms of the server's "
           "processor time at most, of "
           "%.1f, %.1f ms\n",
           LARGE_BYTES >> 20, name, answers, longest_ms, (double)all_ns / (double)GM_NS_PER_MS,
           waited_ms);
    RAW_CHECK(longest_ms < ALLOCATION_MS || longest_ns < all_ns / GIFT_PARTS);
    raw_client_close(&other);
    raw_client_close(&heavy);
    raw_server_settle(&server, 0);
    raw_server_forget_log(&server);
}

/* --- much that ends --------------------------------------------------------------------------- */

/* Requests that do not wait for each other, `count` of them. Status or not, all have the result
 * that `answer` checks. */
static void ask_many(struct raw_client *c, unsigned count,
                     void (*ask)(struct raw_client *c, struct wire_enc *e, unsigned number),
                     void (*answer)(struct raw_client *c))
{
    uint8_t buffer[128];
    for (unsigned sent = 0, answered = 0; answered < count;) {
        struct wire_enc e;
        wire_enc_init(&e, buffer, sizeof(buffer));
        if (sent < count && sent < answered + AT_ONCE) {
            ask(c, &e, sent++);
            RAW_CHECK(tp_send(c->fd, &e, NULL, 0) == 0);
            continue;
        }
        RAW_CHECK(raw_client_receive(c));
        answer(c);
        answered++;
    }
}

static void check_status(struct raw_client *c)
{
    RAW_CHECK(raw_status(c) == 0);
}

static void check_allocated(struct raw_client *c)
{
    struct wire_memory_allocated m;
    wire_get_memory_allocated(&c->packet->body, &m);
    RAW_CHECK(m.result == 0);
    tp_packet_finish(c->packet);
}

static uint32_t objects[OBJECTS];
static unsigned objects_count;
static uint64_t range_address;

/* As many as it may have, of `most`. */
static void create_objects(struct raw_client *c, unsigned most)
{
    struct wire_object_made made = { 0 };
    for (objects_count = 0; made.result == 0 && objects_count < most; objects_count++) {
        RAW_ASK(c, object_create, .size = PAGE, .kind = WIRE_MEMORY_KIND_HOST);
        wire_get_object_made(&c->packet->body, &made);
        objects[objects_count] = made.object;
        tp_packet_finish(c->packet);
    }
    objects_count -= made.result != 0;
    RAW_CHECK(objects_count > 0);
}

static void ask_map(struct raw_client *c, struct wire_enc *e, unsigned number)
{
    const struct wire_object_map m = { objects[number % objects_count], WIRE_MEMORY_ACCESS_WRITE,
                                       range_address + number * PAGE, PAGE };
    wire_pack_object_map(e, ++c->serial, &m);
}

/* Pages that clients signal each other through, so many of them, mapped one after the other and
 * again. */
static void map_objects(struct raw_client *c, unsigned most)
{
    struct wire_memory_allocated range;
    create_objects(c, most);
    RAW_ASK(c, range_reserve, .size = MAPPINGS * PAGE, .kind = WIRE_MEMORY_KIND_HOST);
    wire_get_memory_allocated(&c->packet->body, &range);
    RAW_CHECK(range.result == 0);
    range_address = range.address;
    tp_packet_finish(c->packet);
    ask_many(c, MAPPINGS, ask_map, check_status);
    printf("beside one that ends with %u mappings of %u pages", MAPPINGS, objects_count);
}

static void map_one_page(struct raw_client *c)
{
    map_objects(c, 1);
}

static void map_many_pages(struct raw_client *c)
{
    map_objects(c, MAPPINGS);
}

static void make_objects(struct raw_client *c)
{
    create_objects(c, OBJECTS);
    printf("beside one that ends with %u objects", objects_count);
}

static void ask_alloc(struct raw_client *c, struct wire_enc *e, unsigned number GM_UNUSED)
{
    wire_pack_memory_alloc(
        e, ++c->serial,
        &(struct wire_memory_alloc) { .size = GRANULE, .kind = WIRE_MEMORY_KIND_DEVICE });
}

static void allocate(struct raw_client *c)
{
    ask_many(c, ALLOCATIONS, ask_alloc, check_allocated);
    printf("beside one that ends with %u allocations", ALLOCATIONS);
}

static void ask_range(struct raw_client *c, struct wire_enc *e, unsigned number)
{
    wire_pack_range_reserve(
        e, ++c->serial,
        &(struct wire_range_reserve) {
            .size = PAGE, .kind = number % 2 ? WIRE_MEMORY_KIND_HOST : WIRE_MEMORY_KIND_DEVICE });
}

static void reserve(struct raw_client *c)
{
    ask_many(c, NAMES, ask_range, check_allocated);
    printf("beside one that ends with %u ranges", NAMES);
}

static void load_modules(struct raw_client *c)
{
    unsigned modules = 0;
    int result = 0;
    while (result == 0 && modules < MODULES)
        modules += raw_load(c, PTX, &result) != 0;
    RAW_CHECK(modules > 0);
    printf("beside one that ends with %u modules", modules);
}

/* Takes as many of each kind as there may be, and of all together. */
static void have_all(struct raw_client *c)
{
    map_objects(c, OBJECTS);
    ask_many(c, NAMES - objects_count - 1, ask_range, check_allocated);
    printf(", %u ranges, ", NAMES);
    ask_many(c, ALLOCATIONS, ask_alloc, check_allocated);
    printf("%u allocations", ALLOCATIONS);
}

/* How long the server works at most before another client's answer while somebody ends who has
 * much. */
static uint64_t longest_beside_end(void (*have)(struct raw_client *c))
{
    static struct raw_client heavy, other;
    uint64_t longest_ns = 0;
    open_client(&heavy, HEAVY_USER);
    open_client(&other, OTHER_USER);
    have(&heavy);
    const uint64_t begin_ns = server_worked_ns();
    raw_client_close(&heavy);
    for (unsigned i = 0; i < ANSWERS; i++) {
        const uint64_t worked = server_worked_ns();
        (void)raw_memory_free(&other);
        longest_ns = GM_MAX(longest_ns, server_worked_ns() - worked);
    }
    printf(": each answer after %.1f ms of the server's processor time at most, of %.1f\n",
           (double)longest_ns / (double)GM_NS_PER_MS,
           (double)(server_worked_ns() - begin_ns) / (double)GM_NS_PER_MS);
    raw_client_close(&other);
    raw_server_settle(&server, 0);
    RAW_CHECK(raw_server_charged(&server) == 0);
    raw_server_forget_log(&server);
    return longest_ns;
}

/* Whose machine is another one's guest may lose a processor for as long, so that counts only if it
 * happens each time. */
static void beside_end(void (*have)(struct raw_client *c))
{
    unsigned goes = 1;
    while (longest_beside_end(have) >= (uint64_t)(ALLOCATION_MS * (double)GM_NS_PER_MS))
        RAW_CHECK(goes++ < 3);
}

static void beside(void (*what)(int connection), const char *name)
{
    pid_t others[OTHERS];
    for (unsigned i = 0; i < OTHERS; i++) {
        int fd = raw_server_connect_as(&server, next_pid++, HEAVY_USER);
        others[i] = fork();
        RAW_CHECK(others[i] >= 0);
        if (others[i] == 0) {
            RAW_CHECK(prctl(PR_SET_PDEATHSIG, SIGKILL) == 0);
            what(fd);
        }
        close(fd);
    }
    wait_for_server(name);
    for (unsigned i = 0; i < OTHERS; i++) {
        RAW_CHECK(kill(others[i], SIGKILL) == 0);
        RAW_CHECK(waitpid(others[i], NULL, 0) == others[i]);
    }
    raw_server_settle(&server, 0);
    raw_server_forget_log(&server);
}

int main(void)
{
    struct rlimit l;
    RAW_CHECK(getrlimit(RLIMIT_NOFILE, &l) == 0);
    l.rlim_cur = l.rlim_max;
    RAW_CHECK(setrlimit(RLIMIT_NOFILE, &l) == 0);
    raw_server_start(&server, "null");
    wait_for_server("nobody");
    fill_place(CROWD);
    wait_for_server("all of them");
    empty_place(CROWD);
    RAW_CHECK(raw_server_charged(&server) == 0);
    raw_server_stop(&server);
    raw_server_start_multiuser(&server, "null");
    beside(load_images, "4 clients that load 256 MiB");
    beside(free_memory, "4 clients that free 512 MiB");
    beside_gift(give_allocation, "of device memory");
    beside_gift(give_object, "of an object");
    beside_end(map_one_page);
    beside_end(map_many_pages);
    beside_end(make_objects);
    beside_end(allocate);
    beside_end(reserve);
    beside_end(load_modules);
    beside_end(have_all);
    raw_server_stop(&server);
    return 0;
}
