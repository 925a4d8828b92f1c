/*
 * gmux doctor: says what a program that starts here would get, and why, and what is wrong. Each
 * finding is a line. What the library does is tried, not guessed: a child process loads it and asks
 * for a device, as a program would.
 */
#include <dlfcn.h>
#include <errno.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "cli/command.h"
#include "cli/place.h"
#include "cli/program.h"
#include "control/place.h"
#include "transport/sock.h"

#define PROBE_S 40 /* longer than the library's own patience */

static unsigned problems;

enum kind { OK, NOTE, BAD };

static void say(enum kind kind, const char *fmt, ...) GM_PRINTF(2, 3);
static void say(enum kind kind, const char *fmt, ...)
{
    static const char *const words[] = { "ok   ", "note ", "BAD  " };
    va_list ap;
    fputs(words[kind], stdout);
    va_start(ap, fmt);
    vprintf(fmt, ap);
    va_end(ap);
    putchar('\n');
    problems += kind == BAD;
}

/* --- a child that does what a program would --------------------------------------------------- */

/* Finds out which file `libcuda.so.1` is for a program without paths of its own. */
static void child_which(void)
{
    Dl_info info;
    void *library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
    void *init = library ? dlsym(library, "cuInit") : NULL;
    if (init && dladdr(init, &info))
        printf("%s", info.dli_fname);
}

static char library_path[PATH_MAX]; /* of our library */

/* Prints "DEVICES\tNAME" of the first device, or the result of cuInit. */
static void child_init(void)
{
    char name[256] = "";
    int devices = 0, device = 0;
    void *library = dlopen(library_path, RTLD_NOW | RTLD_LOCAL);
    int (*init)(unsigned) = library ? (int (*)(unsigned))dlsym(library, "cuInit") : NULL;
    int (*count)(int *) = library ? (int (*)(int *))dlsym(library, "cuDeviceGetCount") : NULL;
    int (*get_name)(char *, int, int) =
        library ? (int (*)(char *, int, int))dlsym(library, "cuDeviceGetName") : NULL;
    if (!init || !count || !get_name) {
        printf("cannot be loaded: %s", dlerror());
        return;
    }
    int r = init(0);
    if (r == 0)
        r = count(&devices);
    if (r == 0 && devices)
        r = get_name(name, sizeof(name), device);
    if (r == 0)
        printf("%d\t%s", devices, name);
    else
        printf("cuInit: error %d", r);
}

/* Returns what the child process printed; its standard error goes to ours. `status` is that of
 * waitpid(). The caller frees. */
static char *in_child(void (*what)(void), int *status)
{
    int ends[2];
    char *text = NULL;
    size_t room = 0;
    fflush(stdout);
    if (pipe(ends) < 0)
        return NULL;
    pid_t pid = fork();
    if (pid == 0) {
        alarm(PROBE_S);
        dup2(ends[1], STDOUT_FILENO);
        close(ends[0]);
        close(ends[1]);
        what();
        fflush(stdout);
        _exit(0);
    }
    close(ends[1]);
    FILE *in = fdopen(ends[0], "r");
    if (!in || getdelim(&text, &room, '\0', in) < 0) {
        free(text);
        text = strdup("");
    }
    if (in)
        fclose(in);
    while (pid > 0 && waitpid(pid, status, 0) < 0 && errno == EINTR)
        ;
    return text;
}

/* --- findings --------------------------------------------------------------------------------- */

static void check_library(const char *folder)
{
    int status = 0;
    GM_AUTO_FREE char *found = in_child(child_which, &status);
    size_t n = folder ? strlen(folder) : 0;
    if (!folder)
        say(BAD, "our libcuda.so.1 is not installed where gmux is");
    else if (!found || !*found)
        say(NOTE,
            "programs started from here find no libcuda.so.1; `gmux run` gives them "
            "%s/libcuda.so.1",
            folder);
    else if (strncmp(found, folder, n) == 0 && found[n] == '/')
        say(OK, "programs started from here find our library, %s", found);
    else
        say(NOTE, "programs started from here find %s; `gmux run` gives them %s/libcuda.so.1",
            found, folder);
}

static void check_runtime(const struct cli_program *p)
{
    const char *version = strstr(p->needs_cudart, ".so.");
    bool gpu = access("/dev/nvidiactl", F_OK) == 0;
    if (p->needs_libcuda)
        say(OK, "it is linked with libcuda.so.1 and calls the driver itself");
    else if (*p->needs_cudart)
        say(NOTE, "it uses NVIDIA's runtime library, %s", p->needs_cudart);
    else if (p->opens_libcuda)
        say(NOTE, "it opens libcuda.so.1 when it runs, as NVIDIA's runtime library does");
    else if (p->is_elf)
        say(NOTE, "it does not name libcuda.so.1: a library that it loads may");
    if (version && strtol(version + 4, NULL, 10) < 12)
        say(BAD, "runtime libraries before 12.0 run on the driver itself and share nothing");
    if (!gpu && !p->needs_libcuda && (*p->needs_cudart || p->opens_libcuda))
        say(BAD, "without a GPU NVIDIA's runtime library refuses to work; programs linked with "
                 "-cudart shared run "
                 "with ours");
}

