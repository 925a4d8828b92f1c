/*
 * A line of the membership file is ID:CONTROLLERS:PATH; version 2 has one with ID 0 and no
 * controllers. Inside of a container the path may be that of the host, of which nothing is to be
 * seen there but the end: whatever of the way up exists is read, and the root always.
 */
#include "device/cgroup.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/parse.h"

static uint64_t value_of(const char *text)
{
    uint64_t value;
    return gm_parse_u64(text, UINT64_MAX, &value) ? value : UINT64_MAX; /* "max" */
}

/* The limit in that file; UINT64_MAX: none ("max", or no such file). With `device` of the lines
 * whose first word has that in it: "drm/0000:06:00.0/vram0 4096". */
static uint64_t limit_in(const char *file, const char *device)
{
    char line[256];
    uint64_t found = UINT64_MAX;
    GM_AUTO_FILE FILE *f = fopen(file, "re");
    while (f && fgets(line, sizeof(line), f)) {
        line[strcspn(line, "\n")] = 0;
        if (!device)
            return value_of(line);
        char *value = strchr(line, ' ');
        if (!value)
            continue;
        *value++ = 0;
        if (strstr(line, device))
            found = GM_MIN(found, value_of(value));
    }
    return found;
}

/* The lowest limit of the group and of all groups above it. */
static uint64_t least(const char *root, const char *controller, char *path, const char *name,
                      const char *device)
{
    char file[PATH_MAX + 128];
    uint64_t found = UINT64_MAX;
    for (;;) {
        size_t n = strlen(path);
        while (n > 0 && path[n - 1] == '/')
            path[--n] = 0;
        snprintf(file, sizeof(file), "%s%s%s/%s", root, controller, path, name);
        found = GM_MIN(found, limit_in(file, device));
        char *slash = strrchr(path, '/');
        if (!slash)
            return found;
        *slash = 0;
    }
}

/* `list` is separated by commas. */
static bool names_memory(const char *list)
{
    static const char memory[] = "memory";
    for (const char *p = list; (p = strstr(p, memory)); p++)
        if ((p == list || p[-1] == ',') &&
            (p[sizeof(memory) - 1] == ',' || p[sizeof(memory) - 1] == 0))
            return true;
    return false;
}

/* Calls `each` with what the process is in, version by version. */
static uint64_t least_of(const char *membership, const char *root,
                         uint64_t (*each)(const char *root, const char *controllers, char *path,
                                          const char *device),
                         const char *device)
{
    char line[PATH_MAX + 64];
    uint64_t found = UINT64_MAX;
    GM_AUTO_FILE FILE *f = fopen(membership, "re");
    while (f && fgets(line, sizeof(line), f)) {
        line[strcspn(line, "\n")] = 0;
        char *controllers = strchr(line, ':');
        char *path = controllers ? strchr(controllers + 1, ':') : NULL;
        if (!path || path[1] != '/' || strstr(path, "/.."))
            continue;
        *controllers++ = 0;
        *path++ = 0;
        if (*controllers || strcmp(line, "0") == 0)
            found = GM_MIN(found, each(root, controllers, path, device));
    }
    return found;
}

static uint64_t memory_of(const char *root, const char *controllers, char *path, const char *device)
{
    (void)device;
    if (!*controllers)
        return least(root, "", path, "memory.max", NULL);
    return names_memory(controllers) ? least(root, "/memory", path, "memory.limit_in_bytes", NULL)
                                     : UINT64_MAX;
}

uint64_t dev_cgroup_memory(const char *membership, const char *root)
{
    return least_of(membership, root, memory_of, NULL);
}

static uint64_t device_memory_of(const char *root, const char *controllers, char *path,
                                 const char *device)
{
    char copy[PATH_MAX];
    if (*controllers)
        return UINT64_MAX;
    snprintf(copy, sizeof(copy), "%s", path);
    uint64_t found = least(root, "", path, "dmem.max", device);
    return GM_MIN(found, least(root, "/unified", copy, "dmem.max", device)); /* beside version 1 */
}

uint64_t dev_cgroup_device_memory(const char *membership, const char *root, const char *device)
{
    return least_of(membership, root, device_memory_of, device);
}

bool dev_cgroup_has_device_memory(const char *root)
{
    static const char *const mounts[] = { "", "/unified" };
    for (size_t i = 0; i < GM_ARRAY_LEN(mounts); i++) {
        char file[PATH_MAX], line[512];
        snprintf(file, sizeof(file), "%s%s/cgroup.controllers", root, mounts[i]);
        GM_AUTO_FILE FILE *f = fopen(file, "re");
        if (!f || !fgets(line, sizeof(line), f))
            continue;
        for (char *rest = line, *word; (word = strsep(&rest, " \n"));)
            if (strcmp(word, "dmem") == 0)
                return true;
    }
    return false;
}
