/*
 * Clients that keep the lock of the files in memory that they were given: they write there what
 * comes from a page that never comes (root may make one; others have a file system of their own for
 * that), or have them filled and emptied without end. Who frees pages of such a file waits for
 * that, and this is to be nobody but the client itself: neither while it is there nor when it has
 * gone without letting go.
 */
#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "raw.h"

#define PAGE    4096u
#define LARGE   (64u << 20)
#define CLIENTS 6u
#define SOON_NS ((RAW_SANITIZED ? 10 : 2) * GM_NS_PER_S)

static struct raw_server server;

/* Gives memory back, too. */
static void check_neighbour(void)
{
    const uint64_t start = gm_now_ns();
    for (unsigned i = 0; i < 10; i++) {
        uint64_t large = raw_alloc(&raw_neighbour, LARGE / 8, WIRE_MEMORY_KIND_DEVICE, NULL),
                 small = raw_alloc(&raw_neighbour, PAGE, WIRE_MEMORY_KIND_DEVICE, NULL);
        RAW_CHECK(large && small);
        RAW_CHECK(raw_free(&raw_neighbour, large) == 0 && raw_free(&raw_neighbour, small) == 0);
        raw_neighbour_check();
    }
    RAW_CHECK(gm_now_ns() - start < SOON_NS);
}

/* --- those who do it -------------------------------------------------------------------------- */

struct lock {
    int fd, faults;
    void *page;
};

/* A read of it waits, and `faults` tells so. False: we may not make one. */
static bool make_endless_page(struct lock *l)
{
    struct uffdio_api api = { .api = UFFD_API };
    l->page = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    l->faults = (int)syscall(SYS_userfaultfd, O_CLOEXEC);
    struct uffdio_register r = { .range = { (uintptr_t)l->page, PAGE },
                                 .mode = UFFDIO_REGISTER_MODE_MISSING };
    return l->page != MAP_FAILED && l->faults >= 0 && ioctl(l->faults, UFFDIO_API, &api) == 0 &&
           ioctl(l->faults, UFFDIO_REGISTER, &r) == 0;
}

static void *hold(void *arg)
{
    const struct lock *l = arg;
    const int fill = FALLOC_FL_KEEP_SIZE, empty = FALLOC_FL_KEEP_SIZE | FALLOC_FL_PUNCH_HOLE;
    RAW_CHECK(!l->page || pwrite(l->fd, l->page, PAGE, 0) < 0);
    while (fallocate(l->fd, fill, 0, LARGE) == 0 && fallocate(l->fd, empty, 0, LARGE) == 0)
        ;
    return NULL;
}

static void take_lock(struct lock *l, int fd)
{
    pthread_t thread;
    struct uffd_msg fault;
    l->fd = fd;
    bool endless = make_endless_page(l);
    if (!endless)
        l->page = NULL;
    RAW_CHECK(pthread_create(&thread, NULL, hold, l) == 0);
    RAW_CHECK(!endless || read(l->faults, &fault, sizeof(fault)) == sizeof(fault));
}

static void free_without_waiting(struct raw_client *c, uint64_t address)
{
    uint8_t buffer[64];
    struct wire_enc e;
    wire_enc_init(&e, buffer, sizeof(buffer));
    wire_pack_memory_free(&e, 0, &(struct wire_memory_free) { .address = address });
    RAW_CHECK(tp_send(c->fd, &e, NULL, 0) == 0);
}

/* Frees what it has while it keeps the locks; leaves when `go` says so; and stays as a process. */
GM_NORETURN static void keep_locks(int fd, int said, int go)
{
    static struct raw_client c;
    static struct lock device, host;
    char byte = 0;
    RAW_CHECK(prctl(PR_SET_PDEATHSIG, SIGKILL) == 0);
    raw_client_open(&c, fd);
    uint64_t small = raw_alloc(&c, PAGE, WIRE_MEMORY_KIND_DEVICE, NULL),
             large = raw_alloc(&c, LARGE, WIRE_MEMORY_KIND_DEVICE, NULL),
             rest = raw_alloc(&c, LARGE, WIRE_MEMORY_KIND_DEVICE, NULL),
             pinned = raw_alloc(&c, LARGE, WIRE_MEMORY_KIND_HOST, NULL);
    RAW_CHECK(small && large && rest && pinned);
    memset((void *)(uintptr_t)large, 1, LARGE);
    take_lock(&device, c.fds[1]);
    take_lock(&host, c.fds[2]);
    free_without_waiting(&c, large);
    free_without_waiting(&c, pinned);
    free_without_waiting(&c, small);
    RAW_CHECK(write(said, &byte, 1) == 1 && read(go, &byte, 1) == 1);
    close(c.fd);
    RAW_CHECK(write(said, &byte, 1) == 1);
    for (;;)
        pause();
}

static pid_t start_keeper(uint32_t pid, int said[2], int go[2])
{
    int fd = raw_server_connect(&server, pid);
    pid_t child = fork();
    RAW_CHECK(child >= 0);
    if (child == 0) {
        close(raw_neighbour.fd);
        keep_locks(fd, said[1], go[0]);
    }
    close(fd);
    return child;
}

static void wait_for_all(int fd)
{
    char byte;
    for (unsigned i = 0; i < CLIENTS; i++)
        RAW_CHECK(read(fd, &byte, 1) == 1);
}

int main(void)
{
    static struct raw_client newcomer;
    static const char bytes[CLIENTS];
    pid_t keepers[CLIENTS];
    int said[2], go[2];
    alarm(55);
    signal(SIGPIPE, SIG_IGN);
    RAW_CHECK(pipe2(said, O_CLOEXEC) == 0 && pipe2(go, O_CLOEXEC) == 0);
    raw_server_start_multiuser(&server, "null");
    raw_neighbour_open(&server, 100);
    for (uint32_t i = 0; i < CLIENTS; i++)
        keepers[i] = start_keeper(200 + i, said, go);
    wait_for_all(said[0]);
    check_neighbour();
    RAW_CHECK(write(go[1], bytes, CLIENTS) == CLIENTS);
    wait_for_all(said[0]);
    check_neighbour();
    raw_client_open(&newcomer, raw_server_connect(&server, 300));
    raw_work_and_check(&newcomer, raw_alloc(&newcomer, PAGE, WIRE_MEMORY_KIND_DEVICE, NULL));
    raw_client_close(&newcomer);
    for (unsigned i = 0; i < CLIENTS; i++)
        RAW_CHECK(kill(keepers[i], SIGKILL) == 0 && waitpid(keepers[i], NULL, 0) == keepers[i]);
    raw_server_settle(&server, 1);
    check_neighbour();
    raw_client_close(&raw_neighbour);
    raw_server_finish(&server);
    puts("ok");
    return 0;
}
