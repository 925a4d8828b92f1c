/*
 * Makes memfds, seals them, and checks the seals of those that others made before mapping them.
 */
#include "transport/memfd.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "base/cleanup.h"

#ifndef F_SEAL_FUTURE_WRITE
#define F_SEAL_FUTURE_WRITE 0x0010 /* Linux 5.1 */
#endif

void tp_files_of_any_size(void)
{
    struct rlimit l = { RLIM_INFINITY, RLIM_INFINITY };
    signal(SIGXFSZ, SIG_IGN);
    if (setrlimit(RLIMIT_FSIZE, &l) == 0 || getrlimit(RLIMIT_FSIZE, &l) < 0)
        return;
    l.rlim_cur = l.rlim_max;
    (void)setrlimit(RLIMIT_FSIZE, &l);
}

/* Whether the size exceeds the limit of the process, which is in force for files in memory, too.
 * Exceeding it would end the process with a signal. */
static bool is_too_large(uint64_t size)
{
    struct rlimit l;
    return getrlimit(RLIMIT_FSIZE, &l) == 0 && l.rlim_cur != RLIM_INFINITY && size > l.rlim_cur;
}

/* An empty memfd that is going to have `size` bytes; or -errno. */
static int open_unsealed(const char *name, uint64_t size)
{
    if (is_too_large(size))
        return -EFBIG;
    int fd = gm_not_standard(memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING));
    return fd < 0 ? -errno : fd;
}

int tp_memfd_create(const char *name, uint64_t size)
{
    GM_AUTO_FD int fd = open_unsealed(name, size);
    if (fd < 0)
        return fd;
    if (size > INT64_MAX || ftruncate(fd, (off_t)size) < 0)
        return size > INT64_MAX ? -EINVAL : -errno;
    if (fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) < 0)
        return -errno;
    return gm_take_fd(&fd);
}

int tp_memfd_from_bytes(const char *name, const void *data, size_t size)
{
    GM_AUTO_FD int fd = open_unsealed(name, size);
    if (fd < 0)
        return fd;
    for (size_t done = 0; done < size;) {
        ssize_t n = write(fd, (const char *)data + done, size - done);
        if (n < 0) {
            if (errno == EINTR)
                continue;
            return -errno;
        }
        done += (size_t)n;
    }
    if (fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE | F_SEAL_SEAL) < 0)
        return -errno;
    return gm_take_fd(&fd);
}

int tp_memfd_create_for_readers(const char *name, size_t size, void **bytes)
{
    GM_AUTO_FD int fd = open_unsealed(name, size);
    if (fd < 0)
        return fd;
    if (ftruncate(fd, (off_t)size) < 0)
        return -errno;
    void *p = tp_memfd_map(fd, size, true);
    if (!p)
        return -errno;
    if (fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_FUTURE_WRITE | F_SEAL_SEAL) <
        0) {
        int r = -errno;
        munmap(p, size);
        return r;
    }
    *bytes = p;
    return gm_take_fd(&fd);
}

/* A memfd of huge pages can be sealed as well, but there may be no page to fill its holes. */
static bool has_ordinary_pages(int fd)
{
    struct statfs fs;
    return fstatfs(fd, &fs) == 0 && fs.f_type == TMPFS_MAGIC;
}

int tp_memfd_check(int fd, uint64_t size, bool readonly)
{
    struct stat st;
    int want = F_SEAL_SHRINK | F_SEAL_GROW | (readonly ? F_SEAL_WRITE : 0);
    int seals = fcntl(fd, F_GET_SEALS);
    if (seals < 0 || (seals & want) != want)
        return -EBADMSG;
    if (!has_ordinary_pages(fd))
        return -EBADMSG;
    if (fstat(fd, &st) < 0 || st.st_size < 0 || (uint64_t)st.st_size != size)
        return -EBADMSG;
    return 0;
}

int tp_memfd_check_extent(int fd, uint64_t offset, uint64_t size)
{
    struct stat st;
    int seals = fcntl(fd, F_GET_SEALS);
    if (seals < 0 || !(seals & F_SEAL_SHRINK) || !(seals & (F_SEAL_WRITE | F_SEAL_FUTURE_WRITE)) ||
        !has_ordinary_pages(fd))
        return -EBADMSG;
    if (fstat(fd, &st) < 0 || st.st_size < 0 || offset > (uint64_t)st.st_size ||
        size > (uint64_t)st.st_size - offset)
        return -EBADMSG;
    return 0;
}

void *tp_memfd_map(int fd, size_t size, bool writable)
{
    void *p = mmap(NULL, size, PROT_READ | (writable ? PROT_WRITE : 0), MAP_SHARED, fd, 0);
    return p == MAP_FAILED ? NULL : p;
}

bool tp_read_at(int fd, uint64_t offset, void *to, size_t size)
{
    for (size_t done = 0; done < size;) {
        ssize_t n = pread(fd, (char *)to + done, size - done, (off_t)(offset + done));
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return false;
        done += (size_t)n;
    }
    return true;
}

void *tp_memfd_map_extent(int fd, uint64_t offset, size_t size)
{
    int seals = fcntl(fd, F_GET_SEALS);
    bool stays = seals >= 0 && (seals & F_SEAL_WRITE);
    void *p = stays ? mmap(NULL, size, PROT_READ, MAP_SHARED, fd, (off_t)offset)
                    : mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (p == MAP_FAILED)
        return NULL;
    if (stays || tp_read_at(fd, offset, p, size))
        return p;
    munmap(p, size);
    return NULL;
}
