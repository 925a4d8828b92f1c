/*
 * Where the executor's program is.
 */
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/array.h"
#include "server/executor.h"

/* Beside this program as installed or as built, or where the build said. */
bool srv_executor_find(char *out, size_t size)
{
    static const char *const beside[] = { "", "/../libexec/gmux", "/../executor", "/../../../src/executor" };
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
