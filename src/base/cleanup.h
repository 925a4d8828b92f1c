/*
 * Ownership by scope: `GM_AUTO_FD int fd = open(...)` is closed when it leaves its scope unless it
 * was taken with gm_take_fd(). The same for memory and FILE. Destructors elsewhere accept NULL, so
 * that GM_DEFINE_CLEANUP can be used with half-built objects.
 */
#ifndef GMUX_BASE_CLEANUP_H
#define GMUX_BASE_CLEANUP_H

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/attr.h"

/* Closes `fd` if it is one, keeps errno, and returns -1 for "fd = gm_close(fd)". */
static inline int gm_close(int fd)
{
    if (fd >= 0) {
        int saved = errno;
        close(fd);
        errno = saved;
    }
    return -1;
}

static inline void gm_cleanup_fd_(int *fd)
{
    *fd = gm_close(*fd);
}

static inline void gm_cleanup_free_(void *p)
{
    free(*(void **)p);
}

static inline void gm_cleanup_file_(FILE **f)
{
    if (*f)
        fclose(*f);
}

#define GM_AUTO_FD   __attribute__((cleanup(gm_cleanup_fd_)))
#define GM_AUTO_FREE __attribute__((cleanup(gm_cleanup_free_)))
#define GM_AUTO_FILE __attribute__((cleanup(gm_cleanup_file_)))

/* A descriptor just made, or -1 with errno; under another number if it has got one of standard
 * input, output and error. A program that has closed those may print all the same, or have them
 * replaced.
 */
static inline int gm_not_standard(int fd)
{
    if (fd < 0 || fd > STDERR_FILENO)
        return fd;
    int other = fcntl(fd, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
    (void)gm_close(fd);
    return other;
}

/* The descriptor, no longer owned by the variable. */
static inline int gm_take_fd(int *fd)
{
    int taken = *fd;
    *fd = -1;
    return taken;
}

/* The pointer, no longer owned by the variable. */
#define gm_take_ptr(p)                                                                             \
    ({                                                                                             \
        __typeof__(p) gm_taken_ = (p);                                                             \
        (p) = NULL;                                                                                \
        gm_taken_;                                                                                 \
    })

/* Defines `GM_AUTO(name)`-style cleanup for a type with a NULL-accepting destructor. */
#define GM_DEFINE_CLEANUP(name, type, destroy)                                                     \
    static inline GM_UNUSED void name(type *p)                                                     \
    {                                                                                              \
        destroy(*p);                                                                               \
    }
#define GM_CLEANUP(name) __attribute__((cleanup(name)))

#endif
