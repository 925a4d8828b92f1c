/*
 * What the executor of a contained device gives up before the first client comes. It runs programs'
 * kernels, so nobody believes it, and a kernel that finds a hole in it can do only what the process
 * itself may still do.
 *
 * If it is root's process it becomes a user that owns nothing: "gmux" if the machine has that user,
 * else a number that belongs to nobody. (It is not "nobody", because other processes are that user,
 * too, and could kill it.) It has opened what it needs of the file system: its cache, and gmux-jit.
 */
#include <errno.h>
#include <grp.h>
#include <pwd.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/sandbox.h"
#include "executor/executor.h"

#define USER   "gmux"
#define NUMBER 65520u /* above those that systemd hands out, below "nobody" */

/* The system calls that stay allowed: for memory, for sockets to the server and gmux-jit, for
 * clients' memfds, for threads, for sleeping, for files below descriptors, and to start gmux-jit,
 * which inherits this list and cuts it down further. None of them reads or traces other processes,
 * makes connections, mounts, or loads anything into the kernel. */
static const int allowed[] = {
    /* memory */
    SYS_munmap,
    SYS_mremap,
    SYS_madvise,
    SYS_brk,
    SYS_memfd_create,
    SYS_ftruncate,
    SYS_fallocate,
    SYS_membarrier,
    SYS_mlock,
    SYS_munlock,
    SYS_mincore,
    /* descriptors */
    SYS_read,
    SYS_write,
    SYS_readv,
    SYS_writev,
    SYS_pread64,
    SYS_pwrite64,
    SYS_close,
    SYS_fstat,
    SYS_newfstatat,
    SYS_statx,
    SYS_lseek,
    SYS_fcntl,
    SYS_dup,
    SYS_dup3,
    SYS_eventfd2,
    SYS_ppoll,
    SYS_fstatfs,
    SYS_socketpair,
    SYS_recvmsg,
    SYS_sendmsg,
    SYS_recvfrom,
    SYS_sendto,
    /* files: the cache */
    SYS_openat,
    SYS_unlinkat,
    SYS_renameat,
    SYS_renameat2,
    SYS_getdents64,
    SYS_utimensat,
    SYS_fsync,
    SYS_faccessat,
    SYS_faccessat2,
    SYS_readlinkat,
    /* threads, time */
    SYS_futex,
    SYS_set_robust_list,
    SYS_rseq,
    SYS_sched_yield,
    SYS_sched_getaffinity,
    SYS_clock_gettime,
    SYS_clock_getres,
    SYS_clock_nanosleep,
    SYS_nanosleep,
    SYS_gettimeofday,
    SYS_getrusage,
    SYS_prctl,
    SYS_getcpu,
    SYS_restart_syscall,
    SYS_exit,
    SYS_exit_group,
    SYS_gettid,
    SYS_getpid,
    SYS_getppid,
    SYS_getuid,
    SYS_geteuid,
    SYS_getgid,
    SYS_getegid,
    SYS_getrandom,
    SYS_sysinfo,
    SYS_uname,
    /* signals */
    SYS_rt_sigaction,
    SYS_rt_sigprocmask,
    SYS_rt_sigreturn,
    SYS_sigaltstack,
    SYS_tgkill,
    SYS_kill,
    /* gmux-jit */
    SYS_execve,
    SYS_wait4,
    SYS_waitid,
    SYS_set_tid_address,
    SYS_prlimit64,
    SYS_seccomp,
#if defined(__x86_64__)
    SYS_vfork,
    SYS_arch_prctl,
    SYS_poll,
    SYS_open,
    SYS_access,
    SYS_readlink,
    SYS_rename,
    SYS_unlink,
    SYS_dup2,
    SYS_stat,
    SYS_getrlimit,
    SYS_setrlimit,
    SYS_time,
#endif
};

uint32_t exe_confine_user(void)
{
    if (geteuid() != 0)
        return 0;
    const struct passwd *p = getpwnam(USER);
    return p && p->pw_uid != 0 ? p->pw_uid : NUMBER;
}

/* 0 or -errno. */
static int become(uint32_t user)
{
    pid_t parent = getppid();
    if (setgroups(0, NULL) < 0 || setresgid(user, user, user) < 0 ||
        setresuid(user, user, user) < 0)
        return -errno;
    /* The kernel forgets this when the user changes. */
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent)
        raise(SIGKILL);
    return 0;
}

int exe_confine(const struct dev_ops *ops, uint32_t user, const char **what)
{
    const struct gm_sandbox sandbox = {
        .calls = allowed, .count = GM_ARRAY_LEN(allowed), .loads_code = true, .starts = true
    };
    int r;
    *what = "no_new_privs";
    if (!ops->contained)
        return gm_sandbox_no_privileges();
    prctl(PR_SET_DUMPABLE, 0);
    *what = "another user";
    if (user && (r = become(user)) < 0)
        return r;
    *what = "seccomp";
    return gm_sandbox_enter(&sandbox);
}
