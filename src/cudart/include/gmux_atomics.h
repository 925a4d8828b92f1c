/*
 * Part of gmux_device.h: the compiler's own atomic functions (__nv_atomic_*), which take an order
 * and a scope. All of them use the widest scope and, if an order is given, fences on both sides.
 * That is stronger than asked for, which is allowed.
 */
#ifndef GMUX_ATOMICS_H
#define GMUX_ATOMICS_H

enum {
    __NV_ATOMIC_RELAXED,
    __NV_ATOMIC_CONSUME,
    __NV_ATOMIC_ACQUIRE,
    __NV_ATOMIC_RELEASE,
    __NV_ATOMIC_ACQ_REL,
    __NV_ATOMIC_SEQ_CST,
};
enum {
    __NV_THREAD_SCOPE_SYSTEM,
    __NV_THREAD_SCOPE_DEVICE,
    __NV_THREAD_SCOPE_BLOCK,
    __NV_THREAD_SCOPE_CLUSTER,
    __NV_THREAD_SCOPE_THREAD,
};

#define GMUX_SCOPE int = __NV_THREAD_SCOPE_SYSTEM

GMUX_DEV void gmux_order(int order)
{
    if (order != __NV_ATOMIC_RELAXED)
        __threadfence_system();
}
GMUX_DEV void __nv_atomic_thread_fence(int order, GMUX_SCOPE)
{
    gmux_order(order);
}
template <class T> GMUX_DEV T __nv_atomic_load_n(const T *p, int order, GMUX_SCOPE)
{
    gmux_order(order);
    T v = *(const volatile T *)p;
    gmux_order(order);
    return v;
}
template <class T> GMUX_DEV void __nv_atomic_load(const T *p, T *result, int order, GMUX_SCOPE)
{
    *result = __nv_atomic_load_n(p, order);
}
template <class T, class V> GMUX_DEV void __nv_atomic_store_n(T *p, V v, int order, GMUX_SCOPE)
{
    gmux_order(order);
    *(volatile T *)p = (T)v;
    gmux_order(order);
}
template <class T> GMUX_DEV void __nv_atomic_store(T *p, const T *v, int order, GMUX_SCOPE)
{
    __nv_atomic_store_n(p, *v, order);
}
#define GMUX_FETCH(name, inner)                                                                    \
    template <class T, class V> GMUX_DEV T __nv_atomic_##name(T *p, V v, int order, GMUX_SCOPE)    \
    {                                                                                              \
        gmux_order(order);                                                                         \
        T old = inner(p, (T)v, __ATOMIC_RELAXED);                                                  \
        gmux_order(order);                                                                         \
        return old;                                                                                \
    }
GMUX_FETCH(fetch_add, __atomic_fetch_add)
GMUX_FETCH(fetch_sub, __atomic_fetch_sub)
GMUX_FETCH(fetch_and, __atomic_fetch_and)
GMUX_FETCH(fetch_or, __atomic_fetch_or)
GMUX_FETCH(fetch_xor, __atomic_fetch_xor)
GMUX_FETCH(fetch_min, __atomic_fetch_min)
GMUX_FETCH(fetch_max, __atomic_fetch_max)
GMUX_FETCH(exchange_n, __atomic_exchange_n)
#undef GMUX_FETCH

template <class T>
GMUX_DEV void __nv_atomic_exchange(T *p, const T *v, T *result, int order, GMUX_SCOPE)
{
    *result = __nv_atomic_exchange_n(p, *v, order);
}
template <class T, class V>
GMUX_DEV bool __nv_atomic_compare_exchange_n(T *p, T *expected, V v, bool, int success, int failure,
                                             GMUX_SCOPE)
{
    gmux_order(success);
    bool done =
        __atomic_compare_exchange_n(p, expected, (T)v, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED);
    gmux_order(done ? success : failure);
    return done;
}
template <class T>
GMUX_DEV bool __nv_atomic_compare_exchange(T *p, T *expected, const T *v, bool weak, int success,
                                           int failure, GMUX_SCOPE)
{
    return __nv_atomic_compare_exchange_n(p, expected, *v, weak, success, failure);
}
#undef GMUX_SCOPE
#endif
