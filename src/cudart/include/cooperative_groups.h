/*
 * Groups of threads that work together: a block, tiles of a warp, the threads that reached a place
 * together, the whole grid.
 */
#ifndef GMUX_CUDA_COOPERATIVE_GROUPS_H
#define GMUX_CUDA_COOPERATIVE_GROUPS_H
#define _COOPERATIVE_GROUPS_H_ /* programs look for the toolkit's */

#include "cuda_runtime.h"

#ifdef __CUDA__ /* a source without kernels may include this header, too */
namespace cooperative_groups
{
namespace __v1 /* the namespace in which other libraries declare these classes */
{

#define GMUX_CG __device__ __inline__

/* Any group: the threads of a block, or those of `mask` in a warp. */
class thread_group
{
  protected:
    unsigned mask_, size_, rank_;
    bool whole_;
    GMUX_CG thread_group(unsigned mask, unsigned size, unsigned rank, bool whole)
        : mask_(mask), size_(size), rank_(rank), whole_(whole)
    {
    }
    friend GMUX_CG thread_group tiled_partition(const thread_group &parent, unsigned size);

  public:
    GMUX_CG unsigned size() const
    {
        return size_;
    }
    GMUX_CG unsigned num_threads() const
    {
        return size_;
    }
    GMUX_CG unsigned thread_rank() const
    {
        return rank_;
    }
    GMUX_CG void sync() const
    {
        if (whole_)
            __syncthreads();
        else
            __syncwarp(mask_);
    }
};

GMUX_CG unsigned gmux_rank_in_block()
{
    return threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z);
}

/* A part of a barrier in two parts. Here a thread waits in the second one alone. */
struct gmux_arrival_token {
};

class thread_block : public thread_group
{
  public:
    GMUX_CG thread_block()
        : thread_group(0, blockDim.x * blockDim.y * blockDim.z, gmux_rank_in_block(), true)
    {
    }
    GMUX_CG static unsigned thread_rank()
    {
        return gmux_rank_in_block();
    }
    GMUX_CG static unsigned size()
    {
        return blockDim.x * blockDim.y * blockDim.z;
    }
    GMUX_CG static unsigned num_threads()
    {
        return size();
    }
    GMUX_CG static dim3 group_index()
    {
        return dim3(blockIdx.x, blockIdx.y, blockIdx.z);
    }
    GMUX_CG static dim3 thread_index()
    {
        return dim3(threadIdx.x, threadIdx.y, threadIdx.z);
    }
    GMUX_CG static dim3 group_dim()
    {
        return dim3(blockDim.x, blockDim.y, blockDim.z);
    }
    GMUX_CG static dim3 dim_threads()
    {
        return group_dim();
    }
    GMUX_CG static void sync()
    {
        __syncthreads();
    }
    typedef gmux_arrival_token arrival_token;
    GMUX_CG arrival_token barrier_arrive() const
    {
        return arrival_token();
    }
    GMUX_CG void barrier_wait(arrival_token &&) const
    {
        __syncthreads();
    }
};

GMUX_CG thread_block this_thread_block()
{
    return thread_block();
}

GMUX_CG unsigned gmux_lane()
{
    return gmux_rank_in_block() % 32;
}

/* A shuffle moves words; a value of any type is moved word by word. */
template <class Shuffle, class T> GMUX_CG T gmux_shuffle(T v, Shuffle shuffle)
{
    unsigned words[(sizeof(T) + 3) / 4] = {};
    __builtin_memcpy(words, &v, sizeof(T));
    for (unsigned &w : words)
        w = shuffle(w);
    __builtin_memcpy(&v, words, sizeof(T));
    return v;
}

/* What groups within a warp share. In masks that they return, bit n is the thread of rank n. */
class gmux_lanes : public thread_group
{
  protected:
    unsigned meta_rank_, meta_size_;
    /* Packs the bits of the group's lanes side by side. */
    GMUX_CG unsigned pack(unsigned lanes) const
    {
        unsigned packed = 0, rank = 0;
        for (unsigned left = mask_; left; left &= left - 1)
            packed |= (lanes >> (__ffs((int)left) - 1) & 1) << rank++;
        return packed;
    }

