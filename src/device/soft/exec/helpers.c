/*
 * Device printf and assert.
 *
 * nvcc and clang pass printf's arguments as a struct of the promoted C types in local memory:
 * 4-byte values aligned to 4, 8-byte values to 8, floats as doubles. The formatter walks the format
 * string, rebuilds each conversion with its width and precision bounded, and lets snprintf print
 * it: within those bounds glibc's snprintf neither allocates nor locks, which is what the contract
 * in helpers.h asks for.
 */
#include "device/soft/exec/helpers.h"

#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/futex.h"
#include "device/soft/ir/spaces.h"
#include "device/soft/texture/texture.h"

#define TURNS               64 /* calls of give_way until the processor is given up */
#define PRINT_WIDTH_MAX     512
#define PRINT_PRECISION_MAX 256

/* Where a helper reads a kernel's memory by generic addresses. */
struct reach {
    struct soft_block *b;
    uint32_t thread;
    bool fault;
};

/* The host's address of `size` bytes at `generic`, or NULL with the fault recorded. An address
 * inside the window but not mapped raises SIGSEGV at use, like any access of the kernel. */
static const uint8_t *reach_at(struct reach *r, uint64_t generic, uint32_t size)
{
    struct soft_block *b = r->b;
    uint32_t low = (uint32_t)generic;
    if (soft_address_is_shared(generic)) {
        uint64_t at = low & b->shared_mask;
        if (size <= b->shared_mask + 1 - at)
            return b->shared + at;
    } else if (soft_address_is_local(generic)) {
        if (size <= b->local_stride && low <= b->local_stride - size)
            return b->local + soft_local_place(b->local_stride, r->thread, low);
    } else if (generic - b->window_base <= b->window_mask - (size - 1)) {
        return (const uint8_t *)(uintptr_t)generic;
    }
    b->fault_address = generic;
    b->fault_thread = r->thread;
    r->fault = true;
    return NULL;
}

static char reach_char(struct reach *r, uint64_t generic)
{
    const uint8_t *p = reach_at(r, generic, 1);
    return p ? (char)*p : 0;
}

/* The text of one print; what does not fit is cut off. */
struct text {
    char data[SOFT_PRINT_MAX];
    uint32_t size;
};

static void text_put(struct text *t, char c)
{
    if (t->size < sizeof(t->data))
        t->data[t->size++] = c;
}

static void text_puts(struct text *t, const char *s, size_t n)
{
    size_t room = sizeof(t->data) - t->size;
    n = GM_MIN(n, room);
    memcpy(t->data + t->size, s, n);
    t->size += (uint32_t)n;
}

/* The argument struct, walked from front to back. */
struct args {
    struct reach *r;
    uint64_t base;
    uint64_t offset;
    int32_t taken;
};

static uint64_t args_next(struct args *a, uint32_t size)
{
    a->offset = (a->offset + size - 1) & ~(uint64_t)(size - 1);
    const uint8_t *p = reach_at(a->r, a->base + a->offset, size);
    a->offset += size;
    a->taken++;
    uint64_t value = 0;
    if (p)
        memcpy(&value, p, size);
    return value;
}

/* One conversion of the format. */
struct conversion {
    char flags[8];
    int width;      /* -1: none */
    int precision;  /* -1: none */
    uint32_t bytes; /* of an integer argument: 1, 2, 4, 8 */
    char kind;      /* the conversion's letter; 0: the format ended inside it */
};

static int bounded_number(struct reach *r, uint64_t *at, int limit)
{
    int value = 0;
    for (;;) {
        char c = reach_char(r, *at);
        if (c < '0' || c > '9')
            return value;
        value = GM_MIN(value * 10 + (c - '0'), limit);
        ++*at;
    }
}

static uint32_t length_modifier(struct reach *r, uint64_t *at)
{
    uint32_t bytes = 4;
    for (;;) {
        switch (reach_char(r, *at)) {
        case 'h':
            bytes = bytes == 2 ? 1 : 2;
            break;
        case 'l':
        case 'j':
        case 'z':
        case 't':
        case 'L':
            bytes = 8;
            break;
        default:
            return bytes;
        }
        ++*at;
    }
}

