/*
 * A kernel launch in its simplest form, for tests and benchmarks of compiled code: memory in one
 * window, all blocks on the calling thread, one after the other.
 */
#ifndef GMUX_TESTS_JIT_LAUNCH_H
#define GMUX_TESTS_JIT_LAUNCH_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "device/soft/exec/code.h"
#include "device/soft/exec/helpers.h"
#include "device/soft/interp/interp.h"
#include "device/soft/ir/spaces.h"

#define LAUNCH_WINDOW      UINT64_C(0x400000000000)
#define LAUNCH_WINDOW_SIZE (UINT64_C(1) << 30)
#define LAUNCH_SHARED      (256u << 10)

struct launch {
    uint64_t used; /* bytes of the window handed out */
    struct soft_block block;
    struct soft_helpers helpers;
    uint8_t params[4096];
    uint32_t params_size;
    uint64_t globals[64];
};

static inline void launch_die(const char *what)
{
    perror(what);
    exit(1);
}

static inline void launch_init(struct launch *l)
{
    memset(l, 0, sizeof(*l));
    void *p = mmap((void *)(uintptr_t)LAUNCH_WINDOW, LAUNCH_WINDOW_SIZE, PROT_READ | PROT_WRITE,
                   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE, -1, 0);
    if (p == MAP_FAILED)
        launch_die("window");
    interp_serve(&l->helpers);
    soft_helpers_init(&l->helpers, NULL);
    uint8_t *shared = aligned_alloc(128, SOFT_SHARED_GUARD + LAUNCH_SHARED);
    if (!shared)
        launch_die("shared memory");
    memset(shared, 0, SOFT_SHARED_GUARD + LAUNCH_SHARED);
    l->block.shared = shared + SOFT_SHARED_GUARD;
}

static inline void launch_finish(struct launch *l)
{
    munmap((void *)(uintptr_t)LAUNCH_WINDOW, LAUNCH_WINDOW_SIZE);
    free(l->block.shared - SOFT_SHARED_GUARD);
}

/* Zeroed memory in the window. */
static inline void *launch_alloc(struct launch *l, size_t size)
{
    void *p = (void *)(uintptr_t)(LAUNCH_WINDOW + l->used);
    l->used += (size + 4095) & ~(size_t)4095;
    return p;
}

static inline void launch_param(struct launch *l, const void *value, uint32_t size)
{
    l->params_size = (l->params_size + size - 1) & ~(size - 1);
    memcpy(l->params + l->params_size, value, size);
    l->params_size += size;
}

#define LAUNCH_PARAM(l, type, value) launch_param((l), &(type) { (value) }, sizeof(type))

/* Runs the whole grid; the first outcome that is not SOFT_DONE ends it. */
static inline enum soft_outcome launch_run(struct launch *l, const struct soft_code *code,
                                           const uint32_t grid[3], const uint32_t block[3],
                                           uint32_t shared_bytes)
{
    struct soft_block *b = &l->block;
    enum soft_outcome r = SOFT_DONE;

    memcpy(b->nctaid, grid, sizeof(b->nctaid));
    memcpy(b->ntid, block, sizeof(b->ntid));
    b->threads = block[0] * block[1] * block[2];
    b->warps = (b->threads + SOFT_WARP - 1) / SOFT_WARP;
    b->shared_size = shared_bytes;
    b->shared_mask = soft_shared_reserve(shared_bytes) - 1;
    b->params = l->params;
    b->local_stride = (code->local_bytes + 15) & ~15u;
    b->save_stride = (code->save_bytes + SOFT_SAVE_ALIGN - 1) & ~(SOFT_SAVE_ALIGN - 1);
    b->local = aligned_alloc(64, (b->warps * SOFT_WARP * b->local_stride + 127) & ~63ull);
    b->save = aligned_alloc(SOFT_SAVE_ALIGN, b->warps * b->save_stride + SOFT_SAVE_ALIGN);
    if (!b->local || !b->save)
        launch_die("block memory");
    b->window_base = LAUNCH_WINDOW;
    b->window_mask = LAUNCH_WINDOW_SIZE - 1;
    b->globals = l->globals;
    b->helpers = &l->helpers;
    for (uint32_t z = 0; z < grid[2] && r == SOFT_DONE; z++)
        for (uint32_t y = 0; y < grid[1] && r == SOFT_DONE; y++)
            for (uint32_t x = 0; x < grid[0] && r == SOFT_DONE; x += b->row) {
                b->row = code->row == 0 ? 1 : grid[0] - x < code->row ? grid[0] - x : code->row;
                b->ctaid[0] = x;
                b->ctaid[1] = y;
                b->ctaid[2] = z;
                b->block_linear = (z * grid[1] + y) * grid[0] + x;
                r = code->run_block(code, b);
            }
    free(b->local);
    free(b->save);
    b->local = b->save = NULL;
    return r;
}

#endif
