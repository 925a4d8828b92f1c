/*
 * Runs the blocks of a launch, until none is left. Each chunk of blocks runs inside one guard,
 * which costs a nanosecond to arm. The loop over the blocks of a chunk keeps its state in memory,
 * so that after a fault it is known which block faulted.
 */
#include "device/soft/exec/grid.h"

#include <stdio.h>
#include <string.h>

#include "device/soft/check/check.h"
#include "device/soft/exec/worker.h"
#include "device/soft/ir/spaces.h"
#include "device/soft/kernel.h"

/* blocks that take longer run one by one, so that they can be stopped */
#define ROW_BLOCK_NS 20000u

struct block_loop {
    const struct soft_code *code;
    struct soft_block *block;
    const _Atomic bool *stopping;
    uint64_t next, end;
    uint64_t row; /* blocks to run in one call */
    enum soft_outcome outcome;
};

static void block_place(struct soft_block *b, uint64_t index)
{
    b->block_linear = (uint32_t)index;
    b->ctaid[0] = (uint32_t)(index % b->nctaid[0]);
    b->ctaid[1] = (uint32_t)(index / b->nctaid[0] % b->nctaid[1]);
    b->ctaid[2] = (uint32_t)(index / b->nctaid[0] / b->nctaid[1]);
}

/* How many blocks, from this one on, differ only in x. */
static uint64_t in_row(const struct soft_block *b)
{
    return b->nctaid[0] - b->ctaid[0];
}

static void blocks_run(void *arg)
{
    struct block_loop *l = arg;
    for (; l->next < l->end; l->next += l->block->row) {
        if (atomic_load_explicit(l->stopping, memory_order_relaxed))
            return;
        block_place(l->block, l->next);
        uint64_t left = GM_MIN(l->end - l->next, in_row(l->block));
        l->block->row = (uint32_t)GM_MIN(l->row, left);
        l->outcome = l->code->run_block(l->code, l->block);
        if (GM_UNLIKELY(l->outcome != SOFT_DONE))
            return;
    }
}

/* False: no memory. */
static bool check_prepare(struct soft_worker *w, const struct launch *l, uint64_t local_stride)
{
    struct soft_block *b = &w->block;
    b->check = NULL;
    if (GM_LIKELY(!l->checked))
        return true;
    size_t state = soft_check_block_bytes(l->shared_bytes);
    size_t local = soft_check_local_bits(local_stride) / 8 * l->threads;
    if (!soft_scratch_reserve(w, &w->check, state) ||
        !soft_scratch_reserve(w, &w->check_local, local))
        return false;
    w->check.dirty = GM_MAX(w->check.dirty, state);
    w->check_local.dirty = GM_MAX(w->check_local.dirty, local);
    b->check = (struct soft_check_block *)(void *)w->check.data;
    b->check->check = l->kernel->module->client->check;
    b->check->log = l->checked;
    b->check->local = local ? (uint64_t *)(void *)w->check_local.data : NULL;
    return true;
}

/* Fills the worker's block with what all blocks of the launch share. False: no memory. */
static bool block_prepare(struct soft_worker *w, struct launch *l, const struct soft_code *code)
{
    struct soft_block *b = &w->block;
    const struct soft_kernel *k = l->kernel;
    const struct dev_client *c = k->module->client;
    uint64_t shared = soft_shared_reserve(l->shared_bytes);
    uint64_t local_stride =
        (GM_MAX(k->local_bytes, code->local_bytes) + l->stack_bytes + SOFT_LOCAL_PIECE - 1) &
        ~(uint64_t)(SOFT_LOCAL_PIECE - 1);
    uint64_t save_stride =
        ((uint64_t)code->save_bytes + SOFT_SAVE_ALIGN - 1) & ~(uint64_t)(SOFT_SAVE_ALIGN - 1);
    uint32_t warps = (l->threads + SOFT_WARP - 1) / SOFT_WARP;
    /* Warps work on whole vectors, so lanes that do not exist need room as well; and compiled code
     * loads whole pieces, of which the element that it wants is not the first. */
    uint64_t local = local_stride * warps * SOFT_WARP + SOFT_LOCAL_PIECE;

    if (!soft_scratch_reserve(w, &w->shared, shared + SOFT_SHARED_GUARD) ||
        !soft_scratch_reserve(w, &w->local, local) ||
        !soft_scratch_reserve(w, &w->save, save_stride * warps) ||
        !check_prepare(w, l, local_stride))
        return false;
    w->shared.dirty = GM_MAX(w->shared.dirty, (size_t)shared + SOFT_SHARED_GUARD);
    w->local.dirty = GM_MAX(w->local.dirty, (size_t)local);
    w->save.dirty = GM_MAX(w->save.dirty, (size_t)(save_stride * warps));

    memcpy(b->nctaid, l->grid, sizeof(b->nctaid));
    memcpy(b->ntid, l->block, sizeof(b->ntid));
    b->threads = l->threads;
    b->warps = warps;
    b->shared_size = l->shared_bytes;
    b->dynamic_shared = l->dynamic_bytes;
    b->params = l->params;
    b->shared = w->shared.data + SOFT_SHARED_GUARD;
    b->shared_mask = shared - 1;
    b->local = w->local.data;
    b->local_stride = local_stride;
    b->save = w->save.data;
    b->save_stride = save_stride;
    b->window_base = c->window.base;
    b->window_mask = c->window.size - 1;
    b->globals = k->module->globals;
    b->helpers = &c->helpers;
    b->fault_address = 0;
    b->fault_thread = 0;
    b->clock_base = l->began;
    b->children = &l->children;
    b->grid_id = l->id;
    return true;
}

