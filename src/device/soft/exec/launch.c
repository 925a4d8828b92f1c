/*
 * Launches. A launch is checked once, when it is submitted; afterwards it is a task of the block
 * scheduler (grid.c), or, if it is short, is run by its client's thread. Kernels that it launches
 * run behind it, and only then it is done.
 */
#include "device/soft/exec/launch.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "device/attributes.h"
#include "device/soft/check/check.h"
#include "device/soft/exec/grid.h"
#include "device/soft/exec/refuse.h"
#include "device/soft/exec/worker.h"
#include "device/soft/ir/clones.h"
#include "device/soft/kernel.h"

/* CU_LAUNCH_ATTRIBUTE_COOPERATIVE; the next is the offset of a CUlaunchAttribute's value */
#define ATTRIBUTE_COOPERATIVE 2u
#define ATTRIBUTE_VALUE       8u
#define PARAM_SLACK           64u /* vector loads may read behind the last parameter */
/* A short launch waits for the ring to run dry while so many others come at most. Then the client's
 * thread runs short launches, one after the other, for so long. */
#define BEHIND_MOST 4u
#define CHAIN_NS    60000u

static const struct soft_task_ops launch_ops;

/* --- short launches: the client's thread runs them when its ring has run dry ------------------ */

static bool is_short(const struct soft_task *t)
{
    uint64_t block_ns = soft_task_block_ns(t);
    return block_ns > 0 && block_ns * t->count <= SOFT_GUEST_NS && t->live == 0;
}

/* With the client's lock held. */
static bool hold(struct dev_client *c, struct launch *l)
{
    if (c->held || !c->guest || !pthread_equal(c->guest->thread, pthread_self()) ||
        !is_short(&l->task))
        return false;
    c->held = &l->op;
    c->held_behind = 1;
    return true;
}

static struct launch *held_take(struct dev_client *c)
{
    pthread_mutex_lock(&c->work.lock);
    struct dev_op *op = c->held;
    c->held = NULL;
    c->held_behind = 0;
    pthread_mutex_unlock(&c->work.lock);
    return op ? GM_CONTAINER_OF(op, struct launch, op) : NULL;
}

/* When a launch ends, the next one of its queue may be held in its place. */
static void held_begin(struct dev_client *c, uint64_t until_ns)
{
    struct launch *l;
    while (c->held_behind && (l = held_take(c)) != NULL)
        if (!(gm_now_ns() < until_ns && soft_guest_run(c->guest, &l->task)) &&
            !soft_task_submit(c->dev->sched, &l->task))
            dev_work_finish(&c->work, &l->op);
}

void soft_flush(struct dev_client *c)
{
    if (c->held_behind)
        held_begin(c, gm_now_ns() + CHAIN_NS);
}

/* --- launches as tasks ------------------------------------------------------------------------ */

bool soft_launch_start(struct dev_op *op)
{
    struct launch *l = GM_CONTAINER_OF(op, struct launch, op);
    struct dev_client *c = op->queue->work->client;
    l->began = gm_cycles();
    if (l->task.together && l->kernel->uses_workspace)
        soft_workspace_take(l);
    return hold(c, l) || soft_task_submit(c->dev->sched, &l->task);
}

struct dev_op *soft_launch_op(struct soft_task *t)
{
    return t->ops == &launch_ops ? &GM_CONTAINER_OF(t, struct launch, task)->root->op : NULL;
}

static void launch_free(struct launch *l)
{
    if (!l)
        return;
    soft_module_unref(l->kernel->module);
    free(l->checked);
    free(l);
}

void soft_launch_release(struct dev_op *op)
{
    struct launch *l = GM_CONTAINER_OF(op, struct launch, op);
    launch_free(l->child);
    launch_free(l);
}

/* --- submission ------------------------------------------------------------------------------- */

static void launch_fail(struct dev_queue *q, int result, const char *kernel, const char *why)
{
    char text[400];
    snprintf(text, sizeof(text), "launch of %.100s refused: %s", kernel, why);
    dev_work_fail(q->work, result, 0, text);
}

static int launch_wrong(struct dev_queue *q, uint64_t seq, int result, const char *kernel,
                        const char *why)
{
    launch_fail(q, result, kernel, why);
    return dev_queue_mark(q, seq);
}

/* How many blocks of kernels that wait for each other the device can have begun. */
static uint64_t live_blocks(const struct dev_client *c)
{
    return (uint64_t)soft_sched_workers(c->dev->sched) * DEV_BLOCKS_PER_MULTIPROCESSOR;
}

/* Only this launch attribute has a meaning here. */
static bool is_cooperative(const struct dev_launch *l)
{
    for (uint32_t i = 0; i < l->attributes; i++) {
        uint32_t id, value;
        const uint8_t *a = (const uint8_t *)l->params + (size_t)i * DEV_LAUNCH_ATTRIBUTE;
        memcpy(&id, a, sizeof(id));
        memcpy(&value, a + ATTRIBUTE_VALUE, sizeof(value));
        if (id == ATTRIBUTE_COOPERATIVE && value)
            return true;
    }
    return false;
}

/* A launch that soft_refusal() lets pass, without what its order in the queue needs. NULL: no
 * memory. */
