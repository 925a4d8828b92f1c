/*
 * Kernels with much to keep, and the stack that compiled code takes for it: a kernel that would
 * need more than it may have is refused and so stays interpreted, and what has a large frame
 * touches all its pages first, from the top, so that the guard behind a stack stops it.
 */
#include <criterion/criterion.h>
#include <pthread.h>
#include <stdarg.h>

#include "device/guard.h"
#include "device/soft/interp/interp.h"
#include "device/soft/ir/ir.h"
#include "device/soft/loader/compiler.h"
#include "device/soft/ptx/ptx.h"
#include "launch.h"

#define VALUES 300u /* that live at the same time, in each of 32 lanes: 77 KB */

static struct soft_compiler *compiler;
static struct launch l;
static char text[65536];

static void GM_PRINTF(1, 2) add(const char *fmt, ...)
{
    size_t at = strlen(text);
    va_list ap;
    va_start(ap, fmt);
    int n = vsnprintf(text + at, sizeof(text) - at, fmt, ap);
    va_end(ap);
    cr_assert(n > 0 && (size_t)n < sizeof(text) - at);
}

/* v[k] = v[k-1]^2 + k for each k, then the sum of v[k] * 3^k: all are needed until the end. That
 * `groups` times over, as often as `times` says. With several groups all lanes have to be there. */
static void write_kernel(unsigned groups)
{
    text[0] = 0;
    add(".version 7.0\n.target sm_75\n.address_size 64\n.visible .entry big(.param .u64 at, .param "
        ".u32 times)\n{\n"
        ".reg .u64 %%q, %%t, %%s, %%v<%u>;\n.reg .u32 %%i, %%n;\n.reg .pred %%p;\n"
        "ld.param.u64 %%q, [at];\nmov.u32 %%i, %%tid.x;\nmul.wide.u32 %%t, %%i, 8;\nadd.u64 %%q, "
        "%%q, %%t;\n"
        "ld.param.u32 %%n, [times];\nld.global.u64 %%v0, [%%q];\n"
        "again:\nsetp.eq.u32 %%p, %%n, 0;\n@%%p bra end;\n",
        VALUES);
    for (unsigned n = 0; n < groups; n++) {
        for (unsigned k = 1; k < VALUES; k++)
            add("mad.lo.u64 %%v%u, %%v%u, %%v%u, %u;\n", k, k - 1, k - 1, k);
        add("mov.u64 %%s, 0;\n");
        for (unsigned k = VALUES; k-- > 0;)
            add("mad.lo.u64 %%s, %%s, 3, %%v%u;\n", k);
        add("mov.u64 %%v0, %%s;\n%s", groups > 1 ? "vote.sync.any.pred %p, 1, -1;\n" : "");
    }
    add("sub.u32 %%n, %%n, 1;\nbra again;\nend:\nst.global.u64 [%%q], "
        "%%v0;\nret;\n}\n");
}

static uint64_t expected(uint64_t v0)
{
    uint64_t v[VALUES] = { v0 }, sum = 0;
    for (unsigned k = 1; k < VALUES; k++)
        v[k] = v[k - 1] * v[k - 1] + k;
    for (unsigned k = VALUES; k-- > 0;)
        sum = sum * 3 + v[k];
    return sum;
}

static void setup(void)
{
    struct soft_compiler_config config = { .cache_dir = "" };
    cr_assert_eq(soft_compiler_create(&compiler, &config), 0);
    launch_init(&l);
    write_kernel(1);
}

static void teardown(void)
{
    launch_finish(&l);
    soft_compiler_destroy(compiler);
}

TestSuite(frames, .init = setup, .fini = teardown, .timeout = 100);

static struct soft_code *compile_as(const struct soft_job_options *options, bool *unsupported,
                                    char why[512])
{
    const struct soft_job job = {
        .text = text, .text_size = strlen(text), .entry = "big", .options = *options
    };
    return soft_compiler_compile(compiler, &job, unsupported, why, 512);
}

