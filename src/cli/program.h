/*
 * What a program will find when it starts: our library, and what its own file says about where it
 * looks.
 */
#ifndef GMUX_CLI_PROGRAM_H
#define GMUX_CLI_PROGRAM_H

#include <limits.h>

#include "base/attr.h"

/* The folder of our libcuda.so.1, or NULL. The caller frees. */
char *cli_library_folder(void);

/* An ELF file as far as it matters here. */
struct cli_program {
    char path[PATH_MAX]; /* found as execvp() does */
    char script[256];    /* its interpreter, if it is a script; then the rest says nothing */
    bool is_elf;
    bool is_32bit;
    bool other_machine;
    bool privileged;    /* set-uid or set-gid: the loader ignores LD_LIBRARY_PATH */
    bool is_static;     /* no dynamic loader, so no library */
    bool needs_libcuda; /* linked with it */
    bool opens_libcuda; /* names it and is not linked with it, as NVIDIA's runtime library does */
    char needs_cudart[128];      /* libcudart.so.N, if it is shared */
    char path_libcuda[PATH_MAX]; /* one in its DT_RPATH, where the loader looks before
                                    LD_LIBRARY_PATH */
};

/* Reads it: with `all_of_it` also what it may open when it runs. 0, or -errno. The file may be
 * anything. */
GM_MUST_CHECK int cli_program_read(struct cli_program *p, const char *name, bool all_of_it);

/* What keeps it from our library, by number: true, and a line about it. */
#define CLI_OBSTACLES 5u
GM_MUST_CHECK bool cli_program_obstacle(const struct cli_program *p, unsigned i, char *out,
                                        size_t size);

#endif
