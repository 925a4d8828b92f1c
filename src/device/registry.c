/*
 * Finds a device back end by name. Only "null" is linked in; the others are modules, so that what
 * they need (an LLVM helper, a GPU driver) burdens nobody who does not use them.
 */
#include "device/device.h"

#include <dlfcn.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"

static bool name_is_sane(const char *name)
{
    size_t n = strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789");
    return n > 0 && n <= 16 && name[n] == '\0';
}

/* The directory of the running program, without a slash at its end. */
static bool program_directory(char out[PATH_MAX])
{
    ssize_t n = readlink("/proc/self/exe", out, PATH_MAX - 1);
    if (n <= 0)
        return false;
    out[n] = '\0';
    char *slash = strrchr(out, '/');
    if (!slash)
        return false;
    *slash = '\0';
    return true;
}

/* NULL if there is no such file; `*found` tells that one was there but cannot be used. */
static const struct dev_ops *open_module(const char *directory, const char *sub, const char *name,
                                         bool *found, char *why, size_t why_size)
{
    char path[PATH_MAX];
    int n = snprintf(path, sizeof(path), "%s%s/gmux-dev-%s.so", directory, sub, name);
    if (n < 0 || (size_t)n >= sizeof(path) || access(path, F_OK) != 0)
        return NULL;
    *found = true;
    void *handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!handle) {
        const char *error = dlerror();
        snprintf(why, why_size, "%s", error ? error : "dlopen failed");
        return NULL;
    }
    const struct dev_ops *ops = dlsym(handle, "gmux_device");
    if (!ops || !ops->name || strcmp(ops->name, name) != 0) {
        snprintf(why, why_size, "%s is not the device module \"%s\"", path, name);
        dlclose(handle);
        return NULL;
    }
    return ops; /* stays loaded: its functions run until the process ends */
}

const struct dev_ops *dev_find(const char *name, char *why, size_t why_size)
{
    /* Beside the program as installed and as built (src/executor, tests/unit/...). */
    static const char *const beside[] = { "",
                                          "/../libexec/gmux",
                                          "/../device/soft",
                                          "/../device/cuda",
                                          "/../../../src/device/soft",
                                          "/../../../src/device/cuda" };
    bool found = false;

    if (strcmp(name, dev_null_ops.name) == 0)
        return &dev_null_ops;
    if (!name_is_sane(name)) {
        snprintf(why, why_size, "\"%.32s\" is not a device name", name);
        return NULL;
    }
    const char *given = secure_getenv("GMUX_LIBEXECDIR");
    if (given) {
        const struct dev_ops *ops = open_module(given, "", name, &found, why, why_size);
        if (ops || found)
            return ops;
    }
    GM_AUTO_FREE char *program = malloc(PATH_MAX);
    if (program && program_directory(program))
        for (size_t i = 0; i < GM_ARRAY_LEN(beside); i++) {
            const struct dev_ops *ops =
                open_module(program, beside[i], name, &found, why, why_size);
            if (ops || found)
                return ops;
        }
    const struct dev_ops *ops = open_module(GMUX_LIBEXECDIR, "", name, &found, why, why_size);
    if (!ops && !found)
        snprintf(why, why_size,
                 "gmux-dev-%s.so is not installed (looked beside the program and in %s)", name,
                 GMUX_LIBEXECDIR);
    return ops;
}
