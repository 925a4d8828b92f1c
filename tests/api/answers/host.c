/* Pinned and registered host memory. */
#include "answers.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

static void host_allocation(void)
{
    void *p = NULL, *q = NULL;
    CUdeviceptr d = 0;
    unsigned flags = 99;
    CALL(cuMemAllocHost(&p, 1000));
    CALL(cuMemHostGetFlags(&flags, p));
    NUM(flags);
    CALL(cuMemHostGetDevicePointer(&d, p, 0));
    NUM(d == (CUdeviceptr)(uintptr_t)p);
    CALL(cuMemHostGetDevicePointer(&d, (char *)p + 100, 0));
    NUM(d == (CUdeviceptr)(uintptr_t)p + 100);
    CALL(cuMemHostGetDevicePointer(&d, p, 1));
    CALL(cuMemHostGetDevicePointer(NULL, p, 0));
    CALL(cuMemHostAlloc(&q, 1000, CU_MEMHOSTALLOC_PORTABLE));
    CALL(cuMemHostGetFlags(&flags, q));
    NUM(flags);
    CALL(cuMemFreeHost(q));
    CALL(cuMemHostAlloc(&q, 1000, CU_MEMHOSTALLOC_DEVICEMAP | CU_MEMHOSTALLOC_WRITECOMBINED));
    CALL(cuMemHostGetFlags(&flags, q));
    NUM(flags);
    CALL(cuMemHostGetFlags(NULL, q));
    CALL(cuMemFreeHost((char *)q + 8));
    CALL(cuMemFreeHost(q));
    CALL(cuMemFreeHost(q));
    CALL(cuMemFreeHost(NULL));
    CALL(cuMemHostAlloc(&q, 1000, 0x80));
    CALL(cuMemHostAlloc(&q, 0, 0));
    CALL(cuMemHostAlloc(NULL, 10, 0));
    CALL(cuMemAllocHost(&q, 0));
    CALL(cuMemAllocHost(NULL, 10));
    CALL(cuMemHostGetFlags(&flags, &flags));
    CALL(cuMemHostGetDevicePointer(&d, &flags, 0));
    CALL(cuMemFree((CUdeviceptr)(uintptr_t)p));
    CALL(cuMemFreeHost(p));
}

/* What a kernel makes of it: out[i] = 3 + i. */
static void use(void *host, size_t words)
{
    CUdeviceptr d = 0;
    volatile uint32_t *w = host;
    CALL(cuMemHostGetDevicePointer(&d, host, 0));
    CALL(answers_fill(NULL, d, (unsigned)words, 3));
    CALL(cuCtxSynchronize());
    NUM(w[0]);
    NUM(w[words - 1]);
    CALL(cuMemsetD32(d, 8, words));
    CALL(cuCtxSynchronize());
    NUM(w[words - 1]);
}