/* Reads what follows a '%' at *at and moves *at behind it. */
static void conversion_read(struct conversion *c, struct args *a, uint64_t *at)
{
    struct reach *r = a->r;
    size_t flags = 0;
    char ch;
    *c = (struct conversion) { .width = -1, .precision = -1 };
    while ((ch = reach_char(r, *at)) != 0 && strchr("-+ #0", ch)) {
        if (!strchr(c->flags, ch) && flags + 1 < sizeof(c->flags))
            c->flags[flags++] = ch;
        ++*at;
    }
    if (ch == '*') {
        int32_t width = (int32_t)args_next(a, 4);
        if (width < 0 && !strchr(c->flags, '-'))
            c->flags[flags++] = '-';
        c->width = (int)GM_MIN(width < 0 ? -(int64_t)width : width, PRINT_WIDTH_MAX);
        ++*at;
    } else if (ch >= '1' && ch <= '9') {
        c->width = bounded_number(r, at, PRINT_WIDTH_MAX);
    }
    if (reach_char(r, *at) == '.') {
        ++*at;
        if (reach_char(r, *at) == '*') {
            int32_t precision = (int32_t)args_next(a, 4);
            c->precision = precision < 0 ? -1 : GM_MIN(precision, PRINT_PRECISION_MAX);
            ++*at;
        } else {
            c->precision = bounded_number(r, at, PRINT_PRECISION_MAX);
        }
    }
    c->bytes = length_modifier(r, at);
    c->kind = reach_char(r, *at);
    if (c->kind)
        ++*at;
}

/* Rebuilds the conversion as a format for the host's snprintf: "%", flags, width, precision, then
 * `tail`. */
static void host_format(const struct conversion *c, const char *tail, char *out, size_t n)
{
    char width[16] = "", precision[16] = "";
    if (c->width >= 0)
        snprintf(width, sizeof(width), "%d", c->width);
    if (c->precision >= 0)
        snprintf(precision, sizeof(precision), ".%d", c->precision);
    snprintf(out, n, "%%%s%s%s%s", c->flags, width, precision, tail);
}

#pragma GCC diagnostic ignored "-Wformat-nonliteral" /* host_format() makes the formats below */

static void print_integer(struct text *t, const struct conversion *c, uint64_t value)
{
    char format[48], out[PRINT_WIDTH_MAX + PRINT_PRECISION_MAX];
    char tail[] = { 'l', 'l', c->kind, 0 };
    uint32_t drop = 64 - 8 * c->bytes;
    if (c->kind == 'd' || c->kind == 'i')
        value = (uint64_t)((int64_t)(value << drop) >> drop);
    else
        value = value << drop >> drop;
    host_format(c, tail, format, sizeof(format));
    int n = snprintf(out, sizeof(out), format, value);
    text_puts(t, out, n > 0 ? GM_MIN((size_t)n, sizeof(out) - 1) : 0);
}

static void print_double(struct text *t, const struct conversion *c, uint64_t bits)
{
    char format[48], out[PRINT_WIDTH_MAX + PRINT_PRECISION_MAX];
    char tail[] = { c->kind, 0 };
    double value;
    memcpy(&value, &bits, sizeof(value));
    host_format(c, tail, format, sizeof(format));
    int n = snprintf(out, sizeof(out), format, value);
    text_puts(t, out, n > 0 ? GM_MIN((size_t)n, sizeof(out) - 1) : 0);
}

static void print_padding(struct text *t, const struct conversion *c, size_t length)
{
    for (size_t i = length; c->width > 0 && i < (size_t)c->width; i++)
        text_put(t, ' ');
}

static void print_string(struct text *t, const struct conversion *c, struct reach *r, uint64_t at)
{
    static const char null_text[] = "(null)";
    bool left = strchr(c->flags, '-') != NULL;
    size_t limit = c->precision >= 0 ? (size_t)c->precision : SOFT_PRINT_MAX;
    size_t n = 0;
    if (at == 0)
        n = GM_MIN(sizeof(null_text) - 1, limit);
    else
        while (n < limit && !r->fault && reach_char(r, at + n))
            n++;
    if (!left)
        print_padding(t, c, n);
    for (size_t i = 0; i < n; i++)
        text_put(t, at ? reach_char(r, at + i) : null_text[i]);
    if (left)
        print_padding(t, c, n);
}

static void print_conversion(struct text *t, const struct conversion *c, struct args *a)
{
    static const char digits[] = "0123456789abcdef";
    char pointer[19];
    size_t n;
    switch (c->kind) {
    case 'd':
    case 'i':
    case 'u':
    case 'o':
    case 'x':
    case 'X':
        print_integer(t, c, args_next(a, c->bytes == 8 ? 8 : 4));
        break;
    case 'c': {
        char ch = (char)args_next(a, 4);
        bool left = strchr(c->flags, '-') != NULL;
        if (!left)
            print_padding(t, c, 1);
        text_put(t, ch);
        if (left)
            print_padding(t, c, 1);
        break;
    }
    case 'a':
    case 'A':
    case 'e':
    case 'E':
    case 'f':
    case 'F':
    case 'g':
    case 'G':
        print_double(t, c, args_next(a, 8));
        break;
    case 'p': {
        uint64_t value = args_next(a, 8);
        n = sizeof(pointer);
        do
            pointer[--n] = digits[value & 15];
        while ((value >>= 4) != 0);
        pointer[--n] = 'x';
        pointer[--n] = '0';
        print_padding(t, c, sizeof(pointer) - n);
        text_puts(t, pointer + n, sizeof(pointer) - n);
        break;
    }
    case 's':
        print_string(t, c, a->r, args_next(a, 8));
        break;
    case '%':
        text_put(t, '%');
        break;
    default: /* not a conversion: printed as it stands */
        text_put(t, '%');
        if (c->kind)
            text_put(t, c->kind);
    }
}