  public:
    GMUX_CG gmux_lanes(unsigned mask, unsigned size, unsigned rank, unsigned meta_rank = 0,
                       unsigned meta_size = 1)
        : thread_group(mask, size, rank, false), meta_rank_(meta_rank), meta_size_(meta_size)
    {
    }
    GMUX_CG void sync() const
    {
        __syncwarp(mask_);
    }
    GMUX_CG int any(int p) const
    {
        return __any_sync(mask_, p);
    }
    GMUX_CG int all(int p) const
    {
        return __all_sync(mask_, p);
    }
    GMUX_CG unsigned ballot(int p) const
    {
        return pack(__ballot_sync(mask_, p));
    }
    template <class T> GMUX_CG unsigned match_any(T v) const
    {
        return pack(gmux_match(v));
    }
    template <class T> GMUX_CG unsigned match_all(T v, int &all) const
    {
        unsigned same = gmux_match(v);
        all = __all_sync(mask_, same == mask_);
        return all ? pack(mask_) : 0;
    }
    GMUX_CG unsigned meta_group_rank() const
    {
        return meta_rank_;
    }
    GMUX_CG unsigned meta_group_size() const
    {
        return meta_size_;
    }
    /* The lanes of this group that have the same value. */
    template <class T> GMUX_CG unsigned gmux_match(T v) const
    {
        unsigned same = mask_;
        unsigned words[(sizeof(T) + 3) / 4] = {};
        __builtin_memcpy(words, &v, sizeof(T));
        for (unsigned w : words)
            same &= __match_any_sync(mask_, w);
        return same;
    }
    GMUX_CG unsigned gmux_mask() const
    {
        return mask_;
    }
};

template <unsigned Size, class Parent = void> class thread_block_tile;

/* The position of a tile in the group that it is a part of. */
template <class Parent> struct gmux_parent {
    GMUX_CG static unsigned rank()
    {
        return gmux_rank_in_block();
    }
    GMUX_CG static unsigned size()
    {
        return blockDim.x * blockDim.y * blockDim.z;
    }
};
template <unsigned Size, class Parent> struct gmux_parent<thread_block_tile<Size, Parent>> {
    GMUX_CG static unsigned rank()
    {
        return gmux_lane() % Size;
    }
    GMUX_CG static unsigned size()
    {
        return Size;
    }
};

template <unsigned Size, class Parent> class thread_block_tile : public gmux_lanes
{
    static_assert(Size <= 32 && (Size & (Size - 1)) == 0,
                  "the threads of a tile are a power of two, up to 32");
    GMUX_CG static unsigned first()
    {
        return gmux_lane() / Size * Size;
    }

  public:
    GMUX_CG thread_block_tile()
        : gmux_lanes((Size == 32 ? 0xffffffffu : (1u << Size % 32) - 1) << first(), Size,
                     gmux_lane() % Size, gmux_parent<Parent>::rank() / Size,
                     (gmux_parent<Parent>::size() + Size - 1) / Size)
    {
    }
    /* A tile of any other group. */
    template <class Other>
    GMUX_CG thread_block_tile(const thread_block_tile<Size, Other> &o) : gmux_lanes(o)
    {
    }
    GMUX_CG static constexpr unsigned size()
    {
        return Size;
    }
    GMUX_CG static constexpr unsigned num_threads()
    {
        return Size;
    }
    GMUX_CG unsigned ballot(int p) const
    {
        return (__ballot_sync(mask_, p) & mask_) >> first();
    }
    template <class T> GMUX_CG T shfl(T v, int lane) const
    {
        return gmux_shuffle(v, [=](unsigned w) { return __shfl_sync(mask_, w, lane, Size); });
    }
    template <class T> GMUX_CG T shfl_up(T v, unsigned d) const
    {
        return gmux_shuffle(v, [=](unsigned w) { return __shfl_up_sync(mask_, w, d, Size); });
    }
    template <class T> GMUX_CG T shfl_down(T v, unsigned d) const
    {
        return gmux_shuffle(v, [=](unsigned w) { return __shfl_down_sync(mask_, w, d, Size); });
    }
    template <class T> GMUX_CG T shfl_xor(T v, unsigned d) const
    {
        return gmux_shuffle(v, [=](unsigned w) { return __shfl_xor_sync(mask_, w, (int)d, Size); });
    }
};

template <unsigned Size, class Parent>
GMUX_CG thread_block_tile<Size, Parent> tiled_partition(const Parent &)
{
    return thread_block_tile<Size, Parent>();
}

GMUX_CG thread_group tiled_partition(const thread_group &, unsigned size)
{
    unsigned first = gmux_lane() / size * size;
    return thread_group((size == 32 ? 0xffffffffu : (1u << size) - 1) << first, size,
                        gmux_lane() % size, false);
}

class coalesced_group : public gmux_lanes
{
    /* The lane of a rank; if there is no such rank, this thread's own lane. */
    GMUX_CG unsigned lane(unsigned rank) const
    {
        return rank < size_ ? __fns(mask_, 0, (int)rank + 1) : gmux_lane();
    }

