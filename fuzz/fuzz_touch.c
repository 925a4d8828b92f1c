/*
 * What kernels touch against what they may: one access, of 32 lanes, whose addresses come from the
 * input. Its form (space, width, how the compiler sees the addresses) is one of some hundreds; each
 * is interpreted, and compiled by gmux-jit. Around all that a kernel may touch lies memory that it
 * may not: the pages beside the window can be written, so that an access that escapes is seen
 * there, and is not a fault by luck. An access of global memory that is wrong in any lane has to
 * fail, a right one not to.
 *
 * The input: the form, two bytes; how many threads there are; which of them do it, four bytes; a
 * stride; then addresses.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "device/guard.h"
#include "device/soft/exec/code.h"
#include "device/soft/exec/helpers.h"
#include "device/soft/interp/interp.h"
#include "device/soft/ir/ir.h"
#include "device/soft/ir/spaces.h"
#include "device/soft/loader/compiler.h"
#include "device/soft/ptx/ptx.h"
#include "transport/memfd.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define WINDOW      0x400000000000ull
#define WINDOW_SIZE (1ull << 24)
#define ROOM                                                                                       \
    8192u /* mapped at the window's beginning, and at its end; before and behind it for nobody */
#define TABLE        (WINDOW + WINDOW_SIZE / 2) /* of addresses; a page that may be read */
#define SHARED_BYTES 512u
#define LOCAL_BYTES  64u
#define CANARY       4096u
#define PATTERN      0x5a
#define LANES        32u

enum { GLOBAL, SHARED, LOCAL, GENERIC, SPACES };
enum { LOAD, STORE, ADD, REDUCE, EXCHANGE, VERBS };
enum { UNIFORM, AFFINE, TABLED, STRIDED, SHAPES };

static const struct {
    const char *type, *vector; /* as of ld and st */
    unsigned registers, bytes;
} widths[] = { { "b8", "", 1, 1 },      { "b16", "", 1, 2 },    { "b32", "", 1, 4 },
               { "b64", "", 1, 8 },     { "b32", ".v2", 2, 8 }, { "b32", ".v4", 4, 16 },
               { "b64", ".v2", 2, 16 }, { "b8", ".v4", 4, 4 },  { "b16", ".v2", 2, 4 } };

#define WIDTHS  GM_ARRAY_LEN(widths)
#define OFFSETS 4u
#define FORMS   (SPACES * VERBS * SHAPES * WIDTHS * OFFSETS)
static const int offsets[OFFSETS] = { 0, 16, -16, 4096 };

struct form {
    unsigned space, verb, shape, width, bytes;
    int offset;
    struct soft_code
        *codes[2]; /* interpreted, compiled; NULL: not tried yet, or there is no such instruction */
    bool tried;
};

static struct form forms[FORMS];
static struct soft_compiler *compiler;
static struct soft_block block;
static struct soft_helpers helpers;
static struct dev_guard guard;
static uint8_t *shared, *local, *save;
static size_t shared_size, local_size, save_size;
static uint8_t first[ROOM], last[ROOM]; /* what the rooms are to hold */
static uint64_t *table;                 /* where it can be written */
static struct params {
    uint64_t base, table;
    uint32_t mask, stride;
} params;
static const uint8_t *input;
static size_t left;

static void require(bool fact, const char *what)
{
    if (fact)
        return;
    fprintf(stderr, "%s\n", what);
    abort();
}

static uint8_t take(void)
{
    if (left == 0)
        return 0;
    left--;
    return *input++;
}

static void *room(uint64_t address)
{
    return (void *)(uintptr_t)address;
}

/* --- forms ------------------------------------------------------------------------------------ */

static const char *registers(const struct form *f, char *out)
{
    static const char *const list[] = { "", "%s0", "{%s0, %s1}", "", "{%s0, %s1, %s2, %s3}" };
    const char type = widths[f->width].type[1], *p = list[widths[f->width].registers];
    char *to = out;
    for (; *p; p++)
        *to++ = *p == 's' ? type == '8' || type == '1' ? 'h' : type == '3' ? 'r' : 'd' : *p;
    *to = 0;
    return out;
}

