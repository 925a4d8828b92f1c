/*
 * Limits of resources, then the filter of system calls.
 */
#include "jit/sandbox.h"

#include <errno.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/oom.h"
#include "base/sandbox.h"

#define ADDRESS_SPACE_MAX (4ull << 30)
#define DESCRIPTORS_MAX   16

/* Sanitizers need more addresses than there are bytes. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SANITIZED 1
#else
#define SANITIZED 0
#endif

/* Memory, the socket, memfds for the objects, the clock, and leaving. Nothing that opens, connects,
 * or makes processes; no memory becomes executable. */
static const int allowed[] = {
    SYS_read,          SYS_write,
    SYS_close,         SYS_fstat,
    SYS_lseek,         SYS_munmap,
    SYS_brk,           SYS_mremap,
    SYS_madvise,       SYS_recvmsg,
    SYS_sendmsg,       SYS_ppoll,
    SYS_fstatfs,       SYS_memfd_create,
    SYS_ftruncate,     SYS_fcntl,
    SYS_futex,         SYS_getpid,
    SYS_gettid,        SYS_tgkill,
    SYS_rt_sigaction,  SYS_rt_sigprocmask,
    SYS_rt_sigreturn,  SYS_sigaltstack,
    SYS_exit,          SYS_exit_group,
    SYS_clock_gettime, SYS_getrandom,
    SYS_sched_yield,   SYS_sched_getaffinity,
#ifdef SYS_poll
    SYS_poll,
#endif
#ifdef SYS_newfstatat
    SYS_newfstatat, /* fstat of newer C libraries */
#endif
};

static int limit(int what, rlim_t value)
{
    struct rlimit r = { value, value };
    return setrlimit((__rlimit_resource_t)what, &r) < 0 ? -errno : 0;
}

int jit_sandbox_enter(const char **what)
{
    int r;
    gm_oom_offer(GM_OOM_FIRST); /* before its files in /proc belong to root */
    prctl(PR_SET_DUMPABLE, 0);
    *what = "limits";
    if ((r = limit(RLIMIT_CORE, 0)) < 0 || (r = limit(RLIMIT_NOFILE, DESCRIPTORS_MAX)) < 0 ||
        (r = limit(RLIMIT_CPU, JIT_SANDBOX_CPU_S)) < 0)
        return r;
#if !SANITIZED
    if ((r = limit(RLIMIT_AS, ADDRESS_SPACE_MAX)) < 0)
        return r;
#endif
    *what = "seccomp";
    const struct gm_sandbox sandbox = { .calls = allowed, .count = GM_ARRAY_LEN(allowed) };
    return gm_sandbox_enter(&sandbox);
}
