/*
 * Reading cases and comparing what came out.
 */
#include "case.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const size_t ptx_type_size[] = { 1, 1, 2, 2, 4, 4, 8, 8, 2, 2, 4, 8 };
static const char *const type_names[] = { "u8",  "s8",  "u16", "s16",  "u32", "s32",
                                          "u64", "s64", "f16", "bf16", "f32", "f64" };
const char *const ptx_fault_name[] = { "none",    "address", "misaligned", "trap", "assert",
                                       "barrier", "pc",      "endless",    "other" };

#define ELEMENTS_MAX (1u << 20)
#define POISON       0xa5

struct reader {
    const char *at; /* of the current directive's text, line ends already removed */
    char *why;
    size_t why_size;
};

static bool complain(struct reader *r, const char *what, const char *about)
{
    snprintf(r->why, r->why_size, "%s: %s", what, about);
    return false;
}

/* The next word, or false at the end. */
static bool word(struct reader *r, char *out, size_t n)
{
    r->at += strspn(r->at, " \t");
    size_t length = strcspn(r->at, " \t");
    if (length == 0 || length >= n)
        return false;
    memcpy(out, r->at, length);
    out[length] = 0;
    r->at += length;
    return true;
}

static bool type_of(const char *name, enum ptx_type *t)
{
    char plain[8];
    snprintf(plain, sizeof(plain), "%.7s", name);
    if (plain[0] == 'b' && plain[1] != 'f')
        plain[0] = 'u';
    for (size_t k = 0; k < GM_ARRAY_LEN(type_names); k++)
        if (strcmp(plain, type_names[k]) == 0) {
            *t = (enum ptx_type)k;
            return true;
        }
    return false;
}

/* One number as the element's bytes. */
static bool number(const char *s, enum ptx_type t, uint8_t *out)
{
    char *end;
    bool bits = (s[0] == '0' && (s[1] == 'f' || s[1] == 'd') && strlen(s) > 8);
    if ((t == PTX_F32 || t == PTX_F64) && !bits) {
        double d = strtod(s, &end);
        float f = strtof(s, NULL);
        if (t == PTX_F32)
            memcpy(out, &f, 4);
        else
            memcpy(out, &d, 8);
        return *end == 0;
    }
    errno = 0;
    uint64_t v = bits          ? strtoull(s + 2, &end, 16)
                 : s[0] == '-' ? (uint64_t)strtoll(s, &end, 0)
                               : strtoull(s, &end, 0);
    memcpy(out, &v, ptx_type_size[t]);
    return *end == 0 && errno == 0;
}

/* Value `index` of START + index * STEP. */
static void step_value(enum ptx_type t, const char *start, const char *step, size_t index,
                       uint8_t *out)
{
    if (t == PTX_F32 || t == PTX_F64) {
        double d = strtod(start, NULL) + (double)index * strtod(step, NULL);
        float f = (float)d;
        memcpy(out, t == PTX_F32 ? (void *)&f : (void *)&d, ptx_type_size[t]);
        return;
    }
    uint64_t v = (uint64_t)strtoll(start, NULL, 0) + index * (uint64_t)strtoll(step, NULL, 0);
    memcpy(out, &v, ptx_type_size[t]);
}

struct data {
    uint8_t *bytes;
    bool *ignored;
    size_t count;
};

static bool data_reserve(struct data *d, enum ptx_type t, size_t count)
{
    if (count > ELEMENTS_MAX)
        return false;
    uint8_t *bytes = realloc(d->bytes, count * ptx_type_size[t] + 1);
    if (bytes)
        d->bytes = bytes;
    bool *ignored = realloc(d->ignored, (count + 1) * sizeof(bool));
    if (ignored)
        d->ignored = ignored;
    return bytes && ignored;
}

static bool data_add(struct data *d, enum ptx_type t, const char *text)
{
    if (!data_reserve(d, t, d->count + 1))
        return false;
    d->ignored[d->count] = strcmp(text, "_") == 0;
    uint8_t *at = d->bytes + d->count * ptx_type_size[t];
    memset(at, 0, ptx_type_size[t]);
    return number(d->ignored[d->count++] ? "0" : text, t, at);
}

