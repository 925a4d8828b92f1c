/* Arrays by their numbers: which there can be, and what a copy may touch. */
#include <criterion/criterion.h>
#include <cuda.h>

#include "base/result.h"
#include "device/array.h"

#define F32 CU_AD_FORMAT_FLOAT

static int check(uint64_t w, uint64_t h, uint64_t d, uint32_t format, uint32_t channels,
                 uint32_t flags)
{
    const struct dev_array_shape s = { w, h, d, format, channels, flags, 0 };
    return dev_array_check(&s);
}

Test(array, shapes)
{
    cr_assert_eq(check(1, 0, 0, CU_AD_FORMAT_UNSIGNED_INT8, 1, 0), 0);
    cr_assert_eq(check(16, 16, 16, F32, 4, CUDA_ARRAY3D_SURFACE_LDST), 0);
    cr_assert_eq(check(16, 0, 3, F32, 1, CUDA_ARRAY3D_LAYERED), 0);
    cr_assert_eq(check(16, 16, 12, F32, 1, CUDA_ARRAY3D_LAYERED | CUDA_ARRAY3D_CUBEMAP), 0);
    cr_assert_eq(check(0, 0, 0, F32, 1, 0), GM_CUDA_INVALID_VALUE);
    cr_assert_eq(check(16, 0, 3, F32, 1, 0), GM_CUDA_INVALID_VALUE);
    cr_assert_eq(check(16, 16, 0, F32, 1, CUDA_ARRAY3D_LAYERED), GM_CUDA_INVALID_VALUE);
    cr_assert_eq(check(16, 8, 6, F32, 1, CUDA_ARRAY3D_CUBEMAP), GM_CUDA_INVALID_VALUE);
    cr_assert_eq(check(16, 16, 7, F32, 1, CUDA_ARRAY3D_CUBEMAP), GM_CUDA_INVALID_VALUE);
    cr_assert_eq(check(16, 16, 0, F32, 3, 0), GM_CUDA_INVALID_VALUE);
    cr_assert_eq(check(16, 16, 0, 0, 1, 0), GM_CUDA_INVALID_VALUE);
    cr_assert_eq(check(16, 16, 0, F32, 1, 1u << 31), GM_CUDA_INVALID_VALUE);
    cr_assert_eq(check(16, 16, 0, F32, 1, CUDA_ARRAY3D_SPARSE), GM_CUDA_NOT_SUPPORTED);
    cr_assert_eq(check(16, 16, 0, CU_AD_FORMAT_BC1_UNORM, 4, 0), GM_CUDA_NOT_SUPPORTED);
    cr_assert_eq(check(UINT64_MAX, UINT64_MAX, UINT64_MAX, F32, 4, 0), GM_CUDA_INVALID_VALUE);
    cr_assert_eq(check(1u << 20, 1u << 20, 1u << 20, F32, 4, 0), GM_CUDA_INVALID_VALUE);
}

Test(array, levels)
{
    struct dev_array_shape s = { 64, 20, 0, F32, 2, 0, 0 };
    struct dev_array_extent e;
    cr_assert_eq(dev_array_levels(&s), 7);
    s.levels = 8;
    cr_assert_eq(dev_array_check(&s), GM_CUDA_INVALID_VALUE);
    s.levels = 7;
    cr_assert_eq(dev_array_check(&s), 0);
    dev_array_extent(&s, 3, &e);
    cr_assert(e.width == 8 * 8 && e.rows == 2 && e.planes == 1);
    dev_array_extent(&s, 6, &e);
    cr_assert(e.width == 8 && e.rows == 1 && e.planes == 1);
    /* Layers do not become fewer, planes do. */
    s = (struct dev_array_shape) { 4, 4, 64, F32, 1, CUDA_ARRAY3D_LAYERED, 3 };
    cr_assert_eq(dev_array_levels(&s), 3);
    dev_array_extent(&s, 2, &e);
    cr_assert(e.width == 4 && e.rows == 1 && e.planes == 64);
    s.flags = 0;
    cr_assert_eq(dev_array_levels(&s), 7);
    dev_array_extent(&s, 2, &e);
    cr_assert(e.planes == 16);
}

Test(array, boxes)
{
    const struct dev_array_shape s = { 10, 5, 3, F32, 1, 0, 0 };
    cr_assert(dev_array_holds(&s, 0, 0, 0, 0, 40, 5, 3));
    cr_assert(dev_array_holds(&s, 0, 36, 4, 2, 4, 1, 1));
    cr_assert_not(dev_array_holds(&s, 0, 40, 4, 2, 4, 1, 1));
    cr_assert_not(dev_array_holds(&s, 0, 0, 0, 0, 44, 1, 1));
    cr_assert_not(dev_array_holds(&s, 0, 0, 1, 0, 4, 5, 1));
    cr_assert_not(dev_array_holds(&s, 0, 0, 0, 3, 4, 1, 1));
    cr_assert(dev_array_holds(&s, 0, 2, 0, 0, 4, 1, 1), "not at an element");
    cr_assert(dev_array_holds(&s, 0, 0, 0, 0, 6, 1, 1), "no whole element");
    cr_assert_not(dev_array_holds(&s, 0, UINT64_MAX - 3, 0, 0, 8, 1, 1));
    cr_assert_not(dev_array_holds(&s, 0, 0, 1, 1, 4, UINT64_MAX, UINT64_MAX));
}

Test(array, charges)
{
    struct dev_array_shape s = { 1024, 1024, 0, F32, 1, 0, 0 };
    cr_assert_eq(dev_array_bytes(&s), 4u << 20);
    s.levels = 11;
    uint64_t all = dev_array_bytes(&s);
    cr_assert(all > (4u << 20) * 4ull / 3 && all < 6u << 20);
    s = (struct dev_array_shape) { 1, 0, 0, CU_AD_FORMAT_UNSIGNED_INT8, 1, 0, 0 };
    cr_assert_eq(dev_array_bytes(&s), 4096);
}
