/*
 * The cache's files. An entry is written to a temporary file, which is renamed when it is complete,
 * so that readers see the whole entry or nothing. The longest unused entries are removed when the
 * cache is full.
 */
#include "device/soft/loader/cache.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <xxhash.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "device/soft/loader/job.h"
#include "transport/memfd.h"

#define STALE_TMP_S 3600 /* a temporary file older than this was left by a process that died */

struct file_header {
    char magic[8];
    uint64_t key_size;
    uint64_t object_size;
    uint64_t check_low; /* xxhash128 of key and object: finds damage, does not stop an attacker */
    uint64_t check_high;
};
static const char file_magic[8] = { 'g', 'm', 'u', 'x', 'o', 'b', 'j', '1' };

struct loader_cache {
    int directory;
    uint64_t max_bytes;
    atomic_uint serial; /* numbers temporary files */
    pthread_mutex_t lock;
    uint64_t used_bytes; /* lock; known size of all entries; UINT64_MAX before the first scan */
};

/* Whether the home directory exists. One like /nonexistent, for users who have none, is not
 * created. */
static bool is_there(const char *home)
{
    struct stat st;
    return home && home[0] == '/' && stat(home, &st) == 0 && S_ISDIR(st.st_mode);
}

static int default_directory(char *path, size_t size)
{
    const char *own = secure_getenv("GMUX_CACHE_DIR");
    const char *xdg = secure_getenv("XDG_CACHE_HOME");
    const char *home = secure_getenv("HOME");
    int n;
    if (own)
        n = snprintf(path, size, "%s", own);
    else if (xdg && xdg[0] == '/')
        n = snprintf(path, size, "%s/gmux", xdg);
    else if (is_there(home))
        n = snprintf(path, size, "%s/.cache/gmux", home);
    else
        return -ENOENT;
    return n < 0 || (size_t)n >= size ? -ENAMETOOLONG : 0;
}

/* Makes the directory and those above it. */
static int make_directory(char *path)
{
    for (char *p = path + 1;; p++) {
        if (*p != '/' && *p != 0)
            continue;
        char kept = *p;
        *p = 0;
        int r = mkdir(path, 0700);
        int error = errno;
        *p = kept;
        if (r < 0 && error != EEXIST && (kept == 0 || (error != EACCES && error != EROFS)))
            return -error;
        if (kept == 0)
            return 0;
    }
}

/* Checks that this is a directory of that user's, which nobody else can use. */
static int check_owner(int fd, uint32_t owner)
{
    struct stat st;
    if (fstat(fd, &st) < 0)
        return -errno;
    return st.st_uid != owner || (st.st_mode & 077) ? -EPERM : 0;
}

/* Opens the user's directory inside of root's, and creates it if it is missing. Other processes of
 * that user cannot get here, because the path leads through root's directory. */
static int open_for(int directory, uint32_t owner)
{
    char name[32];
    snprintf(name, sizeof(name), "user-%u", owner);
    bool made = mkdirat(directory, name, 0700) == 0;
    if (!made && errno != EEXIST)
        return -errno;
    GM_AUTO_FD int fd = openat(directory, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0 || (made && fchown(fd, owner, owner) < 0))
        return -errno;
    int r = check_owner(fd, owner);
    return r < 0 ? r : gm_take_fd(&fd);
}

int loader_cache_open(struct loader_cache **out, const char *directory, uint64_t max_bytes,
                      uint32_t owner)
{
    char path[PATH_MAX];
    int r = 0;

    if (directory)
        r = snprintf(path, sizeof(path), "%s", directory) >= (int)sizeof(path) ? -ENAMETOOLONG : 0;
    else
        r = default_directory(path, sizeof(path));
    if (r < 0)
        return r;
    if (path[0] == 0)
        return -ENOENT;
    r = make_directory(path);
    if (r < 0)
        return r;
    GM_AUTO_FD int fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0)
        return -errno;
    r = check_owner(fd, geteuid());
    GM_AUTO_FD int inner = r == 0 && owner ? open_for(fd, owner) : -1;
    if (r < 0 || (owner && inner < 0))
        return r < 0 ? r : inner;
    struct loader_cache *c = calloc(1, sizeof(*c));
    if (!c)
        return -ENOMEM;
    c->directory = gm_take_fd(inner >= 0 ? &inner : &fd);
    c->max_bytes = max_bytes;
    c->used_bytes = UINT64_MAX;
    pthread_mutex_init(&c->lock, NULL);
    *out = c;
    return 0;
}

