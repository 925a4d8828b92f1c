/* Files that the tests read, and a private directory for what they write. */
#ifndef GMUX_TESTS_LOADER_FILES_H
#define GMUX_TESTS_LOADER_FILES_H

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Content of the file that the environment variable names; malloc'ed. */
static inline char *read_named(const char *variable, size_t *size)
{
    const char *path = getenv(variable);
    cr_assert_not_null(path, "%s is not set", variable);
    FILE *f = fopen(path, "rb");
    cr_assert_not_null(f, "%s", path);
    char *bytes = malloc(1 << 20);
    cr_assert_not_null(bytes);
    *size = fread(bytes, 1, 1 << 20, f);
    fclose(f);
    return bytes;
}

static inline void make_directory(char path[64])
{
    strcpy(path, "/tmp/gmux-loader-test-XXXXXX");
    cr_assert_not_null(mkdtemp(path));
}

static inline void remove_directory(const char *path)
{
    char command[128];
    snprintf(command, sizeof(command), "rm -rf '%s'", path);
    cr_assert_eq(system(command), 0);
}

#endif
