/*
 * A tokenizer and two productions: ".entry NAME ( .param ... )" and, outside of all braces,
 * ".global|.const
 * ... NAME [N][M]". Everything else is skipped.
 */
#include "device/null/scan.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "device/attributes.h"

#define NAME_MAX_CHARS 1024u
#define PARAMS_MAX     256u

struct scan {
    const char *at, *end;
    char token[NAME_MAX_CHARS];
    struct dev_modinfo info;
    uint64_t globals_size, globals_align;
    uint32_t ptx_version, target;
};

static void skip_blanks(struct scan *s)
{
    while (s->at < s->end) {
        if (isspace((unsigned char)*s->at)) {
            s->at++;
        } else if (s->end - s->at >= 2 && s->at[0] == '/' && s->at[1] == '/') {
            while (s->at < s->end && *s->at != '\n')
                s->at++;
        } else if (s->end - s->at >= 2 && s->at[0] == '/' && s->at[1] == '*') {
            s->at += 2;
            while (s->at < s->end && !(s->end - s->at >= 2 && s->at[0] == '*' && s->at[1] == '/'))
                s->at++;
            s->at = s->end - s->at >= 2 ? s->at + 2 : s->end;
        } else {
            break;
        }
    }
}

static bool is_word(char c)
{
    return isalnum((unsigned char)c) || c == '_' || c == '$' || c == '%';
}

/* A word with a possible leading dot, a quoted string (as its first quote), or one other character.
 */
static bool next(struct scan *s)
{
    skip_blanks(s);
    if (s->at >= s->end)
        return false;
    const char *from = s->at++;
    if (*from == '"') {
        while (s->at < s->end && *s->at != '"')
            s->at += *s->at == '\\' && s->end - s->at > 1 ? 2 : 1;
        if (s->at < s->end)
            s->at++;
        strcpy(s->token, "\"");
        return true;
    }
    if (is_word(*from) || *from == '.')
        while (s->at < s->end && is_word(*s->at))
            s->at++;
    size_t n = GM_MIN((size_t)(s->at - from), sizeof(s->token) - 1);
    memcpy(s->token, from, n);
    s->token[n] = '\0';
    return true;
}

static bool is(const struct scan *s, const char *token)
{
    return strcmp(s->token, token) == 0;
}

/* Bytes of ".u32", ".b8", ".f64" ...; 0 if it is no type. */
static uint32_t type_size(const char *t)
{
    if (t[0] != '.' || !strchr("busf", t[1]) || !isdigit((unsigned char)t[2]))
        return 0;
    unsigned long bits = strtoul(t + 2, NULL, 10);
    return bits >= 8 && bits <= 128 && gm_is_pow2(bits) ? (uint32_t)bits / 8 : 0;
}

/* "(.managed)", "(.unified(1, 2))" and the like. */
static bool attribute(struct scan *s, bool *managed)
{
    unsigned depth = 0;
    while (next(s)) {
        depth += is(s, "(");
        *managed |= is(s, ".managed");
        if (is(s, ")") && --depth == 0)
            return true;
        if (depth == 0)
            return false;
    }
    return false;
}

/* One declaration from behind ".param" or ".global" to the token after its name and dimensions:
 * size, alignment, name, and whether it is managed. */
static bool declaration(struct scan *s, char *name, uint64_t *size, uint64_t *align, bool *managed)
{
    uint64_t element = 0, lanes = 1, count = 1, explicit_align = 0;
    name[0] = '\0';
    *managed = false;
    while (next(s)) {
        if (is(s, ".align")) {
            if (!next(s))
                return false;
            explicit_align = strtoul(s->token, NULL, 10);
        } else if (is(s, ".v2") || is(s, ".v4")) {
            lanes = (uint64_t)(s->token[2] - '0');
        } else if (is(s, ".attribute")) {
            if (!attribute(s, managed))
                return false;
        } else if (type_size(s->token)) {
            element = type_size(s->token);
        } else if (s->token[0] != '.') {
            break;
        }
        /* .ptr, .space and their kind say nothing about the layout. */
    }
    if (!element || !(is_word(s->token[0])))
        return false;
    memcpy(name, s->token, strlen(s->token) + 1);
    while (next(s) && is(s, "[")) {
        if (!next(s))
            return false;
        uint64_t n = strtoul(s->token, NULL, 0);
        if (__builtin_mul_overflow(count, n, &count) || count > (1ull << 40) || !next(s))
            return false;
    }
    *size = element * lanes * count;
    *align =
        gm_is_pow2(explicit_align) && explicit_align <= 4096 ? explicit_align : element * lanes;
    return true;
}