static void check_program(const char *name)
{
    struct cli_program p;
    int r = cli_program_read(&p, name, true);
    if (r < 0) {
        say(BAD, "%s: %s", name, strerror(-r));
        return;
    }
    say(OK, "the program is %s", p.path);
    if (*p.script)
        say(NOTE, "it is a script for %s: what that loads does not show here", p.script);
    else if (!p.is_elf)
        say(BAD, "it is no program for this machine");
    for (unsigned i = 0; i < CLI_OBSTACLES; i++) {
        char text[PATH_MAX + 128];
        if (cli_program_obstacle(&p, i, text, sizeof(text)))
            say(BAD, "%s", text);
    }
    check_runtime(&p);
}

static void check_daemon(int fd)
{
    GM_AUTO_FREE char *version = cli_ask(fd, "version");
    GM_AUTO_FREE char *share = version ? cli_ask(fd, "get_default_active_thread_percentage") : NULL;
    GM_AUTO_FREE char *pending = share ? cli_ask(fd, "pending") : NULL;
    if (!version || !share || !pending) {
        problems++;
        return;
    }
    version[strcspn(version, "\n")] = '\0';
    share[strcspn(share, "\n")] = '\0';
    say(OK, "a daemon listens in %s: %s; share of each new program: %s %%",
        ctl_place_pipe_directory(), version, share);
    if (!strstr(version, GMUX_VERSION))
        say(NOTE, "this program is gmux %s", GMUX_VERSION);
    for (char *line, *rest = pending; (line = strsep(&rest, "\n"));)
        if (*line)
            say(NOTE, "waits for a server: %s", line);
}

/* Finds the first directory of a path, from the root, that this user may not enter. */
static bool blocked(const char *path, char *out, size_t size)
{
    for (size_t n = 1; *path == '/' && n < size; n++)
        if (path[n] == '/' || path[n] == '\0') {
            snprintf(out, n + 1, "%s", path);
            if (access(out, X_OK) < 0)
                return errno == EACCES;
            if (path[n] == '\0')
                return false;
        }
    return false;
}

static void check_place(void)
{
    char at[PATH_MAX];
    const char *named = getenv("CUDA_MPS_PIPE_DIRECTORY");
    if (named && strlen(named) > TP_DIRECTORY_MAX) {
        say(BAD, "CUDA_MPS_PIPE_DIRECTORY is longer than %u bytes: no socket fits",
            TP_DIRECTORY_MAX);
        return;
    }
    GM_AUTO_FD int fd = cli_place_connect();
    if (fd >= 0)
        check_daemon(fd);
    else if (fd == -EPERM)
        say(BAD, CLI_NOT_BELIEVED, ctl_place_pipe_directory());
    else if (fd == -EACCES && blocked(ctl_place_pipe_directory(), at, sizeof(at)))
        say(BAD, "a daemon in %s cannot be reached: user %u may not enter %s",
            ctl_place_pipe_directory(), (unsigned)geteuid(), at);
    else if (named && *named)
        say(BAD,
            "CUDA_MPS_PIPE_DIRECTORY is %s, and no daemon is there (%s): programs run without "
            "sharing",
            named, strerror(-fd));
    else
        say(NOTE, "no daemon runs; `gmux run` starts one in %s", ctl_place_pipe_directory());
    if (fd < 0 && !(named && *named))
        unsetenv("CUDA_MPS_PIPE_DIRECTORY"); /* a program would not have it */
}

static void check_device(const char *folder)
{
    int status = 0;
    if (!folder)
        return;
    snprintf(library_path, sizeof(library_path), "%s/libcuda.so.1", folder);
    GM_AUTO_FREE char *said = in_child(child_init, &status);
    char *tab = said ? strchr(said, '\t') : NULL;
    if (WIFSIGNALED(status) && WTERMSIG(status) == SIGALRM)
        say(BAD, "a program that starts here gets no answer in %d s", PROBE_S);
    else if (WIFSIGNALED(status))
        say(BAD, "a program that starts here ends with signal %d", WTERMSIG(status));
    else if (tab)
        say(OK, "a program that starts here gets %.*s device%s: %s", (int)(tab - said), said,
            strncmp(said, "1\t", 2) == 0 ? "" : "s", tab + 1);
    else
        say(BAD, "a program that starts here gets no device: %s", said ? said : "");
}

int cli_doctor(const struct cli_command *c, int argc, char **argv)
{
    struct gm_options walk;
    cli_options_init(c, &walk, argc, argv);
    if (cli_options_next(&walk) != GM_OPTIONS_END)
        return 1; /* the arguments of a program may follow */
    GM_AUTO_FREE char *folder = cli_library_folder();
    check_library(folder);
    if (walk.index < argc)
        check_program(argv[walk.index]);
    check_place();
    check_device(folder);
    return problems ? 1 : 0;
}
