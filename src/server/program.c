/*
 * The executor's program: its path, and how it is started.
 */
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/array.h"
#include "base/cleanup.h"
#include "server/executor.h"
#include "server/server.h"

/* Looks beside this program, as installed or as built, and where the build said. */
bool srv_executor_find(char *out, size_t size)
{
    static const char *const beside[] = { "", "/../libexec/gmux", "/../executor",
                                          "/../../../src/executor" };
    char self[PATH_MAX];
    const char *given = secure_getenv("GMUX_LIBEXECDIR");
    if (given) {
        snprintf(out, size, "%s/gmux-executor", given);
        if (access(out, X_OK) == 0)
            return true;
    }
    ssize_t n = readlink("/proc/self/exe", self, sizeof(self) - 1);
    if (n > 0) {
        self[n] = '\0';
        *strrchr(self, '/') = '\0';
        for (unsigned i = 0; i < GM_ARRAY_LEN(beside); i++) {
            int m = snprintf(out, size, "%s%s/gmux-executor", self, beside[i]);
            if (m > 0 && (size_t)m < size && access(out, X_OK) == 0)
                return true;
        }
    }
    snprintf(out, size, "%s/gmux-executor", GMUX_LIBEXECDIR);
    return access(out, X_OK) == 0;
}

int srv_executor_spawn(struct srv_executor *x, const char *program, int child_fd,
                       uv_exit_cb on_exit)
{
    char number[] = "3";
    char *args[] = { (char[]) { "gmux-executor" },
                     (char[]) { "--server" },
                     number,
                     (char[]) { "--device" },
                     NULL,
                     NULL };
    GM_AUTO_FREE char *device = strdup(x->server->device_name);
    if (!device)
        return -ENOMEM;
    args[4] = device;
    uv_stdio_container_t stdio[] = {
        { .flags = UV_IGNORE },
        { .flags = UV_INHERIT_FD,
          .data.fd = STDERR_FILENO }, /* its back end writes errors there if GMUX_LOG is set */
        { .flags = UV_INHERIT_FD, .data.fd = STDERR_FILENO },
        { .flags = UV_INHERIT_FD, .data.fd = child_fd },
    };
    const uv_process_options_t options = {
        .exit_cb = on_exit,
        .file = program,
        .args = args,
        .stdio = stdio,
        .stdio_count = GM_ARRAY_LEN(stdio),
        .flags = UV_PROCESS_DETACHED, /* it does not get a terminal's ^C */
    };
    return uv_spawn(&x->server->loop, &x->process, &options);
}
