/*
 * Cases on the software device; see soft.h.
 */
#include "soft.h"

#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/time.h>

#include "device/soft/exec/helpers.h"
#include "device/soft/interp/interp.h"
#include "device/soft/ir/clones.h"
#include "device/soft/ir/ir.h"
#include "device/soft/ir/spaces.h"
#include "device/soft/loader/compiler.h"
#include "device/soft/ptx/ptx.h"

#define HEAP_BYTES   (1u << 20)
#define WINDOW_BYTES (64u << 20)
#define PARAMS_MAX   32764
#define STACK_BYTES  2048 /* per thread */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define LAUNCH_MAX_MS 30000
#else
#define LAUNCH_MAX_MS 5000
#endif

struct soft_bench {
    uint8_t *mapping;
    uint8_t *window;
    size_t used;
    struct ir_module *module;
    const struct ir_fn *fn;
    uint64_t *globals;
    struct soft_helpers helpers;
    struct soft_block block;
    struct soft_compiler *compiler;
    unsigned limit_ms;
    void (*watch)(void *arg, uint32_t thread, const void *at, uint32_t bytes, const void *value);
    void *watch_arg;
};

struct soft_bench *soft_bench_create(void)
{
    struct soft_bench *s = calloc(1, sizeof(*s));
    if (!s)
        abort();
    s->mapping =
        mmap(NULL, 2 * WINDOW_BYTES, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (s->mapping == MAP_FAILED)
        abort();
    s->limit_ms = LAUNCH_MAX_MS;
    s->window =
        (uint8_t *)(((uintptr_t)s->mapping + WINDOW_BYTES - 1) & ~(uintptr_t)(WINDOW_BYTES - 1));
    /* The upper half stays inaccessible: what lies in the window but is not allocated. */
    if (mprotect(s->window, WINDOW_BYTES / 2, PROT_READ | PROT_WRITE) != 0)
        abort();
    interp_serve(&s->helpers);
    soft_helpers_init(&s->helpers, soft_print_create(1u << 16));
    return s;
}

static void bench_unplace(struct soft_bench *s)
{
    ir_module_destroy(s->module);
    s->module = NULL;
    s->fn = NULL;
    free(s->globals);
    s->globals = NULL;
    s->used = 0;
}

void soft_bench_destroy(struct soft_bench *s)
{
    if (!s)
        return;
    bench_unplace(s);
    munmap(s->mapping, 2 * WINDOW_BYTES);
    soft_print_destroy(s->helpers.print);
    soft_compiler_destroy(s->compiler);
    free(s);
}

static struct soft_compiler *bench_compiler(struct soft_bench *s)
{
    const struct soft_compiler_config config = { .cache_dir = "" };
    if (!s->compiler && soft_compiler_create(&s->compiler, &config) != 0)
        s->compiler = NULL;
    return s->compiler;
}

bool soft_bench_has_jit(struct soft_bench *s)
{
    static const char text[] =
        ".version 7.0\n.target sm_75\n.address_size 64\n.visible .entry k() { ret; }\n";
    char why[256];
    bool unsupported;
    struct soft_code *code = soft_bench_code(s, SOFT_TIER_JIT, NULL, text, sizeof(text) - 1, "k",
                                             &unsupported, why, sizeof(why));
    if (code)
        code->destroy(code);
    return code != NULL;
}

static struct ir_module *parse(const char *text, size_t size, const char *entry, uint32_t *fn,
                               char *why, size_t why_size)
{
    struct ptx_error error;
    struct ir_module *m;
    if (ptx_parse(text, size, &m, &error) != 0) {
        snprintf(why, why_size, "%u:%u: %s", error.line, error.column, error.text);
        return NULL;
    }
    *fn = ir_module_find_fn(m, entry);
    if (*fn == IR_NONE) {
        snprintf(why, why_size, "no entry '%s'", entry);
        ir_module_destroy(m);
        return NULL;
    }
    return m;
}

struct soft_code *soft_bench_code(struct soft_bench *s, enum soft_tier tier,
                                  const struct soft_job_options *options, const char *text,
                                  size_t size, const char *entry, bool *unsupported, char *why,
                                  size_t why_size)
{
    *unsupported = false;
    if (tier == SOFT_TIER_JIT) {
        struct soft_job job = { .text = text, .text_size = size, .entry = entry };
        struct soft_compiler *compiler = bench_compiler(s);
        if (options)
            job.options = *options;
        if (!compiler) {
            snprintf(why, why_size, "no compiler");
            return NULL;
        }
        return soft_compiler_compile(compiler, &job, unsupported, why, why_size);
    }
    uint32_t fn;
    struct ir_module *m = parse(text, size, entry, &fn, why, why_size);
    if (!m)
        return NULL;
    struct soft_code *code = interp_code_create(m, fn, why, why_size);
    ir_module_destroy(m);
    return code;
}

struct switched_code {
    struct soft_code code;
    const struct soft_code *first, *then;
};

static enum soft_outcome switched_run(const struct soft_code *code, struct soft_block *b)
{
    const struct switched_code *s = (const struct switched_code *)code;
    uint64_t blocks = (uint64_t)b->nctaid[0] * b->nctaid[1] * b->nctaid[2];
    const struct soft_code *now = b->block_linear < blocks / 2 ? s->first : s->then;
    return now->run_block(now, b);
}

static void switched_destroy(struct soft_code *code)
{
    free(code);
}

struct soft_code *soft_bench_switch(const struct soft_code *first, const struct soft_code *then)
{
    struct switched_code *s = calloc(1, sizeof(*s));
    if (!s)
        abort();
    s->first = first;
    s->then = then;
    s->code = (struct soft_code) {
        .run_block = switched_run,
        .destroy = switched_destroy,
        .save_bytes = GM_MAX(first->save_bytes, then->save_bytes),
        .local_bytes = GM_MAX(first->local_bytes, then->local_bytes),
        .tier = "switched",
    };
    return &s->code;
}

uint8_t *soft_bench_memory(struct soft_bench *s, size_t *bytes)
{
    *bytes = s->used;
    return s->window;
}

void soft_bench_wipe_rest(struct soft_bench *s)
{
    size_t from = (s->used + 4095) & ~(size_t)4095;
    if (madvise(s->window + from, WINDOW_BYTES / 2 - from, MADV_DONTNEED) != 0)
        abort();
}

void *soft_bench_alloc(struct soft_bench *s, size_t bytes)
{
    size_t at = (s->used + 255) & ~(size_t)255;
    if (bytes > WINDOW_BYTES / 2 - 256 || at > WINDOW_BYTES / 2 - 256 - bytes)
        return NULL;
    s->used = at + bytes;
    return s->window + at;
}

/* What the program's library does for modules that call malloc (device/soft/ptx/runtime/heap.ptx).
 */
static bool place_heap(struct soft_bench *s)
{
    for (uint32_t k = 0; k < s->module->symbol_count; k++) {
        if (!s->globals[k] ||
            strcmp(ir_name(s->module, s->module->symbols[k].name), "__gmux$heap") != 0)
            continue;
        uint8_t *heap = soft_bench_alloc(s, HEAP_BYTES);
        uint64_t *place = (uint64_t *)(void *)soft_bench_alloc(s, 16);
        if (!heap || !place)
            return false;
        memset(heap, 0, HEAP_BYTES);
        place[0] = (uint64_t)(uintptr_t)heap;
        place[1] = HEAP_BYTES;
        memcpy((uint8_t *)(uintptr_t)s->globals[k], &place, sizeof(place));
    }
    return true;
}

/* Global and const symbols get their places, then their initial bytes and the addresses in them. */
static bool place_globals(struct soft_bench *s)
{
    const struct ir_module *m = s->module;
    s->globals = calloc(m->symbol_count + 1u, sizeof(*s->globals));
    if (!s->globals)
        return false;
    soft_bench_alloc(s, 256); /* no symbol at the window's first address */
    for (uint32_t k = 0; k < m->symbol_count; k++) {
        const struct ir_symbol *y = &m->symbols[k];
        if (!ir_symbol_is_placed(m, k))
            continue;
        uint64_t at;
        if (!gm_align_up(s->used, GM_MAX(y->align, 1u), &at))
            return false;
        s->used = at;
        uint8_t *p = soft_bench_alloc(s, y->size);
        if (!p)
            return false;
        s->globals[k] = (uint64_t)(uintptr_t)p;
        memset(p, 0, y->size);
        if (y->init_size)
            memcpy(p, m->init_bytes + y->init, y->init_size);
    }
    if (!place_heap(s))
        return false;
    for (uint32_t k = 0; k < m->reloc_count; k++) {
        const struct ir_reloc *r = &m->relocs[k];
        uint64_t value = (s->globals[r->target] + (uint64_t)r->addend) >> r->shift;
        memcpy((uint8_t *)(uintptr_t)s->globals[r->symbol] + r->offset, &value, r->size);
    }
    return true;
}

bool soft_bench_place(struct soft_bench *s, const char *text, size_t size, const char *entry,
                      char *why, size_t why_size)
{
    uint32_t fn;
    bench_unplace(s);
    s->module = parse(text, size, entry, &fn, why, why_size);
    if (!s->module)
        return false;
    s->fn = &s->module->fns[fn];
    if (place_globals(s))
        return true;
    snprintf(why, why_size, "globals do not fit");
    return false;
}

uint32_t soft_bench_param(const struct soft_bench *s, uint32_t k)
{
    if (k >= s->fn->param_count)
        return UINT32_MAX;
    return (uint32_t)s->module->symbols[s->module->params[s->fn->param_first + k].symbol].offset;
}

const struct soft_block *soft_bench_block(const struct soft_bench *s)
{
    return &s->block;
}

static __thread sigjmp_buf escape;
static __thread volatile sig_atomic_t escape_set;

static void on_signal(int number)
{
    if (escape_set)
        siglongjmp(escape, number);
    signal(number, SIG_DFL);
}

static enum ptx_fault fault_of(int outcome)
{
    switch (outcome) {
    case SOFT_DONE:
        return PTX_FAULT_NONE;
    case SOFT_FAULT_ADDRESS:
        return PTX_FAULT_ADDRESS;
    case SOFT_FAULT_MISALIGNED:
        return PTX_FAULT_MISALIGNED;
    case SOFT_FAULT_TRAP:
        return PTX_FAULT_TRAP;
    case SOFT_FAULT_ASSERT:
        return PTX_FAULT_ASSERT;
    case SOFT_FAULT_BARRIER:
        return PTX_FAULT_BARRIER;
    case SOFT_FAULT_PC:
        return PTX_FAULT_PC;
    default:
        return PTX_FAULT_OTHER;
    }
}

/* What on_signal() has to leave alone: the blocks that it may interrupt. */
struct loop {
    struct soft_bench *s;
    const struct soft_code *code;
    uint8_t *shared;
    size_t shared_bytes;
};

static enum ptx_fault run_blocks(const struct loop *l)
{
    struct soft_block *b = &l->s->block;
    enum ptx_fault fault = PTX_FAULT_NONE;
    uint64_t blocks = (uint64_t)b->nctaid[0] * b->nctaid[1] * b->nctaid[2];
    uint32_t row = GM_MAX(l->code->row, 1u);
    for (uint64_t n = 0; n < blocks && fault == PTX_FAULT_NONE; n += b->row) {
        b->ctaid[0] = (uint32_t)(n % b->nctaid[0]);
        b->ctaid[1] = (uint32_t)(n / b->nctaid[0] % b->nctaid[1]);
        b->ctaid[2] = (uint32_t)(n / b->nctaid[0] / b->nctaid[1]);
        b->block_linear = (uint32_t)n;
        b->row = GM_MIN(row, b->nctaid[0] - b->ctaid[0]);
        memset(l->shared, 0, l->shared_bytes);
        if (b->watch)
            b->watch(b->watch_arg, 0, NULL, 0, NULL);
        fault = fault_of(l->code->run_block(l->code, b));
    }
    return fault;
}

static enum ptx_fault run_guarded(const struct loop *l)
{
    struct sigaction action = { .sa_handler = on_signal, .sa_flags = SA_NODEFER }, old[4];
    const int signals[4] = { SIGSEGV, SIGBUS, SIGFPE, SIGPROF };
    const struct itimerval limit = { .it_value = { .tv_sec = l->s->limit_ms / 1000,
                                                   .tv_usec = l->s->limit_ms % 1000 * 1000 } },
                           none = { 0 };
    volatile enum ptx_fault fault = PTX_FAULT_ADDRESS;
    for (int k = 0; k < 4; k++)
        sigaction(signals[k], &action, &old[k]);
    setitimer(ITIMER_PROF, &limit, NULL);
    int number = sigsetjmp(escape, 0);
    if (number == 0) {
        escape_set = 1;
        fault = run_blocks(l);
    } else if (number == SIGPROF) {
        fault = PTX_FAULT_ENDLESS;
    }
    escape_set = 0;
    setitimer(ITIMER_PROF, &none, NULL);
    for (int k = 0; k < 4; k++)
        sigaction(signals[k], &old[k], NULL);
    return fault;
}

void soft_bench_limit(struct soft_bench *s, unsigned ms)
{
    s->limit_ms = ms ? ms : 1;
}

void soft_bench_watch(struct soft_bench *s,
                      void (*watch)(void *arg, uint32_t thread, const void *at, uint32_t bytes,
                                    const void *value),
                      void *arg)
{
    s->watch = watch;
    s->watch_arg = arg;
}

static void take_print(void *arg, int fd, const char *text, uint32_t size)
{
    char **at = arg;
    size_t used = strlen(at[0]), room = (size_t)(at[1] - at[0]);
    if (used + size < room) {
        memcpy(at[0] + used, text, size);
        at[0][used + size] = 0;
    }
}

enum ptx_fault soft_bench_launch(struct soft_bench *s, const struct soft_code *code,
                                 const uint32_t grid[3], const uint32_t block[3],
                                 uint32_t dynamic_shared, const void *params, char *printed,
                                 size_t printed_size)
{
    uint32_t threads = (uint32_t)ir_threads(ir_thread_dims(s->fn), block),
             warps = (threads + SOFT_WARP - 1) / SOFT_WARP;
    uint32_t shared =
        s->fn->uses_dynamic_shared ? s->fn->shared_dynamic + dynamic_shared : s->fn->shared_static;
    /* Also where the kernel does not ask for it: addresses behind its arrays would be taken modulo
     * a smaller size. */
    uint64_t reserved = soft_shared_reserve(GM_MAX(shared, s->fn->shared_static + dynamic_shared));
    uint64_t local_stride =
        (code->local_bytes + (s->fn->uses_stack ? STACK_BYTES : 0) + 15ull) & ~15ull;
    const uint64_t align = SOFT_SAVE_ALIGN;
    uint64_t save_stride = (code->save_bytes + align - 1) & ~(align - 1);
    uint64_t local = (local_stride * warps * 32 + align - 1) & ~(align - 1);
    uint8_t *area =
        aligned_alloc(align, SOFT_SHARED_GUARD + reserved + local + save_stride * warps);
    enum ptx_fault fault = PTX_FAULT_NONE;
    if (!area)
        abort();
    s->block = (struct soft_block) {
        .nctaid = { grid[0], grid[1], grid[2] },
        .ntid = { block[0], block[1], block[2] },
        .threads = threads,
        .warps = warps,
        .shared_size = shared,
        .dynamic_shared = dynamic_shared,
        .params = params,
        .shared = area + SOFT_SHARED_GUARD,
        .shared_mask = reserved - 1,
        .local = area + SOFT_SHARED_GUARD + reserved,
        .local_stride = local_stride,
        .save = area + SOFT_SHARED_GUARD + reserved + local,
        .save_stride = save_stride,
        .window_base = (uint64_t)(uintptr_t)s->window,
        .window_mask = WINDOW_BYTES - 1,
        .globals = s->globals,
        .helpers = &s->helpers,
        .watch = s->watch,
        .watch_arg = s->watch_arg,
    };
    fault = run_guarded(&(struct loop) {
        .s = s, .code = code, .shared = area, .shared_bytes = SOFT_SHARED_GUARD + reserved });
    char sink[1] = "";
    char *at[2] = { printed ? printed : sink, printed ? printed + printed_size : sink + 1 };
    soft_print_drain(s->helpers.print, take_print, at);
    free(area);
    return fault;
}

bool soft_bench_case(struct soft_bench *s, const struct soft_code *code, struct ptx_case *c,
                     enum ptx_fault *fault, char *why, size_t why_size)
{
    static uint8_t params[PARAMS_MAX];
    void *buffers[PTX_ARGS_MAX];
    if (!soft_bench_place(s, c->text, c->text_size, c->kernel, why, why_size))
        return false;
    ptx_case_reset(c);
    memset(params, 0, sizeof(params));
    bool ok = c->arg_count == s->fn->param_count;
    if (!ok)
        snprintf(why, why_size, "the head has %zu parameters, the kernel %u", c->arg_count,
                 s->fn->param_count);
    for (uint32_t k = 0; ok && k < c->arg_count; k++) {
        struct ptx_arg *a = &c->args[k];
        uint8_t *at = params + soft_bench_param(s, k);
        buffers[k] = soft_bench_alloc(s, a->bytes);
        if (!buffers[k])
            abort();
        memcpy(buffers[k], a->data, a->bytes);
        if (a->is_value)
            memcpy(at, a->data, a->bytes);
        else
            memcpy(at, &buffers[k], sizeof(buffers[k]));
    }
    if (ok)
        *fault = soft_bench_launch(s, code, c->grid, c->block, c->shared, params, c->printed,
                                   sizeof(c->printed));
    for (uint32_t k = 0; ok && k < c->arg_count; k++)
        memcpy(c->args[k].data, buffers[k], c->args[k].bytes);
    return ok;
}