static bool data_generate(struct reader *r, const char *how, enum ptx_type t, struct data *d)
{
    char count_text[32], a[64], b[64] = "1";
    if (!word(r, count_text, sizeof(count_text)) || !word(r, a, sizeof(a)))
        return complain(r, how, "COUNT and NUMBER expected");
    size_t count = strtoul(count_text, NULL, 0);
    if (strcmp(how, "iota") == 0) {
        const char *rest = r->at;
        if (!word(r, b, sizeof(b)) || strcmp(b, "->") == 0) {
            r->at = rest;
            strcpy(b, "1");
        }
        if (!data_reserve(d, t, count))
            return false;
        for (; d->count < count; d->count++) {
            d->ignored[d->count] = false;
            step_value(t, a, b, d->count, d->bytes + d->count * ptx_type_size[t]);
        }
        return true;
    }
    size_t period = 0;
    const char *rest;
    do {
        if (!data_add(d, t, a))
            return complain(r, how, a);
        period++;
        rest = r->at;
    } while (strcmp(how, "cycle") == 0 && word(r, a, sizeof(a)) && strcmp(a, "->") != 0);
    r->at = rest;
    if (!data_reserve(d, t, GM_MAX(count, d->count)))
        return false;
    for (; d->count < count; d->count++) {
        memcpy(d->bytes + d->count * ptx_type_size[t],
               d->bytes + (d->count - period) * ptx_type_size[t], ptx_type_size[t]);
        d->ignored[d->count] = d->ignored[d->count - period];
    }
    return true;
}

/* DATA up to the end or "->". */
static bool data_read(struct reader *r, enum ptx_type t, struct data *d)
{
    char w[128];
    const char *rest = r->at;
    *d = (struct data) { 0 };
    while (word(r, w, sizeof(w))) {
        if (strcmp(w, "->") == 0) {
            r->at = rest;
            return d->count > 0;
        }
        if (strcmp(w, "iota") == 0 || strcmp(w, "fill") == 0 || strcmp(w, "cycle") == 0) {
            if (!data_generate(r, w, t, d))
                return false;
        } else if (!data_add(d, t, w)) {
            return complain(r, "not a number", w);
        }
        rest = r->at;
    }
    return d->count > 0 || complain(r, "no data", "");
}

static bool read_arg(struct reader *r, struct ptx_case *c, const char *kind, const char *name)
{
    char type[16], arrow[8];
    struct data first = { 0 }, second = { 0 };
    if (c->arg_count == PTX_ARGS_MAX)
        return complain(r, "too many arguments", name);
    struct ptx_arg *a = &c->args[c->arg_count++];
    snprintf(a->name, sizeof(a->name), "%.31s", name);
    if (!word(r, type, sizeof(type)) || !type_of(type, &a->type))
        return complain(r, "no such type", name);
    bool ok = data_read(r, a->type, &first);
    a->count = first.count;
    a->bytes = first.count * ptx_type_size[a->type];
    a->initial = first.bytes;
    a->ignored = first.ignored;
    a->data = malloc(a->bytes + 1);
    if (!ok || !a->data)
        return ok ? false : complain(r, "bad data of", name);
    a->is_value = strcmp(kind, "value") == 0;
    a->is_checked = strcmp(kind, "out") == 0 || strcmp(kind, "inout") == 0;
    if (strcmp(kind, "out") == 0) {
        a->expected = a->initial;
        a->initial = malloc(a->bytes + 1);
        if (!a->initial)
            return false;
        memset(a->initial, POISON, a->bytes);
    } else if (strcmp(kind, "inout") == 0) {
        if (!word(r, arrow, sizeof(arrow)) || strcmp(arrow, "->") != 0 ||
            !data_read(r, a->type, &second))
            return complain(r, "no data after ->", name);
        free(a->ignored);
        a->ignored = second.ignored;
        a->expected = second.bytes;
        if (second.count != a->count)
            return complain(r, "different sizes before and after", name);
    }
    return true;
}

