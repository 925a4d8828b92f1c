/* How a process attaches, and what it makes of servers that refuse, misbehave or go away. */
#include "client/gen/api.h"

#include <criterion/criterion.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "client/session/older.h"
#include "fake.h"

static struct fake fake;

static CUresult init_with(void (*serve)(struct fake *f, int fd))
{
    fake_start(&fake, serve, NULL);
    return cuInit(0);
}

Test(attach, hello_says_what_the_environment_says)
{
    setenv("CUDA_MPS_ACTIVE_THREAD_PERCENTAGE", "12.5", 1);
    setenv("CUDA_MPS_CLIENT_PRIORITY", "1", 1);
    cr_assert_eq(init_with(fake_serve_well), CUDA_SUCCESS);
    cr_assert_eq(fake.hello.version, WIRE_VERSION);
    cr_assert_float_eq(fake.hello.share_pct, 12.5, 1e-9);
    cr_assert_eq(fake.hello.priority, 1);
    cr_assert(strlen(fake.command) > 0);
    int n = 0;
    cr_assert_eq(cuDeviceGetAttribute(&n, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, 0),
                 CUDA_SUCCESS);
    cr_assert_eq(n, 3, "the share granted, not the whole device");
    cr_assert_eq(cuDeviceGetAttribute(&n, CU_DEVICE_ATTRIBUTE_MPS_ENABLED, 0), CUDA_SUCCESS);
    cr_assert_eq(n, 1);
}

Test(attach, nonsense_in_the_environment_is_left_out)
{
    setenv("CUDA_MPS_ACTIVE_THREAD_PERCENTAGE", "lots", 1);
    setenv("CUDA_MPS_CLIENT_PRIORITY", "7", 1);
    cr_assert_eq(init_with(fake_serve_well), CUDA_SUCCESS);
    cr_assert_float_eq(fake.hello.share_pct, 0, 1e-9);
    cr_assert_eq(fake.hello.priority, -1);
}

Test(attach, no_visible_device)
{
    setenv("CUDA_VISIBLE_DEVICES", "-1", 1);
    cr_assert_eq(init_with(fake_serve_well), CUDA_ERROR_NO_DEVICE);
}

Test(attach, visible_by_uuid)
{
    setenv("CUDA_VISIBLE_DEVICES", "GPU-01020300-0000", 1);
    cr_assert_eq(init_with(fake_serve_well), CUDA_SUCCESS);
}

Test(attach, nothing_there)
{
    setenv("CUDA_MPS_PIPE_DIRECTORY", "/nonexistent", 1);
    setenv("GMUX_GENUINE_LIBCUDA", "none", 1);
    setenv("GMUX_LIBEXECDIR", "/nonexistent", 1);
    cr_assert_eq(cuInit(0), CUDA_ERROR_NO_DEVICE);
    int n;
    cr_assert_eq(cuDeviceGetCount(&n), CUDA_ERROR_NOT_INITIALIZED);
}

static void refuse(struct fake *f GM_UNUSED, int fd)
{
    uint8_t buffer[256];
    struct wire_enc e;
    wire_enc_init(&e, buffer, sizeof(buffer));
    wire_pack_refused(&e, 1, &(struct wire_refused) { .result = 808, .reason = "full" });
    fake_send(fd, &e, NULL, 0);
}

Test(attach, refused)
{
    cr_assert_eq(init_with(refuse), CUDA_ERROR_MPS_MAX_CLIENTS_REACHED);
    cr_assert_eq(cuInit(0), CUDA_ERROR_MPS_MAX_CLIENTS_REACHED, "asks again");
    cr_assert_eq(fake.connections, 2);
}

static void say_nothing(struct fake *f, int fd)
{
    int r = tp_recv(fd, &f->packet); /* until the client goes */
    (void)r;
}

Test(attach, nobody_answers, .timeout = 20)
{
    setenv("GMUX_ANSWER_TIMEOUT", "1", 1);
    cr_assert_eq(init_with(say_nothing), CUDA_ERROR_MPS_CONNECTION_FAILED);
}

/* A client that is kept waiting waits longer than for an answer. */
static void keep_waiting(struct fake *f, int fd)
{
    for (int i = 0; i < 4; i++) {
        uint8_t buffer[64];
        struct wire_enc e;
        struct pollfd p = { .fd = fd, .events = POLLIN };
        (void)poll(&p, 1, 500); /* half of its patience */
        wire_enc_init(&e, buffer, sizeof(buffer));
        wire_pack_waiting(&e, 0, &(struct wire_waiting) { 0 });
        fake_send(fd, &e, NULL, 0);
    }
    fake_serve_well(f, fd);
}