void loader_cache_close(struct loader_cache *c)
{
    if (!c)
        return;
    gm_close(c->directory);
    pthread_mutex_destroy(&c->lock);
    free(c);
}

void loader_cache_name(const void *key, size_t key_size, char name[LOADER_CACHE_NAME_SIZE])
{
    XXH128_hash_t h = XXH3_128bits(key, key_size);
    snprintf(name, LOADER_CACHE_NAME_SIZE, "%016llx%016llx.o", (unsigned long long)h.high64,
             (unsigned long long)h.low64);
}

static XXH128_hash_t checksum(const void *key, size_t key_size, const void *object, size_t size)
{
    XXH128_hash_t h = XXH3_128bits(key, key_size);
    return XXH3_128bits_withSeed(object, size, h.low64 ^ h.high64);
}

/* 1: the entry is ours; 0: the file belongs to another key with the same name; -EBADMSG:
 * damaged. */
static int read_entry(int fd, const void *key, size_t key_size, void **object, size_t *size)
{
    struct stat st;
    struct file_header h;
    if (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode) || st.st_uid != geteuid() ||
        !tp_read_at(fd, 0, &h, sizeof(h)) || memcmp(h.magic, file_magic, sizeof(h.magic)) != 0)
        return -EBADMSG;
    if (h.object_size > SOFT_JOB_OBJECT_MAX || h.key_size > SOFT_JOB_TEXT_MAX * 2ULL ||
        (uint64_t)st.st_size != sizeof(h) + h.key_size + h.object_size)
        return -EBADMSG;
    if (h.key_size != key_size)
        return 0;
    GM_AUTO_FREE char *content = malloc(h.key_size + h.object_size + 1);
    if (!content)
        return -ENOMEM;
    if (!tp_read_at(fd, sizeof(h), content, h.key_size + h.object_size))
        return -EBADMSG;
    XXH128_hash_t check = checksum(content, h.key_size, content + h.key_size, h.object_size);
    if (check.low64 != h.check_low || check.high64 != h.check_high)
        return -EBADMSG;
    if (memcmp(content, key, key_size) != 0)
        return 0;
    memmove(content, content + key_size, h.object_size);
    *object = gm_take_ptr(content);
    *size = h.object_size;
    return 1;
}

