/* What cuMemGetInfo says: the server's books and the device's driver, whichever has less. And pools
 * that others have sent. */
#include <criterion/criterion.h>
#include <cuda.h>
#include <string.h>
#include <unistd.h>

#include "client/session/session.h"
#include "fake.h"
#include "transport/memfd.h"

#define MIB (1ull << 20)

static struct fake fake;
static uint64_t device_has;
static int device_says;
static unsigned questions;

static int answer_left(const struct wire_rec_call *r, struct wire_dec *args, struct wire_enc *reply)
{
    if (r->function != WIRE_CALL_MEMORY_LEFT || r->module || !wire_dec_end(args))
        return CUDA_ERROR_INVALID_VALUE;
    questions++;
    wire_put_call_memory_left_is(reply, &(struct wire_call_memory_left_is) { device_has });
    return device_says;
}

static void setup(void)
{
    CUcontext c;
    fake_start(&fake, fake_serve_well, NULL);
    cr_assert_eq(cuInit(0), CUDA_SUCCESS);
    fake.info =
        (struct wire_memory_info_is) { .free = 100 * MIB, .ready = 2 * MIB, .total = 1024 * MIB };
    fake.call = answer_left;
    fake_device_start(&fake);
    cr_assert_eq(cuDevicePrimaryCtxRetain(&c, 0), CUDA_SUCCESS);
    cr_assert_eq(cuCtxSetCurrent(c), CUDA_SUCCESS);
    rt_session->memory_apart = true;
}

static uint64_t left(void)
{
    size_t left = 0, total = 0;
    cr_assert_eq(cuMemGetInfo(&left, &total), CUDA_SUCCESS);
    cr_assert_eq(total, 1024 * MIB, "which is the device's, whatever is left");
    return left;
}

TestSuite(memory, .init = setup, .timeout = 20);

Test(memory, others_use_the_device_too)
{
    device_has = 30 * MIB;
    cr_assert_eq(left(), 32 * MIB, "and what the server has at hand");
    device_has = 0;
    cr_assert_eq(left(), 2 * MIB);
}

Test(memory, a_limit_is_below_what_there_is)
{
    device_has = 500 * MIB;
    cr_assert_eq(left(), 100 * MIB);
    device_has = UINT64_MAX; /* no driver says so, but an executor may */
    cr_assert_eq(left(), 100 * MIB);
}

Test(memory, an_error_of_the_driver_s_is_told)
{
    size_t left = 7;
    device_says = CUDA_ERROR_ECC_UNCORRECTABLE;
    cr_assert_eq(cuMemGetInfo(&left, NULL), CUDA_ERROR_ECC_UNCORRECTABLE);
    cr_assert_eq(left, 7);
}

Test(memory, a_device_without_memory_of_its_own_is_not_asked)
{
    rt_session->memory_apart = false;
    device_has = 30 * MIB;
    cr_assert_eq(left(), 100 * MIB);
    cr_assert_eq(questions, 0);
}

/* --- pools ------------------------------------------------------------------------------------ */

struct name { /* of a pool, as it is sent */
    uint64_t magic, name;
    uint32_t device, reserved;
};

static struct name exported(void)
{
    static const CUmemPoolProps props = { .allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
                                          .handleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR,
                                          .location = { .type = CU_MEM_LOCATION_TYPE_DEVICE } };
    struct name n;
    CUmemoryPool pool;
    int fd;
    cr_assert_eq(cuMemPoolCreate(&pool, &props), CUDA_SUCCESS);
    cr_assert_eq(
        cuMemPoolExportToShareableHandle(&fd, pool, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0),
        CUDA_SUCCESS);
    cr_assert_eq(pread(fd, &n, sizeof(n), 0), sizeof(n));
    cr_assert_eq(lseek(fd, 0, SEEK_END), sizeof(n));
    close(fd);
    return n;
}

static CUresult import_fd(int fd)
{
    CUmemoryPool pool = NULL;
    CUresult r = cuMemPoolImportFromShareableHandle(&pool, (void *)(intptr_t)fd,
                                                    CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0);
    close(fd);
    cr_assert_eq(pool != NULL, r == CUDA_SUCCESS);
    return r;
}

static CUresult import(const void *bytes, size_t size)
{
    return import_fd(tp_memfd_from_bytes("pool", bytes, size));
}

Test(memory, pools_that_are_none)
{
    const struct name good = exported();
    struct name n = good;
    cr_assert_eq(import(&n, sizeof(n)), CUDA_SUCCESS);
    n.device = rt_session->devices[0].index + 1;
    cr_assert_eq(import(&n, sizeof(n)), CUDA_ERROR_INVALID_DEVICE, "this program does not see it");
    n.device = UINT32_MAX;
    cr_assert_eq(import(&n, sizeof(n)), CUDA_ERROR_INVALID_DEVICE);
    n = good;
    n.magic ^= 1;
    cr_assert_eq(import(&n, sizeof(n)), CUDA_ERROR_INVALID_VALUE);
    n = good;
    n.name = 0;
    cr_assert_eq(import(&n, sizeof(n)), CUDA_ERROR_INVALID_VALUE);
    n = good;
    n.reserved = 1;
    cr_assert_eq(import(&n, sizeof(n)), CUDA_ERROR_INVALID_VALUE);
    cr_assert_eq(import(&good, sizeof(n) - 1), CUDA_ERROR_INVALID_VALUE);
    int fd = tp_memfd_create("pool", sizeof(good)); /* may change while it is looked at */
    cr_assert_eq(pwrite(fd, &good, sizeof(good), 0), sizeof(good));
    cr_assert_eq(import_fd(fd), CUDA_ERROR_INVALID_VALUE);
    cr_assert_eq(import_fd(-1), CUDA_ERROR_UNKNOWN, "as the driver answers");
}
