/*
 * What a program's code registers before main(): its fat binaries, and for each kernel and variable
 * the address by which the program names it. An image is loaded when something of it is first
 * needed, so a program that only prints its usage needs no device.
 *
 * The calls come from a compiler that we do not know. A handle that was not given out is ignored,
 * and a name has at most NAME_MAX_LENGTH bytes; the driver checks the image itself.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "cudart/cudart.h"

#define WRAPPER_MAGIC   0x466243b1u
#define NAME_MAX_LENGTH 65536
#define CACHE_SLOTS     64

struct wrapper {
    uint32_t magic;
    uint32_t version;
    const void *data;
    const void *list;
};

struct image {
    struct image *next;
    const struct wrapper *wrapper;
    CUlibrary library; /* NULL: not loaded */
    cudaError_t result;
    bool tried;
    struct managed *managed;
};

struct managed {
    struct managed *next;
    void **address; /* where the program keeps a managed variable's address */
    char *name;
};

enum kind { KERNEL, VARIABLE };

struct symbol {
    const void *host;
    struct image *image;
    char *name;
    enum kind kind;
    size_t size;
    CUkernel kernel;
};

/* A hash table by host address, with open addressing; never more than half full. */
static struct {
    pthread_mutex_t lock;
    struct image *images;
    struct symbol *slots;
    size_t capacity, count;
    /* changes when an entry is removed: then what threads remember is stale */
    atomic_uint generation;
} table = { .lock = PTHREAD_MUTEX_INITIALIZER, .generation = 1 };

/* The kernels that a thread launched last, which are found here without the lock. */
struct cache {
    unsigned generation;
    struct {
        const void *host;
        CUkernel kernel;
    } slots[CACHE_SLOTS];
};

/* The calling thread's; NULL: there is no memory for it. */
static struct cache *cache_of_thread(void)
{
    static _Thread_local void *mine;
    return mine ? mine : crt_thread_memory(&mine, sizeof(struct cache));
}

static size_t hash(const void *p)
{
    uint64_t x = (uint64_t)(uintptr_t)p * 0x9e3779b97f4a7c15u;
    return (size_t)(x >> 20);
}

static struct symbol *find(const void *host)
{
    if (!table.capacity)
        return NULL;
    for (size_t i = hash(host);; i++) {
        struct symbol *s = &table.slots[i & (table.capacity - 1)];
        if (!s->host)
            return NULL;
        if (s->host == host)
            return s;
    }
}

static struct symbol *place(struct symbol *slots, size_t capacity, const void *host)
{
    for (size_t i = hash(host);; i++) {
        struct symbol *s = &slots[i & (capacity - 1)];
        if (!s->host || s->host == host)
            return s;
    }
}

static bool resize(size_t capacity)
{
    struct symbol *slots = calloc(capacity, sizeof(*slots));
    if (!slots)
        return false;
    size_t count = 0;
    for (size_t i = 0; i < table.capacity; i++)
        if (table.slots[i].host && table.slots[i].image) {
            *place(slots, capacity, table.slots[i].host) = table.slots[i];
            count++;
        }
    free(table.slots);
    table.slots = slots;
    table.capacity = capacity;
    table.count = count;
    return true;
}

/* The image of a handle that __cudaRegisterFatBinary gave out; NULL if it is none. */
static struct image *image_of(void **handle)
{
    for (struct image *i = table.images; i; i = i->next)
        if ((void **)i == handle)
            return i;
    return NULL;
}

static void add(void **handle, const void *host, const char *name, enum kind kind, size_t size)
{
    if (!host || !name || strnlen(name, NAME_MAX_LENGTH) == NAME_MAX_LENGTH)
        return;
    (void)pthread_mutex_lock(&table.lock);
    struct image *image = image_of(handle);
    char *copy = image ? strdup(name) : NULL;
    if (copy && (table.count + 1) * 2 > table.capacity &&
        !resize(table.capacity ? table.capacity * 2 : 64)) {
        free(copy);
        copy = NULL;
    }
    if (copy) {
        struct symbol *s = place(table.slots, table.capacity, host);
        if (s->host) {
            free(s->name);
            atomic_fetch_add_explicit(&table.generation, 1, memory_order_release);
        } else
            table.count++;
        *s = (struct symbol) {
            .host = host, .image = image, .name = copy, .kind = kind, .size = size
        };
    }
    (void)pthread_mutex_unlock(&table.lock);
}

void **__cudaRegisterFatBinary(void *fatCubin)
{
    struct image *image = calloc(1, sizeof(*image));
    if (!image)
        return NULL;
    const struct wrapper *w = fatCubin;
    image->wrapper = w && w->magic == WRAPPER_MAGIC ? w : NULL;
    (void)pthread_mutex_lock(&table.lock);
    image->next = table.images;
    table.images = image;
    (void)pthread_mutex_unlock(&table.lock);
    return (void **)image;
}

void __cudaRegisterFatBinaryEnd(void **handle)
{
    (void)handle;
}

