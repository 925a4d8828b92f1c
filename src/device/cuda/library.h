/*
 * Libraries of the driver: the code of images, shared among clients.
 *
 * Programs of one user load the same images; PyTorch alone has hundreds. If each client loaded them
 * for itself, the GPU's memory would hold the code once for each client. A program can leave
 * nothing behind in an image without variables. So such an image is loaded once, and the modules of
 * all clients refer to that library. A client can still change attributes of a kernel. Those that
 * are limits only ever grow, so they may hold for everybody. Before any other change the client
 * gets a library of its own.
 *
 * A shared library stays loaded when it has no users, so that a program that is started again loads
 * nothing. The images of all such libraries come to kept_max bytes at most; then the one goes
 * that has been unused for longest. When a device refuses memory, those go that take some of it
 * (cuda_memory_trim).
 *
 * Threads: cuda_library_own() on the client's thread, while the module cannot go; the others on
 * any.
 */
#ifndef GMUX_DEVICE_CUDA_LIBRARY_H
#define GMUX_DEVICE_CUDA_LIBRARY_H

#include <pthread.h>

#include "base/list.h"
#include "device/cuda/image.h"
#include "device/cuda/driver.h"

struct cuda_function;
struct cuda_gpu;
struct dev;
struct dev_client;
struct dev_module;

struct cuda_libraries {
    pthread_mutex_t lock;
    struct gm_list shared;  /* libraries that clients share */
    struct gm_list loading; /* libraries that are being loaded, to be shared */
    pthread_cond_t loaded;
    struct gm_list kept;   /* shared, without users, the longest unused first */
    uint64_t kept_bytes;   /* size of their images */
    uint64_t kept_max;     /* limit of kept_bytes; constant */
    struct gm_list unused; /* without users, for a thread to unload */
    pthread_cond_t more_unused;
    bool unloads; /* that thread has been started */
};

/* Size of the images whose libraries stay without users, all together. */
#define CUDA_KEPT_BYTES (256u << 20)

struct cuda_library {
    /* libraries.shared, or alone: one client's; libraries.lock, as are the following */
    struct gm_list link;
    unsigned users;
    uint32_t gpus;              /* contexts where something of it is loaded, a CUDA_GPU_BIT each */
    struct cuda_loaded *loaded; /* its kernels that are loaded there */
    uint32_t loaded_count;
    struct gm_list kept; /* libraries.kept, or alone: it has no users, and may have again */
    uint64_t digest[2];  /* xxhash: where to look; the bytes are compared */
    /* constant */
    CUlibrary handle;
    struct cuda_image_traits traits;
    const void *bytes; /* mapped as long as the library; NULL: not shared */
    size_t size;
    uint32_t kind;
    uint32_t uid;                /* of the clients who share it */
    uint32_t capability;         /* of the GPUs that share it */
    struct cuda_movable movable; /* of the image, until variables.h has taken it, before that goes;
                                    its load's thread */
};

/* The library of an image, for a client and a GPU, which is entered: one that this user's clients
 * share already, or a new one. The image is a shared mapping. CUresult; *log (malloc, or NULL) is
 * what the driver said. */
int cuda_library_open(struct cuda_gpu *g, struct dev_client *c, const void *image, size_t size,
                      uint32_t kind, struct cuda_library **out, char **log);
/* Replaces a module's library by one of another form of its code. Neither of them is shared.
 * CUresult, with *log as for cuda_library_open(); if it fails, the module is as it was. */
int cuda_library_replace(struct dev_module *m, const void *cubin, size_t size, char **log);
/* Adds a user: a launch that waits may outlive its module. */
void cuda_library_keep(struct dev *d, struct cuda_library *l);
/* Takes a user away; accepts NULL. A shared library may stay without users; other libraries are
 * then unloaded by a thread, later. */
void cuda_library_close(struct dev *d, struct cuda_library *l);

/* Unloads libraries without users that take memory of the device. An order's thread. */
void cuda_memory_trim(struct dev_client *c, uint32_t device);

static inline bool cuda_library_is_shared(const struct cuda_library *l)
{
    return l->bytes != NULL;
}

/* Gives the module a library of its own, if it has a shared one: loads the image again, and looks
 * its functions up there. CUresult. */
int cuda_library_own(struct dev_module *m);

/* The GPU's architecture, such as 90. */
uint32_t cuda_capability(const struct cuda_gpu *g);

#endif
