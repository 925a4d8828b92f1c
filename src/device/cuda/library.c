/*
 * The lists of libraries: in use, being loaded, kept without users, to be unloaded.
 */
#include "device/cuda/library.h"
#include "device/cuda/module.h"
#include "device/cuda/link.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <xxhash.h>

#include "base/cleanup.h"
#include "device/cuda/admit.h"
#include "device/cuda/settle.h"
#include "device/cuda/image.h"
#include "device/cuda/kernel.h"

#define LOG_BYTES 16384u
#define UNLOAD_NS (10 * GM_NS_PER_MS) /* then another one is tried */
#define TRIM_NS   (2 * GM_NS_PER_S)   /* an allocation waits for no longer */

/* --- unloading -------------------------------------------------------------------------------- */

static void library_destroy(struct dev *d, struct cuda_library *l)
{
    if (l->handle)
        (void)CUDA_CALL(d, l->gpus, cuLibraryUnload, l->handle);
    if (l->bytes)
        munmap((void *)(uintptr_t)l->bytes, l->size);
    cuda_movable_close(&l->movable);
    free(l->loaded);
    free(l);
}

static void *unload(void *arg)
{
    struct dev *d = arg;
    pthread_setname_np(pthread_self(), "unload");
    cuda_enter(&d->gpus[0]);
    pthread_mutex_lock(&d->libraries.lock);
    for (;;) {
        while (gm_list_empty(&d->libraries.unused))
            pthread_cond_wait(&d->libraries.more_unused, &d->libraries.lock);
        struct cuda_library *l = gm_list_entry(d->libraries.unused.next, struct cuda_library, link);
        gm_list_remove(&l->link);
        pthread_mutex_unlock(&d->libraries.lock); /* launches need it */
        const uint32_t gpus = l->gpus;
        bool admitted = cuda_admit_wait(d, NULL, gpus, 0, gm_now_ns() + UNLOAD_NS);
        if (admitted) {
            library_destroy(d, l);
            cuda_admit_end(d, gpus);
        }
        pthread_mutex_lock(&d->libraries.lock);
        if (!admitted) /* others may be in contexts that are idle */
            gm_list_append(&d->libraries.unused, &l->link);
    }
    return NULL;
}

/* Leaves the unloading to the thread: the client that was the last user may be about to launch
 * something, and does not wait for a safe point. libraries.lock is held, also in what follows. */
static void retire(struct dev *d, struct cuda_library *l)
{
    d->libraries.unloads = d->libraries.unloads || cuda_thread_start(d, unload) == 0;
    gm_list_append(&d->libraries.unused, &l->link); /* waits there if the thread did not start */
    pthread_cond_signal(&d->libraries.more_unused);
}

static void forget(struct dev *d, struct cuda_library *l)
{
    gm_list_remove(&l->kept);
    d->libraries.kept_bytes -= l->size;
}

static void drop_oldest(struct dev *d)
{
    struct cuda_library *oldest = gm_list_entry(d->libraries.kept.next, struct cuda_library, kept);
    forget(d, oldest);
    gm_list_remove(&oldest->link);
    retire(d, oldest);
}

/* Keeps a library that nobody uses now: a program that is started again finds its kernels loaded.
 */
static void keep(struct dev *d, struct cuda_library *l)
{
    gm_list_append(&d->libraries.kept, &l->kept);
    d->libraries.kept_bytes += l->size;
    while (d->libraries.kept_bytes > d->libraries.kept_max)
        drop_oldest(d);
}

/* Moves libraries without users into `out`, if they take memory of the device or are loaded
 * nowhere.
 */
static void take_unused(struct dev *d, uint32_t device, struct gm_list *out)
{
    const uint32_t here = CUDA_GPU_BIT(&d->gpus[device]) | CUDA_GPU_BIT(&d->fallbacks[device]);
    gm_list_init(out);
    pthread_mutex_lock(&d->libraries.lock);
    gm_list_for_each_safe (l, &d->libraries.kept, struct cuda_library, kept)
        if (!l->gpus || (l->gpus & here)) {
            forget(d, l);
            gm_list_remove(&l->link);
            gm_list_append(out, &l->link);
        }
    gm_list_for_each_safe (l, &d->libraries.unused, struct cuda_library, link)
        if (!l->gpus || (l->gpus & here)) {
            gm_list_remove(&l->link);
            gm_list_append(out, &l->link);
        }
    pthread_mutex_unlock(&d->libraries.lock);
}

/* Unloads those of the list that are loaded in the same contexts as the first one, at one safe
 * point. False: there is no safe point soon; another library is the first one now. */