void __cudaUnregisterFatBinary(void **handle)
{
    (void)pthread_mutex_lock(&table.lock);
    struct image **at = &table.images;
    while (*at && (void **)*at != handle)
        at = &(*at)->next;
    struct image *image = *at;
    if (image) {
        *at = image->next;
        for (size_t i = 0; i < table.capacity; i++)
            if (table.slots[i].host && table.slots[i].image == image) {
                free(table.slots[i].name);
                table.slots[i].name = NULL;
                table.slots[i].image = NULL; /* the slot stays, because others may follow it */
            }
        atomic_fetch_add_explicit(&table.generation, 1, memory_order_release);
    }
    (void)pthread_mutex_unlock(&table.lock);
    if (!image)
        return;
    /* At the end of a program the driver may already be gone and return an error; that is no
     * failure. */
    if (image->library)
        (void)cuLibraryUnload(image->library);
    for (struct managed *m = image->managed, *next; m; m = next) {
        next = m->next;
        free(m->name);
        free(m);
    }
    free(image);
}

void __cudaRegisterFunction(void **handle, const char *hostFun, char *deviceFun,
                            const char *deviceName, int threadLimit, uint3 *tid, uint3 *bid,
                            dim3 *bDim, dim3 *gDim, int *wSize)
{
    (void)deviceFun, (void)threadLimit, (void)tid, (void)bid, (void)bDim, (void)gDim, (void)wSize;
    add(handle, hostFun, deviceName, KERNEL, 0);
}

void __cudaRegisterVar(void **handle, char *hostVar, char *deviceAddress, const char *deviceName,
                       int ext, size_t size, int constant, int global)
{
    (void)deviceAddress, (void)ext, (void)constant, (void)global;
    add(handle, hostVar, deviceName, VARIABLE, size);
}

void __cudaRegisterManagedVar(void **handle, void **hostVarPtrAddress, char *deviceAddress,
                              const char *deviceName, int ext, size_t size, int constant,
                              int global)
{
    (void)deviceAddress, (void)ext, (void)constant, (void)global;
    add(handle, hostVarPtrAddress, deviceName, VARIABLE, size);
    if (!hostVarPtrAddress || !deviceName ||
        strnlen(deviceName, NAME_MAX_LENGTH) == NAME_MAX_LENGTH)
        return;
    struct managed *m = calloc(1, sizeof(*m));
    char *name = strdup(deviceName);
    (void)pthread_mutex_lock(&table.lock);
    struct image *image = image_of(handle);
    if (m && name && image) {
        *m = (struct managed) { image->managed, hostVarPtrAddress, name };
        image->managed = m;
        m = NULL;
        name = NULL;
    }
    (void)pthread_mutex_unlock(&table.lock);
    free(m);
    free(name);
}

/* Loads the image. Called with the table's lock held. */
static cudaError_t load(struct image *image)
{
    if (image->tried)
        return image->result;
    image->tried = true;
    if (!image->wrapper)
        return image->result = cudaErrorInvalidKernelImage;
    CUresult r = cuLibraryLoadData(&image->library, image->wrapper, NULL, NULL, 0, NULL, NULL, 0);
    for (struct managed *m = image->managed; !r && m; m = m->next) {
        CUdeviceptr p;
        r = cuLibraryGetManaged(&p, NULL, image->library, m->name);
        if (!r)
            memcpy(m->address, &p, sizeof(p));
    }
    return image->result = crt_of(r);
}

/* Loads an image; without a handle, all images that have managed variables. */
char __cudaInitModule(void **handle)
{
    if (crt_enter())
        return 0;
    (void)pthread_mutex_lock(&table.lock);
    struct image *image = image_of(handle);
    bool ok = image ? !load(image) : !handle;
    for (image = table.images; image && !handle; image = image->next)
        if (image->managed && load(image))
            ok = false;
    (void)pthread_mutex_unlock(&table.lock);
    return ok;
}

/* What is registered as a kernel and not found in its image is no device function; what is not
 * registered CUDA 13 takes for a handle, and a wrong one. */
static cudaError_t look_up(const void *host, CUkernel *out)
{
    cudaError_t r = host && CUDART_VERSION >= 13000 ? cudaErrorInvalidResourceHandle
                                                    : cudaErrorInvalidDeviceFunction;
    (void)pthread_mutex_lock(&table.lock);
    struct symbol *s = find(host);
    if (s && s->image && s->kind == KERNEL) {
        r = load(s->image);
        if (!r && !s->kernel) {
            r = crt_of(cuLibraryGetKernel(&s->kernel, s->image->library, s->name));
            if (r == cudaErrorSymbolNotFound)
                r = cudaErrorInvalidDeviceFunction;
        }
        *out = s->kernel;
    }
    (void)pthread_mutex_unlock(&table.lock);
    return r;
}

/* Kernels of libraries that the program has loaded, which it may use in place of its own. */
static struct {
    pthread_mutex_t lock;
    size_t count, capacity;
    struct {
        CUkernel kernel;
        CUlibrary library;
    } * kernels;
} given = { .lock = PTHREAD_MUTEX_INITIALIZER };

