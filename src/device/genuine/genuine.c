/*
 * Finding NVIDIA's libcuda. Our client library carries its soname, so the ordinary search may give
 * us back to ourselves: candidates are opened by absolute path, and a file that is this very
 * library (same device and inode) is passed over. RTLD_LOCAL, so that its symbols do not mix with
 * ours.
 */
#include "device/genuine/genuine.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "base/cleanup.h"
#include "base/log.h"

static struct gm_log_topic topic = GM_LOG_TOPIC("genuine");

/* Where distributions and NVIDIA's installers put it, for where the loader's cache does not know.
 */
static const char *const usual_places[] = {
    "/usr/lib/x86_64-linux-gnu/nvidia/current/libcuda.so.1",
    "/usr/lib/x86_64-linux-gnu/libcuda.so.1",
    "/usr/lib/aarch64-linux-gnu/libcuda.so.1",
    "/usr/lib64/libcuda.so.1",
    "/usr/lib/libcuda.so.1",
    "/usr/local/nvidia/lib64/libcuda.so.1",
    "/usr/lib/wsl/lib/libcuda.so.1",
    "/run/opengl-driver/lib/libcuda.so.1",
};

static bool same_file(const struct stat *a, const struct stat *b)
{
    return a->st_dev == b->st_dev && a->st_ino == b->st_ino;
}

/* Spares opening ourselves a second time. The loader's name for us may be relative and stale; then
 * is_gmux() tells. */
static bool is_ourselves(const char *path)
{
    Dl_info info;
    struct stat own, other;
    return dladdr((const void *)usual_places, &info) && stat(info.dli_fname, &own) == 0 &&
           stat(path, &other) == 0 && same_file(&own, &other);
}

/* We, or another build of us, which would attach in its turn: such a library says who it is. */
static bool is_gmux(void *library)
{
    return dlsym(library, "gmux_client_library") != NULL;
}

static void *try_open(const char *path, char *why, size_t why_size)
{
    if (is_ourselves(path))
        return NULL;
    void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!library) {
        (void)snprintf(why, why_size, "%s", dlerror());
        return NULL;
    }
    if (is_gmux(library) || !dlsym(library, "cuInit")) {
        (void)snprintf(why, why_size, "%s is not the genuine driver", path);
        dlclose(library);
        return NULL;
    }
    gm_debug(&topic, "genuine driver: %s", path);
    return library;
}

/* The loader's cache, /etc/ld.so.cache, in the format that glibc has written since 2.2: a header,
 * entries that point into a table of strings behind them. Root wrote it, but a damaged one must not
 * take the program down. */
struct cache_header {
    char magic[20];
    uint32_t count;
    uint32_t strings_size;
    uint32_t reserved[5];
};

struct cache_entry {
    int32_t flags;
    uint32_t name;
    uint32_t path;
    uint32_t os_version;
    uint64_t hardware;
};
_Static_assert(sizeof(struct cache_header) == 48 && sizeof(struct cache_entry) == 24, "layout");

static void *find_in_cache(const char *cache, size_t size, char *why, size_t why_size)
{
    static const char magic[] = "glibc-ld.so.cache1.1";
    struct cache_header h;
    void *library = NULL;
    if (size < sizeof(h))
        return NULL;
    memcpy(&h, cache, sizeof(h));
    if (memcmp(h.magic, magic, sizeof(h.magic)) != 0 ||
        h.count > (size - sizeof(h)) / sizeof(struct cache_entry))
        return NULL;
    for (uint32_t i = 0; i < h.count && !library; i++) {
        struct cache_entry e;
        memcpy(&e, cache + sizeof(h) + i * sizeof(e), sizeof(e));
        if (e.name >= size || e.path >= size || !memchr(cache + e.name, '\0', size - e.name) ||
            !memchr(cache + e.path, '\0', size - e.path) ||
            strcmp(cache + e.name, "libcuda.so.1") != 0)
            continue;
        library =
            try_open(cache + e.path, why, why_size); /* of another architecture: does not open */
    }
    return library;
}

static void *ask_cache(char *why, size_t why_size)
{
    GM_AUTO_FD int fd = open("/etc/ld.so.cache", O_RDONLY | O_CLOEXEC);
    struct stat st;
    if (fd < 0 || fstat(fd, &st) != 0 || st.st_size <= 0)
        return NULL;
    void *cache = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
    if (cache == MAP_FAILED)
        return NULL;
    void *library = find_in_cache(cache, (size_t)st.st_size, why, why_size);
    munmap(cache, (size_t)st.st_size);
    return library;
}

static void *find(char *why, size_t why_size)
{
    const char *named = secure_getenv("GMUX_GENUINE_LIBCUDA");
    if (named)
        return *named == '/' ? try_open(named, why, why_size)
                             : NULL; /* empty or "none": do as if there were none */
    void *cached = ask_cache(why, why_size);
    if (cached)
        return cached;
    for (size_t i = 0; i < GM_ARRAY_LEN(usual_places); i++) {
        void *library = try_open(usual_places[i], why, why_size);
        if (library)
            return library;
    }
    return NULL;
}

void *dev_genuine_library(char *why, size_t why_size)
{
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    static void *library;
    static char reason[256] =
        "none installed"; /* the search is made once, its result told as often as asked */
    static bool searched;

    pthread_mutex_lock(&lock);
    if (!searched) {
        library = find(reason, sizeof(reason));
        searched = true;
    }
    (void)snprintf(why, why_size, "%s", reason);
    pthread_mutex_unlock(&lock);
    return library;
}
