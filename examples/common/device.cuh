// The few CUDA C built-ins that the example kernels use, for clang without the toolkit's headers
// (-nocudainc): attributes, thread indices, barrier, shuffle and the approximate functions.
#pragma once

#define __global__   __attribute__((global))
#define __device__   __attribute__((device))
#define __shared__   __attribute__((shared))
#define __constant__ __attribute__((constant))

struct uint3 {
    unsigned x, y, z;
};
struct __attribute__((aligned(16))) float4 {
    float x, y, z, w;
};
struct __attribute__((aligned(16))) double2 {
    double x, y;
};

#define threadIdx_x __nvvm_read_ptx_sreg_tid_x()
#define threadIdx_y __nvvm_read_ptx_sreg_tid_y()
#define blockIdx_x  __nvvm_read_ptx_sreg_ctaid_x()
#define blockIdx_y  __nvvm_read_ptx_sreg_ctaid_y()
#define blockDim_x  __nvvm_read_ptx_sreg_ntid_x()
#define blockDim_y  __nvvm_read_ptx_sreg_ntid_y()
#define gridDim_x   __nvvm_read_ptx_sreg_nctaid_x()

static __device__ inline void syncthreads()
{
    __nvvm_bar_sync(0);
}

static __device__ inline float shfl_down(float v, int delta)
{
    return __nvvm_shfl_sync_down_f32(0xffffffffu, v, delta, 0x1f);
}

static __device__ inline float rsqrt_approx(float x)
{
    return __nvvm_rsqrt_approx_f(x);
}