Test(attach, daemon_says_that_it_lives, .timeout = 20)
{
    setenv("GMUX_ANSWER_TIMEOUT", "1", 1);
    cr_assert_eq(init_with(keep_waiting), CUDA_SUCCESS);
}

/* What a program of this user makes of a daemon of `uid`: the child's cuInit. */
static int init_as(uid_t daemon, uid_t program, const char *named)
{
    int status = -1, to[2];
    cr_assert_eq(pipe(to), 0);
    static struct fake other;
    memset(&other, 0, sizeof(other));
    pid_t server = fork();
    if (server == 0) {
        if (setresuid(daemon, daemon, daemon) < 0)
            _exit(1);
        fake_start(&other, fake_serve_well, NULL);
        (void)chmod(other.directory, 0755);
        char path[128];
        (void)snprintf(path, sizeof(path), "%s/control", other.directory);
        (void)chmod(path, 0666);
        cr_assert_eq(write(to[1], other.directory, sizeof(other.directory)),
                     (ssize_t)sizeof(other.directory));
        pause();
        _exit(0);
    }
    cr_assert_eq(read(to[0], other.directory, sizeof(other.directory)),
                 (ssize_t)sizeof(other.directory));
    pid_t pid = fork();
    if (pid == 0) {
        alarm(15);
        setenv("CUDA_MPS_PIPE_DIRECTORY", other.directory, 1);
        setenv("GMUX_GENUINE_LIBCUDA", "none", 1);
        setenv("GMUX_LIBEXECDIR", "/nonexistent", 1);
        if (named)
            setenv("GMUX_DAEMON_USER", named, 1);
        if (setresuid(program, program, program) < 0)
            _exit(255);
        int r = (int)cuInit(0);
        _exit(r == CUDA_ERROR_MPS_CONNECTION_FAILED ? 250 : r);
    }
    cr_assert_eq(waitpid(pid, &status, 0), pid);
    kill(server, SIGKILL);
    (void)waitpid(server, NULL, 0);
    close(to[0]);
    close(to[1]);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

Test(attach, daemons_of_other_users_are_not_believed, .timeout = 60)
{
    if (geteuid() != 0)
        cr_skip_test("needs root");
    cr_assert_eq(init_as(12345, 12346, NULL), CUDA_ERROR_NO_DEVICE);
    cr_assert_eq(init_as(12345, 0, NULL), CUDA_ERROR_NO_DEVICE, "root believes nobody else either");
    cr_assert_eq(init_as(12345, 12346, "12347"), CUDA_ERROR_NO_DEVICE);
    cr_assert_eq(init_as(12345, 12346, "no-such-user"), CUDA_ERROR_NO_DEVICE);
    cr_assert_eq(init_as(12345, 12346, "12345"), CUDA_SUCCESS);
    cr_assert_eq(init_as(12345, 12345, NULL), CUDA_SUCCESS);
    cr_assert_eq(init_as(0, 12346, NULL), CUDA_SUCCESS);
    setenv("GMUX_REQUIRE", "1", 1);
    cr_assert_eq(init_as(12345, 12346, NULL), 250, "805");
}

Test(attach, a_daemon_is_required)
{
    setenv("CUDA_MPS_PIPE_DIRECTORY", "/nonexistent", 1);
    setenv("GMUX_LIBEXECDIR", "/nonexistent", 1);
    setenv("GMUX_GENUINE_LIBCUDA", "none", 1);
    setenv("GMUX_REQUIRE", "1", 1);
    cr_assert_eq(cuInit(0), CUDA_ERROR_MPS_CONNECTION_FAILED);
}

static void hang_up(struct fake *f GM_UNUSED, int fd GM_UNUSED)
{
}

Test(attach, hung_up)
{
    cr_assert_eq(init_with(hang_up), CUDA_ERROR_MPS_CONNECTION_FAILED);
    cr_assert_eq(fake.connections, 3);
}

static void serve_the_second(struct fake *f, int fd)
{
    if (f->connections > 1)
        fake_serve_well(f, fd);
}

/* The daemon has handed it over to a server that was dying. */
Test(attach, hung_up_once)
{
    cr_assert_eq(init_with(serve_the_second), CUDA_SUCCESS);
}

static size_t cut_at;
static void offer_cut(struct fake *f, int fd)
{
    fake_offer(f, fd, FAKE_WINDOW, cut_at);
}

/* Every length that is too short fails with an error, and leaves nothing mapped that would be in
 * the way. */
Test(attach, offers_cut_short, .timeout = 60)
{
    cut_at = 1;
    cr_assert_neq(init_with(offer_cut), CUDA_SUCCESS);
    for (cut_at = 1; cut_at < 240; cut_at++)
        cr_assert_neq(cuInit(0), CUDA_SUCCESS, "at %zu", cut_at);
    fake.serve = fake_serve_well;
    cr_assert_eq(cuInit(0), CUDA_SUCCESS);
}

static unsigned busy_answers;
static void offer_until_free(struct fake *f, int fd)
{
    uint64_t base = FAKE_WINDOW;
    fake_offer(f, fd, base, 0);
    while (tp_recv(fd, &f->packet) > 0 && f->packet.header.type == WIRE_SESSION_WINDOW_BUSY) {
        struct wire_session_window_busy m;
        wire_get_session_window_busy(&f->packet.body, &m);
        cr_assert_eq(m.window_base, base);
        busy_answers++;
        base += 2 * FAKE_HALF;
        fake_offer(f, fd, base, 0);
    }
    /* the packet at hand is session_ready */
    uint8_t buffer[64];
    struct wire_enc e;
    wire_enc_init(&e, buffer, sizeof(buffer));
    wire_pack_status(&e, f->packet.header.serial, &(struct wire_status) { 0 });
    fake_send(fd, &e, NULL, 0);
    fake_answer(f, fd, 0);
}

Test(attach, window_taken)
{
    void *first = (void *)FAKE_WINDOW,
         *second = (void *)(FAKE_WINDOW + 3 * FAKE_HALF); /* in its host area */
    cr_assert_eq(
        mmap(first, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0),
        first);
    cr_assert_eq(
        mmap(second, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0),
        second);
    cr_assert_eq(init_with(offer_until_free), CUDA_SUCCESS);
    cr_assert_eq(busy_answers, 2);
}

static void serve_then_vanish(struct fake *f, int fd)
{
    fake_offer(f, fd, FAKE_WINDOW, 0);
    fake_answer(f, fd, 3); /* ready, context, one allocation */
}

Test(attach, small_allocations_ask_nothing)
{
    CUcontext c;
    CUdeviceptr p, before;
    cr_assert_eq(init_with(fake_serve_well), CUDA_SUCCESS);
    cr_assert_eq(cuCtxCreate_v2(&c, 0, 0), CUDA_SUCCESS);
    cr_assert_eq(cuMemAlloc_v2(&before, 64), CUDA_SUCCESS);
    const uint64_t next = fake.next_address;
    for (unsigned i = 0; i < 100; i++) {
        cr_assert_eq(cuMemAlloc_v2(&p, 64), CUDA_SUCCESS);
        cr_assert_geq(p, before + 64);
        before = p;
    }
    cr_assert_eq(fake.next_address, next);
    cr_assert_eq(cuMemFree_v2(before), CUDA_SUCCESS);
    cr_assert_eq(cuMemFree_v2(before), CUDA_ERROR_INVALID_VALUE);
}

/* Two fit into each of the first segments; later segments are larger. */
Test(attach, many_small_allocations_ask_seldom)
{
    CUcontext c;
    CUdeviceptr p;
    unsigned questions = 0;
    cr_assert_eq(init_with(fake_serve_well), CUDA_SUCCESS);
    cr_assert_eq(cuCtxCreate_v2(&c, 0, 0), CUDA_SUCCESS);
    for (unsigned i = 0; i < 60; i++) {
        const uint64_t next = fake.next_address;
        cr_assert_eq(cuMemAlloc_v2(&p, 900 << 10), CUDA_SUCCESS);
        questions += fake.next_address != next;
    }
    cr_assert_leq(questions, 25, "%u questions", questions);
}

/* A server that goes away: its next question, and every wait, end with 806, which sticks. */
Test(attach, server_gone_in_a_question)
{
    CUcontext c;
    CUdeviceptr p;
    cr_assert_eq(init_with(serve_then_vanish), CUDA_SUCCESS);
    cr_assert_eq(cuCtxCreate_v2(&c, 0, 0), CUDA_SUCCESS);
    cr_assert_eq(cuMemAlloc_v2(&p, 17 << 20), CUDA_SUCCESS);
    cr_assert_eq(cuMemAlloc_v2(&p, 17 << 20), CUDA_ERROR_MPS_RPC_FAILURE);
    cr_assert_eq(cuCtxSynchronize(), CUDA_ERROR_MPS_RPC_FAILURE);
    cr_assert_eq(cuMemsetD8_v2(p, 0, 1), CUDA_ERROR_MPS_RPC_FAILURE);
}

Test(attach, server_gone_in_a_wait, .timeout = 20)
{
    CUcontext c;
    CUdeviceptr p;
    cr_assert_eq(init_with(serve_then_vanish), CUDA_SUCCESS);
    cr_assert_eq(cuCtxCreate_v2(&c, 0, 0), CUDA_SUCCESS);
    cr_assert_eq(cuMemAlloc_v2(&p, 64), CUDA_SUCCESS);
    CUresult r = cuMemsetD8_v2(p, 0, 1); /* nobody will ever read it */
    cr_assert(r == CUDA_SUCCESS || r == CUDA_ERROR_MPS_RPC_FAILURE);
    cr_assert_eq(cuCtxSynchronize(), CUDA_ERROR_MPS_RPC_FAILURE);
}

/* This time the ring is full, and the producer waits for room. */
Test(attach, server_gone_with_a_full_ring, .timeout = 20)
{
    CUcontext c;
    CUdeviceptr p;
    CUresult r = CUDA_SUCCESS;
    cr_assert_eq(init_with(serve_then_vanish), CUDA_SUCCESS);
    cr_assert_eq(cuCtxCreate_v2(&c, 0, 0), CUDA_SUCCESS);
    cr_assert_eq(cuMemAlloc_v2(&p, 64), CUDA_SUCCESS);
    for (int i = 0; i < 100000 && r == CUDA_SUCCESS; i++)
        r = cuMemsetD8Async(p, 0, 1, NULL);
    cr_assert_eq(r, CUDA_ERROR_MPS_RPC_FAILURE);
}

static void lie_about_addresses(struct fake *f, int fd)
{
    fake_offer(f, fd, FAKE_WINDOW, 0);
    fake_answer(f, fd, 2);
    if (tp_recv(fd, &f->packet) <= 0)
        return;
    uint8_t buffer[64];
    struct wire_enc e;
    wire_enc_init(&e, buffer, sizeof(buffer));
    wire_pack_memory_allocated(&e, f->packet.header.serial,
                               &(struct wire_memory_allocated) { .address = 0x1000 });
    fake_send(fd, &e, NULL, 0);
    fake_answer(f, fd, 0);
}

Test(attach, address_out_of_the_window)
{
    CUcontext c;
    CUdeviceptr p;
    cr_assert_eq(init_with(lie_about_addresses), CUDA_SUCCESS);
    cr_assert_eq(cuCtxCreate_v2(&c, 0, 0), CUDA_SUCCESS);
    cr_assert_eq(cuMemAlloc_v2(&p, 64), CUDA_ERROR_MPS_RPC_FAILURE);
}

/* --- a fork while another thread attaches ----------------------------------------------------- */

static int arrived[2], go[2];

static void offer_when_told(struct fake *f, int fd)
{
    char byte = 0;
    cr_assert_eq(write(arrived[1], &byte, 1), 1);
    cr_assert_eq(read(go[0], &byte, 1), 1);
    fake_serve_well(f, fd);
}

static void *attach_thread(void *arg)
{
    *(CUresult *)arg = cuInit(0);
    return NULL;
}

static unsigned sockets(void)
{
    char path[64], target[64];
    unsigned n = 0;
    for (int fd = 0; fd < 256; fd++) {
        snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
        ssize_t size = readlink(path, target, sizeof(target));
        n += size > 7 && memcmp(target, "socket:", 7) == 0;
    }
    return n;
}

/* Neither waits for a thread that it does not have, nor keeps the parent's connection; and may have
 * a session of its own. */
static int child_of_attaching(unsigned sockets_at_fork, const char *directory)
{
    CUcontext c;
    CUdeviceptr p;
    alarm(20);
    if (sockets() != sockets_at_fork - 1)
        return 1;
    setenv("CUDA_MPS_PIPE_DIRECTORY", directory, 1);
    if (cuInit(0) != CUDA_SUCCESS)
        return 2;
    return cuCtxCreate_v2(&c, 0, 0) == CUDA_SUCCESS && cuMemAlloc_v2(&p, 64) == CUDA_SUCCESS ? 0
                                                                                             : 3;
}

Test(attach, fork_in_the_middle, .timeout = 30)
{
    static struct fake second;
    CUresult result = CUDA_ERROR_UNKNOWN;
    pthread_t thread;
    char byte = 0;
    int status = -1;
#ifdef __SANITIZE_ADDRESS__
    cr_skip_test("its allocator's locks may be held by the thread that the child does not have");
#endif
    cr_assert(pipe(arrived) == 0 && pipe(go) == 0);
    fake_start(&second, fake_serve_well, NULL);
    fake_start(&fake, offer_when_told, NULL);
    cr_assert_eq(pthread_create(&thread, NULL, attach_thread, &result), 0);
    cr_assert_eq(read(arrived[0], &byte, 1), 1);
    unsigned before = sockets();
    pid_t pid = fork();
    if (pid == 0)
        _exit(child_of_attaching(before, second.directory));
    cr_assert(pid > 0 && waitpid(pid, &status, 0) == pid);
    cr_assert_eq(status, 0);
    cr_assert_eq(write(go[1], &byte, 1), 1);
    pthread_join(thread, NULL);
    cr_assert_eq(result, CUDA_SUCCESS, "the parent's goes on as if nothing had been");
}

/* No daemon, and a genuine driver. */
static void with_stand_in(void)
{
    setenv("CUDA_MPS_PIPE_DIRECTORY", "/nonexistent", 1);
    setenv("GMUX_LIBEXECDIR", "/nonexistent", 1);
    const char *path = getenv("STAND_IN");
    if (!path)
        cr_skip_test("STAND_IN names no library");
    setenv("GMUX_GENUINE_LIBCUDA", path, 1);
}

Test(attach, passes_through)
{
    int version = 0, n = 0;
    CUdeviceptr p;
    with_stand_in();
    cr_assert_eq(cuDriverGetVersion(&version), CUDA_SUCCESS);
    cr_assert_eq(version, 12345, "already before cuInit");
    cr_assert_eq(cuDeviceGetCount(&n), CUDA_ERROR_NOT_INITIALIZED);
    cr_assert_eq(cuInit(1), CUDA_ERROR_INVALID_VALUE);
    cr_assert_eq(cuInit(0), CUDA_SUCCESS);
    cr_assert_eq(cuInit(0), CUDA_SUCCESS);
    cr_assert_eq(cuDeviceGetCount(&n), CUDA_SUCCESS);
    cr_assert_eq(n, 77);
    cr_assert_eq(cuMemAlloc_v2(&p, 1), CUDA_ERROR_NOT_SUPPORTED, "the stand-in has none");
}

/* What only drawing programs use, as others ask for it: by its symbol, or by its name before
 * cuInit. */
Test(attach, passes_graphics_through)
{
    typedef CUresult (*devices_fn)(unsigned *, CUdevice *, unsigned, CUGLDeviceList);
    unsigned n = 0;
    CUdevice device = 0;
    devices_fn found = NULL;
    CUstream stream = NULL;
    CUeglFrame frame = { .frame.pPitch = { [2] = &n }, .cuFormat = 77 };
    with_stand_in();
    cr_assert_eq(cuGetProcAddress_v2("cuGLGetDevices", (void **)&found, 13000, 0, NULL),
                 CUDA_SUCCESS);
    cr_assert_eq(found, cuGLGetDevices_v2);
    cr_assert_eq(found(&n, &device, 1, CU_GL_DEVICE_LIST_ALL), CUDA_ERROR_NOT_INITIALIZED);
    cr_assert_eq(cuInit(0), CUDA_SUCCESS);
    cr_assert_eq(found(&n, &device, 3, CU_GL_DEVICE_LIST_NEXT_FRAME), CUDA_SUCCESS);
    cr_assert_eq(n, 6);
    cr_assert_eq(device, 5);
    cr_assert_eq(cuEGLStreamProducerPresentFrame((CUeglStreamConnection *)&n, frame, &stream),
                 (CUresult)77);
    cr_assert_eq(stream, (CUstream)&n, "a structure by value");
    cr_assert_eq(cuGLInit(), CUDA_ERROR_NOT_SUPPORTED, "the stand-in has none");
}

Test(attach, no_graphics_in_a_session)
{
    unsigned n = 0;
    CUdevice device = 0;
    cr_assert_eq(init_with(fake_serve_well), CUDA_SUCCESS);
    cr_assert_eq(cuGLGetDevices_v2(&n, &device, 1, CU_GL_DEVICE_LIST_ALL),
                 CUDA_ERROR_NOT_SUPPORTED);
}

typedef int (*shout_fn)(CUeglFrame, double, float, int, int, int, int, int, int);

static CUresult find(const char *name, int version, void **found)
{
    CUdriverProcAddressQueryResult status = (CUdriverProcAddressQueryResult)7;
    CUresult r = cuGetProcAddress_v2(name, found, version, 0, &status);
    cr_assert_eq(status,
                 *found ? CU_GET_PROC_ADDRESS_SUCCESS : CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND);
    return r;
}

/* A program that is newer than this library, with a driver that is, too. It asks before cuInit, as
 * NVIDIA's runtime does. */
Test(attach, a_newer_drivers_functions)
{
    const CUeglFrame frame = { .width = 1000 };
    shout_fn found = NULL, again = NULL, later = NULL;
    int (*synchronize)(int) = NULL;
    CUresult (*init)(unsigned) = NULL;
    void *none = &none;
    with_stand_in();
    cr_assert_eq(find("cuShout", 13010, (void **)&found), CUDA_SUCCESS);
    cr_assert_not_null(found);
    cr_assert_eq(find("cuShout", 13020, (void **)&again), CUDA_SUCCESS);
    cr_assert_eq(again, found);
    cr_assert_eq(find("cuWhisper", 13010, &none), CUDA_SUCCESS);
    cr_assert_null(none);
    cr_assert_eq(find("", 13010, &none), CUDA_SUCCESS);
    cr_assert_null(none);
    cr_assert_eq(find("cuShout", 13000, &none), CUDA_SUCCESS);
    cr_assert_null(none);
    cr_assert_eq(find("cuInit", 13010, (void **)&init), CUDA_SUCCESS);
    cr_assert_eq(init, cuInit, "ours");
    cr_assert_eq(find("cuCtxSynchronize", 13010, (void **)&synchronize), CUDA_SUCCESS);
    cr_assert_eq(found(frame, 1, 2, 3, 4, 5, 6, 7, 8), CUDA_ERROR_NOT_INITIALIZED);
    cr_assert_eq(synchronize(5), CUDA_ERROR_NOT_INITIALIZED);
    cr_assert_eq(init(0), CUDA_SUCCESS);
    cr_assert_eq(found(frame, 1, 2, 3, 4, 5, 6, 7, 8), 1036, "all arguments arrive");
    cr_assert_eq(synchronize(5), 5, "the variant that was asked for");
    cr_assert_eq(find("cuShout", 13010, (void **)&later), CUDA_SUCCESS);
    cr_assert_eq(later(frame, 1, 2, 3, 4, 5, 6, 7, 8), 1036);
}

Test(attach, a_newer_drivers_functions_in_a_session)
{
    const CUeglFrame frame = { .width = 1000 };
    shout_fn found = NULL;
    void *later = &later;
    fake_start(&fake, fake_serve_well, NULL);
    if (!getenv("STAND_IN"))
        cr_skip_test("STAND_IN names no library");
    setenv("GMUX_GENUINE_LIBCUDA", getenv("STAND_IN"), 1);
    cr_assert_eq(find("cuShout", 13010, (void **)&found), CUDA_SUCCESS);
    cr_assert_eq(found(frame, 1, 2, 3, 4, 5, 6, 7, 8), CUDA_ERROR_NOT_INITIALIZED);
    cr_assert_eq(cuInit(0), CUDA_SUCCESS);
    cr_assert_eq(found(frame, 1, 2, 3, 4, 5, 6, 7, 8), CUDA_ERROR_NOT_SUPPORTED);
    cr_assert_eq(find("cuShout", 13010, &later), CUDA_SUCCESS);
    cr_assert_null(later, "now it is known that there is none");
}

/* A driver without a device is as good as none; any other of its errors is the program's to see. */
Test(attach, genuine_without_device)
{
    with_stand_in();
    setenv("STAND_IN_INIT", "100", 1);
    cr_assert_eq(cuInit(0), CUDA_ERROR_NO_DEVICE, "no private server either");
}

Test(attach, genuine_that_fails)
{
    with_stand_in();
    setenv("STAND_IN_INIT", "803", 1);
    cr_assert_eq(cuInit(0), CUDA_ERROR_SYSTEM_DRIVER_MISMATCH);
}

/* The daemon comes first. */
Test(attach, daemon_before_genuine)
{
    int n = 0;
    fake_start(&fake, fake_serve_well, NULL);
    setenv("GMUX_GENUINE_LIBCUDA", getenv("STAND_IN") ? getenv("STAND_IN") : "none", 1);
    cr_assert_eq(cuInit(0), CUDA_SUCCESS);
    cr_assert_eq(cuDeviceGetCount(&n), CUDA_SUCCESS);
    cr_assert_eq(n, 1);
}

/* --- runtimes older than 12.0 ----------------------------------------------------------------- */

static const CUuuid runtime_table = { { 0x6b, (char)0xd5, (char)0xfb, 0x6c, 0x5b, (char)0xf4,
                                        (char)0xe7, 0x4a, (char)0x89, (char)0x87, (char)0xd9, 0x39,
                                        0x12, (char)0xfd, (char)0x9d, (char)0xf9 } };
static const CUuuid hooks_table = { { (char)0xa0, (char)0x94, 0x79, (char)0x8c, 0x2e, 0x74, 0x2e,
                                      0x74, (char)0x93, (char)0xf2, 0x08, 0x00, 0x20, 0x0c,
                                      (char)0x0a, 0x66 } };
static int hung_up_pipe[2];

static void serve_and_tell(struct fake *f, int fd)
{
    char byte = 0;
    fake_serve_well(f, fd);
    cr_assert_eq(write(hung_up_pipe[1], &byte, 1), 1);
}

/* A session on a GPU, which has the stand-in beside it; what goes to standard error comes back
 * through *errors. */
static void init_on_gpu(int *errors)
{
    int ends[2];
    if (!getenv("STAND_IN"))
        cr_skip_test("STAND_IN names no library");
    cr_assert(pipe(hung_up_pipe) == 0 && pipe2(ends, O_NONBLOCK) == 0 &&
              dup2(ends[1], STDERR_FILENO) >= 0);
    *errors = ends[0];
    fake_start(&fake, serve_and_tell, NULL);
    fake.features = WIRE_FEATURE_MEMORY_APART;
    setenv("GMUX_GENUINE_LIBCUDA", getenv("STAND_IN"), 1);
    cr_assert_eq(cuInit(0), CUDA_SUCCESS);
}

static void expect_text(int errors, const char *part)
{
    char text[512] = "";
    (void)!read(errors, text, sizeof(text) - 1);
    cr_assert(strstr(text, part), "%s is not in: %s", part, text);
    cr_assert_eq(strchr(text, '\n'), strrchr(text, '\n'), "one line");
}

static int device_count(void)
{
    int n = 0;
    cr_assert_eq(cuDeviceGetCount(&n), CUDA_SUCCESS);
    return n;
}

/* It finds cuGetExportTable by the dynamic linker (11.2) or the first cuGetProcAddress (11.3
 * to 11.8). */
static void older_runtime(CUresult expected)
{
    CUresult (*first_form)(const void **, const CUuuid *) = NULL;
    const void *table = &table, *again = &again;
    cr_assert_eq(cuGetProcAddress("cuGetExportTable", (void **)&first_form, 11080, 0),
                 CUDA_SUCCESS);
    cr_assert_eq(cuGetExportTable(&table, &runtime_table), expected);
    cr_assert_eq(table == NULL, expected != CUDA_SUCCESS);
    cr_assert_eq(first_form(&again, &runtime_table), expected);
    cr_assert_eq(again, table);
}

/* From 12.0 on it finds it by the second. */
static void newer_runtime(const CUuuid *id)
{
    CUresult (*export_table)(const void **, const CUuuid *) = NULL;
    const void *table = NULL;
    cr_assert_eq(cuGetProcAddress_v2("cuGetExportTable", (void **)&export_table, 12000, 0, NULL),
                 CUDA_SUCCESS);
    cr_assert_eq(export_table(&table, id), CUDA_SUCCESS);
    cr_assert_not_null(table);
}

Test(attach, an_older_runtime_goes_to_the_driver, .timeout = 20)
{
    char byte;
    int errors;
    init_on_gpu(&errors);
    cr_assert_eq(device_count(), 1);
    older_runtime(CUDA_SUCCESS);
    cr_assert_eq(device_count(), 77, "the genuine library's");
    cr_assert_eq(read(hung_up_pipe[0], &byte, 1), 1, "the server is told");
    cr_assert_eq(cuInit(0), CUDA_SUCCESS);
    cr_assert_eq(fake.connections, 1);
    expect_text(errors, "runs on the driver itself");
}

/* NVIDIA's runtime fails then, and says "invalid argument". */
Test(attach, a_runtime_without_nvidias_driver_is_told_why_once)
{
    const void *table = &table;
    int ends[2];
    cr_assert(pipe2(ends, O_NONBLOCK) == 0 && dup2(ends[1], STDERR_FILENO) >= 0);
    fake_start(&fake, fake_serve_well, NULL);
    setenv("GMUX_GENUINE_LIBCUDA", "none", 1);
    cr_assert_eq(cuInit(0), CUDA_SUCCESS);
    for (int i = 0; i < 3; i++)
        cr_assert_eq(cuGetExportTable(&table, &runtime_table), CUDA_ERROR_INVALID_VALUE);
    cr_assert_null(table);
    expect_text(ends[0], "works with NVIDIA's own driver only");
}

Test(attach, a_newer_runtime_stays)
{
    CUcontext c;
    int errors;
    init_on_gpu(&errors);
    newer_runtime(&runtime_table);
    newer_runtime(&hooks_table);
    cr_assert_eq(device_count(), 1);
    cr_assert_eq(cuCtxCreate_v2(&c, 0, 0), CUDA_SUCCESS);
    char byte;
    cr_assert_eq(read(errors, &byte, 1), -1, "nothing is said");
}

/* What the program has is the session's: it goes on, the runtime does not start. */
Test(attach, an_older_runtime_after_use_is_refused)
{
    CUcontext c;
    CUdeviceptr p;
    int errors;
    init_on_gpu(&errors);
    cr_assert_eq(cuCtxCreate_v2(&c, 0, 0), CUDA_SUCCESS);
    older_runtime(CUDA_ERROR_NOT_SUPPORTED);
    cr_assert_eq(device_count(), 1);
    cr_assert_eq(cuMemAlloc_v2(&p, 64), CUDA_SUCCESS);
    expect_text(errors, "refused");
}

Test(attach, an_older_runtime_beside_a_newer_one_is_refused)
{
    int errors;
    init_on_gpu(&errors);
    newer_runtime(&runtime_table);
    newer_runtime(&hooks_table); /* ours, by which it lives */
    older_runtime(CUDA_ERROR_NOT_SUPPORTED);
    cr_assert_eq(device_count(), 1);
}

Test(attach, an_older_runtime_where_sharing_is_required)
{
    int errors;
    setenv("GMUX_REQUIRE", "1", 1);
    init_on_gpu(&errors);
    older_runtime(CUDA_ERROR_NOT_SUPPORTED);
    cr_assert_eq(device_count(), 1);
    expect_text(errors, "GMUX_REQUIRE");
}

/* Loads some library by this name; the loader knows a file that it has already by its first name.
 */
static bool loaded_counts(const char *name)
{
    char directory[] = "/tmp/gmux-older-XXXXXX", path[128];
    cr_assert_not_null(mkdtemp(directory));
    snprintf(path, sizeof(path), "%s/%s", directory, name);
    int from = open(getenv("STAND_IN"), O_RDONLY), to = open(path, O_WRONLY | O_CREAT, 0700);
    while (sendfile(to, from, NULL, 1 << 20) > 0)
        ;
    (void)close(from);
    (void)close(to);
    cr_assert_not_null(dlopen(path, RTLD_NOW | RTLD_LOCAL));
    bool counts = rt_older_loaded();
    (void)unlink(path);
    (void)rmdir(directory);
    return counts;
}

/* One that is loaded already can be known at cuInit, before the program uses the driver API. */
Test(attach, an_older_runtime_that_is_loaded)
{
    CUcontext c;
    int errors;
    if (!getenv("STAND_IN"))
        cr_skip_test("STAND_IN names no library");
    cr_assert(!rt_older_loaded());
    cr_assert(!loaded_counts("libcudart.so.12"));
    cr_assert(loaded_counts("libcudart-d0da41ae.so.11.0"));
    init_on_gpu(&errors);
    cr_assert_eq(device_count(), 77);
    cr_assert_eq(cuCtxCreate_v2(&c, 0, 0), CUDA_ERROR_NOT_SUPPORTED, "the stand-in has none");
    const void *table = NULL;
    cr_assert_eq(cuGetExportTable(&table, &runtime_table), CUDA_SUCCESS);
    expect_text(errors, "runs on the driver itself");
}