/* The error that the client gets, and the words for the log. */
static int fault_of(const struct soft_worker *w, int signal, enum soft_outcome outcome,
                    const char **what)
{
    static const struct {
        int result;
        const char *what;
    } outcomes[] = {
        [SOFT_FAULT_ADDRESS] = { GM_CUDA_ILLEGAL_ADDRESS, "illegal address" },
        [SOFT_FAULT_MISALIGNED] = { GM_CUDA_MISALIGNED_ADDRESS, "misaligned address" },
        [SOFT_FAULT_TRAP] = { GM_CUDA_LAUNCH_FAILED, "trap" },
        [SOFT_FAULT_UNSUPPORTED] = { GM_CUDA_NOT_SUPPORTED,
                                     "operation that this device does not have" },
        [SOFT_FAULT_ASSERT] = { GM_CUDA_ASSERT, "failed assertion" },
        [SOFT_FAULT_BARRIER] = { GM_CUDA_LAUNCH_FAILED, "barrier that can never complete" },
        [SOFT_FAULT_PC] = { GM_CUDA_INVALID_PC, "call of what is no function" },
    };
    if (signal == SIGSEGV && soft_worker_overran(w, w->guard.address)) {
        *what = "more stack than there is";
        return GM_CUDA_LAUNCH_FAILED;
    }
    if (signal == SIGSEGV || signal == SIGBUS) {
        *what = "illegal address";
        return GM_CUDA_ILLEGAL_ADDRESS;
    }
    if (signal == DEV_GUARD_INTERRUPT &&
        atomic_load_explicit(&w->timed_out, memory_order_relaxed)) {
        *what = "time limit exceeded";
        return GM_CUDA_LAUNCH_TIMEOUT;
    }
    if (signal != 0) {
        *what = signal == SIGFPE ? "arithmetic exception" : "illegal instruction";
        return GM_CUDA_LAUNCH_FAILED;
    }
    if (outcome > SOFT_DONE && (size_t)outcome < GM_ARRAY_LEN(outcomes)) {
        *what = outcomes[outcome].what;
        return outcomes[outcome].result;
    }
    *what = "unknown outcome";
    return GM_CUDA_LAUNCH_FAILED;
}

static void launch_fault(const struct launch *l, struct soft_worker *w, int signal,
                         enum soft_outcome outcome)
{
    const struct soft_block *b = &w->block;
    const char *what;
    char thread[64] = "", where[32] = "", text[256];
    int result = fault_of(w, signal, outcome, &what);
    bool has_address = result == GM_CUDA_ILLEGAL_ADDRESS || result == GM_CUDA_MISALIGNED_ADDRESS;
    /* The address of a signal may lie in our own memory, and clients must not learn where that
     * is. */
    if (signal && !dev_window_holds(&l->kernel->module->client->window, w->guard.address, 1))
        has_address = false;
    uint64_t address = !has_address ? 0 : signal ? w->guard.address : b->fault_address;

