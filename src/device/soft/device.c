/*
 * The software devices: kernels given as PTX run on the host's processors. There may be several
 * (GMUX_SOFT_DEVICES), which differ only in what they report about themselves: they share the
 * worker threads, and each can touch the memory of all.
 *
 * This file has the device's table of functions and the life of the device and of its clients.
 * module.c loads modules, kernel.c keeps their executable forms, exec/ runs blocks.
 */
#include <malloc.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/parse.h"
#include "device/attributes.h"
#include "device/guard.h"
#include "device/soft/check/check.h"
#include "device/soft/exec/children.h"
#include "device/soft/exec/launch.h"
#include "device/soft/exec/worker.h"
#include "device/soft/interp/interp.h"
#include "device/soft/ir/ir.h"
#include "device/soft/kernel.h"
#include "device/soft/loader/compiler.h"
#include "wire/messages.h"

/* Allocations of at least this size are given back to the system when they are freed. Otherwise the
 * C library keeps such memory after the first one, for each thread that has parsed a text. */
#define LARGE_BLOCK (1 << 20)
#define CODE_PART   4u
#define CODE_MOST   (2ull << 30)
/* The part of the devices' memory that running blocks may use for shared memory, local memory and
 * registers. */
#define SCRATCH_PART 8u

#define LIMIT_STACK 0u    /* CU_LIMIT_STACK_SIZE */
#define STACK_LIMIT 1024u /* until a program says otherwise */

/* bytes of printed text, per client, that nobody has fetched yet */
#define PRINT_BYTES (1u << 20)

static struct gm_log_topic topic = GM_LOG_TOPIC("soft");

/* Seconds; GMUX_SOFT_KERNEL_TIMEOUT, 0 or unset: none. */
static uint64_t block_timeout_ns(void)
{
    const char *text = secure_getenv("GMUX_SOFT_KERNEL_TIMEOUT");
    double seconds;
    if (!text)
        return 0;
    if (!gm_parse_decimal(text, &seconds) || seconds > 1e6) {
        gm_warn(&topic, "GMUX_SOFT_KERNEL_TIMEOUT=%s is not a number of seconds; no limit", text);
        return 0;
    }
    return (uint64_t)(seconds * 1e9);
}

static void soft_close(struct dev *d)
{
    if (!d)
        return;
    soft_sched_destroy(d->sched);
    soft_compiler_destroy(d->compiler);
    pthread_mutex_destroy(&d->code_lock);
    for (unsigned i = 0; i < GM_ARRAY_LEN(d->parses); i++)
        soft_gate_finish(&d->parses[i]);
    free(d);
}

static int soft_open(struct dev **out, const struct dev_events *events)
{
    struct dev *d = calloc(1, sizeof(*d));
    if (!d)
        return GM_CUDA_OUT_OF_MEMORY;
    gm_log_init("gmux-executor", GM_LOG_WARN); /* a module has its own copy of the log's state */
    const struct soft_sched_config config = { .workers = dev_worker_count(),
                                              .block_timeout_ns = block_timeout_ns() };
    dev_guard_install();
    uint32_t numbers[DEV_DEVICES];
    d->count = dev_device_numbers("gmux soft device", numbers);
    if (d->count == 0) {
        free(d);
        return GM_CUDA_NO_DEVICE;
    }
    for (uint32_t i = 0; i < d->count; i++) {
        dev_info_describe(&d->info[i], "gmux soft device", config.workers, numbers[i],
                          dev_device_count());
        d->info[i].completes_always = true;
        d->info[i].launch_attributes = true;
        d->info[i].attributes[DEV_ATTR_COOPERATIVE_LAUNCH] = 1;
    }
    mallopt(M_MMAP_THRESHOLD, LARGE_BLOCK);
    d->code_max = GM_MIN(d->info[0].memory_total * d->count / CODE_PART, CODE_MOST);
    pthread_mutex_init(&d->code_lock, NULL);
    gm_list_init(&d->users);
    for (unsigned i = 0; i < GM_ARRAY_LEN(d->parses); i++)
        soft_gate_init(&d->parses[i], d->code_max / GM_ARRAY_LEN(d->parses));
    d->events = *events;
    if (soft_sched_create(&d->sched, &config) < 0) {
        soft_close(d);
        return GM_CUDA_OPERATING_SYSTEM;
    }
    soft_sched_bound_scratch(d->sched, d->info[0].memory_total * d->count / SCRATCH_PART);
    /* Checking is allowed by the environment of this process. A program's private server has the
     * program's environment. A client of a daemon cannot ask for it: the checker's memory is not
     * charged. */
    d->checks = secure_getenv("GMUX_CHECK") != NULL;
    const char *jit = secure_getenv("GMUX_SOFT_JIT");
    const struct soft_compiler_config compiler = { .owner = events->user };
    if ((!jit || strcmp(jit, "0") != 0) && soft_compiler_create(&d->compiler, &compiler) < 0)
        d->compiler = NULL;
    d->compiles_first = jit && strcmp(jit, "wait") == 0;
    *out = d;
    return GM_CUDA_SUCCESS;
}

