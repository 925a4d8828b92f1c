/*
 * gmux-jit: compiles kernels of the software device, PTX to machine code, for the process that
 * started it. LLVM lives here and nowhere else, inside a sandbox, because it works on text that
 * strangers wrote: a crash here is a kernel that stays interpreted.
 *
 *   gmux-jit --socket                      serves jobs on descriptor 3
 *                                          (src/device/soft/loader/job.h)
 *   gmux-jit [options] FILE.ptx ENTRY OUT  compiles one entry: for people and tests
 */
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <llvm-c/Core.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/parse.h"
#include "device/soft/ir/ir.h"
#include "jit/compile.h"
#include "jit/sandbox.h"
#include "jit/target.h"
#include "transport/memfd.h"

/* The request and its text; 0: peer closed; -errno. */
static int receive(struct soft_job_request *request, int *fd)
{
    union {
        struct cmsghdr align;
        char space[CMSG_SPACE(sizeof(int))];
    } control;
    struct iovec iov = { request, sizeof(*request) };
    struct msghdr m = { .msg_iov = &iov,
                        .msg_iovlen = 1,
                        .msg_control = control.space,
                        .msg_controllen = sizeof(control.space) };
    ssize_t n;

    *fd = -1;
    do
        n = recvmsg(SOFT_JOB_SOCKET, &m, MSG_CMSG_CLOEXEC);
    while (n < 0 && errno == EINTR);
    if (n <= 0)
        return n < 0 ? -errno : 0;
    struct cmsghdr *c = CMSG_FIRSTHDR(&m);
    if (c && c->cmsg_level == SOL_SOCKET && c->cmsg_type == SCM_RIGHTS &&
        c->cmsg_len == CMSG_LEN(sizeof(int)))
        memcpy(fd, CMSG_DATA(c), sizeof(int));
    if ((size_t)n != sizeof(*request) || (m.msg_flags & MSG_TRUNC) ||
        request->magic != SOFT_JOB_MAGIC)
        return -EBADMSG;
    request->entry[sizeof(request->entry) - 1] = 0;
    return 1;
}

static int send_answer(const struct soft_job_answer *answer, int fd)
{
    union {
        struct cmsghdr align;
        char space[CMSG_SPACE(sizeof(int))];
    } control;
    struct iovec iov = { (void *)(uintptr_t)answer, sizeof(*answer) };
    struct msghdr m = { .msg_iov = &iov, .msg_iovlen = 1 };

    if (fd >= 0) {
        memset(&control, 0, sizeof(control));
        control.align = (struct cmsghdr) { .cmsg_len = CMSG_LEN(sizeof(int)),
                                           .cmsg_level = SOL_SOCKET,
                                           .cmsg_type = SCM_RIGHTS };
        memcpy(CMSG_DATA(&control.align), &fd, sizeof(int));
        m.msg_control = control.space;
        m.msg_controllen = sizeof(control.space);
    }
    ssize_t n;
    do
        n = sendmsg(SOFT_JOB_SOCKET, &m, MSG_NOSIGNAL);
    while (n < 0 && errno == EINTR);
    return n < 0 ? -errno : 0;
}

/* The text that came last, and its module. All kernels of a program often have one text, which may
 * take longer to parse than each of them to compile. */
static struct {
    char *text;
    size_t size;
    struct ir_module *m; /* NULL: there is none */
} last;

static int parse_text(int fd, size_t size, struct jit_times *times, char *why, size_t why_size)
{
    char *text = tp_memfd_map(fd, size, false);
    if (!text) {
        snprintf(why, why_size, "%s", strerror(errno));
        return -ENOMEM;
    }
    if (last.m && last.size == size && memcmp(last.text, text, size) == 0) {
        munmap(text, size);
        return 0;
    }
    if (last.text)
        munmap(last.text, last.size);
    ir_module_destroy(last.m);
    last.text = text;
    last.size = size;
    last.m = NULL;
    return jit_parse(text, size, &last.m, times, why, why_size);
}

