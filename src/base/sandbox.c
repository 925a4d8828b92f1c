/*
 * Makes a seccomp filter from a list of system calls and enters it.
 */
#include "base/sandbox.h"

#include <errno.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#if defined(__x86_64__)
#define HOST_AUDIT_ARCH AUDIT_ARCH_X86_64
#elif defined(__aarch64__)
#define HOST_AUDIT_ARCH AUDIT_ARCH_AARCH64
#endif

int gm_sandbox_no_privileges(void)
{
    return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 ? -errno : 0;
}

#ifdef HOST_AUDIT_ARCH
#define LOAD(field)                                                                                \
    BPF_STMT(BPF_LD | BPF_W | BPF_ABS, (uint32_t)offsetof(struct seccomp_data, field))
#define JUMP_IF(value, yes, no)    BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)(value), yes, no)
#define JUMP_IF_ANY(bits, yes, no) BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, (uint32_t)(bits), yes, no)
#define RETURN(action)             BPF_STMT(BPF_RET | BPF_K, (uint32_t)(action))

/* Clone flags of namespaces: of mounts, cgroups, host names, IPC, users, processes, networks,
 * clocks. */
#define NAMESPACES 0x7e020080u
#define EXECUTABLE 4u /* PROT_EXEC */

struct program {
    struct sock_filter code[32 + 2 * GM_SANDBOX_CALLS];
    unsigned short n;
};

static void add(struct program *p, struct sock_filter f)
{
    p->code[p->n++] = f;
}

/* Allows a call if none of `bits` is set in its argument `arg`, of which the low half counts. */
static void add_unless(struct program *p, int call, size_t arg, uint32_t bits)
{
    add(p, (struct sock_filter)JUMP_IF(call, 0, 4));
    add(p, (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS,
                                        (uint32_t)(offsetof(struct seccomp_data, args) + 8 * arg)));
    add(p, (struct sock_filter)JUMP_IF_ANY(bits, 0, 1));
    add(p, (struct sock_filter)RETURN(SECCOMP_RET_ERRNO | EPERM));
    add(p, (struct sock_filter)RETURN(SECCOMP_RET_ALLOW));
}

static void write_program(struct program *p, const struct gm_sandbox *s)
{
    add(p, (struct sock_filter)LOAD(arch));
    add(p, (struct sock_filter)JUMP_IF(HOST_AUDIT_ARCH, 1, 0));
    add(p, (struct sock_filter)RETURN(SECCOMP_RET_KILL_PROCESS));
    add(p, (struct sock_filter)LOAD(nr));
#if defined(__x86_64__)
    add(p, (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JGE | BPF_K, 0x40000000u /* x32 */, 0, 1));
    add(p, (struct sock_filter)RETURN(SECCOMP_RET_KILL_PROCESS));
#endif
    for (size_t i = 0; i < s->count; i++) {
        add(p, (struct sock_filter)JUMP_IF(s->calls[i], 0, 1));
        add(p, (struct sock_filter)RETURN(SECCOMP_RET_ALLOW));
    }
    add_unless(p, SYS_mmap, 2, s->loads_code ? 0 : EXECUTABLE);
    add_unless(p, SYS_mprotect, 2, s->loads_code ? 0 : EXECUTABLE);
    if (s->starts) {
        add_unless(p, SYS_clone, 0, NAMESPACES);
        /* The flags of clone3 are in memory, where a filter cannot look. When it fails the C
         * library uses clone. */
        add(p, (struct sock_filter)JUMP_IF(SYS_clone3, 0, 1));
        add(p, (struct sock_filter)RETURN(SECCOMP_RET_ERRNO | ENOSYS));
    }
    add(p, (struct sock_filter)RETURN(SECCOMP_RET_ERRNO | EPERM));
}

int gm_sandbox_enter(const struct gm_sandbox *s)
{
    struct program p = { .n = 0 };
    int r = gm_sandbox_no_privileges();
    if (r < 0)
        return r;
    if (s->count > GM_SANDBOX_CALLS)
        return -E2BIG;
    write_program(&p, s);
    struct sock_fprog f = { .len = p.n, .filter = p.code };
    long n = syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_TSYNC, &f);
    /* The thread that already has a filter of its own. */
    return n < 0 ? -errno : n > 0 ? -EBUSY : 0;
}
#else
int gm_sandbox_enter(const struct gm_sandbox *s)
{
    return gm_sandbox_no_privileges();
}
#endif