static uint32_t soft_count(struct dev *d)
{
    return d->count;
}

static const struct dev_info *soft_info(struct dev *d, uint32_t device)
{
    return &d->info[device];
}

/* --- clients ---------------------------------------------------------------------------------- */

static int soft_client_create(struct dev *d, const struct dev_client_config *config,
                              struct dev_client **out)
{
    struct dev_client *c = calloc(1, sizeof(*c));
    if (!c)
        return GM_CUDA_OUT_OF_MEMORY;
    c->dev = d;
    c->user = soft_user_get(d, config->uid);
    atomic_init(&c->stack_limit, STACK_LIMIT);
    gm_list_init(&c->modules);
    pthread_mutex_init(&c->modules_lock, NULL);
    pthread_mutex_init(&c->print_lock, NULL);
    tp_output_init(&c->output, config->session);
    interp_serve(&c->helpers);
    soft_helpers_init(
        &c->helpers, soft_print_create(PRINT_BYTES)); /* without memory for it, prints go nowhere */
    soft_children_serve(&c->helpers);
    if (!c->user ||
        dev_window_open(&c->window, config->window_base, config->window_size, config->device_fd,
                        config->host_fd) < 0 ||
        dev_work_init(&c->work, c, &soft_work_ops, &d->events, config->session, &c->window) < 0) {
        dev_window_close(&c->window);
        soft_print_destroy(c->helpers.print);
        tp_output_finish(&c->output);
        if (c->user)
            soft_user_put(d, c->user);
        free(c);
        return GM_CUDA_OUT_OF_MEMORY;
    }
    soft_account_open(d->sched, &c->account, config->share_pct, config->priority);
    *out = c;
    return GM_CUDA_SUCCESS;
}

static void soft_client_set_share(struct dev_client *c, double share_pct,
                                  const uint32_t *multiprocessors, int priority)
{
    soft_account_set(c->dev->sched, &c->account, share_pct, priority);
}

static void soft_client_set_group(struct dev_client *c, double guarantee_pct,
                                  const struct dev_group *group)
{
    soft_account_set_group(c->dev->sched, &c->account, guarantee_pct, group->number,
                           group->share_pct, group->guarantee_pct);
}

static void soft_client_leave(struct dev_client *c)
{
    dev_work_stop(&c->work);
}

static void soft_client_stop(struct dev_client *c)
{
    soft_client_leave(c);
    if (c->dev->compiler)
        soft_compiler_drop(c->dev->compiler, c);
    soft_account_drain(c->dev->sched, &c->account);
}

static void soft_client_destroy(struct dev_client *c)
{
    if (!c)
        return;
    dev_work_destroy(&c->work);
    soft_account_close(c->dev->sched, &c->account);
    soft_guest_destroy(c->guest);
    if (c->dev->compiler)
        soft_compiler_cancel(c->dev->compiler, c);
    gm_list_for_each_safe (m, &c->modules, struct dev_module, link)
        soft_module_unload(m);
    soft_user_put(c->dev, c->user);
    dev_window_close(&c->window);
    soft_check_destroy(c->check);
    soft_print_destroy(c->helpers.print);
    soft_child_store_destroy(c->helpers.children);
    tp_output_finish(&c->output);
    pthread_mutex_destroy(&c->print_lock);
    pthread_mutex_destroy(&c->modules_lock);
    free(c);
}

static uint32_t soft_backlog(struct dev_client *c)
{
    return atomic_load_explicit(&c->work.backlog, memory_order_relaxed);
}

/* --- limits ----------------------------------------------------------------------------------- */

/* The limit of the stack is the only one that the device has. It is the largest that any context of
 * the client has asked for. */
static int limit_raise(struct dev_client *c, const struct dev_call *call)
{
    struct wire_call_limit w;
    wire_get_call_limit(call->args, &w);
    if (w.limit != LIMIT_STACK)
        return GM_CUDA_NOT_SUPPORTED;
    if (w.value > IR_MAX_LOCAL_BYTES)
        return GM_CUDA_INVALID_VALUE;
    uint32_t value = (uint32_t)w.value,
             now = atomic_load_explicit(&c->stack_limit, memory_order_relaxed);
    while (now < value && !atomic_compare_exchange_weak(&c->stack_limit, &now, value))
        ;
    return GM_CUDA_SUCCESS;
}