int loader_cache_get(struct loader_cache *c, const void *key, size_t key_size, void **object,
                     size_t *size)
{
    char name[LOADER_CACHE_NAME_SIZE];
    loader_cache_name(key, key_size, name);
    GM_AUTO_FD int fd = openat(c->directory, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (fd < 0)
        return -ENOENT;
    int r = read_entry(fd, key, key_size, object, size);
    if (r == -EBADMSG)
        unlinkat(c->directory, name, 0);
    if (r <= 0)
        return -ENOENT;
    futimens(fd, NULL); /* the time of last use decides which entry is removed first */
    return 0;
}

void loader_cache_remove(struct loader_cache *c, const void *key, size_t key_size)
{
    char name[LOADER_CACHE_NAME_SIZE];
    loader_cache_name(key, key_size, name);
    unlinkat(c->directory, name, 0);
}

struct aged_file {
    char name[LOADER_CACHE_NAME_SIZE];
    int64_t used_s;
    uint64_t size;
};

static int older_first(const void *a, const void *b)
{
    int64_t x = ((const struct aged_file *)a)->used_s;
    int64_t y = ((const struct aged_file *)b)->used_s;
    return (x > y) - (x < y);
}

/* Lists the directory's entries with their ages, sums up their sizes and removes left-over
 * temporary files. */
static size_t scan(struct loader_cache *c, struct aged_file **out, uint64_t *total)
{
    struct aged_file *files = NULL;
    size_t count = 0, room = 0;
    int fd = openat(c->directory, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *d = fd >= 0 ? fdopendir(fd) : NULL;
    struct dirent *e;

    *total = 0;
    if (!d)
        gm_close(fd);
    while (d && (e = readdir(d))) {
        struct stat st;
        if (fstatat(c->directory, e->d_name, &st, AT_SYMLINK_NOFOLLOW) < 0 || !S_ISREG(st.st_mode))
            continue;
        if (strncmp(e->d_name, ".tmp.", 5) == 0) {
            if (st.st_mtime + STALE_TMP_S < time(NULL))
                unlinkat(c->directory, e->d_name, 0);
            continue;
        }
        size_t length = strlen(e->d_name);
        if (length != 34 || strcmp(e->d_name + 32, ".o") != 0)
            continue;
        if (count == room) {
            room = room ? room * 2 : 256;
            struct aged_file *more = realloc(files, room * sizeof(*files));
            if (!more)
                break;
            files = more;
        }
        memcpy(files[count].name, e->d_name, length + 1);
        files[count].used_s = st.st_mtime;
        files[count].size = (uint64_t)st.st_size;
        *total += files[count++].size;
    }
    if (d)
        closedir(d);
    *out = files;
    return count;
}

/* Removes the longest unused files until a quarter of the limit is free again. Called with the lock
 * held. */
static void prune(struct loader_cache *c)
{
    struct aged_file *files;
    size_t count = scan(c, &files, &c->used_bytes);
    if (c->used_bytes > c->max_bytes) {
        qsort(files, count, sizeof(*files), older_first);
        for (size_t i = 0; i < count && c->used_bytes > c->max_bytes - c->max_bytes / 4; i++)
            if (unlinkat(c->directory, files[i].name, 0) == 0)
                c->used_bytes -= files[i].size;
    }
    free(files);
}

static int write_entry(int fd, struct file_header *h, const void *key, const void *object)
{
    struct iovec parts[] = {
        { h, sizeof(*h) },
        { (void *)(uintptr_t)key, h->key_size },
        { (void *)(uintptr_t)object, h->object_size },
    };
    unsigned i = 0;
    while (i < GM_ARRAY_LEN(parts)) {
        ssize_t n = writev(fd, parts + i, (int)(GM_ARRAY_LEN(parts) - i));
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return n < 0 ? -errno : -EIO;
        for (size_t left = (size_t)n; i < GM_ARRAY_LEN(parts);) {
            size_t step = GM_MIN(left, parts[i].iov_len);
            parts[i].iov_base = (char *)parts[i].iov_base + step;
            parts[i].iov_len -= step;
            left -= step;
            if (parts[i].iov_len)
                break;
            i++;
        }
    }
    return 0;
}

int loader_cache_put(struct loader_cache *c, const void *key, size_t key_size, const void *object,
                     size_t size)
{
    char name[LOADER_CACHE_NAME_SIZE];
    char temporary[64];
    struct file_header h = { .key_size = key_size, .object_size = size };
    uint64_t total = sizeof(h) + key_size + size;

    if (total > c->max_bytes / 4)
        return -E2BIG;
    XXH128_hash_t check = checksum(key, key_size, object, size);
    memcpy(h.magic, file_magic, sizeof(h.magic));
    h.check_low = check.low64;
    h.check_high = check.high64;
    loader_cache_name(key, key_size, name);
    snprintf(temporary, sizeof(temporary), ".tmp.%d.%u.%llx", (int)getpid(),
             atomic_fetch_add(&c->serial, 1), (unsigned long long)gm_now_ns());
    GM_AUTO_FD int fd =
        openat(c->directory, temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (fd < 0)
        return -errno;
    int r = write_entry(fd, &h, key, object);
    if (r == 0 && renameat(c->directory, temporary, c->directory, name) < 0)
        r = -errno;
    if (r < 0) {
        unlinkat(c->directory, temporary, 0);
        return r;
    }
    pthread_mutex_lock(&c->lock);
    if (c->used_bytes != UINT64_MAX)
        c->used_bytes += total;
    if (c->used_bytes > c->max_bytes)
        prune(c);
    pthread_mutex_unlock(&c->lock);
    return 0;
}