  public:
    GMUX_CG explicit coalesced_group(unsigned mask, unsigned meta_rank = 0, unsigned meta_size = 1)
        : gmux_lanes(mask, (unsigned)__popc((int)mask),
                     (unsigned)__popc((int)(mask & ((1u << gmux_lane()) - 1))), meta_rank,
                     meta_size)
    {
    }
    template <class T> GMUX_CG T shfl(T v, unsigned rank) const
    {
        int from = (int)lane(rank % size_);
        return gmux_shuffle(v, [=](unsigned w) { return __shfl_sync(mask_, w, from); });
    }
    template <class T> GMUX_CG T shfl_up(T v, unsigned d) const
    {
        int from = (int)lane(d <= rank_ ? rank_ - d : rank_);
        return gmux_shuffle(v, [=](unsigned w) { return __shfl_sync(mask_, w, from); });
    }
    template <class T> GMUX_CG T shfl_down(T v, unsigned d) const
    {
        int from = (int)lane(d < size_ ? rank_ + d : size_);
        return gmux_shuffle(v, [=](unsigned w) { return __shfl_sync(mask_, w, from); });
    }
};

GMUX_CG coalesced_group coalesced_threads()
{
    return coalesced_group(__activemask());
}

/* The threads of a group within a warp that have the same label. */
template <class Group, class Label>
GMUX_CG coalesced_group labeled_partition(const Group &g, Label label)
{
    unsigned same = g.gmux_match(label), leader = (unsigned)__ffs((int)same) - 1;
    unsigned leaders = __ballot_sync(g.gmux_mask(), gmux_lane() == leader);
    return coalesced_group(same, (unsigned)__popc((int)(leaders & ((1u << leader) - 1))),
                           (unsigned)__popc((int)leaders));
}

template <class Group> GMUX_CG coalesced_group binary_partition(const Group &g, bool which)
{
    unsigned set = __ballot_sync(g.gmux_mask(), which) & g.gmux_mask();
    return coalesced_group(which ? set : g.gmux_mask() & ~set, which, 2);
}

/* All blocks of a cooperative launch. They meet at a word that the driver provides for each such
 * launch; its address is in two registers. The first block adds as much as makes the top bit change
 * when all others have come. */
class grid_group
{
    GMUX_CG static volatile unsigned *meeting()
    {
        unsigned low, high;
        asm volatile("mov.u32 %0, %%envreg2;" : "=r"(low));
        asm volatile("mov.u32 %0, %%envreg1;" : "=r"(high));
        return (volatile unsigned *)(((unsigned long long)high << 32 | low) + 4);
    }

