/*
 * The helpers by which a kernel launches others, and the store for such launches. The store hands
 * out its memory from front to back, and begins anew when nothing of it is in use. Everything here
 * is lock-free, and may be ended at any instruction: then the client has failed, or is being
 * stopped, and nothing is launched any more.
 */
#include "device/soft/exec/children.h"

#include <string.h>
#include <sys/mman.h>

#include "device/soft/exec/refuse.h"
#include "device/soft/kernel.h"

#define STORE_BYTES (16u << 20)
#define IN_USE      (1ull << 32) /* one that is in use, in soft_child_store.state */

#define STREAM_TAIL 3u /* cudaStreamTailLaunch */

/* cudaError_t values */
#define ERROR_INVALID_CONFIGURATION   9
#define ERROR_PENDING_COUNT_EXCEEDED  69
#define ERROR_INVALID_DEVICE_FUNCTION 98

/* Memory is committed as it is used. */
struct soft_child_store {
    _Atomic uint64_t state; /* lower half: bytes handed out; upper half: how many are in use */
    uint8_t data[] GM_ALIGNED(16);
};

/* What the kernel writes; its parameters follow. */
struct record {
    uint64_t kernel;
    uint32_t grid[3], block[3];
    uint32_t shared_bytes;
    uint32_t reserved[7];
};
_Static_assert(sizeof(struct record) == 64, "the layout of ptx/runtime/children.ptx");

struct soft_child_store *soft_child_store_create(void)
{
    void *memory = mmap(NULL, STORE_BYTES, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    return memory == MAP_FAILED ? NULL : memory;
}

void soft_child_store_destroy(struct soft_child_store *s)
{
    if (s)
        munmap(s, STORE_BYTES);
}

/* NULL: there is no room. */
static struct soft_child *store_take(struct soft_child_store *s, uint32_t size)
{
    uint64_t state = atomic_load_explicit(&s->state, memory_order_relaxed);
    size = (size + 15) & ~15u;
    do {
        if ((uint32_t)state + size > STORE_BYTES - sizeof(*s))
            return NULL;
    } while (!atomic_compare_exchange_weak(&s->state, &state, state + IN_USE + size));
    return (struct soft_child *)(void *)(s->data + (uint32_t)state);
}

void soft_child_release(struct soft_child_store *s)
{
    uint64_t state = atomic_load_explicit(&s->state, memory_order_relaxed), less;
    do {
        less = state - IN_USE;
    } while (!atomic_compare_exchange_weak(&s->state, &state, less < IN_USE ? 0 : less));
}

/* The kernel of that address in the parent's module, or NULL. */
static struct soft_kernel *kernel_at(const struct soft_block *b, uint64_t address)
{
    const struct dev_module *m = b->children ? b->children->module : NULL;
    for (uint32_t k = 0; m && address && k < m->kernel_count; k++)
        if (m->kernels[k].address == address)
            return &m->kernels[k];
    return NULL;
}

static int32_t child_bytes(struct soft_block *b, uint32_t thread, uint64_t kernel, uint64_t unused)
{
    const struct soft_kernel *k = kernel_at(b, kernel);
    return k ? (int32_t)k->param_bytes : -1;
}

/* Whether all of it is memory of the client. It may still be unmapped: that is the kernel's fault
 * at the first access. */
static bool reach(struct soft_block *b, uint32_t thread, uint64_t address, uint64_t size)
{
    if (address - b->window_base <= b->window_mask - (size - 1))
        return true;
    b->fault_address = address;
    b->fault_thread = thread;
    return false;
}

static int32_t child_launch(struct soft_block *b, uint32_t thread, uint64_t record, uint64_t stream)
{
    struct record r;
    if (!reach(b, thread, record, sizeof(r)))
        return SOFT_HELPER_FAULT;
    memcpy(&r, (const void *)(uintptr_t)record, sizeof(r));
    struct soft_kernel *k = kernel_at(b, r.kernel);
    if (!k)
        return ERROR_INVALID_DEVICE_FUNCTION;
    if (!reach(b, thread, record, sizeof(r) + k->param_bytes))
        return SOFT_HELPER_FAULT;
    struct dev_launch l = { .module = b->children->module,
                            .shared_bytes = r.shared_bytes,
                            .params_size = k->param_bytes };
    memcpy(l.grid, r.grid, sizeof(l.grid));
    memcpy(l.block, r.block, sizeof(l.block));
    int result;
    /* A kernel that cannot be launched at all is told of when it is its turn. */
    if (k->interpreter && soft_refusal(k, &l, &result))
        return ERROR_INVALID_CONFIGURATION;
    struct soft_child *child = store_take(b->helpers->children, sizeof(*child) + k->param_bytes);
    if (!child)
        return ERROR_PENDING_COUNT_EXCEEDED;
    child->kernel = k;
    memcpy(child->grid, r.grid, sizeof(child->grid));
    memcpy(child->block, r.block, sizeof(child->block));
    child->shared_bytes = r.shared_bytes;
    child->tail = stream == STREAM_TAIL;
    memcpy(child->params, (const void *)(uintptr_t)(record + sizeof(r)), k->param_bytes);
    child->next = atomic_load_explicit(&b->children->last, memory_order_relaxed);
    while (!atomic_compare_exchange_weak(&b->children->last, &child->next, child))
        ;
    return GM_CUDA_SUCCESS;
}

void soft_children_serve(struct soft_helpers *h)
{
    h->child_bytes = child_bytes;
    h->child_launch = child_launch;
}

struct soft_child *soft_children_take(struct soft_children *c, struct soft_child *before)
{
    struct soft_child *last = atomic_exchange(&c->last, NULL), *tails = before;
    /* Twice from the last to the first one: those of the tail stream are to come behind the
     * others. */
    struct soft_child *others = NULL, **end = &others;
    while (last) {
        struct soft_child *next = last->next;
        if (last->tail) {
            last->next = tails;
            tails = last;
        } else {
            last->next = others;
            others = last;
        }
        last = next;
    }
    while (*end)
        end = &(*end)->next;
    *end = tails;
    return others;
}