static bool unload_alike(struct dev *d, struct dev_client *c, struct gm_list *all)
{
    struct cuda_library *first = gm_list_entry(all->next, struct cuda_library, link);
    const uint32_t gpus = first->gpus;
    if (!cuda_admit_wait(d, c, gpus, 0, gm_now_ns() + UNLOAD_NS)) {
        gm_list_remove(&first->link);
        gm_list_append(all, &first->link);
        return false;
    }
    gm_list_for_each_safe (l, all, struct cuda_library, link)
        if (l->gpus == gpus) {
            gm_list_remove(&l->link);
            library_destroy(d, l);
        }
    cuda_admit_end(d, gpus);
    return true;
}

/* What cannot go soon is left to the thread. */
void cuda_memory_trim(struct dev_client *c, uint32_t device)
{
    struct dev *d = c->dev;
    const uint64_t until = gm_now_ns() + TRIM_NS;
    struct gm_list all;
    take_unused(d, device, &all);
    cuda_enter(&d->gpus[0]);
    while (!gm_list_empty(&all) &&
           (unload_alike(d, c, &all) || (!cuda_is_leaving(d, c) && gm_now_ns() < until)))
        ;
    pthread_mutex_lock(&d->libraries.lock);
    gm_list_for_each_safe (l, &all, struct cuda_library, link) {
        gm_list_remove(&l->link);
        retire(d, l);
    }
    pthread_mutex_unlock(&d->libraries.lock);
}

/* --- one library ------------------------------------------------------------------------------ */

static CUresult get_module(struct cuda_gpu *g, CUlibrary l)
{
    CUmodule loaded;
    return CUDA_CALL(g->dev, CUDA_GPU_BIT(g), cuLibraryGetModule, &loaded, l);
}

/* Compiles an image that is PTX for this GPU, while others go on. Without that, the driver would
 * compile it at a safe point, with the first kernel. False: it is no PTX, or cannot be compiled;
 * the driver says what is wrong with it when it loads it. */
static bool compile(struct cuda_gpu *g, const void *bytes, size_t size, uint32_t kind,
                    struct cuda_code *made)
{
    struct cuda_code text;
    const uint32_t capability = cuda_capability(g);
    *made = (struct cuda_code) { 0 };
    if (kind == WIRE_IMAGE_KIND_FATBIN_LIST || cuda_image_has_cubin(bytes, size, kind, capability))
        return false;
    cuda_enter(g);
    bool done = cuda_code_open(&text, bytes, size, kind, capability) > 0 && text.is_ptx &&
                cuda_link_text(g->dev, text.bytes, text.text_size, &made->unpacked, &made->size) ==
                    GM_CUDA_SUCCESS;
    made->bytes = made->unpacked;
    cuda_code_close(&text);
    return done;
}

static CUresult load_data(struct dev *d, const void *data, char *errors, CUlibrary *out)
{
    CUjit_option options[] = { CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES };
    void *values[] = { errors, (void *)(uintptr_t)LOG_BYTES };
    CUresult r = d->api.cuLibraryLoadData(out, data, options, values, 2, NULL, NULL, 0);
    if (r != CUDA_SUCCESS)
        *out = NULL; /* nothing to unload */
    return r;
}

/* Has the driver compile it now, so that the load reports its errors. */
static CUresult load_text(struct cuda_gpu *g, struct dev_client *c, struct cuda_library *l)
{
    g = cuda_fallback_or_first(c, g->index);
    if (!g)
        return CUDA_ERROR_NOT_READY;
    l->gpus |= CUDA_GPU_BIT(g);
    CUresult r = get_module(g, l->handle);
    cuda_admit_end(g->dev, CUDA_GPU_BIT(g));
    return r;
}

static CUresult load_image(struct cuda_gpu *g, struct dev_client *c, const void *bytes, size_t size,
                           uint32_t kind, struct cuda_library *l, struct cuda_code *made,
                           char **log)
{
    GM_AUTO_FREE char *errors = calloc(1, LOG_BYTES);
    struct cuda_image image;
    CUresult r =
        errors ? (CUresult)cuda_image_open(&image, bytes, size, kind) : CUDA_ERROR_OUT_OF_MEMORY;
    if (r != CUDA_SUCCESS)
        return r;
    const bool compiled = compile(g, bytes, size, kind, made) &&
                          load_data(g->dev, made->bytes, errors, &l->handle) == CUDA_SUCCESS;
    if (!compiled && (r = load_data(g->dev, image.data, errors, &l->handle)) == CUDA_SUCCESS &&
        kind == WIRE_IMAGE_KIND_PTX)
        r = load_text(g, c, l);
    cuda_image_close(&image);
    *log = *errors ? gm_take_ptr(errors) : NULL;
    return r;
}