/* Compiles what the request asks for; the descriptor of the object in *out. */
static int run_job(const struct soft_job_request *request, int fd, struct soft_job_answer *answer,
                   int *out)
{
    LLVMMemoryBufferRef object;
    struct jit_times times = { 0 };
    uint64_t size = request->text_size;

    if (fd < 0 || size == 0 || size > SOFT_JOB_TEXT_MAX || tp_memfd_check(fd, size, true) < 0) {
        snprintf(answer->reason, sizeof(answer->reason), "no proper text");
        return -EBADMSG;
    }
    int r = parse_text(fd, size, &times, answer->reason, sizeof(answer->reason));
    if (r == 0)
        r = jit_compile(last.m, request->entry, &request->options, NULL, &object, &times,
                        answer->reason, sizeof(answer->reason));
    if (r < 0)
        return r;
    answer->object_size = LLVMGetBufferSize(object);
    *out = tp_memfd_from_bytes("gmux-object", LLVMGetBufferStart(object), answer->object_size);
    LLVMDisposeMemoryBuffer(object);
    return *out < 0 ? *out : 0;
}

static time_t cpu_seconds(void)
{
    struct timespec ts;
    return clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &ts) == 0 ? ts.tv_sec : 0;
}

static int serve(void)
{
    static struct soft_job_request request;
    struct soft_job_answer hello = { .magic = SOFT_JOB_MAGIC };
    const char *what;

    signal(SIGPIPE, SIG_IGN);
    prctl(PR_SET_PDEATHSIG, SIGKILL); /* nobody is left to stop an endless compile */
    int r = jit_sandbox_enter(&what);
    if (r < 0) {
        fprintf(stderr, "gmux-jit: sandbox: %s: %s\n", what, strerror(-r));
        return 1;
    }
    snprintf(hello.reason, sizeof(hello.reason), "LLVM %s", GMUX_LLVM_VERSION);
    if (send_answer(&hello, -1) < 0)
        return 1;
    for (;;) {
        GM_AUTO_FD int fd = -1;
        GM_AUTO_FD int object = -1;
        r = receive(&request, &fd);
        if (r <= 0)
            return r < 0;
        struct soft_job_answer answer = { .magic = SOFT_JOB_MAGIC, .serial = request.serial };
        r = run_job(&request, fd, &answer, &object);
        answer.status = r == 0          ? SOFT_JOB_OK
                        : r == -ENOTSUP ? SOFT_JOB_UNSUPPORTED
                                        : SOFT_JOB_FAILED;
        if (send_answer(&answer, object) < 0)
            return 1;
        if (cpu_seconds() > JIT_SANDBOX_CPU_S / 2)
            return 0; /* ends before the time limit hits a job; for the next job there will be
                         another process */
    }
}

static char *read_file(const char *path, size_t *size)
{
    GM_AUTO_FILE FILE *f = fopen(path, "rb");
    char *bytes = malloc(SOFT_JOB_TEXT_MAX);
    if (!f || !bytes) {
        fprintf(stderr, "gmux-jit: %s: %s\n", path, strerror(errno));
        free(bytes);
        return NULL;
    }
    *size = fread(bytes, 1, SOFT_JOB_TEXT_MAX, f);
    return bytes;
}

static int write_file(const char *path, const void *bytes, size_t size)
{
    GM_AUTO_FILE FILE *f = fopen(path, "wb");
    if (f && fwrite(bytes, 1, size, f) == size)
        return 0;
    fprintf(stderr, "gmux-jit: %s: %s\n", path, strerror(errno));
    return 1;
}

