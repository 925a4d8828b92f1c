/*
 * Runs a program up to one of its system calls, those of its threads and children counted with it,
 * and kills them all there:
 *     step NUMBER [-p PROBE] PROGRAM [ARGUMENT]...
 * With a probe that is run meanwhile, while they stand still in front of that call, and has to end
 * with status 0. Status 0: killed; 1: it makes fewer calls; 2: the probe failed; 3: we did.
 */
#include <errno.h>
#include <signal.h>
#include <spawn.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>

#define TRACED_MAX 256u
#define OPTIONS                                                                                    \
    (PTRACE_O_EXITKILL | PTRACE_O_TRACESYSGOOD | PTRACE_O_TRACEFORK | PTRACE_O_TRACEVFORK |        \
     PTRACE_O_TRACECLONE)

static struct traced {
    pid_t id;    /* of a thread; 0: free */
    bool inside; /* of a call */
} traced[TRACED_MAX];

static struct traced *find(pid_t id)
{
    struct traced *unused = NULL;
    for (struct traced *t = traced; t < traced + TRACED_MAX; t++) {
        if (t->id == id)
            return t;
        if (!t->id && !unused)
            unused = t;
    }
    if (!unused)
        exit(3);
    *unused = (struct traced) { .id = id };
    return unused;
}

static pid_t start(char **args)
{
    pid_t child = fork();
    if (child == 0) {
        if (ptrace(PTRACE_TRACEME, 0, NULL, NULL) == 0 && raise(SIGSTOP) == 0)
            execvp(args[0], args);
        _exit(127);
    }
    if (child < 0 || waitpid(child, NULL, __WALL) != child ||
        ptrace(PTRACE_SETOPTIONS, child, NULL, OPTIONS) < 0 ||
        ptrace(PTRACE_SYSCALL, child, NULL, NULL) < 0)
        exit(3);
    return child;
}

static bool probe_is_well(const char *program)
{
    char *const args[] = { strdup(program), NULL };
    pid_t id;
    int status;
    const bool well = posix_spawn(&id, program, NULL, NULL, args, environ) == 0 &&
                      waitpid(id, &status, 0) == id && WIFEXITED(status) &&
                      WEXITSTATUS(status) == 0;
    free(args[0]);
    return well;
}

/* Also children that nobody has heard of yet. */
static void kill_all(void)
{
    int status;
    for (struct traced *t = traced; t < traced + TRACED_MAX; t++)
        if (t->id)
            kill(t->id, SIGKILL);
    for (pid_t id; (id = waitpid(-1, &status, __WALL)) > 0 || errno == EINTR;)
        if (id > 0 && WIFSTOPPED(status))
            kill(id, SIGKILL);
}

/* What a thread has stopped for; the signal that it gets then. */
static int signal_for(int status)
{
    const int number = WSTOPSIG(status);
    if (status >> 16 != 0 || number == (SIGTRAP | 0x80) || number == SIGTRAP)
        return 0;
    return number == SIGSTOP ? 0 : number; /* each new one begins with that */
}

int main(int argc, char **argv)
{
    const char *probe = NULL;
    int at = 2, status;
    if (argc > 4 && strcmp(argv[2], "-p") == 0) {
        probe = argv[3];
        at = 4;
    }
    if (argc <= at)
        return 3;
    unsigned long left = strtoul(argv[1], NULL, 10);
    (void)find(start(argv + at));
    for (pid_t id; (id = waitpid(-1, &status, __WALL)) > 0;) {
        struct traced *t = find(id);
        if (!WIFSTOPPED(status)) {
            t->id = 0;
            continue;
        }
        if (WSTOPSIG(status) == (SIGTRAP | 0x80))
            t->inside = !t->inside;
        if (WSTOPSIG(status) == (SIGTRAP | 0x80) && t->inside && left-- == 0) {
            const bool well = !probe || probe_is_well(probe);
            kill_all();
            return well ? 0 : 2;
        }
        ptrace(PTRACE_SYSCALL, id, NULL, signal_for(status));
    }
    return 1;
}
