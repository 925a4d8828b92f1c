/*
 * The cases that a runner is asked to run.
 */
#ifndef GMUX_TESTS_PTX_PATHS_H
#define GMUX_TESTS_PTX_PATHS_H

#include <stddef.h>

struct ptx_paths {
    char **at;
    size_t count, room;
};

/* A file, or the .ptx files of a directory by name. Aborts without memory. */
void ptx_paths_add(struct ptx_paths *p, const char *path);
void ptx_paths_finish(struct ptx_paths *p);

#endif