static struct launch *launch_create(struct dev_queue *q, struct soft_kernel *k,
                                    const struct dev_launch *l, bool together)
{
    struct dev_client *c = k->module->client;
    size_t size = soft_param_bytes(l), before = l->params_size - size;
    struct launch *n = calloc(1, sizeof(*n) + size + sizeof(uint64_t) * 2 + PARAM_SLACK);
    if (!n)
        return NULL;
    n->kernel = k;
    if (GM_UNLIKELY(c->check != NULL) && !(n->checked = soft_check_log_create())) {
        free(n);
        return NULL;
    }
    n->variant = n->checked ? NULL : soft_kernel_variant(k, l->block);
    memcpy(n->grid, l->grid, sizeof(n->grid));
    memcpy(n->block, l->block, sizeof(n->block));
    /* The checker has to see all threads, also those that would do the same once more. */
    n->threads =
        (uint32_t)(n->checked ? soft_thread_count(l) : ir_threads(k->thread_dims, l->block));
    n->stack_bytes = soft_stack_bytes(k);
    n->dynamic_bytes = l->shared_bytes;
    n->shared_bytes = l->shared_bytes ? k->shared_dynamic + l->shared_bytes
                                      : GM_MAX(k->shared_static, k->shared_dynamic);
    if (k->param_bytes)
        memcpy(n->params, (const uint8_t *)l->params + before, k->param_bytes);
    n->id = atomic_fetch_add_explicit(&c->grids, 1, memory_order_relaxed) + 1;
    n->children.module = k->module;
    n->root = n;
    n->task.ops = &launch_ops;
    n->task.account = &c->account;
    n->task.count = dev_product(l->grid);
    n->task.live = together || k->may_wait ? live_blocks(c) : 0;
    n->task.together = together;
    n->task.priority = q->priority;
    n->task.block_ns = atomic_load_explicit(&k->block_ns, memory_order_relaxed);
    soft_module_ref(k->module);
    return n;
}

int soft_launch(struct dev_queue *q, uint64_t seq, const struct dev_launch *l)
{
    struct dev_module *m = l->module;
    struct dev_client *c = m->client;
    if (l->function >= m->kernel_count)
        return launch_wrong(q, seq, GM_CUDA_INVALID_HANDLE, "a function",
                            "there is no such function");

    struct soft_kernel *k = &m->kernels[l->function];
    int result;
    const char *why = soft_refusal(k, l, &result);
    bool together = is_cooperative(l);
    if (!why && together && dev_product(l->grid) > live_blocks(c)) {
        why = "more blocks than can be live at once";
        result = GM_CUDA_COOPERATIVE_LAUNCH_TOO_LARGE;
    }
    if (why)
        return launch_wrong(q, seq, result, k->name, why);
    if (GM_UNLIKELY(k->launches) && !c->helpers.children &&
        !(c->helpers.children = soft_child_store_create()))
        return GM_CUDA_OUT_OF_MEMORY;

    struct launch *n = launch_create(q, k, l, together);
    if (!n)
        return GM_CUDA_OUT_OF_MEMORY;
    if (!c->guest)
        c->guest = soft_guest_create(c->dev->sched);
    result = dev_queue_launch(q, seq, &n->op, soft_param_bytes(l));
    if (!l->more)
        soft_flush(c);
    else if (c->held_behind && c->held_behind++ > BEHIND_MOST)
        held_begin(c, 0);
    return result;
}

/* --- children --------------------------------------------------------------------------------- */

/* The child's launch; NULL: the client has failed. */
static struct launch *child_create(struct launch *root, const struct soft_child *child)
{
    struct soft_kernel *k = child->kernel;
    struct dev_queue *q = root->op.queue;
    struct dev_launch l = { .module = k->module,
                            .shared_bytes = child->shared_bytes,
                            .params = child->params,
                            .params_size = k->param_bytes };
    memcpy(l.grid, child->grid, sizeof(l.grid));
    memcpy(l.block, child->block, sizeof(l.block));
    int result = GM_CUDA_OUT_OF_MEMORY;
    /* Looked at when it was launched, but the limit of stacks may be another one now. */
    const char *why = soft_refusal(k, &l, &result);
    struct launch *n = why ? NULL : launch_create(q, k, &l, false);
    if (!n) {
        launch_fail(q, result, k->name, why ? why : "no memory");
        return NULL;
    }
    n->op.queue = q;
    n->root = root;
    n->began = gm_cycles();
    return n;
}

/* The grid of `l` has ended. Begins the next one of its root's descendants. False: there is none
 * any more. May free `l`, unless it is a root. */
static bool launch_next(struct launch *l)
{
    struct launch *root = l->root;
    struct dev_client *c = l->kernel->module->client;
    root->waiting = soft_children_take(&l->children, root->waiting);
    launch_free(root->child);
    root->child = NULL;
    while (root->waiting) {
        struct soft_child *child = root->waiting;
        root->waiting = child->next;
        bool failed = atomic_load_explicit(&root->failed, memory_order_relaxed);
        root->child = failed ? NULL : child_create(root, child);
        soft_child_release(c->helpers.children);
        if (root->child && soft_task_submit(c->dev->sched, &root->child->task))
            return true;
        launch_free(root->child);
        root->child = NULL;
        atomic_store_explicit(&root->failed, true, memory_order_relaxed);
    }
    return false;
}

static void launch_done(struct soft_task *t)
{
    struct launch *l = GM_CONTAINER_OF(t, struct launch, task), *root = l->root;
    soft_grid_end(l);
    if (!launch_next(l))
        dev_work_finish(root->op.queue->work, &root->op);
}

static const struct soft_task_ops launch_ops = { .run = soft_grid_run,
                                                 .done = launch_done,
                                                 .limited = true };