uint32_t cuda_capability(const struct cuda_gpu *g)
{
    const int32_t *a = g->info.attributes;
    return (uint32_t)(10 * a[CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR] +
                      a[CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR]);
}

/* Makes a library without looking into the image. */
static int library_load(struct cuda_gpu *g, struct dev_client *c, const void *bytes, size_t size,
                        uint32_t kind, struct cuda_library **out, struct cuda_code *made,
                        char **log)
{
    struct cuda_library *l = calloc(1, sizeof(*l));
    *out = NULL;
    *log = NULL;
    *made = (struct cuda_code) { 0 };
    if (!l)
        return GM_CUDA_OUT_OF_MEMORY;
    gm_list_init(&l->link);
    gm_list_init(&l->kept);
    l->users = 1;
    CUresult r = load_image(g, c, bytes, size, kind, l, made, log);
    if (r != CUDA_SUCCESS) {
        cuda_code_close(made);
        cuda_library_close(g->dev, l);
        return (int)r;
    }
    *out = l;
    return GM_CUDA_SUCCESS;
}

static int library_create(struct cuda_gpu *g, struct dev_client *c, const void *bytes, size_t size,
                          uint32_t kind, struct cuda_library **out, char **log)
{
    struct cuda_code made;
    int r = library_load(g, c, bytes, size, kind, out, &made, log);
    if (r != GM_CUDA_SUCCESS)
        return r;
    struct cuda_library *l = *out;
    cuda_image_look(bytes, size, kind, cuda_capability(g), &l->traits, &l->movable);
    if (l->traits.has_managed) /* the client loads it again without managed variables */
        cuda_movable_close(&l->movable);
    if (l->movable.code.is_ptx)
        l->traits.loses_values = cuda_movable_compiled(&l->movable, &made);
    cuda_code_close(&made);
    return GM_CUDA_SUCCESS;
}

int cuda_library_replace(struct dev_module *m, const void *cubin, size_t size, char **log)
{
    struct cuda_library *old = m->library, *l;
    struct cuda_code none;
    int r = library_load(m->gpu, m->client, cubin, size, WIRE_IMAGE_KIND_CUBIN, &l, &none, log);
    if (r != GM_CUDA_SUCCESS)
        return r;
    l->traits = old->traits;
    l->traits.loses_values = false;
    m->library = l;
    m->handle = l->handle;
    cuda_library_close(m->client->dev, old);
    return GM_CUDA_SUCCESS;
}

/* --- sharing ---------------------------------------------------------------------------------- */

static bool is_same(const struct cuda_library *a, const struct cuda_library *b)
{
    return a->uid == b->uid && a->capability == b->capability && a->size == b->size &&
           a->kind == b->kind && memcmp(a->digest, b->digest, sizeof(a->digest)) == 0 &&
           memcmp(a->bytes, b->bytes, a->size) == 0;
}

static struct cuda_library *find(struct dev *d, const struct cuda_library *like)
{
    gm_list_for_each (l, &d->libraries.shared, struct cuda_library, link)
        if (is_same(l, like))
            return l;
    return NULL;
}

/* Keeps the image, by another mapping of its memory, since the client's may go. */
static void share(struct dev *d, struct cuda_library *l, const struct cuda_library *like)
{
    void *again = mremap((void *)(uintptr_t)like->bytes, 0, like->size, MREMAP_MAYMOVE);
    if (again == MAP_FAILED)
        return;
    l->bytes = again;
    l->size = like->size;
    l->kind = like->kind;
    l->uid = like->uid;
    l->capability = like->capability;
    memcpy(l->digest, like->digest, sizeof(l->digest));
    pthread_mutex_lock(&d->libraries.lock);
    gm_list_append(&d->libraries.shared, &l->link);
    pthread_mutex_unlock(&d->libraries.lock);
}

/* A library that somebody loads in order to share it. */
struct loading {
    struct gm_list link; /* dev->loading */
    const struct cuda_library *what;
};

static const struct loading *find_loading(struct dev *d, const struct cuda_library *like)
{
    gm_list_for_each (l, &d->libraries.loading, struct loading, link)
        if (is_same(l->what, like))
            return l;
    return NULL;
}

/* Finds the library and adds a user. NULL: the caller has to load it. Programs that start at the
 * same time load the same images at the same time, so the others wait for the first one. If that
 * one could not share its library, each of them loads it. libraries.lock is held. */
static struct cuda_library *find_or_begin(struct dev *d, const struct cuda_library *like,
                                          struct loading *mine)
{
    struct cuda_library *l = find(d, like);
    const struct loading *first = l ? NULL : find_loading(d, like);
    if (first) {
        while (find_loading(d, like) == first)
            pthread_cond_wait(&d->libraries.loaded, &d->libraries.lock);
        l = find(d, like);
    }
    if (l && l->users++ == 0)
        forget(d, l);
    mine->what = like;
    gm_list_init(&mine->link);
    if (!l && !first)
        gm_list_append(&d->libraries.loading, &mine->link);
    return l;
}

