/* Libraries that clients share, against a driver that only counts. */
#include <criterion/criterion.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "device/cuda/admit.h"
#include "device/cuda/kernel.h"
#include "device/cuda/link.h"
#include "device/cuda/local.h"
#include "device/cuda/module.h"
#include "device/cuda/settle.h"
#include "device/cuda/variables.h"
#include "files.h"
#include "transport/memfd.h"

TestSuite(library, .timeout = 60);

/* A library is its number; a kernel the number of its library, of which each has one, "plain". */
static unsigned loads;
static _Atomic unsigned unloads; /* by a thread of the device */
static int dynamic[16], non_portable[16];

static CUresult load_data(CUlibrary *library, const void *code, CUjit_option *options,
                          void **values, unsigned count, CUlibraryOption *library_options,
                          void **library_values, unsigned library_count)
{
    cr_assert_not_null(code);
    *library = (CUlibrary)(uintptr_t)++loads;
    return CUDA_SUCCESS;
}

static CUresult unload(CUlibrary library)
{
    unloads++;
    return CUDA_SUCCESS;
}

static void wait_for_unloads(unsigned count)
{
    while (unloads < count)
        sched_yield();
    cr_assert_eq(unloads, count);
}

void cuda_enter(struct cuda_gpu *g)
{
}

struct cuda_gpu *cuda_entered(void)
{
    return NULL;
}

bool cuda_local_has(struct dev_client *c, struct cuda_gpu *g, const struct cuda_library *l,
                    CUfunction f)
{
    return true;
}

void cuda_local_take(struct dev_client *c, struct cuda_gpu *g, const struct cuda_library *l,
                     CUfunction f)
{
}

/* Nothing runs. */
struct cuda_gpu *cuda_settle(struct dev_client *c, struct cuda_gpu *g, enum cuda_move move)
{
    return g;
}

void cuda_settled(struct dev_client *c, struct cuda_gpu *g)
{
}

struct cuda_gpu *cuda_fallback_or_first(struct dev_client *c, uint32_t device)
{
    return &c->dev->gpus[device];
}

static CUresult get_kernel(CUkernel *kernel, CUlibrary library, const char *name)
{
    *kernel = (CUkernel)(void *)library;
    return strcmp(name, "plain") == 0 ? CUDA_SUCCESS : CUDA_ERROR_NOT_FOUND;
}

static CUresult get_module(CUmodule *module, CUlibrary library)
{
    *module = NULL;
    return CUDA_SUCCESS;
}

static CUresult get_name(const char **name, CUkernel kernel)
{
    *name = "plain";
    return CUDA_SUCCESS;
}

static CUresult get_function(CUfunction *function, CUkernel kernel)
{
    *function = NULL;
    return CUDA_SUCCESS;
}

static int *attribute(CUfunction_attribute a, CUkernel kernel)
{
    uintptr_t n = (uintptr_t)kernel;
    cr_assert(n < 16);
    return a == CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES ? &dynamic[n] : &non_portable[n];
}

static CUresult get_attribute(int *value, CUfunction_attribute a, CUkernel kernel, CUdevice device)
{
    *value = *attribute(a, kernel);
    return CUDA_SUCCESS;
}

static CUdeviceptr written;
static uint8_t contents[4096];

static CUresult write_values(CUdeviceptr to, const void *from, size_t size, CUstream stream)
{
    cr_assert_leq(size, sizeof(contents));
    memcpy(contents, from, size);
    written = to;
    return CUDA_SUCCESS;
}

static CUresult synchronize(CUstream stream)
{
    return CUDA_SUCCESS;
}

/* Whatever the text says. */
int cuda_link_text(struct dev *d, const void *text, size_t size, void **cubin, size_t *cubin_size)
{
    struct file f = file_read("globals.cubin");
    *cubin = f.data;
    *cubin_size = f.size;
    return 0;
}

static CUresult set_attribute(CUfunction_attribute a, int value, CUkernel kernel, CUdevice device)
{
    *attribute(a, kernel) = value;
    return CUDA_SUCCESS;
}