static bool read_dimensions(struct reader *r, uint32_t d[3])
{
    char w[16];
    for (int k = 0; k < 3; k++)
        d[k] = word(r, w, sizeof(w)) ? (uint32_t)strtoul(w, NULL, 0) : 1;
    return true;
}

static bool read_fault(struct reader *r, struct ptx_case *c)
{
    char w[32] = "";
    word(r, w, sizeof(w));
    for (size_t k = 0; k <= PTX_FAULT_OTHER; k++)
        if (strcmp(w, ptx_fault_name[k]) == 0) {
            c->fault = (enum ptx_fault)k;
            return true;
        }
    return complain(r, "no such fault", w);
}

/* One directive, "kernel: name" without the comment sign. */
static bool directive(struct ptx_case *c, char *line, char *why, size_t why_size)
{
    struct reader r = { .at = line, .why = why, .why_size = why_size };
    char key[32], w[128] = "";
    if (!word(&r, key, sizeof(key)))
        return true;
    if (strcmp(key, "in") == 0 || strcmp(key, "out") == 0 || strcmp(key, "inout") == 0 ||
        strcmp(key, "value") == 0) {
        if (!word(&r, w, sizeof(w)) || w[strlen(w) - 1] != ':')
            return true; /* prose */
        w[strlen(w) - 1] = 0;
        return read_arg(&r, c, key, w);
    }
    if (strcmp(key, "kernel:") == 0)
        return word(&r, c->kernel, sizeof(c->kernel)) || complain(&r, "no name", "kernel");
    if (strcmp(key, "grid:") == 0)
        return read_dimensions(&r, c->grid);
    if (strcmp(key, "block:") == 0)
        return read_dimensions(&r, c->block);
    if (strcmp(key, "shared:") == 0) {
        c->shared = word(&r, w, sizeof(w)) ? (uint32_t)strtoul(w, NULL, 0) : 0;
        return true;
    }
    if (strcmp(key, "tol:") == 0) {
        c->tolerance = strcmp(word(&r, w, sizeof(w)) ? w : "", "exact") == 0 ? 0 : strtod(w, NULL);
        return true;
    }
    if (strcmp(key, "fault:") == 0)
        return read_fault(&r, c);
    if (strcmp(key, "only:") == 0)
        c->only_soft = word(&r, w, sizeof(w)) && strcmp(w, "soft") == 0;
    if (strcmp(key, "skip:") == 0)
        c->skip_jit = word(&r, w, sizeof(w)) && strcmp(w, "jit") == 0;
    if (strcmp(key, "estimate:") == 0)
        c->estimate = true;
    if (strcmp(key, "print:") == 0) {
        size_t used = strlen(c->print);
        snprintf(c->print + used, sizeof(c->print) - used, "%s\n", r.at + (*r.at == ' '));
    }
    return true;
}

/* The comments at the head, continued lines joined. */
static bool read_head(struct ptx_case *c, char *why, size_t why_size)
{
    const char *at = c->text;
    bool ok = true;
    while (ok && strncmp(at, "//", 2) == 0) {
        char *line = NULL;
        size_t size = 0;
        FILE *joined = open_memstream(&line, &size);
        if (!joined)
            return false;
        bool first = true;
        do {
            size_t length = strcspn(at, "\n");
            fprintf(joined, "%.*s ", (int)(length - (first ? 2 : 3)), at + (first ? 2 : 3));
            at += length + (at[length] == '\n');
            first = false;
        } while (strncmp(at, "//+", 3) == 0);
        fclose(joined);
        for (char *end = line + strlen(line); end > line && end[-1] == ' ';)
            *--end = 0;
        ok = directive(c, line, why, why_size);
        free(line);
    }
    if (ok && !c->kernel[0]) {
        snprintf(why, why_size, "no kernel: line");
        return false;
    }
    return ok;
}