int cuda_library_open(struct cuda_gpu *g, struct dev_client *c, const void *image, size_t size,
                      uint32_t kind, struct cuda_library **out, char **log)
{
    struct dev *d = g->dev;
    struct cuda_library like = {
        .bytes = image, .size = size, .kind = kind, .uid = c->uid, .capability = cuda_capability(g)
    };
    *log = NULL;
    if (kind != WIRE_IMAGE_KIND_CUBIN && kind != WIRE_IMAGE_KIND_FATBIN)
        return library_create(g, c, image, size, kind, out, log);
    XXH128_hash_t h = XXH3_128bits(image, size);
    like.digest[0] = h.low64;
    like.digest[1] = h.high64;
    struct loading mine;
    pthread_mutex_lock(&d->libraries.lock);
    *out = find_or_begin(d, &like, &mine);
    pthread_mutex_unlock(&d->libraries.lock);
    if (*out)
        return GM_CUDA_SUCCESS;
    int r = library_create(g, c, image, size, kind, out, log);
    if (r == GM_CUDA_SUCCESS && !(*out)->traits.keeps_values &&
        cuda_image_has_cubin(image, size, kind, like.capability))
        share(d, *out, &like);
    pthread_mutex_lock(&d->libraries.lock);
    gm_list_remove(&mine.link);
    pthread_cond_broadcast(&d->libraries.loaded);
    pthread_mutex_unlock(&d->libraries.lock);
    return r;
}

void cuda_library_keep(struct dev *d, struct cuda_library *l)
{
    pthread_mutex_lock(&d->libraries.lock);
    l->users++;
    pthread_mutex_unlock(&d->libraries.lock);
}

void cuda_library_close(struct dev *d, struct cuda_library *l)
{
    if (!l)
        return;
    pthread_mutex_lock(&d->libraries.lock);
    if (--l->users == 0) {
        if (cuda_library_is_shared(l))
            keep(d, l);
        else
            retire(d, l);
    }
    pthread_mutex_unlock(&d->libraries.lock);
}

/* --- what a client changes -------------------------------------------------------------------- */

/* Finds the kernel of the same name in another library, and gives it the attributes that the
 * client's launches have asked for. */
static CUresult find_again(struct dev_client *c, struct cuda_gpu *g, struct cuda_library *in,
                           const struct cuda_function *f, struct cuda_function *out)
{
    struct dev *d = g->dev;
    const char *name;
    *out = *f;
    CUresult r = d->api.cuKernelGetName(&name, f->handle);
    if (r == CUDA_SUCCESS)
        r = d->api.cuLibraryGetKernel(&out->handle, in->handle, name);
    if (r == CUDA_SUCCESS)
        r = cuda_library_find(c, g->index, in, out);
    if (r != CUDA_SUCCESS ||
        cuda_home(c, g->index)->is_fallback) /* where each launch sees to its shared memory */
        return r;
    if (!cuda_library_raise_dynamic(g, out->handle, f->dynamic_max))
        r = CUDA_ERROR_INVALID_VALUE;
    if (r == CUDA_SUCCESS && f->non_portable)
        r = d->api.cuKernelSetAttribute(CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED, 1,
                                        out->handle, g->device);
    return r;
}

int cuda_library_own(struct dev_module *m)
{
    struct dev *d = m->client->dev;
    struct cuda_library *l = m->library, *own;
    char *log;
    if (!cuda_library_is_shared(l))
        return GM_CUDA_SUCCESS;
    struct cuda_function *found = calloc(GM_MAX(m->functions_count, 1u), sizeof(*found));
    if (!found)
        return GM_CUDA_OUT_OF_MEMORY;
    int r = library_create(m->gpu, m->client, l->bytes, l->size, l->kind, &own, &log);
    free(log);
    for (uint32_t i = 0; i < m->functions_count && r == GM_CUDA_SUCCESS; i++)
        r = (int)find_again(m->client, m->gpu, own, &m->functions[i], &found[i]);
    if (r == GM_CUDA_SUCCESS) {
        atomic_fetch_add_explicit(&m->client->runs.modules, 1,
                                  memory_order_release); /* this is its client's thread */
        for (uint32_t i = 0; i < m->functions_count; i++)
            m->functions[i] = found[i];
        m->library = own;
        m->handle = own->handle;
        cuda_library_close(d, l); /* launches that wait keep it */
    } else {
        cuda_library_close(d, own);
    }
    free(found);
    return r;
}