    if (signal == 0)
        snprintf(thread, sizeof(thread), ", thread (%u,%u,%u)", b->fault_thread % b->ntid[0],
                 b->fault_thread / b->ntid[0] % b->ntid[1],
                 b->fault_thread / b->ntid[0] / b->ntid[1]);
    if (has_address)
        snprintf(where, sizeof(where), " 0x%llx", (unsigned long long)address);
    snprintf(text, sizeof(text), "kernel %.100s, block (%u,%u,%u)%s: %s%s", l->kernel->name,
             b->ctaid[0], b->ctaid[1], b->ctaid[2], thread, what, where);
    dev_work_fail(l->op.queue->work, result, address, text);
}

static void print_take(void *arg, int fd, const char *text, uint32_t size)
{
    struct dev_client *c = arg;
    (void)tp_output_write(&c->output, fd, text, size);
}

/* Delivers what the client's kernels have printed and what the checker has found, before anybody
 * can see that they ended or failed. */
static void print_drain(const struct launch *l)
{
    struct dev_client *c = l->kernel->module->client;
    if (!c->helpers.print)
        return;
    pthread_mutex_lock(&c->print_lock);
    tp_output_lose(&c->output, soft_print_drain(c->helpers.print, print_take, c));
    pthread_mutex_unlock(&c->print_lock);
}

static void check_report(const struct launch *l)
{
    const struct dev_module *m = l->kernel->module;
    if (GM_LIKELY(l->checked == NULL))
        return;
    struct soft_check_launch about = { .kernel = l->kernel->name,
                                       .text = m->text,
                                       .text_size = m->text_size };
    memcpy(about.grid, l->grid, sizeof(about.grid));
    memcpy(about.block, l->block, sizeof(about.block));
    soft_check_report(m->client->check, l->checked, &about, &m->client->output);
}

bool soft_grid_run(struct soft_task *t, struct soft_worker *w, uint64_t first, uint64_t count)
{
    struct launch *l = GM_CONTAINER_OF(t, struct launch, task);
    struct block_loop loop = { .code = soft_kernel_code(l->kernel, l->variant),
                               .block = &w->block,
                               .stopping = &t->account->stopping,
                               .next = first,
                               .end = first + count };
    loop.row = soft_task_block_ns(t) < ROW_BLOCK_NS ? GM_MAX(loop.code->row, 1u) : 1;

    soft_worker_serve(w, t->account);
    if (!block_prepare(w, l, loop.code)) {
        dev_work_fail(l->op.queue->work, GM_CUDA_LAUNCH_OUT_OF_RESOURCES, 0,
                      "no memory for a kernel's blocks");
        return false;
    }
    int signal = soft_worker_guarded(w, blocks_run, &loop);
    if (GM_LIKELY(signal == 0 && loop.outcome == SOFT_DONE))
        return true;
    print_drain(l);
    check_report(l);
    atomic_store_explicit(&l->root->failed, true, memory_order_relaxed);
    if (signal != DEV_GUARD_INTERRUPT ||
        !atomic_load_explicit(&t->account->stopping, memory_order_relaxed))
        launch_fault(l, w, signal, loop.outcome);
    return false;
}

/* --- cooperative launches: all blocks are live at once --------------------------------------- */

static void word_clear(void *arg)
{
    memset(arg, 0, SOFT_WORKSPACE_BYTES);
}

void soft_workspace_take(struct launch *l)
{
    struct dev_module *m = l->kernel->module;
    struct dev_guard g = { 0 };
    uint64_t used = atomic_load_explicit(&m->workspaces_used, memory_order_relaxed);
    do {
        if (used == UINT64_MAX)
            return;
        l->workspace = ~used & (used + 1);
    } while (!atomic_compare_exchange_weak(&m->workspaces_used, &used, used | l->workspace));
    uint64_t address =
        m->workspaces + (uint64_t)__builtin_ctzll(l->workspace) * SOFT_WORKSPACE_BYTES;
    if (dev_guard_call(&g, word_clear, (void *)(uintptr_t)address) == 0)
        memcpy(l->params + l->kernel->workspace_at, &address, sizeof(address));
}

static void workspace_return(struct launch *l)
{
    atomic_fetch_and_explicit(&l->kernel->module->workspaces_used, ~l->workspace,
                              memory_order_relaxed);
    l->workspace = 0;
}

void soft_grid_end(struct launch *l)
{
    workspace_return(l);
    print_drain(l);
    check_report(l);
    atomic_store_explicit(&l->kernel->block_ns, soft_task_block_ns(&l->task), memory_order_relaxed);
}