static bool write_access(const struct form *f, char *out, size_t size)
{
    static const char *const spaces[] = { ".global", ".shared", ".local", "" };
    const char *type = widths[f->width].type, *vector = widths[f->width].vector,
               *space = spaces[f->space];
    char list[64];
    registers(f, list);
    bool whole = !*vector && (f->bytes == 4 || f->bytes == 8);
    const char *u = f->bytes == 4 ? "u32" : "u64";
    switch (f->verb) {
    case LOAD:
        /* What is not used is not loaded. */
        snprintf(out, size, "ld%s%s.%s %s, [%%a%+d];\n@%%p st.shared%s.%s [common], %s;", space,
                 vector, type, list, f->offset, vector, type, list);
        return true;
    case STORE:
        snprintf(out, size, "st%s%s.%s [%%a%+d], %s;", space, vector, type, f->offset, list);
        return true;
    case ADD:
        snprintf(out, size, "atom%s.add.%s %s, [%%a%+d], %s;", space, u, list, f->offset, list);
        break;
    case REDUCE:
        snprintf(out, size, "red%s.add.%s [%%a%+d], %s;", space, u, f->offset, list);
        break;
    default:
        snprintf(out, size, "atom%s.exch.%s %s, [%%a%+d], %s;", space, type, list, f->offset, list);
        break;
    }
    return whole && f->space != LOCAL;
}

static bool write_text(const struct form *f, char *out, size_t size)
{
    static const char *const shapes[] = {
        "mov.u64 %a, %b;", "mul.wide.u32 %t, %i, 4; add.u64 %a, %b, %t;",
        "mul.wide.u32 %t, %i, 8; add.u64 %t, %t, %m; ld.global.u64 %a, [%t];",
        "mul.wide.u32 %t, %i, %s; add.u64 %a, %b, %t;"
    };
    char access[240];
    if (!write_access(f, access, sizeof(access)))
        return false;
    snprintf(
        out, size,
        ".version 8.0\n.target sm_75\n.address_size 64\n"
        ".visible .entry k(.param .u64 base, .param .u64 table, .param .u32 mask, .param .u32 "
        "stride)\n{\n"
        ".shared .align 16 .b8 common[%u];\n.local .align 16 .b8 own[%u];\n"
        ".reg .u64 %%a, %%b, %%t, %%m, %%d<4>; .reg .u32 %%i, %%s, %%k, %%r<4>; .reg .b16 %%h<4>; "
        ".reg .pred %%p;\n"
        "ld.param.u64 %%b, [base]; ld.param.u64 %%m, [table]; ld.param.u32 %%k, [mask]; "
        "ld.param.u32 %%s, [stride];\n"
        "mov.u32 %%i, %%tid.x; shr.u32 %%k, %%k, %%i; and.b32 %%k, %%k, 1; setp.ne.u32 %%p, %%k, "
        "0;\n"
        "mov.u64 %%t, own; st.local.u32 [%%t], 0; mov.u64 %%t, common; st.shared.u32 [%%t], 0;\n"
        "mov.u64 %%d0, 1; mov.u64 %%d1, 2; mov.u64 %%d2, 3; mov.u64 %%d3, 4; mov.u32 %%r0, 1; "
        "mov.u32 %%r1, 2;\n"
        "mov.u32 %%r2, 3; mov.u32 %%r3, 4; mov.b16 %%h0, 1; mov.b16 %%h1, 2; mov.b16 %%h2, 3; "
        "mov.b16 %%h3, 4;\n"
        "%s\n@%%p %s\nret;\n}\n",
        SHARED_BYTES, LOCAL_BYTES, shapes[f->shape], access);
    return true;
}

static void compile(struct form *f)
{
    char text[2048], why[512] = "";
    struct ptx_error error;
    struct ir_module *m;
    bool unsupported = false;
    f->tried = true;
    if (!write_text(f, text, sizeof(text)))
        return;
    if (ptx_parse(text, strlen(text), &m, &error) != 0) {
        fprintf(stderr, "%s%u:%u: %s\n", text, error.line, error.column, error.text);
        abort();
    }
    f->codes[0] = interp_code_create(m, ir_module_find_fn(m, "k"), why, sizeof(why));
    ir_module_destroy(m);
    require(f->codes[0] != NULL, why);
    const struct soft_job job = { .text = text, .text_size = strlen(text), .entry = "k" };
    f->codes[1] = soft_compiler_compile(compiler, &job, &unsupported, why, sizeof(why));
    require(f->codes[1] != NULL, why);
}

/* --- memory ----------------------------------------------------------------------------------- */

static void map(uint64_t address, uint64_t size, int access)
{
    void *p = mmap(room(address), size, access,
                   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE, -1, 0);
    require(p == room(address), "no room for the window");
}