/* --- checks ----------------------------------------------------------------------------------- */

static int check_begin(struct dev_client *c, const struct dev_call *call)
{
    struct wire_call_check_begin w;
    wire_get_call_check_begin(call->args, &w);
    if (!c->dev->checks)
        return GM_CUDA_NOT_SUPPORTED;
    if (c->check || !gm_list_empty(&c->modules) || !w.checks ||
        (w.checks & ~(WIRE_CHECK_MEMORY | WIRE_CHECK_RACE | WIRE_CHECK_UNINIT)))
        return GM_CUDA_INVALID_VALUE;
    c->check = soft_check_create(&c->window, w.checks);
    return c->check ? GM_CUDA_SUCCESS : GM_CUDA_OUT_OF_MEMORY;
}

static int check_note(struct dev_client *c, const struct dev_call *call)
{
    struct wire_call_check_note w;
    wire_get_call_check_note(call->args, &w);
    return c->check && soft_check_note(c->check, w.note, w.address, w.size) ? GM_CUDA_SUCCESS
                                                                            : GM_CUDA_INVALID_VALUE;
}

static int check_count(struct dev_client *c, const struct dev_call *call)
{
    if (!c->check)
        return GM_CUDA_INVALID_VALUE;
    pthread_mutex_lock(&c->check->lock);
    const struct wire_call_check_counted w = { .places = c->check->errors,
                                               .times = c->check->times };
    pthread_mutex_unlock(&c->check->lock);
    wire_put_call_check_counted(call->reply, &w);
    return GM_CUDA_SUCCESS;
}

static int soft_call(struct dev_client *c, const struct dev_call *call)
{
    switch (call->function) {
    case WIRE_CALL_LIMIT_RAISE:
        return limit_raise(c, call);
    case WIRE_CALL_CHECK_BEGIN:
        return check_begin(c, call);
    case WIRE_CALL_CHECK_NOTE:
        return check_note(c, call);
    case WIRE_CALL_CHECK_COUNT:
        return check_count(c, call);
    default:
        return GM_CUDA_NOT_SUPPORTED;
    }
}

/* --- memory ----------------------------------------------------------------------------------- */

static int soft_memory_map(struct dev_client *c, uint64_t address, uint64_t size)
{
    return dev_window_map(&c->window, address, size) == 0 ? GM_CUDA_SUCCESS : GM_CUDA_OUT_OF_MEMORY;
}

static int soft_memory_attach(struct dev_client *c, uint64_t address, uint64_t size, int fd,
                              uint64_t offset, uint32_t device, uint32_t access)
{
    return dev_window_attach(&c->window, address, size, fd, offset, dev_access_writes(access)) == 0
               ? GM_CUDA_SUCCESS
               : GM_CUDA_OUT_OF_MEMORY;
}

static void soft_memory_unmap(struct dev_client *c, uint64_t address, uint64_t size)
{
    dev_window_unmap(&c->window, address, size);
}

/* --- queues ----------------------------------------------------------------------------------- */

static int soft_queue_create(struct dev_client *c, uint32_t device, uint32_t stream, uint64_t done,
                             int priority, struct dev_queue **out)
{
    return dev_queue_open(&c->work, stream, done, priority, out);
}

const struct dev_ops gmux_device = {
    .name = "soft",
    .contained = true,
    .open = soft_open,
    .close = soft_close,
    .count = soft_count,
    .info = soft_info,
    .client_create = soft_client_create,
    .client_set_share = soft_client_set_share,
    .client_set_group = soft_client_set_group,
    .client_leave = soft_client_leave,
    .client_stop = soft_client_stop,
    .client_destroy = soft_client_destroy,
    .memory_map = soft_memory_map,
    .memory_attach = soft_memory_attach,
    .memory_unmap = soft_memory_unmap,
    .module_load = soft_module_load,
    .module_place = soft_module_place,
    .module_unload = soft_module_unload,
    .queue_create = soft_queue_create,
    .queue_destroy = dev_queue_close,
    .launch = soft_launch,
    .call = soft_call,
    .copy = dev_queue_copy,
    .write = dev_queue_write,
    .fill = dev_queue_fill,
    .wait = dev_queue_wait,
    .stamp = dev_queue_stamp,
    .gate = dev_queue_gate,
    .gate_moved = dev_queue_gate_moved,
    .wait_value = dev_queue_wait_value,
    .mark = dev_queue_mark,
    .flush = soft_flush,
    .backlog = soft_backlog,
};