static void registered_pages(void)
{
    const size_t page = 4096;
    char *p = mmap(NULL, 4 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    unsigned flags = 99;
    CALL(cuMemHostRegister(p, 4 * page, 0));
    CALL(cuMemHostGetFlags(&flags, p));
    NUM(flags);
    use(p, 4096);
    CALL(cuMemHostRegister(p, page, 0));
    CALL(cuMemHostRegister(p + page, page, 0));
    CALL(cuMemHostUnregister(p + page));
    CALL(cuMemFreeHost(p));
    CALL(cuMemHostUnregister(p));
    CALL(cuMemHostUnregister(p));
    NUM(*(uint32_t *)(void *)p);
    CALL(cuMemHostRegister(p, page, CU_MEMHOSTREGISTER_PORTABLE | CU_MEMHOSTREGISTER_DEVICEMAP));
    CALL(cuMemHostGetFlags(&flags, p));
    NUM(flags);
    CALL(cuMemHostUnregister(p));
    CALL(cuMemHostRegister(p, page, 0x80));
    CALL(cuMemHostRegister(p, 0, 0));
    CALL(cuMemHostRegister(NULL, page, 0));
    CALL(cuMemHostUnregister(NULL));
    munmap(p, 4 * page);
    CALL(cuMemHostRegister(p, page, 0));
}

/* Heap memory that begins and ends within pages. */
static void registered_heap(void)
{
    char *p = malloc(300000);
    char *q = p + 1000 - (uintptr_t)p % 16;
    memset(p, 1, 300000);
    CALL(cuMemHostRegister(q, 200000, CU_MEMHOSTREGISTER_DEVICEMAP));
    use(q, 50000);
    NUM(q[-1]);
    NUM(q[200000]);
    CALL(cuMemHostUnregister(q));
    NUM(*(uint32_t *)(void *)q);
    free(p);
    p = malloc(100);
    CALL(cuMemHostRegister(p, 100, 0));
    use(p, 25);
    CALL(cuMemHostUnregister(p));
    NUM(*(uint32_t *)(void *)p);
    free(p);
}

/* Two neighbours in one page. */
static void registered_neighbours(void)
{
    static _Alignas(4096) char page[8192];
    CALL(cuMemHostRegister(page, 1000, 0));
    CALL(cuMemHostRegister(page + 2000, 1000, 0));
    use(page, 250);
    use(page + 2000, 250);
    CALL(cuMemHostUnregister(page));
    use(page + 2000, 250);
    NUM(*(uint32_t *)(void *)page);
    CALL(cuMemHostUnregister(page + 2000));
}

static void registered_stack(void)
{
    uint32_t words[5000];
    memset(words, 1, sizeof(words));
    CALL(cuMemHostRegister(words, sizeof(words), CU_MEMHOSTREGISTER_DEVICEMAP));
    use(words, COUNT(words));
    CALL(cuMemHostUnregister(words));
    NUM(words[100]);
}

static uint32_t in_data[5000] = { 1 };

static void registered_data(void)
{
    CALL(cuMemHostRegister(in_data, sizeof(in_data), CU_MEMHOSTREGISTER_DEVICEMAP));
    use(in_data, COUNT(in_data));
    CALL(cuMemHostUnregister(in_data));
    NUM(in_data[100]);
}

/* Memory that other processes have, too: they see what the device writes. */
static void registered_shared(void)
{
    int fd = memfd_create("shared", 0);
    char *p, *again;
    NUM(ftruncate(fd, 65536));
    p = mmap(NULL, 65536, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    again = mmap(NULL, 65536, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    CALL(cuMemHostRegister(p, 65536, CU_MEMHOSTREGISTER_DEVICEMAP));
    use(p, 16384);
    NUM(*(uint32_t *)(void *)(again + 65532));
    CALL(cuMemHostUnregister(p));
    NUM(*(uint32_t *)(void *)(again + 65532));
    munmap(p, 65536);
    p = mmap(NULL, 65536, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    CALL(cuMemHostRegister(p, 65536, 0));
    use(p, 16384);
    CALL(cuMemHostUnregister(p));
}

static void registered_file(void)
{
    char path[] = "/tmp/answers-XXXXXX";
    int fd = mkstemp(path);
    uint32_t word = 0;
    unlink(path);
    NUM(ftruncate(fd, 65536));
    char *p = mmap(NULL, 65536, PROT_READ | PROT_WRITE, MAP_PRIVATE, fd, 0);
    CALL(cuMemHostRegister(p, 65536, CU_MEMHOSTREGISTER_DEVICEMAP));
    use(p, 16384);
    CALL(cuMemHostUnregister(p));
    NUM(*(uint32_t *)(void *)(p + 65532));
    NUM(pread(fd, &word, sizeof(word), 65532));
    NUM(word);
}

static void registered_read_only(void)
{
    char *p = mmap(NULL, 65536, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CUdeviceptr d = 0;
    memset(p, 5, 65536);
    mprotect(p, 65536, PROT_READ);
    CALL(cuMemHostRegister(p, 65536, 0));
    CALL(cuMemHostRegister(p, 65536, CU_MEMHOSTREGISTER_READ_ONLY));
    CALL(cuMemHostGetDevicePointer(&d, p, 0));
    NUM(answers_word(d));
    CALL(cuMemHostUnregister(p));
}

/* Not mapped at all, or only in part. */
static void registered_holes(void)
{
    char *p = mmap(NULL, 65536, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    munmap(p + 32768, 4096);
    CALL(cuMemHostRegister(p, 65536, 0));
    CALL(cuMemHostRegister(p, 32768, 0));
    CALL(cuMemHostUnregister(p));
    CALL(cuMemHostRegister((void *)(uintptr_t)4096, 4096, 0));
}

/* Copies from and to it, also across its end. */
static void registered_copies(void)
{
    char *p = malloc(100000), *q = malloc(100000);
    CUdeviceptr d;
    memset(p, 6, 100000);
    CALL(cuMemHostRegister(p, 50000, 0));
    CALL(cuMemAlloc(&d, 100000));
    CALL(cuMemcpyHtoD(d, p, 50000));
    CALL(cuMemcpyHtoD(d, p, 100000));
    CALL(cuMemcpyDtoH(q, d, 100000));
    NUM(q[99999]);
    CALL(cuMemcpyHtoDAsync(d, p, 40000, NULL));
    CALL(cuMemcpyDtoHAsync(p + 10000, d, 40000, NULL));
    CALL(cuStreamSynchronize(NULL));
    CALL(cuMemHostUnregister(p));
    free(p);
    free(q);
}

const struct answers_case answers_host[] = {
    CASE(host_allocation),       CASE(registered_pages),  CASE(registered_heap),
    CASE(registered_neighbours), CASE(registered_stack),  CASE(registered_data),
    CASE(registered_shared),     CASE(registered_file),   CASE(registered_read_only),
    CASE(registered_holes),      CASE(registered_copies), END,
};