static struct soft_code *compile(uint32_t frame_bytes, bool *unsupported, char why[512])
{
    const struct soft_job_options options = { .ntid = { 32, 1, 1 }, .frame_bytes = frame_bytes };
    return compile_as(&options, unsupported, why);
}

static void run(const struct soft_code *code, uint64_t *at, uint32_t times)
{
    const uint32_t grid[3] = { 1, 1, 1 }, block[3] = { 32, 1, 1 };
    for (uint64_t i = 0; i < 32; i++)
        at[i] = i * i + 7;
    l.params_size = 0;
    LAUNCH_PARAM(&l, void *, at);
    LAUNCH_PARAM(&l, uint32_t, times);
    cr_assert_eq(launch_run(&l, code, grid, block, 0), SOFT_DONE);
    for (uint64_t i = 0; i < 32; i++)
        cr_assert_eq(at[i], times ? expected(i * i + 7) : i * i + 7, "%s, lane %u", code->tier,
                     (unsigned)i);
}

Test(frames, what_needs_too_much_stays_interpreted_and_right)
{
    char why[512] = "", parse_why[256];
    bool unsupported = false;
    struct soft_code *code = compile(8192, &unsupported, why);
    cr_assert_null(code, "a frame of %u values in 8 KiB", VALUES);
    cr_assert(unsupported, "%s", why);
    cr_assert_not_null(strstr(why, "stack frame size"), "%s", why);

    struct ir_module *m;
    struct ptx_error error;
    cr_assert_eq(ptx_parse(text, strlen(text), &m, &error), 0);
    code = interp_code_create(m, ir_module_find_fn(m, "big"), parse_why, sizeof(parse_why));
    cr_assert_not_null(code);
    ir_module_destroy(m);
    run(code, launch_alloc(&l, 4096), 1);
    code->destroy(code);
}

/* Values that do not live at the same time share their places, also in what LLVM does not
 * optimise. */
Test(frames, what_is_large_shares_places)
{
    const struct soft_job_options options = { .ntid = { 32, 1, 1 },
                                              .large = 1,
                                              .frame_bytes = 100000 };
    const uint32_t one[3] = { 1, 1, 1 }, block[3] = { 32, 1, 1 };
    uint64_t *at = launch_alloc(&l, 4096);
    char why[512] = "";
    bool unsupported = false;
    write_kernel(2);
    struct soft_code *code = compile_as(&options, &unsupported, why);
    cr_assert_not_null(code, "%s", why);
    for (uint64_t i = 0; i < 32; i++)
        at[i] = i;
    LAUNCH_PARAM(&l, void *, at);
    LAUNCH_PARAM(&l, uint32_t, 1);
    cr_assert_eq(launch_run(&l, code, one, block, 0), SOFT_DONE);
    for (uint64_t i = 0; i < 32; i++)
        cr_assert_eq(at[i], expected(expected(i)), "lane %u", (unsigned)i);
    code->destroy(code);
}

#define TURNING 10u

/* A kernel that may end before it needs its large frame, and goes on with what it has computed for
 * that test, in more or fewer registers (`kept`): none may be lost where the frame's pages are
 * touched. In the loop all of TURNING registers hold values that lanes have in common. */
