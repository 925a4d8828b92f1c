/*
 * Writes reports in the manner of NVIDIA's compute-sanitizer. Each place (kind, kernel, lines) is
 * told once, with the thread that came there first; afterwards it is only counted.
 */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/attr.h"
#include "device/soft/check/check.h"
#include "device/soft/ir/ir.h"
#include "transport/output.h"

#define P "========= "

struct text {
    char data[TP_OUTPUT_TEXT_MAX];
    size_t size;
};

static void GM_PRINTF(2, 3) put(struct text *t, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    int n = vsnprintf(t->data + t->size, sizeof(t->data) - t->size, fmt, ap);
    va_end(ap);
    if (n > 0)
        t->size = GM_MIN(t->size + (size_t)n, sizeof(t->data) - 1);
}

static const char *space_name(uint8_t space)
{
    return space == IR_SPACE_SHARED  ? "__shared__"
           : space == IR_SPACE_LOCAL ? "__local__"
                                     : "__global__";
}

/* Writes a kernel's name without its parameter types, if it has the form _Z3foo... or
 * _ZN2ns3fooE...; other names as they are. */
static void put_kernel(struct text *t, const char *name)
{
    const char *at = name + 2;
    if (strncmp(name, "_Z", 2) != 0 || (*at != 'N' && (*at < '1' || *at > '9'))) {
        put(t, "%.200s", name);
        return;
    }
    bool nested = *at == 'N';
    at += nested;
    for (const char *colons = ""; *at >= '1' && *at <= '9'; colons = "::") {
        char *word;
        unsigned long n = strtoul(at, &word, 10);
        if (n > strlen(word))
            break;
        put(t, "%s%.*s", colons, (int)GM_MIN(n, 200ul), word);
        at = word + n;
        if (!nested)
            break;
    }
    if (*at == 'I')
        put(t, "<>");
}

/* "kernel in file:line (PTX line n)" */
static void put_place(struct text *t, const struct soft_check_launch *l, uint32_t line)
{
    char source[400];
    put_kernel(t, l->kernel);
    if (soft_check_source(l->text, l->text_size, line, source, sizeof(source)))
        put(t, " in %s", source);
    put(t, " (PTX line %u)", line);
}

static void put_thread(struct text *t, const struct soft_check_launch *l, uint32_t thread)
{
    put(t, "thread (%u,%u,%u)", thread % l->block[0], thread / l->block[0] % l->block[1],
        thread / l->block[0] / l->block[1]);
}

static void put_block(struct text *t, const struct soft_check_launch *l, uint32_t block)
{
    put(t, " in block (%u,%u,%u)\n", block % l->grid[0], block / l->grid[0] % l->grid[1],
        block / l->grid[0] / l->grid[1]);
}

static void put_range(struct text *t, uint64_t at, const struct soft_check_range *r,
                      const char *which)
{
    const char *where = at < r->base ? "before" : at < r->base + r->size ? "inside" : "after";
    uint64_t bytes = at < r->base             ? r->base - at
                     : at < r->base + r->size ? at - r->base
                                              : at - (r->base + r->size) + 1;
    put(t, P "    and is %llu bytes %s %s at 0x%llx of size %llu bytes\n",
        (unsigned long long)bytes, where, which, (unsigned long long)r->base,
        (unsigned long long)r->size);
}

/* Writes which allocation contains the address, contained it lately, or lies next to it. Lock
 * held. */
static void put_neighbour(struct text *t, const struct soft_check *c, uint64_t at, bool may_be_gone)
{
    for (uint32_t i = 0; may_be_gone && i < GM_MIN(c->freed_next, SOFT_CHECK_FREED); i++) {
        const struct soft_check_range *r = &c->freed[(c->freed_next - 1 - i) % SOFT_CHECK_FREED];
        if (at - r->base < r->size) {
            put_range(t, at, r, "memory that was freed,");
            return;
        }
    }
    const struct soft_check_range *nearest = NULL;
    uint64_t least = UINT64_MAX;
    for (uint32_t i = 0; i < c->range_count; i++) {
        const struct soft_check_range *r = &c->ranges[i];
        uint64_t away = at < r->base             ? r->base - at
                        : at - r->base < r->size ? 0
                                                 : at - (r->base + r->size) + 1;
        if (away < least) {
            least = away;
            nearest = r;
        }
    }
    if (nearest)
        put_range(t, at, nearest, "the nearest allocation");
}

static void put_access(struct text *t, const struct soft_check *c,
                       const struct soft_check_finding *f, const struct soft_check_launch *l)
{
    const char *verb = f->is_atomic ? "atomic" : f->is_store ? "write" : "read";
    bool global = f->space != IR_SPACE_SHARED && f->space != IR_SPACE_LOCAL;
    if (f->kind == SOFT_CHECK_UNINIT)
        put(t, P "Uninitialized %s memory read of size %u bytes\n", space_name(f->space), f->size);
    else
        put(t, P "Invalid %s %s of size %u bytes\n", space_name(f->space), verb, f->size);
    put(t, P "    at ");
    put_place(t, l, f->line);
    put(t, "\n" P "    by ");
    put_thread(t, l, f->thread);
    put_block(t, l, f->block);
    const char *what = f->kind == SOFT_CHECK_UNINIT       ? "was never written"
                       : f->kind == SOFT_CHECK_MISALIGNED ? "is misaligned"
                                                          : "is out of bounds";
    put(t, P "    Address 0x%llx %s\n", (unsigned long long)f->address, what);
    if (global && f->kind != SOFT_CHECK_MISALIGNED)
        put_neighbour(t, c, f->address, f->kind == SOFT_CHECK_BOUNDS);
}

