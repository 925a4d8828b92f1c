/*
 * Part of gmux_device.h: minima and maxima of two or three numbers, or of a sum and a number, in
 * words and in halves of words. The CUDA Math API calls them DPX: __vi<what>_<type>; with _relu the
 * result is at least 0.
 */
#ifndef GMUX_DPX_H
#define GMUX_DPX_H

#define GMUX_HD __host__ __device__ static __inline__

template <class T> GMUX_HD T gmux_larger(T a, T b)
{
    return a > b ? a : b;
}
template <class T> GMUX_HD T gmux_smaller(T a, T b)
{
    return a < b ? a : b;
}
template <class T> GMUX_HD T gmux_sum(T a, T b)
{
    return (T)((unsigned int)a + (unsigned int)b);
}

/* One function on words, with a lower bound; and the same on halves. */
#define GMUX_WORD(name, T, first, second, bound)                                                   \
    GMUX_HD T name(T a, T b, T c)                                                                  \
    {                                                                                              \
        return gmux_larger<T>(second<T>(first<T>(a, b), c), bound);                                \
    }
#define GMUX_HALVES(name, T, first, second, bound)                                                 \
    GMUX_HD unsigned int name(unsigned int a, unsigned int b, unsigned int c)                      \
    {                                                                                              \
        T low = gmux_larger<T>(second<T>(first<T>((T)a, (T)b), (T)c), bound);                      \
        T high =                                                                                   \
            gmux_larger<T>(second<T>(first<T>((T)(a >> 16), (T)(b >> 16)), (T)(c >> 16)), bound);  \
        return (unsigned int)(unsigned short)high << 16 | (unsigned short)low;                     \
    }
#define GMUX_DPX(name, first, second)                                                              \
    GMUX_WORD(name##_s32, int, first, second, -0x7fffffff - 1)                                     \
    GMUX_WORD(name##_s32_relu, int, first, second, 0)                                              \
    GMUX_WORD(name##_u32, unsigned int, first, second, 0)                                          \
    GMUX_HALVES(name##_s16x2, short, first, second, -0x8000)                                       \
    GMUX_HALVES(name##_s16x2_relu, short, first, second, 0)                                        \
    GMUX_HALVES(name##_u16x2, unsigned short, first, second, 0)
GMUX_DPX(__vimax3, gmux_larger, gmux_larger)
GMUX_DPX(__vimin3, gmux_smaller, gmux_smaller)
GMUX_DPX(__viaddmax, gmux_sum, gmux_larger)
GMUX_DPX(__viaddmin, gmux_sum, gmux_smaller)

/* The larger or smaller of two numbers. The last parameter becomes true if that is the first. */
#define GMUX_DPX_TWO(name, choose, op)                                                             \
    GMUX_HD int __vi##name##_s32_relu(int a, int b)                                                \
    {                                                                                              \
        return gmux_larger(choose(a, b), 0);                                                       \
    }                                                                                              \
    GMUX_HD unsigned int __vi##name##_s16x2_relu(unsigned int a, unsigned int b)                   \
    {                                                                                              \
        return __vi##name##3_s16x2_relu(a, b, b);                                                  \
    }                                                                                              \
    GMUX_HD int __vib##name##_s32(int a, int b, bool *first)                                       \
    {                                                                                              \
        *first = a op b;                                                                           \
        return choose(a, b);                                                                       \
    }                                                                                              \
    GMUX_HD unsigned int __vib##name##_u32(unsigned int a, unsigned int b, bool *first)            \
    {                                                                                              \
        *first = a op b;                                                                           \
        return choose(a, b);                                                                       \
    }                                                                                              \
    GMUX_HD unsigned int __vib##name##_s16x2(unsigned int a, unsigned int b, bool *high,           \
                                             bool *low)                                            \
    {                                                                                              \
        *high = (short)(a >> 16) op(short)(b >> 16);                                               \
        *low = (short)a op(short) b;                                                               \
        return __vi##name##3_s16x2(a, b, b);                                                       \
    }                                                                                              \
    GMUX_HD unsigned int __vib##name##_u16x2(unsigned int a, unsigned int b, bool *high,           \
                                             bool *low)                                            \
    {                                                                                              \
        *high = a >> 16 op b >> 16;                                                                \
        *low = (unsigned short)a op(unsigned short) b;                                             \
        return __vi##name##3_u16x2(a, b, b);                                                       \
    }
GMUX_DPX_TWO(max, gmux_larger, >=)
GMUX_DPX_TWO(min, gmux_smaller, <=)

#undef GMUX_DPX_TWO
#undef GMUX_DPX
#undef GMUX_HALVES
#undef GMUX_WORD
#undef GMUX_HD
#endif