static struct dev device = { .api = { .cuLibraryLoadData = load_data,
                                      .cuLibraryUnload = unload,
                                      .cuLibraryGetKernel = get_kernel,
                                      .cuLibraryGetModule = get_module,
                                      .cuKernelGetName = get_name,
                                      .cuKernelGetFunction = get_function,
                                      .cuKernelGetAttribute = get_attribute,
                                      .cuKernelSetAttribute = set_attribute,
                                      .cuMemcpyHtoDAsync_v2 = write_values,
                                      .cuStreamSynchronize = synchronize } };
static struct dev_client client = { .dev = &device, .uid = 1000 };

static void setup(void)
{
    cuda_dev_init(&device, &(struct dev_events) { 0 });
    device.rest_ns = CUDA_NEVER;
    device.libraries.kept_max = 0;
    device.gpus[0].dev = &device;
    device.gpus[0].info.attributes[CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR] = 9;
}

/* As a client's image comes: a mapping that ends with the load. `flip` changes a byte. */
static struct cuda_library *load(const char *name, uint32_t kind, size_t flip)
{
    struct file f = file_read(name);
    struct cuda_library *l;
    char *log;
    f.data[flip] ^= flip != 0;
    int fd = tp_memfd_from_bytes("image", f.data, f.size);
    void *image = tp_memfd_map(fd, f.size, false);
    close(fd);
    cr_assert_not_null(image);
    cr_assert_eq(cuda_library_open(&device.gpus[0], &client, image, f.size, kind, &l, &log), 0);
    cr_assert_null(log);
    munmap(image, f.size);
    free(f.data);
    return l;
}

Test(library, loaded_once, .init = setup)
{
    struct cuda_library *a = load("plain.cubin", WIRE_IMAGE_KIND_CUBIN, 0);
    struct cuda_library *b = load("plain.cubin", WIRE_IMAGE_KIND_CUBIN, 0);
    struct cuda_library *c = load("machine.fatbin", WIRE_IMAGE_KIND_FATBIN, 0);
    struct cuda_library *e = load("machine.fatbin", WIRE_IMAGE_KIND_FATBIN, 0);
    cr_assert(a == b && c == e && a != c);
    cr_assert(cuda_library_is_shared(a));
    cr_assert_eq(loads, 2);
    cuda_library_close(&device, a);
    cr_assert_eq(unloads, 0);
    cuda_library_close(&device, b);
    wait_for_unloads(1);
    a = load("plain.cubin", WIRE_IMAGE_KIND_CUBIN, 0);
    cr_assert_eq(loads, 3, "the last user has gone, and the library with it");
    cuda_library_close(&device, a);
    cuda_library_close(&device, c);
    cuda_library_close(&device, e);
    wait_for_unloads(3);
    cr_assert(gm_list_empty(&device.libraries.shared));
}

Test(library, not_shared, .init = setup)
{
    /* Variables; code for another GPU, so that what is compiled from PTX is not known; another byte
     * in the code. */
    cr_assert_neq(load("kernels.cubin", WIRE_IMAGE_KIND_CUBIN, 0),
                  load("kernels.cubin", WIRE_IMAGE_KIND_CUBIN, 0));
    cr_assert_neq(load("size.fatbin", WIRE_IMAGE_KIND_FATBIN, 0),
                  load("size.fatbin", WIRE_IMAGE_KIND_FATBIN, 0));
    cr_assert_eq(loads, 4);
    struct file f = file_read("plain.cubin");
    uint64_t sections;
    memcpy(&sections, f.data + 0x28, 8);
    struct cuda_library *a = load("plain.cubin", WIRE_IMAGE_KIND_CUBIN, 0);
    struct cuda_library *b = load("plain.cubin", WIRE_IMAGE_KIND_CUBIN, (size_t)sections - 8);
    cr_assert_neq(a, b);
    cr_assert(cuda_library_is_shared(a));
    client.uid = 1001;
    cr_assert_neq(a, load("plain.cubin", WIRE_IMAGE_KIND_CUBIN, 0), "another user's");
    client.uid = 1000;
    cr_assert_eq(a, load("plain.cubin", WIRE_IMAGE_KIND_CUBIN, 0));
}

