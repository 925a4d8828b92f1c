/*
 * Finding NVIDIA's libcuda beside ourselves. We carry its soname, so the ordinary search would give us back to
 * ourselves: candidates are opened by absolute path, and a file that is this very library (same device and inode) is
 * passed over. RTLD_LOCAL, so that its symbols do not mix with ours.
 */
#include "client/attach.h"

#include <dlfcn.h>
#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "base/log.h"

static struct gm_log_topic topic = GM_LOG_TOPIC("attach");

/* Where distributions and NVIDIA's installers put it. The loader's own cache is asked first. */
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

static bool is_ourselves(const char *path)
{
    Dl_info info;
    struct stat own, other;
    if (!dladdr((const void *)usual_places, &info) || stat(info.dli_fname, &own) != 0)
        return true; /* not knowing who we are, better none than a loop */
    return stat(path, &other) != 0 || same_file(&own, &other);
}

/* Another build of this library would attach in its turn; it says who it is. */
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

static void *find(char *why, size_t why_size)
{
    const char *named = secure_getenv("GMUX_GENUINE_LIBCUDA");
    if (named)
        return *named == '/' ? try_open(named, why, why_size) : NULL; /* empty or "none": do as if there were none */
    for (size_t i = 0; i < GM_ARRAY_LEN(usual_places); i++) {
        void *library = try_open(usual_places[i], why, why_size);
        if (library)
            return library;
    }
    return NULL;
}

void *rt_genuine_library(char *why, size_t why_size)
{
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    static void *library;
    static bool searched;

    (void)snprintf(why, why_size, "none installed");
    pthread_mutex_lock(&lock);
    if (!searched) {
        library = find(why, why_size);
        searched = true;
    }
    pthread_mutex_unlock(&lock);
    return library;
}
