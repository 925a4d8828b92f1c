/* cudaCreateChannelDesc<T>(): the format of a texture's or array's elements. */
#ifndef GMUX_CUDA_CHANNEL_DESCRIPTOR_H
#define GMUX_CUDA_CHANNEL_DESCRIPTOR_H
#define __CHANNEL_DESCRIPTOR_H__ /* programs look for the toolkit's */

#include "cuda_runtime_api.h"

#ifdef __cplusplus
template <class T> inline __host__ cudaChannelFormatDesc cudaCreateChannelDesc()
{
    return cudaCreateChannelDesc(0, 0, 0, 0, cudaChannelFormatKindNone);
}

#define GMUX_CHANNELS(type, n, kind)                                                               \
    template <> inline __host__ cudaChannelFormatDesc cudaCreateChannelDesc<type>()                \
    {                                                                                              \
        const int bits = (int)sizeof(type) * 8 / n;                                                \
        return cudaCreateChannelDesc(bits, n > 1 ? bits : 0, n > 2 ? bits : 0, n > 3 ? bits : 0,   \
                                     cudaChannelFormatKind##kind);                                 \
    }
#define GMUX_CHANNELS_ALL(name, kind)                                                              \
    GMUX_CHANNELS(name##1, 1, kind) GMUX_CHANNELS(name##2, 2, kind) GMUX_CHANNELS(name##4, 4, kind)
GMUX_CHANNELS(char, 1, Signed)
GMUX_CHANNELS(signed char, 1, Signed)
GMUX_CHANNELS(unsigned char, 1, Unsigned)
GMUX_CHANNELS(short, 1, Signed)
GMUX_CHANNELS(unsigned short, 1, Unsigned)
GMUX_CHANNELS(int, 1, Signed)
GMUX_CHANNELS(unsigned int, 1, Unsigned)
GMUX_CHANNELS(float, 1, Float)
GMUX_CHANNELS_ALL(char, Signed)
GMUX_CHANNELS_ALL(uchar, Unsigned)
GMUX_CHANNELS_ALL(short, Signed)
GMUX_CHANNELS_ALL(ushort, Unsigned)
GMUX_CHANNELS_ALL(int, Signed)
GMUX_CHANNELS_ALL(uint, Unsigned)
GMUX_CHANNELS_ALL(float, Float)
#undef GMUX_CHANNELS_ALL
#undef GMUX_CHANNELS
#endif

#endif