static int32_t helper_vprintf(struct soft_block *b, uint32_t thread, uint64_t format,
                              uint64_t arguments)
{
    struct reach r = { .b = b, .thread = thread };
    struct args a = { .r = &r, .base = arguments };
    struct text t;
    t.size = 0;
    if (format == 0)
        return -1;
    while (!r.fault && t.size < sizeof(t.data)) {
        char ch = reach_char(&r, format);
        if (ch == 0)
            break;
        format++;
        if (ch != '%') {
            text_put(&t, ch);
            continue;
        }
        struct conversion c;
        conversion_read(&c, &a, &format);
        if (!r.fault)
            print_conversion(&t, &c, &a);
    }
    if (r.fault)
        return SOFT_HELPER_FAULT;
    if (b->helpers->print && !soft_print_append(b->helpers->print, 1, t.data, t.size))
        return -1;
    return a.taken;
}

static void text_put_from(struct text *t, struct reach *r, uint64_t at)
{
    struct conversion plain = { .width = -1, .precision = 256, .kind = 's' };
    print_string(t, &plain, r, at);
}

static void helper_assert_fail(struct soft_block *b, uint32_t thread, uint64_t message,
                               uint64_t file, uint32_t line, uint64_t function)
{
    struct reach r = { .b = b, .thread = thread };
    struct text t;
    char place[160];
    uint32_t nx = GM_MAX(b->ntid[0], 1u), ny = GM_MAX(b->ntid[1], 1u);
    t.size = 0;
    text_put_from(&t, &r, file);
    int n = snprintf(place, sizeof(place), ":%u: ", line);
    text_puts(&t, place, (size_t)GM_MAX(n, 0));
    text_put_from(&t, &r, function);
    n = snprintf(place, sizeof(place), ": block: [%u,%u,%u], thread: [%u,%u,%u] Assertion `",
                 b->ctaid[0], b->ctaid[1], b->ctaid[2], thread % nx, thread / nx % ny,
                 thread / nx / ny);
    text_puts(&t, place, (size_t)GM_MAX(n, 0));
    text_put_from(&t, &r, message);
    text_puts(&t, "` failed.\n", 10);
    if (b->helpers->print)
        soft_print_append(b->helpers->print, 2, t.data, t.size);
    b->fault_thread = thread;
}

uint64_t soft_helper_wall_ns(void)
{
    struct timespec ts;
    clock_gettime(CLOCK_REALTIME, &ts);
    return (uint64_t)ts.tv_sec * GM_NS_PER_S + (uint64_t)ts.tv_nsec;
}

void soft_helper_give_way(struct soft_block *b)
{
    if (++b->turns % TURNS != 0)
        return;
    _Atomic uint32_t *call = atomic_load_explicit(&b->wanted, memory_order_relaxed);
    if (call) {
        atomic_store_explicit(&b->in_vain, true, memory_order_relaxed);
        gm_futex_ring(call);
    }
    (void)syscall(SYS_sched_yield); /* sched.h here is exec/sched.h */
}

unsigned soft_helper_isa(void)
{
#if defined(__x86_64__)
    bool v3 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") &&
              __builtin_cpu_supports("bmi2");
    if (v3 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
        __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl"))
        return 4;
    if (v3)
        return 3;
#endif
    return 1;
}

void soft_helper_mma(uint32_t a, uint32_t b, const uint32_t (*in)[SOFT_WARP],
                     uint32_t (*out)[SOFT_WARP])
{
#if defined(__x86_64__)
    const unsigned isa = soft_helper_isa();
    if (isa > 1) {
        (isa == 4 ? soft_helper_mma_v4 : soft_helper_mma_v3)(a, b, in, out);
        return;
    }
#endif
    soft_helper_mma_base(a, b, in, out);
}

static int32_t no_children(struct soft_block *b, uint32_t thread, uint64_t first, uint64_t second)
{
    return -1;
}

void soft_helpers_init(struct soft_helpers *h, struct soft_print *print)
{
    h->vprintf = helper_vprintf;
    h->assert_fail = helper_assert_fail;
    h->print = print;
    h->child_bytes = h->child_launch = no_children;
    h->mma = soft_helper_mma;
    h->texture = soft_texture_run;
    h->wall_ns = soft_helper_wall_ns;
    h->give_way = soft_helper_give_way;
}