static uint8_t *between_canaries(size_t size)
{
    void *p = NULL;
    require(posix_memalign(&p, CANARY, size + 2 * (size_t)CANARY) == 0, "no memory");
    memset(p, PATTERN, size + 2 * (size_t)CANARY);
    return (uint8_t *)p + CANARY;
}

static void require_pattern(const uint8_t *p, size_t size, const char *what)
{
    static uint8_t pattern[ROOM];
    if (pattern[0] != PATTERN)
        memset(pattern, PATTERN, sizeof(pattern));
    require(memcmp(p, pattern, size) == 0, what);
}

static void prepare(void)
{
    const char *cache = getenv("FUZZ_CACHE"); /* most of a short run would go into compiling */
    const struct soft_compiler_config config = { .cache_dir = cache ? cache : "" };
    setenv("GMUX_JIT", GMUX_JIT_PATH, 0);
    require(soft_compiler_create(&compiler, &config) == 0, "no compiler");
    dev_guard_install();
    require(dev_guard_thread_begin() == 0, "no signal stack");
    map(WINDOW - ROOM, 2 * ROOM, PROT_READ | PROT_WRITE);
    map(WINDOW + ROOM, WINDOW_SIZE - 2 * ROOM, PROT_NONE);
    map(WINDOW + WINDOW_SIZE - ROOM, 2 * ROOM, PROT_READ | PROT_WRITE);
    int fd = tp_memfd_create("table", CANARY);
    table = tp_memfd_map(fd, CANARY, true);
    require(fd >= 0 && table &&
                mmap(room(TABLE), CANARY, PROT_READ, MAP_SHARED | MAP_FIXED, fd, 0) == room(TABLE),
            "no table");
    memset(room(WINDOW - ROOM), PATTERN, ROOM);
    memset(room(WINDOW + WINDOW_SIZE), PATTERN, ROOM);
    interp_serve(&helpers);
    soft_helpers_init(&helpers, NULL);
    shared_size = SOFT_SHARED_GUARD + soft_shared_reserve(SHARED_BYTES);
    local_size = LANES * 1024u;
    save_size = 1u << 20;
    shared = between_canaries(shared_size);
    local = between_canaries(local_size);
    save = between_canaries(save_size);
    for (unsigned n = 0; n < FORMS; n++) {
        struct form *f = &forms[n];
        unsigned i = n;
        f->space = i % SPACES;
        f->verb = (i /= SPACES) % VERBS;
        f->shape = (i /= VERBS) % SHAPES;
        f->width = (i /= SHAPES) % WIDTHS;
        f->offset = offsets[i / WIDTHS];
        f->bytes = widths[f->width].bytes;
    }
}

/* --- one launch ------------------------------------------------------------------------------- */

static uint64_t take_address(void)
{
    static const uint64_t anchors[] = { WINDOW,
                                        WINDOW + ROOM,
                                        WINDOW + WINDOW_SIZE - ROOM,
                                        WINDOW + WINDOW_SIZE,
                                        WINDOW - ROOM,
                                        WINDOW + WINDOW_SIZE / 2,
                                        0,
                                        UINT64_MAX - 15,
                                        SOFT_SHARED_BASE,
                                        SOFT_SHARED_BASE + SHARED_BYTES,
                                        SOFT_LOCAL_BASE,
                                        SOFT_LOCAL_BASE + LOCAL_BYTES,
                                        SOFT_PARAM_BASE,
                                        WINDOW + (1ull << 32),
                                        WINDOW ^ 1ull << 63,
                                        (uint64_t)0x7fff << 32 };
    const uint8_t kind = take(), delta = take();
    const uint64_t unit = kind & 16 ? 1 : kind & 32 ? 256 : 4;
    return anchors[kind % GM_ARRAY_LEN(anchors)] + (uint64_t)(int64_t)(int8_t)delta * unit;
}

static uint64_t address_of(const struct form *f, uint32_t lane)
{
    uint64_t a = f->shape == TABLED    ? table[lane]
                 : f->shape == AFFINE  ? params.base + 4ull * lane
                 : f->shape == STRIDED ? params.base + (uint64_t)params.stride * lane
                                       : params.base;
    return a + (uint64_t)(int64_t)f->offset;
}