static const char help[] = "usage: gmux-jit [options] FILE.ptx ENTRY OUT.o\n"
                           "       gmux-jit --socket\n"
                           "\n"
                           "  -b, --block X,Y,Z   block size that the code is for; any without it\n"
                           "  -i, --isa NAME      native, avx2 or base\n"
                           "  -d, --dump FILE     write the LLVM module before optimisation\n"
                           "  -t, --times         print how long each step took\n"
                           "      --socket        serve jobs of the process that started this one\n"
                           "  -h, --help          print this\n"
                           "  -v, --version       print versions\n";

struct arguments {
    struct soft_job_options options;
    const char *dump;
    bool times;
};

static int compile_file(const struct arguments *a, const char *path, const char *entry,
                        const char *out)
{
    LLVMMemoryBufferRef object;
    struct jit_times t = { 0 };
    char why[SOFT_JOB_REASON_MAX] = "";
    size_t size;
    GM_AUTO_FREE char *text = read_file(path, &size);
    if (!text)
        return 1;
    struct ir_module *m = NULL;
    int r = jit_parse(text, size, &m, &t, why, sizeof(why));
    if (r == 0)
        r = jit_compile(m, entry, &a->options, a->dump, &object, &t, why, sizeof(why));
    ir_module_destroy(m);
    if (a->times)
        printf("parse %.2f ms, analyse %.2f ms, emit %.2f ms, optimise %.2f ms, generate code %.2f "
               "ms\n",
               (double)t.parse / 1e6, (double)t.analyse / 1e6, (double)t.emit / 1e6,
               (double)t.optimise / 1e6, (double)t.compile / 1e6);
    if (r < 0) {
        fprintf(stderr, "gmux-jit: %s: %s%s\n", entry, r == -ENOTSUP ? "unsupported: " : "", why);
        return r == -ENOTSUP ? 2 : 1;
    }
    r = write_file(out, LLVMGetBufferStart(object), LLVMGetBufferSize(object));
    LLVMDisposeMemoryBuffer(object);
    return r;
}

static bool parse_isa(const char *name, uint32_t *out)
{
    static const char *const names[] = { "native", "avx2", "base" };
    for (uint32_t i = 0; i < GM_ARRAY_LEN(names); i++) {
        if (strcmp(name, names[i]) == 0) {
            *out = i;
            return true;
        }
    }
    return false;
}

int main(int argc, char **argv)
{
    static const struct option options[] = {
        { "block", required_argument, NULL, 'b' }, { "isa", required_argument, NULL, 'i' },
        { "dump", required_argument, NULL, 'd' },  { "times", no_argument, NULL, 't' },
        { "socket", no_argument, NULL, 's' },      { "help", no_argument, NULL, 'h' },
        { "version", no_argument, NULL, 'v' },     { NULL, 0, NULL, 0 },
    };
    struct arguments a = { 0 };
    bool socket = false, good = true;
    int o;

    while ((o = getopt_long(argc, argv, "b:i:d:thv", options, NULL)) != -1) {
        switch (o) {
        case 'b':
            good &= sscanf(optarg, "%u,%u,%u", &a.options.ntid[0], &a.options.ntid[1],
                           &a.options.ntid[2]) == 3;
            break;
        case 'i':
            good &= parse_isa(optarg, &a.options.isa);
            break;
        case 'd':
            a.dump = optarg;
            break;
        case 't':
            a.times = true;
            break;
        case 's':
            socket = true;
            break;
        case 'h':
            fputs(help, stdout);
            return 0;
        case 'v':
            puts("gmux-jit " GMUX_VERSION ", LLVM " GMUX_LLVM_VERSION);
            return 0;
        default:
            good = false;
            break;
        }
    }
    if (!good || (socket ? argc != optind : argc - optind != 3)) {
        fputs(help, stderr);
        return 1;
    }
    if (!jit_target_init()) {
        fprintf(stderr, "gmux-jit: this LLVM cannot compile for this machine\n");
        return 1;
    }
    return socket ? serve() : compile_file(&a, argv[optind], argv[optind + 1], argv[optind + 2]);
}