static void write_early_exit(unsigned kept)
{
    text[0] = 0;
    add(".version 7.0\n.target sm_75\n.address_size 64\n.visible .entry big(.param .u64 at)\n{\n"
        ".reg .u64 %%q, %%t, %%s, %%v<%u>;\n.reg .u32 %%i, %%n, %%x, %%c, %%u<%u>, %%w<%u>;\n"
        ".reg .pred %%p;\nmov.u32 %%n, %%ctaid.y;\nmov.u32 %%x, %%nctaid.x;\n"
        "add.u32 %%n, %%n, %%x;\nmad.lo.u32 %%n, %%n, -100000, 350000;\nmov.u32 %%u0, %%ctaid.x;\n",
        VALUES, kept, TURNING);
    for (unsigned k = 1; k < kept; k++)
        add("mad.lo.u32 %%u%u, %%u%u, %%u%u, %u;\n", k, k - 1, k - 1, k);
    add("setp.gt.s32 %%p, %%u%u, %%n;\n@%%p bra end;\n"
        "ld.param.u64 %%q, [at];\nmov.u32 %%i, %%tid.x;\nmul.wide.u32 %%t, %%i, 8;\n"
        "add.u64 %%q, %%q, %%t;\nld.global.u64 %%v0, [%%q];\n",
        kept - 1);
    for (unsigned k = 0; k < TURNING; k++)
        add("mul.lo.u32 %%w%u, %%u%u, %u;\n", k, k % kept, k + 1);
    add("mov.u32 %%c, 0;\nagain:\n");
    for (unsigned k = 1; k < VALUES; k++)
        add("mad.lo.u64 %%v%u, %%v%u, %%v%u, %u;\n", k, k - 1, k - 1, k);
    add("mov.u64 %%s, 0;\n");
    for (unsigned k = VALUES; k-- > 0;)
        add("mad.lo.u64 %%s, %%s, 3, %%v%u;\n", k);
    for (unsigned k = 0; k < TURNING; k++)
        add("mad.lo.u32 %%w%u, %%w%u, %%w%u, %u;\ncvt.u64.u32 %%t, %%w%u;\n"
            "mad.lo.u64 %%s, %%s, 7, %%t;\n",
            k, k, (k + 1) % TURNING, k, k);
    add("mov.u64 %%v0, %%s;\nadd.u32 %%c, %%c, 1;\nsetp.lt.u32 %%p, %%c, 2;\n@%%p bra again;\n"
        "cvt.u64.u32 %%t, %%x;\nmad.lo.u64 %%s, %%s, 7, %%t;\n");
    for (unsigned k = 0; k < kept; k++)
        add("cvt.u64.u32 %%t, %%u%u;\nmad.lo.u64 %%s, %%s, 7, %%t;\n", k);
    add("st.global.u64 [%%q], %%s;\nend:\nret;\n}\n");
}

static uint64_t expected_beyond_exit(uint64_t v, unsigned kept)
{
    uint32_t u[TURNING] = { 0 }, w[TURNING];
    for (unsigned k = 1; k < kept; k++)
        u[k] = u[k - 1] * u[k - 1] + k;
    for (unsigned k = 0; k < TURNING; k++)
        w[k] = u[k % kept] * (k + 1);
    for (unsigned turn = 0; turn < 2; turn++) {
        v = expected(v);
        for (unsigned k = 0; k < TURNING; k++) {
            w[k] = w[k] * w[(k + 1) % TURNING] + k;
            v = v * 7 + w[k];
        }
    }
    v = v * 7 + 1;
    for (unsigned k = 0; k < kept; k++)
        v = v * 7 + u[k];
    return v;
}

Test(frames, what_is_known_before_a_large_frame_stays)
{
    for (unsigned kept = 2; kept <= 6; kept++) {
        bool unsupported;
        char why[512];
        const uint32_t grid[3] = { 1, 4, 1 }, block[3] = { 32, 1, 1 };
        write_early_exit(kept);
        struct soft_code *code = compile(0, &unsupported, why);
        cr_assert_not_null(code, "%s", why);
        uint64_t *at = launch_alloc(&l, 4096);
        for (uint64_t i = 0; i < 32; i++)
            at[i] = i;
        l.params_size = 0;
        LAUNCH_PARAM(&l, void *, at);
        cr_assert_eq(launch_run(&l, code, grid, block, 0), SOFT_DONE);
        code->destroy(code);
        for (uint64_t i = 0; i < 32; i++) {
            uint64_t v = i;
            for (unsigned block_y = 0; block_y < 3; block_y++) /* the fourth one ends early */
                v = expected_beyond_exit(v, kept);
            cr_assert_eq(at[i], v, "%u kept, lane %u", kept, (unsigned)i);
        }
    }
}

#define PLACES 300u
#define TURNS  500u

/* Threads that go their own ways between many places, from each of them to two others. With the
 * values as LLVM's, this takes minutes and gigabytes. */
