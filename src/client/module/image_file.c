/*
 * Reads images from files.
 */
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "client/module/module.h"

#define ZEROS 64u

int rt_image_read(const char *path, size_t limit, char **data, size_t *size)
{
    GM_AUTO_FD int fd = open(path, O_RDONLY | O_CLOEXEC);
    struct stat st;
    if (fd < 0 || fstat(fd, &st) != 0)
        return CUDA_ERROR_FILE_NOT_FOUND;
    if (!S_ISREG(st.st_mode))
        return CUDA_ERROR_INVALID_IMAGE;
    *size = (size_t)st.st_size;
    GM_AUTO_FREE char *bytes = *size > limit ? NULL : calloc(1, *size + ZEROS);
    if (!bytes)
        return CUDA_ERROR_OUT_OF_MEMORY;
    for (size_t done = 0; done < *size;) {
        ssize_t n = read(fd, bytes + done, *size - done);
        if (n <= 0)
            return CUDA_ERROR_INVALID_IMAGE;
        done += (size_t)n;
    }
    *data = gm_take_ptr(bytes);
    return CUDA_SUCCESS;
}
