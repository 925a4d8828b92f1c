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

/* The limit in that file; UINT64_MAX: none ("max", or no such file). */
static uint64_t limit_in(const char *root, const char *controller, const char *path,
                         const char *name)
{
    char file[PATH_MAX + 128], text[64];
    uint64_t value;
    snprintf(file, sizeof(file), "%s%s%s/%s", root, controller, path, name);
    GM_AUTO_FILE FILE *f = fopen(file, "re");
    if (!f || !fgets(text, sizeof(text), f))
        return UINT64_MAX;
    text[strcspn(text, "\n")] = 0;
    return gm_parse_u64(text, UINT64_MAX, &value) ? value : UINT64_MAX;
}

/* Of the group and all above it. */
static uint64_t least(const char *root, const char *controller, char *path, const char *name)
{
    uint64_t found = UINT64_MAX;
    for (;;) {
        size_t n = strlen(path);
        while (n > 0 && path[n - 1] == '/')
            path[--n] = 0;
        found = GM_MIN(found, limit_in(root, controller, path, name));
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

uint64_t dev_cgroup_memory(const char *membership, const char *root)
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
        if (names_memory(controllers))
            found = GM_MIN(found, least(root, "/memory", path, "memory.limit_in_bytes"));
        else if (strcmp(line, "0") == 0 && controllers[0] == 0)
            found = GM_MIN(found, least(root, "", path, "memory.max"));
    }
    return found;
}
