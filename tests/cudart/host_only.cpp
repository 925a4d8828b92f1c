/*
 * A source without kernels may include every header, and computes with small floats on the host.
 */
#include <cooperative_groups.h>
#include <cooperative_groups/memcpy_async.h>
#include <cooperative_groups/reduce.h>
#include <cooperative_groups/scan.h>
#include <cuComplex.h>
#include <cudaProfiler.h>
#include <cuda_awbarrier.h>
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_fp4.h>
#include <cuda_fp6.h>
#include <cuda_fp8.h>
#include <cuda_pipeline.h>
#include <device_functions.h>
#include <math_functions.h>
#include <mma.h>
#define NVRTC_GET_TYPE_NAME 1
#include <nvrtc.h>
#include <string>
#include <surface_functions.h>
#include <surface_types.h>
#include <texture_fetch_functions.h>

#include "check.h"

/* Programs look for the guards of the toolkit's headers. */
#if !defined(__NVRTC_H__) || !defined(CU_COMPLEX_H_) || !defined(_COOPERATIVE_GROUPS_H_) ||        \
    !defined(_CUDA_PIPELINE_H_) || !defined(_CUDA_AWBARRIER_H_) ||                                 \
    !defined(__LIBRARY_TYPES_H__) || !defined(__TEXTURE_TYPES_H__) ||                              \
    !defined(__SURFACE_TYPES_H__) || !defined(__CHANNEL_DESCRIPTOR_H__)
#error "a guard is not there"
#endif

static void half_numbers()
{
    const float largest = 65504, smallest = 1 / 16777216.0f;
    for (unsigned int x = 0; x < 0x7c00; x++) {
        __half_raw raw;
        raw.x = (unsigned short)x;
        CHECK(__half_raw(__float2half(__half2float(raw))).x == x);
    }
    CHECK(__half2float(__float2half(largest)) == largest);
    CHECK(__half_raw(__float2half(smallest)).x == 1);
    CHECK(__half2float(__float2half(1) + __float2half(2)) == 3);
}

static void other_numbers()
{
    const float4 f = make_float4(1, 2, -3, 0.5f);
    const __nv_fp8x4_e4m3 bytes(f);
    const float4 back = (float4)bytes;
    CHECK(back.x == f.x && back.y == f.y && back.z == f.z && back.w == f.w);
    CHECK(__bfloat162float(__float2bfloat16(-1.5f)) == -1.5f);
    CHECK(cuCrealf(cuCmulf(make_cuFloatComplex(1, 2), make_cuFloatComplex(3, 4))) == -5);
}

static void type_names()
{
    std::string name;
    CHECK(nvrtcGetTypeName<const float *>(&name) == NVRTC_SUCCESS && name == "float const*");
    CHECK(nvrtcGetTypeName<unsigned int &>(&name) == NVRTC_SUCCESS && name == "unsigned int&");
    CHECK(nvrtcGetTypeName(typeid(int), &name) == NVRTC_SUCCESS && name == "int");
}

int main()
{
    half_numbers();
    other_numbers();
    type_names();
    if (failures > 1000)
        printf("%s\n", std::string("an object for the ellipsis"));
    printf("%s\n", failures ? "FAILED" : "passed");
    return failures != 0;
}