/* Called with the lock of `given` held. */
static bool is_given(const void *kernel)
{
    for (size_t i = 0; i < given.count; i++)
        if (given.kernels[i].kernel == kernel)
            return true;
    return false;
}

cudaError_t crt_note_kernel(CUkernel kernel, CUlibrary library)
{
    cudaError_t r = cudaSuccess;
    (void)pthread_mutex_lock(&given.lock);
    bool known = is_given(kernel);
    if (!known && given.count == given.capacity) {
        size_t n = given.capacity ? given.capacity * 2 : 16;
        void *grown = reallocarray(given.kernels, n, sizeof(*given.kernels));
        if (grown) {
            given.kernels = grown;
            given.capacity = n;
        } else {
            r = cudaErrorMemoryAllocation;
        }
    }
    if (!known && !r) {
        given.kernels[given.count].kernel = kernel;
        given.kernels[given.count++].library = library;
    }
    (void)pthread_mutex_unlock(&given.lock);
    return r;
}

void crt_forget_kernels(CUlibrary library)
{
    size_t kept = 0;
    (void)pthread_mutex_lock(&given.lock);
    for (size_t i = 0; i < given.count; i++)
        if (library && given.kernels[i].library != library)
            given.kernels[kept++] = given.kernels[i];
    given.count = kept;
    (void)pthread_mutex_unlock(&given.lock);
}

static cudaError_t look_up_given(const void *kernel, CUkernel *out)
{
    (void)pthread_mutex_lock(&given.lock);
    bool found = kernel && is_given(kernel);
    (void)pthread_mutex_unlock(&given.lock);
    if (found)
        *out = (CUkernel)(uintptr_t)kernel;
    return found ? cudaSuccess : cudaErrorInvalidDeviceFunction;
}

cudaError_t crt_kernel(const void *host, CUkernel *out)
{
    unsigned generation = atomic_load_explicit(&table.generation, memory_order_acquire);
    struct cache *cache = cache_of_thread();
    if (cache && cache->generation != generation)
        *cache = (struct cache) { .generation = generation };
    size_t slot = hash(host) % CACHE_SLOTS;
    if (cache && host && cache->slots[slot].host == host) {
        *out = cache->slots[slot].kernel;
        return cudaSuccess;
    }
    cudaError_t r = look_up(host, out);
    /* Not remembered: nobody says when it ends. */
    if (crt_is_no_kernel(r))
        return look_up_given(host, out) ? r : cudaSuccess;
    if (!r && cache) {
        cache->slots[slot].host = host;
        cache->slots[slot].kernel = *out;
    }
    return r;
}

cudaError_t crt_function(const void *host, CUfunction *out)
{
    CUkernel kernel;
    cudaError_t r = crt_kernel(host, &kernel);
    return r ? r : crt_of(cuKernelGetFunction(out, kernel));
}

/* A managed variable is registered by the address of the pointer to it, but a program names it by
 * its own address. */
static struct symbol *find_managed(const void *host)
{
    for (struct image *i = table.images; i && host; i = i->next)
        for (struct managed *m = i->managed; m; m = m->next)
            if (*m->address == host)
                return find(m->address);
    return NULL;
}

cudaError_t crt_variable(const void *host, CUdeviceptr *address, size_t *size)
{
    cudaError_t r = cudaErrorInvalidSymbol;
    (void)pthread_mutex_lock(&table.lock);
    struct symbol *s = find(host);
    if (!s)
        s = find_managed(host);
    if (s && s->image && s->kind == VARIABLE) {
        r = load(s->image);
        if (!r) {
            r = crt_of(cuLibraryGetGlobal(address, size, s->image->library, s->name));
            if (r == cudaErrorSymbolNotFound)
                r = cudaErrorInvalidSymbol;
        }
    }
    (void)pthread_mutex_unlock(&table.lock);
    return r;
}

void *crt_host(CUfunction function, CUkernel kernel)
{
    const void *host = NULL;
    (void)pthread_mutex_lock(&table.lock);
    for (size_t i = 0; i < table.capacity && !host; i++) {
        const struct symbol *s = &table.slots[i];
        CUfunction f;
        if (!s->host || !s->image || !s->kernel)
            continue;
        if (s->kernel == kernel ||
            (function && !cuKernelGetFunction(&f, s->kernel) && f == function))
            host = s->host;
    }
    (void)pthread_mutex_unlock(&table.lock);
    return (void *)(uintptr_t)host;
}

void crt_forget_images(void)
{
    crt_forget_kernels(NULL);
    (void)pthread_mutex_lock(&table.lock);
    for (size_t i = 0; i < table.capacity; i++)
        table.slots[i].kernel = NULL;
    for (struct image *i = table.images; i; i = i->next) {
        if (i->library)
            (void)cuLibraryUnload(i->library);
        i->library = NULL;
        i->tried = false;
        /* The host's next use of it loads the image again. */
        for (struct managed *m = i->managed; m; m = m->next)
            *m->address = NULL;
    }
    atomic_fetch_add_explicit(&table.generation, 1, memory_order_release);
    (void)pthread_mutex_unlock(&table.lock);
}