static void put_race(struct text *t, const struct soft_check_finding *f,
                     const struct soft_check_launch *l)
{
    static const char *const hazards[] = { [SOFT_CHECK_RACE_RAW] = "read after write",
                                           [SOFT_CHECK_RACE_WAR] = "write after read",
                                           [SOFT_CHECK_RACE_WAW] = "write after write" };
    put(t, P "Race reported between %s access at ", f->other_is_store ? "Write" : "Read");
    put_place(t, l, f->other_line);
    put(t, "\n" P "    and %s access at ", f->is_store ? "Write" : "Read");
    put_place(t, l, f->line);
    put(t, "\n" P "    by ");
    put_thread(t, l, f->other_thread);
    put(t, " and ");
    put_thread(t, l, f->thread);
    put_block(t, l, f->block);
    put(t, P "    on __shared__ memory at 0x%llx (%s)\n", (unsigned long long)f->address,
        hazards[f->kind]);
}

static void put_barrier(struct text *t, const struct soft_check_finding *f,
                        const struct soft_check_launch *l)
{
    const char *what = f->kind == SOFT_CHECK_BARRIER_SPLIT ? "Divergent thread(s) in warp"
                       : f->kind == SOFT_CHECK_BARRIER_MASK
                           ? "Invalid arguments: the thread is not in its own mask"
                           : "Divergent thread(s) in block: the barrier can never complete";
    put(t, P "Barrier error detected. %s\n" P "    at ", what);
    put_place(t, l, f->line);
    put(t, "\n" P "    by ");
    put_thread(t, l, f->thread);
    put_block(t, l, f->block);
}

static uint64_t hash_text(const char *s, uint64_t h)
{
    for (; *s; s++)
        h = (h ^ (unsigned char)*s) * 0x100000001b3ull;
    return h;
}

/* True if the place is new, or if there is no memory to remember it. Lock held. */
static bool place_enter(struct soft_check *c, uint64_t key)
{
    for (uint32_t i = 0; i < c->place_count; i++)
        if (c->places[i].key == key)
            return false;
    if (c->place_count == c->place_room) {
        uint32_t room = GM_MAX(c->place_room * 2, 64u);
        void *grown = realloc(c->places, room * sizeof(*c->places));
        if (!grown)
            return true;
        c->places = grown;
        c->place_room = room;
    }
    c->places[c->place_count++].key = key;
    return true;
}

/* A key for the place in the source. Compilers make several instructions from one place, and a race
 * is found from both of its sides; each counts as the same place. */
static uint64_t source_key(const struct soft_check_finding *f, const struct soft_check_launch *l)
{
    char text[2][400];
    const uint32_t lines[2] = { f->line, f->other_line };
    bool race = f->kind >= SOFT_CHECK_RACE_RAW && f->kind <= SOFT_CHECK_RACE_WAW;
    for (int i = 0; i < 2; i++)
        if (!soft_check_source(l->text, l->text_size, lines[i], text[i], sizeof(text[i])))
            (void)snprintf(text[i], sizeof(text[i]), "%u", lines[i]);
    bool turned = race && strcmp(text[0], text[1]) > 0;
    uint64_t h = race ? SOFT_CHECK_RACE_RAW
                      : (uint64_t)f->kind << 16 | (uint64_t)f->space << 8 |
                            (uint64_t)f->is_store << 1 | f->is_atomic;
    h = hash_text(l->kernel, h);
    h = hash_text(text[turned], h);
    return hash_text(text[!turned], h);
}

static void report_one(struct soft_check *c, const struct soft_check_finding *f, uint64_t times,
                       const struct soft_check_launch *l, struct tp_output *out)
{
    struct text t;
    t.size = 0;
    c->times += times;
    if (!place_enter(c, hash_text(l->kernel, f->key)) || !place_enter(c, source_key(f, l)) ||
        ++c->errors > SOFT_CHECK_SHOWN)
        return;
    if (f->kind <= SOFT_CHECK_UNINIT)
        put_access(&t, c, f, l);
    else if (f->kind <= SOFT_CHECK_RACE_WAW)
        put_race(&t, f, l);
    else
        put_barrier(&t, f, l);
    if (times > 1)
        put(&t, P "    %llu times in this launch\n", (unsigned long long)times);
    put(&t, P "\n");
    if (c->errors == SOFT_CHECK_SHOWN)
        put(&t, P "Further errors are counted, and not shown\n");
    (void)tp_output_write(out, TP_OUTPUT_REPORT, t.data, t.size);
}

static int by_line(const void *a, const void *b)
{
    const struct soft_check_finding *const *x = a, *const *y = b;
    return (*x)->line < (*y)->line ? -1 : (*x)->line > (*y)->line;
}

void soft_check_report(struct soft_check *c, struct soft_check_log *log,
                       const struct soft_check_launch *l, struct tp_output *out)
{
    struct soft_check_finding *found[SOFT_CHECK_FINDINGS];
    size_t n = 0;
    for (size_t i = 0; i < SOFT_CHECK_FINDINGS; i++)
        if (__atomic_load_n(&log->findings[i].times, __ATOMIC_ACQUIRE))
            found[n++] = &log->findings[i];
    if (n == 0)
        return;
    qsort(found, n, sizeof(*found), by_line);
    pthread_mutex_lock(&c->lock);
    for (size_t i = 0; i < n; i++) {
        uint64_t times = __atomic_exchange_n(&found[i]->times, 0, __ATOMIC_ACQUIRE);
        if (times)
            report_one(c, found[i], times, l, out);
    }
    c->times += __atomic_exchange_n(&log->overflow, 0, __ATOMIC_RELAXED);
    pthread_mutex_unlock(&c->lock);
}