/* One client changes what belongs to all: it gets its own, and the other keeps what it has. */
Test(library, of_its_own, .init = setup)
{
    struct dev_module m[2];
    struct cuda_function f[2];
    for (int i = 0; i < 2; i++) {
        struct cuda_library *l = load("plain.cubin", WIRE_IMAGE_KIND_CUBIN, 0);
        f[i] = (struct cuda_function) { .handle = (CUkernel)(void *)l->handle };
        if (i == 0)
            cuda_library_keep(&device, l); /* a launch of the first client's waits */
        m[i] = (struct dev_module) { .client = &client,
                                     .gpu = &device.gpus[0],
                                     .library = l,
                                     .handle = l->handle,
                                     .functions = &f[i],
                                     .functions_count = 1 };
    }
    cr_assert(cuda_library_raise_dynamic(&device.gpus[0], f[0].handle, 60000));
    cr_assert(cuda_library_raise_dynamic(&device.gpus[0], f[1].handle, 50000));
    cr_assert_eq(dynamic[1], 60000, "a limit only grows");
    f[0].dynamic_max = 60000;
    f[0].non_portable = true;
    cr_assert_eq(cuda_library_own(&m[0]), 0);
    cr_assert_eq(loads, 2);
    cr_assert_not(cuda_library_is_shared(m[0].library));
    cr_assert_neq(f[0].handle, f[1].handle);
    cr_assert_eq(dynamic[2], 60000);
    cr_assert_eq(non_portable[2], 1);
    cr_assert_eq(non_portable[1], 0);
    cr_assert_eq(cuda_library_own(&m[0]), 0);
    cr_assert_eq(loads, 2, "once");
    cr_assert_eq(m[1].handle, m[1].library->handle);
    struct cuda_library *shared = m[1].library;
    cuda_library_close(&device, shared);
    cr_assert_eq(unloads, 0, "a launch that waits keeps it");
    cuda_library_close(&device, shared);
    wait_for_unloads(1);
    cuda_library_close(&device, m[0].library);
    wait_for_unloads(2);
}

/* The image goes when it is loaded. */
static struct dev_module load_module(const void *bytes, size_t size, uint32_t kind)
{
    struct dev_module m = { .client = &client, .gpu = &device.gpus[0] };
    void *image = malloc(size);
    char *log;
    memcpy(image, bytes, size);
    cr_assert_eq(cuda_library_open(m.gpu, &client, image, size, kind, &m.library, &log), 0);
    m.handle = m.library->handle;
    cuda_variables_open(&m);
    memset(image, 0xff, size);
    free(image);
    return m;
}

static void place(struct dev_module *m)
{
    const uint64_t there = 0x700000000000;
    uint64_t address = 0, size = 0;
    int counter = 0;
    cr_assert_not_null(m->variables);
    cr_assert_eq(cuda_variables_place(m, there, true), 0);
    cr_assert_eq(m->handle, m->library->handle);
    cr_assert(m->library->traits.keeps_values && !cuda_library_is_shared(m->library));
    cr_assert_eq(written, there);
    cr_assert(cuda_variables_find(m, "counter", &address, &size));
    cr_assert(address >= there && size == sizeof(counter) &&
              address - there < cuda_variables_size(m));
    memcpy(&counter, contents + (address - there), sizeof(counter));
    cr_assert_eq(counter, 3);
    cr_assert_not(cuda_variables_find(m, "scale", &address, &size), "a constant");
    cuda_variables_close(m->variables);
    cuda_library_close(&device, m->library);
}

Test(library, variables_that_move, .init = setup)
{
    static const char text[] =
        ".version 7.0\n.target sm_70\n.address_size 64\n.global .u32 counter;\n";
    struct file f = file_read("globals.cubin"), managed = file_read("managed.cubin");
    struct dev_module m = load_module(f.data, f.size, WIRE_IMAGE_KIND_CUBIN);
    place(&m);
    cr_assert_eq(loads, 2, "as it came, and with its variables elsewhere");
    wait_for_unloads(2);
    m = load_module(managed.data, managed.size, WIRE_IMAGE_KIND_CUBIN);
    cr_assert_null(m.variables, "it comes again without them");
    cr_assert(m.library->traits.has_managed && m.library->traits.loses_values);
    m = load_module(text, strlen(text), WIRE_IMAGE_KIND_PTX);
    place(&m);
}
