#include "jit/sandbox.h"

#include <errno.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#define ADDRESS_SPACE_MAX (4ull << 30)
#define DESCRIPTORS_MAX   16

#if defined(__x86_64__)
#define HOST_AUDIT_ARCH AUDIT_ARCH_X86_64
#elif defined(__aarch64__)
#define HOST_AUDIT_ARCH AUDIT_ARCH_AARCH64
#endif

/* Memory, the socket, memfds for the objects, the clock, and leaving. Nothing that opens, connects, or makes
 * processes; mmap and mprotect without PROT_EXEC (below). */
static const int allowed[] = {
    SYS_read,       SYS_write,        SYS_close,         SYS_fstat,          SYS_lseek,        SYS_munmap,
    SYS_brk,        SYS_mremap,       SYS_madvise,       SYS_recvmsg,        SYS_sendmsg,      SYS_ppoll,
    SYS_fstatfs,    SYS_memfd_create, SYS_ftruncate,     SYS_fcntl,          SYS_futex,        SYS_getpid,
    SYS_gettid,     SYS_tgkill,       SYS_rt_sigaction,  SYS_rt_sigprocmask, SYS_rt_sigreturn, SYS_sigaltstack,
    SYS_exit,       SYS_exit_group,   SYS_clock_gettime, SYS_getrandom,      SYS_sched_yield,  SYS_sched_getaffinity,
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

#ifdef HOST_AUDIT_ARCH
#define LOAD(field)             BPF_STMT(BPF_LD | BPF_W | BPF_ABS, (uint32_t)offsetof(struct seccomp_data, field))
#define JUMP_IF(value, yes, no) BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)(value), yes, no)
#define RETURN(action)          BPF_STMT(BPF_RET | BPF_K, (uint32_t)(action))

/* Another architecture's system calls: killed. Not allowed: EPERM, so that a C library that asks for something new
 * can take its other way. */
static int filter_system_calls(void)
{
    struct sock_filter program[16 + 2 * GM_ARRAY_LEN(allowed)];
    unsigned short n = 0;

    program[n++] = (struct sock_filter)LOAD(arch);
    program[n++] = (struct sock_filter)JUMP_IF(HOST_AUDIT_ARCH, 1, 0);
    program[n++] = (struct sock_filter)RETURN(SECCOMP_RET_KILL_PROCESS);
    program[n++] = (struct sock_filter)LOAD(nr);
#if defined(__x86_64__)
    program[n++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JGE | BPF_K, 0x40000000u /* x32 */, 0, 1);
    program[n++] = (struct sock_filter)RETURN(SECCOMP_RET_KILL_PROCESS);
#endif
    for (size_t i = 0; i < GM_ARRAY_LEN(allowed); i++) {
        program[n++] = (struct sock_filter)JUMP_IF(allowed[i], 0, 1);
        program[n++] = (struct sock_filter)RETURN(SECCOMP_RET_ALLOW);
    }
    program[n++] = (struct sock_filter)JUMP_IF(SYS_mmap, 1, 0);
    program[n++] = (struct sock_filter)JUMP_IF(SYS_mprotect, 0, 3);
    program[n++] = (struct sock_filter)LOAD(args[2]); /* protection: low half, little endian */
    program[n++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, 4u /* PROT_EXEC */, 1, 0);
    program[n++] = (struct sock_filter)RETURN(SECCOMP_RET_ALLOW);
    program[n++] = (struct sock_filter)RETURN(SECCOMP_RET_ERRNO | EPERM);

    struct sock_fprog f = { .len = n, .filter = program };
    return prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &f, 0, 0) < 0 ? -errno : 0;
}
#else
static int filter_system_calls(void)
{
    return 0;
}
#endif

int jit_sandbox_enter(const char **what)
{
    int r;
    *what = "limits";
    if ((r = limit(RLIMIT_CORE, 0)) < 0 || (r = limit(RLIMIT_NOFILE, DESCRIPTORS_MAX)) < 0 ||
        (r = limit(RLIMIT_CPU, JIT_SANDBOX_CPU_S)) < 0)
        return r;
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
    if ((r = limit(RLIMIT_AS, ADDRESS_SPACE_MAX)) < 0)
        return r;
#endif
    *what = "no_new_privs";
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
        return -errno;
    *what = "seccomp";
    return filter_system_calls();
}
