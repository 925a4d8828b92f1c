/*
 * The cases that a runner is asked to run.
 */
#include "paths.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void append(struct ptx_paths *p, const char *path)
{
    if (p->count == p->room) {
        p->room = p->room ? 2 * p->room : 64;
        p->at = realloc(p->at, p->room * sizeof(*p->at));
    }
    if (!p->at || !(p->at[p->count++] = strdup(path)))
        abort();
}

static int by_name(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

void ptx_paths_add(struct ptx_paths *p, const char *path)
{
    DIR *d = opendir(path);
    size_t first = p->count;
    if (!d) {
        append(p, path);
        return;
    }
    for (struct dirent *e; (e = readdir(d)) != NULL;) {
        char full[4096];
        const char *dot = strrchr(e->d_name, '.');
        if (!dot || strcmp(dot, ".ptx") != 0)
            continue;
        snprintf(full, sizeof(full), "%s/%s", path, e->d_name);
        append(p, full);
    }
    closedir(d);
    qsort(p->at + first, p->count - first, sizeof(*p->at), by_name);
}

void ptx_paths_finish(struct ptx_paths *p)
{
    for (size_t k = 0; k < p->count; k++)
        free(p->at[k]);
    free(p->at);
    *p = (struct ptx_paths) { 0 };
}