static void write_maze(void)
{
    text[0] = 0;
    add(".version 7.0\n.target sm_75\n.address_size 64\n.visible .entry big(.param .u64 at)\n{\n"
        ".reg .u64 %%q, %%t;\n.reg .u32 %%i, %%n, %%s, %%b, %%v<32>;\n.reg .pred %%p;\n"
        "ld.param.u64 %%q, [at];\nmov.u32 %%i, %%tid.x;\nmul.wide.u32 %%t, %%i, 8;\n"
        "add.u64 %%q, %%q, %%t;\nmul.lo.u32 %%s, %%i, 40503;\nmov.u32 %%n, %u;\n",
        TURNS);
    for (unsigned k = 0; k < 32; k++)
        add("mul.lo.u32 %%v%u, %%i, %u;\n", k, k);
    for (unsigned k = 0; k < PLACES; k++)
        add("L%u:\nsub.u32 %%n, %%n, 1;\nsetp.eq.u32 %%p, %%n, 0;\n@%%p bra end;\n"
            "mad.lo.u32 %%v%u, %%v%u, %%s, %u;\nmad.lo.u32 %%s, %%s, 1664525, %u;\n"
            "and.b32 %%b, %%s, 65536;\nsetp.ne.u32 %%p, %%b, 0;\n@%%p bra L%u;\n",
            k, k % 32, (k + 1) % 32, k, k + 7, (k * 7 + 3) % PLACES);
    add("bra L0;\nend:\n");
    for (unsigned k = 0; k < 32; k++)
        add("mad.lo.u32 %%s, %%s, 3, %%v%u;\n", k);
    add("cvt.u64.u32 %%t, %%s;\nst.global.u64 [%%q], %%t;\nret;\n}\n");
}

static uint32_t end_of_maze(uint32_t i)
{
    uint32_t v[32], s = i * 40503, k = 0;
    for (uint32_t j = 0; j < 32; j++)
        v[j] = i * j;
    for (uint32_t n = TURNS; --n > 0;) {
        v[k % 32] = v[(k + 1) % 32] * s + k;
        s = s * 1664525 + k + 7;
        k = (s & 65536 ? k * 7 + 3 : k + 1) % PLACES;
    }
    for (uint32_t j = 0; j < 32; j++)
        s = s * 3 + v[j];
    return s;
}

static void run_maze(const struct soft_code *code)
{
    const uint32_t grid[3] = { 1, 1, 1 }, block[3] = { 32, 1, 1 };
    uint64_t *at = launch_alloc(&l, 4096);
    l.params_size = 0;
    LAUNCH_PARAM(&l, void *, at);
    cr_assert_eq(launch_run(&l, code, grid, block, 0), SOFT_DONE);
    for (uint32_t i = 0; i < 32; i++)
        cr_assert_eq(at[i], end_of_maze(i), "lane %u", i);
}

/* 77 KB for 32 lanes are 19 KB for 8. */
Test(frames, what_needs_too_much_has_fewer_lanes)
{
    char why[512] = "";
    bool unsupported = false;
    struct soft_code *code = compile(32768, &unsupported, why);
    cr_assert_not_null(code, "%s", why);
    run(code, launch_alloc(&l, 4096), 1);
    code->destroy(code);
}

/* Compiles the maze for a frame of so many bytes (0: the largest one), and runs it. */
static void maze(uint32_t frame_bytes)
{
    char why[512] = "";
    bool unsupported = false;
    write_maze();
    struct soft_code *code = compile(frame_bytes, &unsupported, why);
    cr_assert_not_null(code, "%s", why);
    run_maze(code);
    code->destroy(code);
}

/* The values of this kernel are in memory, because LLVM is not left to keep them. */
Test(frames, what_needs_too_much_in_memory_has_fewer_lanes)
{
    maze(12288);
}

Test(frames, many_ways_are_compiled_in_time)
{
    maze(0);
}

#define STACK  20480u
#define GUARD  4096u
#define BEHIND 262144u

struct trial {
    const struct soft_code *code;
    struct dev_guard guard;
    int signal;
};