static bool entry(struct scan *s)
{
    struct dev_param params[PARAMS_MAX];
    char name[NAME_MAX_CHARS], ignored[NAME_MAX_CHARS];
    uint32_t count = 0;
    uint64_t bytes = 0;

    if (!next(s) || !is_word(s->token[0]))
        return false;
    memcpy(name, s->token, sizeof(name));
    if (!next(s))
        return false;
    if (is(s, "(")) {
        while (next(s) && is(s, ".param")) {
            uint64_t size, align;
            bool managed;
            if (count == PARAMS_MAX || !declaration(s, ignored, &size, &align, &managed) ||
                !gm_align_up(bytes, align, &bytes) || size > DEV_PARAM_BYTES ||
                bytes + size > DEV_PARAM_BYTES)
                return false;
            params[count++] =
                (struct dev_param) { .offset = (uint32_t)bytes, .size = (uint32_t)size };
            bytes += size;
            if (!is(s, ","))
                break;
        }
        if (!is(s, ")"))
            return false;
    }
    const struct wire_function_info info = {
        .name = name,
        .param_bytes = (uint32_t)bytes,
        .max_threads = DEV_BLOCK_THREADS,
        .ptx_version = s->target,
        .binary_version = DEV_CAPABILITY,
    };
    dev_modinfo_function(&s->info, &info, params, count);
    return true;
}

static bool variable(struct scan *s, bool is_const)
{
    char name[NAME_MAX_CHARS];
    uint64_t size, align, end;
    bool managed;
    if (!declaration(s, name, &size, &align, &managed) ||
        !gm_align_up(s->globals_size, align, &s->globals_size) ||
        __builtin_add_overflow(s->globals_size, size, &end) || end > (1ull << 40))
        return false;
    const struct wire_global_info info = { .name = name,
                                           .offset = s->globals_size,
                                           .size = size,
                                           .is_const = is_const,
                                           .is_managed = managed };
    s->globals_size = end;
    s->globals_align = GM_MAX(s->globals_align, align);
    dev_modinfo_global(&s->info, &info);
    return true;
}

/* "8.5" is 85, "sm_75" is 75. */
static void head(struct scan *s)
{
    if (is(s, ".version") && next(s)) {
        s->ptx_version = (uint32_t)strtoul(s->token, NULL, 10) * 10;
        if (next(s) && s->token[0] == '.')
            s->ptx_version += (uint32_t)strtoul(s->token + 1, NULL, 10);
    } else if (is(s, ".target") && next(s) && strncmp(s->token, "sm_", 3) == 0) {
        s->target = (uint32_t)strtoul(s->token + 3, NULL, 10);
    }
}

int dev_null_scan(const char *text, size_t size, struct dev_module_info *out, uint32_t *functions)
{
    struct scan *s = calloc(1, sizeof(*s));
    if (!s)
        return GM_CUDA_OUT_OF_MEMORY;
    s->at = text;
    s->end = text + strnlen(text, size);
    s->globals_align = 256;
    dev_modinfo_init(&s->info);

    unsigned depth = 0;
    bool sane = true, external = false;
    while (sane && next(s)) {
        if (is(s, "{"))
            depth++;
        else if (is(s, "}"))
            depth -= depth > 0;
        else if (is(s, ".version") || is(s, ".target"))
            head(s);
        else if (depth == 0 && is(s, ".extern"))
            external = true;
        else if (depth == 0 && is(s, ".entry"))
            sane = entry(s);
        else if (depth == 0 && !external && (is(s, ".global") || is(s, ".const")))
            sane = variable(s, is(s, ".const"));
        else if (is(s, ";"))
            external = false;
    }
    int r = GM_CUDA_INVALID_PTX;
    if (!sane || s->ptx_version == 0) {
        unsigned line = 1;
        for (const char *p = text; p < s->at; p++)
            line += *p == '\n';
        if (asprintf(&out->log, "%u:1: %s", line,
                     s->ptx_version ? "cannot make sense of this declaration"
                                    : "not PTX: no .version") < 0)
            out->log = NULL;
        dev_modinfo_drop(&s->info);
    } else {
        *functions = s->info.function_count;
        r = dev_modinfo_finish(&s->info, s->ptx_version, s->target, s->globals_size,
                               s->globals_align, out);
    }
    free(s);
    return r;
}