  public:
    GMUX_CG bool is_valid() const
    {
        return meeting() != (volatile unsigned *)4;
    }
    GMUX_CG unsigned long long num_blocks() const
    {
        return (unsigned long long)gridDim.x * gridDim.y * gridDim.z;
    }
    GMUX_CG unsigned long long block_rank() const
    {
        return blockIdx.x + (unsigned long long)gridDim.x *
                                (blockIdx.y + (unsigned long long)gridDim.y * blockIdx.z);
    }
    GMUX_CG unsigned long long size() const
    {
        return num_blocks() * blockDim.x * blockDim.y * blockDim.z;
    }
    GMUX_CG unsigned long long num_threads() const
    {
        return size();
    }
    GMUX_CG unsigned long long thread_rank() const
    {
        return block_rank() * (blockDim.x * blockDim.y * blockDim.z) + gmux_rank_in_block();
    }
    GMUX_CG dim3 group_dim() const
    {
        return dim3(gridDim.x, gridDim.y, gridDim.z);
    }
    GMUX_CG dim3 dim_blocks() const
    {
        return group_dim();
    }
    GMUX_CG dim3 block_index() const
    {
        return dim3(blockIdx.x, blockIdx.y, blockIdx.z);
    }
    typedef gmux_arrival_token arrival_token;
    GMUX_CG arrival_token barrier_arrive() const
    {
        return arrival_token();
    }
    GMUX_CG void barrier_wait(arrival_token &&) const
    {
        sync();
    }
    GMUX_CG void sync() const
    {
        __syncthreads();
        if (gmux_rank_in_block() == 0) {
            volatile unsigned *word = meeting();
            unsigned others = (unsigned)num_blocks() - 1;
            __threadfence();
            unsigned before =
                atomicAdd((unsigned *)word, block_rank() == 0 ? 0x80000000u - others : 1u);
            while (!((before ^ *word) & 0x80000000u))
                continue;
            __threadfence();
        }
        __syncthreads();
    }
};

GMUX_CG grid_group this_grid()
{
    return grid_group();
}

template <class Group> GMUX_CG void sync(const Group &g)
{
    g.sync();
}
template <class Group> GMUX_CG auto thread_rank(const Group &g) -> decltype(g.thread_rank())
{
    return g.thread_rank();
}
template <class Group> GMUX_CG auto group_size(const Group &g) -> decltype(g.size())
{
    return g.size();
}

template <class T> struct plus {
    GMUX_CG T operator()(T a, T b) const
    {
        return a + b;
    }
};
template <class T> struct less {
    GMUX_CG T operator()(T a, T b) const
    {
        return b < a ? b : a;
    }
};
template <class T> struct greater {
    GMUX_CG T operator()(T a, T b) const
    {
        return a < b ? b : a;
    }
};

template <class T> struct bit_and {
    GMUX_CG T operator()(T a, T b) const
    {
        return a & b;
    }
};
template <class T> struct bit_or {
    GMUX_CG T operator()(T a, T b) const
    {
        return a | b;
    }
};
template <class T> struct bit_xor {
    GMUX_CG T operator()(T a, T b) const
    {
        return a ^ b;
    }
};

/* Gives every thread of the group the same result. */
template <unsigned Size, class Parent, class T, class Op>
GMUX_CG T reduce(const thread_block_tile<Size, Parent> &tile, T v, Op op)
{
    for (unsigned d = Size / 2; d; d /= 2)
        v = op(v, tile.shfl_xor(v, d));
    return v;
}

template <class T, class Op> GMUX_CG T reduce(const coalesced_group &g, T v, Op op)
{
    for (unsigned d = 1; d < g.size(); d *= 2) {
        T other = g.shfl_down(v, d);
        if (g.thread_rank() + d < g.size())
            v = op(v, other);
    }
    return g.shfl(v, 0);
}

/* One thread of the group calls the function. */
template <class Group, class F, class... A> GMUX_CG void invoke_one(const Group &g, F &&f, A &&...a)
{
    if (g.thread_rank() == 0)
        f(static_cast<A &&>(a)...);
}
/* One thread of a warp's group calls the function, and all of them get what it returns. */
template <class Group, class F, class... A>
GMUX_CG auto invoke_one_broadcast(const Group &g, F &&f, A &&...a)
    -> decltype(f(static_cast<A &&>(a)...))
{
    decltype(f(static_cast<A &&>(a)...)) v;
    if (g.thread_rank() == 0)
        v = f(static_cast<A &&>(a)...);
    return g.shfl(v, 0);
}
#undef GMUX_CG

} // namespace __v1
using namespace __v1;
} // namespace cooperative_groups

#endif
#endif