static void run_block(void *arg)
{
    const struct trial *t = arg;
    (void)t->code->run_block(t->code, &l.block);
}

static void *trial_main(void *arg)
{
    struct trial *t = arg;
    cr_assert_eq(dev_guard_thread_begin(), 0);
    t->signal = dev_guard_call(&t->guard, run_block, t);
    return NULL;
}

/* A stack that is too small, with one closed page behind it: it is met although nothing needs to be
 * kept there. */
Test(frames, what_is_behind_the_stack_is_not_reached)
{
    char why[512] = "";
    bool unsupported = false;
    struct soft_code *code = compile(0, &unsupported, why);
    cr_assert_not_null(code, "%s", why);
    uint64_t *at = launch_alloc(&l, 4096);
    run(code, at, 1);
    run(code, at, 0); /* what this leaves for the next one is that there is nothing to do, which
                         takes no stack */

    uint8_t *memory = mmap(NULL, BEHIND + GUARD + STACK, PROT_READ | PROT_WRITE,
                           MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    cr_assert_neq(memory, MAP_FAILED);
    memset(memory, 0x5a, BEHIND);
    cr_assert_eq(mprotect(memory + BEHIND, GUARD, PROT_NONE), 0);
    struct trial t = { .code = code };
    pthread_attr_t attr;
    pthread_t thread;
    l.block.save = NULL;
    dev_guard_install();
    cr_assert_eq(pthread_attr_init(&attr), 0);
    cr_assert_eq(pthread_attr_setstack(&attr, memory + BEHIND + GUARD, STACK), 0);
    cr_assert_eq(pthread_create(&thread, &attr, trial_main, &t), 0);
    pthread_join(thread, NULL);
    pthread_attr_destroy(&attr);
    cr_assert_eq(t.signal, SIGSEGV);
    cr_assert(t.guard.address >= (uintptr_t)memory + BEHIND &&
              t.guard.address < (uintptr_t)memory + BEHIND + GUARD);
    for (size_t i = 0; i < BEHIND; i++)
        cr_assert_eq(memory[i], 0x5a, "byte %zu", i);
    munmap(memory, BEHIND + GUARD + STACK);
    code->destroy(code);
}

static void write_two(unsigned one, unsigned other)
{
    text[0] = 0;
    add(".version 7.0\n.target sm_75\n.address_size 64\n");
    for (unsigned k = 0; k < 2; k++)
        add(".visible .entry %s(.param .u64 at)\n{\n.reg .u64 %%q;\nld.param.u64 %%q, [at];\n"
            "st.global.u64 [%%q], %u;\nret;\n}\n",
            k ? "other" : "one", k ? other : one);
}

static uint64_t value_of(const char *entry, uint32_t threads)
{
    const struct soft_job job = { .text = text,
                                  .text_size = strlen(text),
                                  .entry = entry,
                                  .options = { .ntid = { threads, 1, 1 } } };
    const uint32_t grid[3] = { 1, 1, 1 }, block[3] = { threads, 1, 1 };
    bool unsupported;
    char why[512] = "";
    uint64_t *at = launch_alloc(&l, 4096);
    struct soft_code *code = soft_compiler_compile(compiler, &job, &unsupported, why, 512);
    cr_assert_not_null(code, "%s: %s", entry, why);
    l.params_size = 0;
    LAUNCH_PARAM(&l, void *, at);
    cr_assert_eq(launch_run(&l, code, grid, block, 0), SOFT_DONE);
    code->destroy(code);
    return *at;
}

/* The process keeps what it has read of a text for the text's other kernels, and for no other text,
 * even if that is as long. */
Test(frames, kernels_are_of_their_text)
{
    write_two(3, 4);
    cr_assert_eq(value_of("one", 32), 3);
    cr_assert_eq(value_of("other", 32), 4);
    cr_assert_eq(value_of("one", 64), 3);
    write_two(5, 6);
    cr_assert_eq(value_of("other", 32), 6);
    cr_assert_eq(value_of("one", 64), 5);
}