static bool may_touch(uint64_t address, unsigned bytes, bool reads)
{
    const uint64_t at = address - WINDOW;
    bool is_mapped = at <= ROOM - bytes || (at >= WINDOW_SIZE - ROOM && at <= WINDOW_SIZE - bytes);
    bool is_table = address - TABLE <= CANARY - bytes;
    return address % bytes == 0 && (is_mapped || (reads && is_table));
}

/* In what a kernel may change: the bytes of its own access are taken over, all others have to be as
 * they were. */
static bool right_access(const struct form *f, uint32_t threads)
{
    bool right = true;
    for (uint32_t i = 0; i < threads; i++) {
        if (!(params.mask >> i & 1))
            continue;
        const uint64_t a = address_of(f, i);
        const uint64_t at = a - WINDOW;
        if (!may_touch(a, f->bytes, f->verb == LOAD))
            right = false;
        else if (f->verb != LOAD)
            memcpy(at < ROOM ? first + at : last + (at - (WINDOW_SIZE - ROOM)), room(a), f->bytes);
    }
    return right;
}

struct trial {
    const struct soft_code *code;
    enum soft_outcome outcome;
};

static void run_block(void *arg)
{
    struct trial *t = arg;
    t->outcome = t->code->run_block(t->code, &block);
}

static bool run(const struct soft_code *code, uint32_t threads)
{
    struct trial t = { .code = code };
    block =
        (struct soft_block) { .nctaid = { 1, 1, 1 },
                              .ntid = { threads, 1, 1 },
                              .threads = threads,
                              .warps = 1,
                              .shared_size = SHARED_BYTES,
                              .params = (const uint8_t *)&params,
                              .shared = shared + SOFT_SHARED_GUARD,
                              .shared_mask = soft_shared_reserve(SHARED_BYTES) - 1,
                              .local = local,
                              .local_stride = (GM_MAX(code->local_bytes, LOCAL_BYTES) + 15u) & ~15u,
                              .save = save,
                              .save_stride =
                                  (code->save_bytes + SOFT_SAVE_ALIGN - 1) & ~(SOFT_SAVE_ALIGN - 1),
                              .window_base = WINDOW,
                              .window_mask = WINDOW_SIZE - 1,
                              .helpers = &helpers };
    require(block.local_stride * LANES <= local_size && block.save_stride <= save_size,
            "the block is too large");
    const int signal = dev_guard_call(&guard, run_block, &t);
    return signal == 0 && t.outcome == SOFT_DONE;
}

static void check(const struct form *f, const struct soft_code *code, uint32_t threads)
{
    memset(first, PATTERN, sizeof(first));
    memset(last, PATTERN, sizeof(last));
    memcpy(room(WINDOW), first, ROOM);
    memcpy(room(WINDOW + WINDOW_SIZE - ROOM), last, ROOM);
    const bool done = run(code, threads), right = right_access(f, threads);
    if (f->space == GLOBAL)
        require(done == right,
                done ? "an access that may not be was let through" : "an access was refused");
    require(memcmp(room(WINDOW), first, ROOM) == 0, "something else in the window has changed");
    require(memcmp(room(WINDOW + WINDOW_SIZE - ROOM), last, ROOM) == 0,
            "something else in the window has changed");
    require_pattern(room(WINDOW - ROOM), ROOM, "something before the window has changed");
    require_pattern(room(WINDOW + WINDOW_SIZE), ROOM, "something behind the window has changed");
    require_pattern(shared - CANARY, CANARY, "something before shared memory has changed");
    require_pattern(shared + shared_size, CANARY, "something behind shared memory has changed");
    require_pattern(local - CANARY, CANARY, "something before local memory has changed");
    require_pattern(local + local_size, CANARY, "something behind local memory has changed");
    require_pattern(save - CANARY, CANARY, "something before the registers has changed");
    require_pattern(save + save_size, CANARY, "something behind the registers has changed");
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (!compiler)
        prepare();
    input = data;
    left = size;
    unsigned number = take();
    number += (unsigned)take() << 8;
    struct form *f = &forms[number % FORMS];
    const uint32_t threads = 1 + take() % LANES;
    params.mask = 0;
    for (unsigned i = 0; i < 4; i++)
        params.mask = params.mask << 8 | take();
    params.stride = take();
    params.table = TABLE;
    params.base = take_address();
    for (unsigned i = 0; i < LANES; i++)
        table[i] = left ? take_address() : params.base;
    if (!f->tried)
        compile(f);
    for (unsigned i = 0; i < 2; i++)
        if (f->codes[i])
            check(f, f->codes[i], threads);
    return 0;
}