struct ptx_case *ptx_case_load(const char *path, char *why, size_t why_size)
{
    FILE *f = fopen(path, "r");
    struct ptx_case *c = calloc(1, sizeof(*c));
    size_t room = 0;
    ssize_t got = f && c ? getdelim(&c->text, &room, 0, f) : -1;
    if (f)
        fclose(f);
    if (got <= 0) {
        snprintf(why, why_size, "cannot read: %s", strerror(errno));
        ptx_case_destroy(c);
        return NULL;
    }
    c->text_size = (size_t)got;
    c->grid[0] = c->grid[1] = c->grid[2] = c->block[1] = c->block[2] = 1;
    c->block[0] = 32;
    snprintf(why, why_size, "out of memory");
    if (!read_head(c, why, why_size)) {
        ptx_case_destroy(c);
        return NULL;
    }
    return c;
}

void ptx_case_destroy(struct ptx_case *c)
{
    if (!c)
        return;
    for (size_t k = 0; k < c->arg_count; k++) {
        free(c->args[k].initial);
        free(c->args[k].expected);
        free(c->args[k].ignored);
        free(c->args[k].data);
    }
    free(c->text);
    free(c);
}

void ptx_case_reset(struct ptx_case *c)
{
    for (size_t k = 0; k < c->arg_count; k++)
        memcpy(c->args[k].data, c->args[k].initial, c->args[k].bytes);
    c->printed[0] = 0;
}

static double value_of(enum ptx_type t, const uint8_t *p)
{
    float f;
    double d;
    memcpy(&f, p, 4);
    if (t == PTX_F32)
        return (double)f;
    memcpy(&d, p, 8);
    return d;
}

static bool same(enum ptx_type t, const uint8_t *a, const uint8_t *b, double tolerance)
{
    if (memcmp(a, b, ptx_type_size[t]) == 0)
        return true;
    if (t != PTX_F32 && t != PTX_F64)
        return false;
    double x = value_of(t, a), y = value_of(t, b);
    if (isnan(x) && isnan(y))
        return true;
    return isfinite(x) && isfinite(y) && fabs(x - y) <= tolerance * fmax(fabs(x), fabs(y));
}

static void describe(enum ptx_type t, const uint8_t *p, char *out, size_t n)
{
    uint64_t bits = 0;
    memcpy(&bits, p, ptx_type_size[t]);
    if (t == PTX_F32 || t == PTX_F64)
        snprintf(out, n, "%.9g (0x%" PRIx64 ")", value_of(t, p), bits);
    else
        snprintf(out, n, "0x%" PRIx64, bits);
}

bool ptx_case_check(const struct ptx_case *c, enum ptx_fault fault, char *why, size_t why_size)
{
    if (fault != c->fault) {
        snprintf(why, why_size, "fault %s instead of %s", ptx_fault_name[fault],
                 ptx_fault_name[c->fault]);
        return false;
    }
    if (fault != PTX_FAULT_NONE && fault != PTX_FAULT_ASSERT)
        return true; /* memory is undefined then */
    if (strcmp(c->print, c->printed) != 0) {
        snprintf(why, why_size, "printed \"%s\" instead of \"%s\"", c->printed, c->print);
        return false;
    }
    for (size_t k = 0; k < c->arg_count; k++) {
        const struct ptx_arg *a = &c->args[k];
        size_t size = ptx_type_size[a->type];
        for (size_t e = 0; a->is_checked && e < a->count; e++) {
            const uint8_t *got = a->data + e * size, *expected = a->expected + e * size;
            char x[64], y[64];
            if (a->ignored[e] || same(a->type, got, expected, c->tolerance))
                continue;
            describe(a->type, got, x, sizeof(x));
            describe(a->type, expected, y, sizeof(y));
            snprintf(why, why_size, "%s[%zu] is %s instead of %s", a->name, e, x, y);
            return false;
        }
    }
    return true;
}
