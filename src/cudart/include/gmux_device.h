/*
 * Part of cuda_runtime.h: what kernels may use. Mathematics and most intrinsics are in clang's own
 * headers; this file has the built-in variables, what those headers expect to find and what they
 * leave to a toolkit.
 */
#ifndef GMUX_DEVICE_H
#define GMUX_DEVICE_H

/* clang's headers depend on it, and libraries conclude from it which toolkit compiles them; cuda.h
 * is of that version, too. */
#ifndef CUDA_VERSION
#define CUDA_VERSION CUDART_VERSION
#endif
#ifndef __CUDA_ARCH__
#define GMUX_OWN_CUDA_ARCH
/* so that clang's headers declare everything in the host's pass, too */
#define __CUDA_ARCH__ 9999
#endif

/* threadIdx and its like. For NVIDIA's compiler they are values of uint3 and dim3; here each is of
 * a class of its own that becomes either. Copies read the registers, too, so that nothing can be
 * assigned to them. Where that does not do, gmux-cc writes gmux_value(threadIdx) in its place: a
 * name of the program's own that is the same comes out of it as it was. */
template <class T> __host__ __device__ constexpr T &&gmux_value(T &&v)
{
    return static_cast<T &&>(v);
}
#define GMUX_READ(field, sreg)                                                                     \
    __declspec(property(get = __fetch_builtin_##field)) unsigned int field;                        \
    __device__ static inline                                                                       \
        __attribute__((always_inline)) unsigned int __fetch_builtin_##field(void)                  \
    {                                                                                              \
        return __nvvm_read_ptx_sreg_##sreg##_##field();                                            \
    }
#define GMUX_BUILTIN(name, type, sreg)                                                             \
    struct __cuda_builtin_##name##_t {                                                             \
        typedef void gmux_builtin;                                                                 \
        GMUX_READ(x, sreg)                                                                         \
        GMUX_READ(y, sreg)                                                                         \
        GMUX_READ(z, sreg)                                                                         \
        __device__ operator uint3() const                                                          \
        {                                                                                          \
            return uint3 { x, y, z };                                                              \
        }                                                                                          \
        __cuda_builtin_##name##_t() = delete;                                                      \
        __device__ __cuda_builtin_##name##_t(const __cuda_builtin_##name##_t &)                    \
        {                                                                                          \
        }                                                                                          \
        void operator=(const __cuda_builtin_##name##_t &) const = delete;                          \
        __cuda_builtin_##name##_t *operator&() const = delete;                                     \
    };                                                                                             \
    __device__ static inline type gmux_value(const __cuda_builtin_##name##_t &v)                   \
    {                                                                                              \
        return v;                                                                                  \
    }                                                                                              \
    extern const __device__ __attribute__((weak)) __cuda_builtin_##name##_t name;
GMUX_BUILTIN(threadIdx, uint3, tid)
GMUX_BUILTIN(blockIdx, uint3, ctaid)
GMUX_BUILTIN(blockDim, dim3, ntid)
GMUX_BUILTIN(gridDim, dim3, nctaid)
#undef GMUX_BUILTIN
#undef GMUX_READ
__device__ const int warpSize = 32;

#include <__clang_cuda_libdevice_declares.h>

/* Votes without a mask are instructions that PTX has only below sm_70; they are votes among the
 * lanes that are there. */
#define __nvvm_vote_all(p)    __nvvm_vote_all_sync(__nvvm_activemask(), p)
#define __nvvm_vote_any(p)    __nvvm_vote_any_sync(__nvvm_activemask(), p)
#define __nvvm_vote_ballot(p) __nvvm_vote_ballot_sync(__nvvm_activemask(), p)
#include <__clang_cuda_device_functions.h>
#undef __nvvm_vote_all
#undef __nvvm_vote_any
#undef __nvvm_vote_ballot
#include <__clang_cuda_math.h>

/* What every CUDA program can use without including a header. */
extern "C" {
__device__ int vprintf(const char *, const char *);
__device__ void free(void *) __attribute((nothrow));
__device__ void *malloc(size_t) __attribute((nothrow)) __attribute__((malloc));
__device__ void __assertfail(const char *message, const char *file, unsigned line,
                             const char *function, size_t char_size);
__device__ static inline void __assert_fail(const char *message, const char *file, unsigned line,
                                            const char *function)
{
    __assertfail(message, file, line, function, sizeof(char));
}
__device__ int printf(const char *, ...);
__device__ void cudaGraphSetConditional(unsigned long long handle, unsigned int value);
unsigned __cudaPushCallConfiguration(dim3 grid, dim3 block, size_t shared = 0,
                                     struct CUstream_st *stream = 0);
}

namespace std
{
__device__ static inline void free(void *p)
{
    ::free(p);
}
__device__ static inline void *malloc(size_t size)
{
    return ::malloc(size);
}
} // namespace std

/* Which memory an address points to; the intrinsics below use these. */
#define GMUX_DEV __device__ static __inline__ __attribute__((always_inline, unused))
#ifdef __CUDA__
typedef unsigned int cuuint32_t;
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ != 9999
#define GMUX_IS(name, where)                                                                       \
    GMUX_DEV unsigned int name(const void *p)                                                      \
    {                                                                                              \
        return __nvvm_isspacep_##where(p);                                                         \
    }
#else
#define GMUX_IS(name, where)                                                                       \
    GMUX_DEV unsigned int name(const void *p)                                                      \
    {                                                                                              \
        return 0;                                                                                  \
    }
#endif
GMUX_IS(__isGlobal, global)
GMUX_IS(__isShared, shared)
GMUX_IS(__isConstant, const)
GMUX_IS(__isLocal, local)
#undef GMUX_IS
#define GMUX_CVTA(name, space)                                                                     \
    GMUX_DEV size_t __cvta_generic_to_##name(const void *p)                                        \
    {                                                                                              \
        return (size_t)(void __attribute__((address_space(space))) *)p;                            \
    }                                                                                              \
    GMUX_DEV void *__cvta_##name##_to_generic(size_t p)                                            \
    {                                                                                              \
        return (void *)(void __attribute__((address_space(space))) *)p;                            \
    }
GMUX_CVTA(global, 1)
GMUX_CVTA(shared, 3)
GMUX_CVTA(constant, 4)
GMUX_CVTA(local, 5)
#undef GMUX_CVTA
#endif

#include <__clang_cuda_cmath.h>
#include "gmux_math.h"
/* clang 19 has the two parameters of __reduce_*_sync in the wrong order. */
#if __clang_major__ < 20
#define __nvvm_redux_sync_add(mask, value)  __nvvm_redux_sync_add(value, mask)
#define __nvvm_redux_sync_min(mask, value)  __nvvm_redux_sync_min(value, mask)
#define __nvvm_redux_sync_max(mask, value)  __nvvm_redux_sync_max(value, mask)
#define __nvvm_redux_sync_umin(mask, value) __nvvm_redux_sync_umin(value, mask)
#define __nvvm_redux_sync_umax(mask, value) __nvvm_redux_sync_umax(value, mask)
#define __nvvm_redux_sync_and(mask, value)  __nvvm_redux_sync_and(value, mask)
#define __nvvm_redux_sync_or(mask, value)   __nvvm_redux_sync_or(value, mask)
#define __nvvm_redux_sync_xor(mask, value)  __nvvm_redux_sync_xor(value, mask)
#endif
/* So are shuffles without a mask. */
#define __shfl      gmux_maskless_shfl
#define __shfl_up   gmux_maskless_shfl_up
#define __shfl_down gmux_maskless_shfl_down
#define __shfl_xor  gmux_maskless_shfl_xor
#include <__clang_cuda_intrinsics.h>
#undef __shfl
#undef __shfl_up
#undef __shfl_down
#undef __shfl_xor
#undef __nvvm_redux_sync_add
#undef __nvvm_redux_sync_min
#undef __nvvm_redux_sync_max
#undef __nvvm_redux_sync_umin
#undef __nvvm_redux_sync_umax
#undef __nvvm_redux_sync_and
#undef __nvvm_redux_sync_or
#undef __nvvm_redux_sync_xor
#include <__clang_cuda_complex_builtins.h>

#define GMUX_SHUFFLE(name, type)                                                                   \
    template <class T>                                                                             \
    GMUX_DEV auto name(T v, type lane, int width = warpSize)                                       \
        ->decltype(name##_sync(0u, v, lane, width))                                                \
    {                                                                                              \
        return name##_sync(__activemask(), v, lane, width);                                        \
    }
GMUX_SHUFFLE(__shfl, int)
GMUX_SHUFFLE(__shfl_up, unsigned int)
GMUX_SHUFFLE(__shfl_down, unsigned int)
GMUX_SHUFFLE(__shfl_xor, int)
#undef GMUX_SHUFFLE

/* --- atomics: for the device, a block (_block), host and devices (_system) -------------------- */

#define GMUX_ATOMIC2(name, type, as, inner)                                                        \
    GMUX_DEV type name(type *p, type v)                                                            \
    {                                                                                              \
        return (type)inner((as *)p, (as)v);                                                        \
    }                                                                                              \
    GMUX_DEV type name##_block(type *p, type v)                                                    \
    {                                                                                              \
        return (type)inner##_block((as *)p, (as)v);                                                \
    }                                                                                              \
    GMUX_DEV type name##_system(type *p, type v)                                                   \
    {                                                                                              \
        return (type)inner##_system((as *)p, (as)v);                                               \
    }
GMUX_ATOMIC2(atomicAdd, int, int, __iAtomicAdd)
GMUX_ATOMIC2(atomicAdd, unsigned int, unsigned int, __uAtomicAdd)
GMUX_ATOMIC2(atomicAdd, unsigned long long, unsigned long long, __ullAtomicAdd)
GMUX_ATOMIC2(atomicAdd, float, float, __fAtomicAdd)
GMUX_ATOMIC2(atomicAdd, double, double, __dAtomicAdd)
GMUX_ATOMIC2(atomicExch, int, int, __iAtomicExch)
GMUX_ATOMIC2(atomicExch, unsigned int, unsigned int, __uAtomicExch)
GMUX_ATOMIC2(atomicExch, unsigned long long, unsigned long long, __ullAtomicExch)
GMUX_ATOMIC2(atomicExch, float, float, __fAtomicExch)
GMUX_ATOMIC2(atomicMin, int, int, __iAtomicMin)
GMUX_ATOMIC2(atomicMin, unsigned int, unsigned int, __uAtomicMin)
GMUX_ATOMIC2(atomicMin, unsigned long long, unsigned long long, __ullAtomicMin)
GMUX_ATOMIC2(atomicMin, long long, long long, __illAtomicMin)
GMUX_ATOMIC2(atomicMax, int, int, __iAtomicMax)
GMUX_ATOMIC2(atomicMax, unsigned int, unsigned int, __uAtomicMax)
GMUX_ATOMIC2(atomicMax, unsigned long long, unsigned long long, __ullAtomicMax)
GMUX_ATOMIC2(atomicMax, long long, long long, __illAtomicMax)
GMUX_ATOMIC2(atomicAnd, int, int, __iAtomicAnd)
GMUX_ATOMIC2(atomicAnd, unsigned int, unsigned int, __uAtomicAnd)
GMUX_ATOMIC2(atomicAnd, unsigned long long, unsigned long long, __ullAtomicAnd)
GMUX_ATOMIC2(atomicAnd, long long, unsigned long long, __ullAtomicAnd)
GMUX_ATOMIC2(atomicOr, int, int, __iAtomicOr)
GMUX_ATOMIC2(atomicOr, unsigned int, unsigned int, __uAtomicOr)
GMUX_ATOMIC2(atomicOr, unsigned long long, unsigned long long, __ullAtomicOr)
GMUX_ATOMIC2(atomicOr, long long, unsigned long long, __ullAtomicOr)
GMUX_ATOMIC2(atomicXor, int, int, __iAtomicXor)
GMUX_ATOMIC2(atomicXor, unsigned int, unsigned int, __uAtomicXor)
GMUX_ATOMIC2(atomicXor, unsigned long long, unsigned long long, __ullAtomicXor)
GMUX_ATOMIC2(atomicXor, long long, unsigned long long, __ullAtomicXor)
GMUX_ATOMIC2(atomicInc, unsigned int, unsigned int, __uAtomicInc)
GMUX_ATOMIC2(atomicDec, unsigned int, unsigned int, __uAtomicDec)
#undef GMUX_ATOMIC2

GMUX_DEV int atomicSub(int *p, int v)
{
    return atomicAdd(p, -v);
}
GMUX_DEV unsigned int atomicSub(unsigned int *p, unsigned int v)
{
    return atomicAdd(p, 0u - v);
}
GMUX_DEV int atomicSub_block(int *p, int v)
{
    return atomicAdd_block(p, -v);
}
GMUX_DEV unsigned int atomicSub_block(unsigned int *p, unsigned int v)
{
    return atomicAdd_block(p, 0u - v);
}
GMUX_DEV int atomicSub_system(int *p, int v)
{
    return atomicAdd_system(p, -v);
}
GMUX_DEV unsigned int atomicSub_system(unsigned int *p, unsigned int v)
{
    return atomicAdd_system(p, 0u - v);
}

/* A compare and swap of that size, for any scope: always the widest one, which is allowed. */
#define GMUX_CAS(suffix, bits, type, letter, scope)                                                \
    GMUX_DEV type atomicCAS##suffix(type *p, type compare, type value)                             \
    {                                                                                              \
        unsigned bits c, v, old;                                                                   \
        __builtin_memcpy(&c, &compare, sizeof(c));                                                 \
        __builtin_memcpy(&v, &value, sizeof(v));                                                   \
        asm volatile("atom" scope ".cas.b" #letter " %0, [%1], %2, %3;"                            \
                     : GMUX_OUT_##letter(old)                                                      \
                     : "l"(p), GMUX_IN_##letter(c), GMUX_IN_##letter(v)                            \
                     : "memory");                                                                  \
        type r;                                                                                    \
        __builtin_memcpy(&r, &old, sizeof(r));                                                     \
        return r;                                                                                  \
    }
#define GMUX_OUT_16(x) "=h"(x)
#define GMUX_IN_16(x)  "h"(x)
#define GMUX_OUT_32(x) "=r"(x)
#define GMUX_IN_32(x)  "r"(x)
#define GMUX_OUT_64(x) "=l"(x)
#define GMUX_IN_64(x)  "l"(x)
#define GMUX_CAS_SCOPES(bits, type, letter)                                                        \
    GMUX_CAS(, bits, type, letter, "")                                                             \
    GMUX_CAS(_block, bits, type, letter, ".cta")                                                   \
    GMUX_CAS(_system, bits, type, letter, ".sys")
GMUX_CAS_SCOPES(short, unsigned short, 16)
GMUX_CAS_SCOPES(int, int, 32)
GMUX_CAS_SCOPES(int, unsigned int, 32)
GMUX_CAS_SCOPES(long long, unsigned long long, 64)
#undef GMUX_CAS_SCOPES
#undef GMUX_CAS

/* --- other intrinsics ------------------------------------------------------------------------- */

#if __CUDA_ARCH__ >= 700
#define GMUX_MATCH(type, bits, as)                                                                 \
    GMUX_DEV unsigned int __match_any_sync(unsigned int mask, type v)                              \
    {                                                                                              \
        as b;                                                                                      \
        __builtin_memcpy(&b, &v, sizeof(b));                                                       \
        return (unsigned int)__match##bits##_any_sync(mask, b);                                    \
    }                                                                                              \
    GMUX_DEV unsigned int __match_all_sync(unsigned int mask, type v, int *all)                    \
    {                                                                                              \
        as b;                                                                                      \
        __builtin_memcpy(&b, &v, sizeof(b));                                                       \
        return (unsigned int)__match##bits##_all_sync(mask, b, all);                               \
    }
GMUX_MATCH(int, 32, unsigned int)
GMUX_MATCH(unsigned int, 32, unsigned int)
GMUX_MATCH(float, 32, unsigned int)
GMUX_MATCH(long, 64, unsigned long long)
GMUX_MATCH(unsigned long, 64, unsigned long long)
GMUX_MATCH(long long, 64, unsigned long long)
GMUX_MATCH(unsigned long long, 64, unsigned long long)
GMUX_MATCH(double, 64, unsigned long long)
#undef GMUX_MATCH
#endif

/* Products of bytes by bytes (dp4a), or of halves of words by two of the bytes (dp2a), summed. */
#define GMUX_PRODUCTS(name, op, type, vector_a, vector_b)                                          \
    GMUX_DEV type name(type a, type b, type c)                                                     \
    {                                                                                              \
        type d;                                                                                    \
        asm(op " %0, %1, %2, %3;" : "=r"(d) : "r"(a), "r"(b), "r"(c));                             \
        return d;                                                                                  \
    }                                                                                              \
    GMUX_DEV type name(vector_a a, vector_b b, type c)                                             \
    {                                                                                              \
        type wa, wb;                                                                               \
        __builtin_memcpy(&wa, &a, sizeof(wa));                                                     \
        __builtin_memcpy(&wb, &b, sizeof(wb));                                                     \
        return name(wa, wb, c);                                                                    \
    }
GMUX_PRODUCTS(__dp4a, "dp4a.s32.s32", int, char4, char4)
GMUX_PRODUCTS(__dp4a, "dp4a.u32.u32", unsigned int, uchar4, uchar4)
GMUX_PRODUCTS(__dp2a_lo, "dp2a.lo.s32.s32", int, short2, char4)
GMUX_PRODUCTS(__dp2a_lo, "dp2a.lo.u32.u32", unsigned int, ushort2, uchar4)
GMUX_PRODUCTS(__dp2a_hi, "dp2a.hi.s32.s32", int, short2, char4)
GMUX_PRODUCTS(__dp2a_hi, "dp2a.hi.u32.u32", unsigned int, ushort2, uchar4)
#undef GMUX_PRODUCTS

GMUX_DEV void __nanosleep(unsigned int ns)
{
    asm volatile("nanosleep.u32 %0;" ::"r"(ns));
}
/* Loads and stores with cache hints; the hints are ignored. */
#define GMUX_LOAD(name)                                                                            \
    template <class T> GMUX_DEV T name(const T *p)                                                 \
    {                                                                                              \
        return *p;                                                                                 \
    }
#define GMUX_STORE(name)                                                                           \
    template <class T> GMUX_DEV void name(T *p, T v)                                               \
    {                                                                                              \
        *p = v;                                                                                    \
    }
GMUX_LOAD(__ldca)
GMUX_LOAD(__ldcs)
GMUX_LOAD(__ldlu)
template <class T> GMUX_DEV T __ldcg(const T *p)
{
    return *(const volatile T *)p;
}
template <class T> GMUX_DEV T __ldcv(const T *p)
{
    return *(const volatile T *)p;
}
GMUX_STORE(__stwb)
GMUX_STORE(__stcg)
GMUX_STORE(__stcs)
GMUX_STORE(__stwt)
#undef GMUX_LOAD
#undef GMUX_STORE

/* A grid that may begin while the one before it still runs waits here for it to end. */
GMUX_DEV void cudaGridDependencySynchronize(void)
{
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900 && __CUDA_ARCH__ != 9999
    asm volatile("griddepcontrol.wait;" ::: "memory");
#endif
}
GMUX_DEV void cudaTriggerProgrammaticLaunchCompletion(void)
{
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900 && __CUDA_ARCH__ != 9999
    asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
#endif
}

#include "gmux_atomics.h"
#include "gmux_dpx.h"
#include "gmux_host_math.h"
#include "surface_indirect_functions.h"
#include "texture_fetch_functions.h"

#ifdef GMUX_OWN_CUDA_ARCH
#undef __CUDA_ARCH__
#undef GMUX_OWN_CUDA_ARCH
#endif

#define __CUDACC__ 1
#if CUDART_VERSION >= 13000
#define __CUDACC_VER_MAJOR__ 13
#define __CUDACC_VER_MINOR__ 0
#else
#define __CUDACC_VER_MAJOR__ 12
#define __CUDACC_VER_MINOR__ 8
#endif
#define __CUDACC_VER_BUILD__ 0

#endif
