/*
 * What NVIDIA's compiler accepts and clang does not, put right in the preprocessor's output:
 *   kernel << <1, 32 >> >()         launches with spaces in their brackets
 *   #define UNROLL #pragma unroll   directives in macros; they need nothing but to be read again
 *   asm("mov.u32 %0, %smid;" : ..   one % before a letter
 *   return gridDim;                 a built-in variable as the value that it is for nvcc
 *   extern const dim3 blockDim;     its declaration (cuRAND's header curand_mtgp32_kernel.h)
 *   template __global__ void f<int>();  under a pragma that makes functions the host's and the
 *                                   device's, which nvcc's does not do to kernels
 */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cudart/cc/cc.h"

/* Behind the literal that begins at `at`, if one does. */
static char *skip_literal(const char *text, char *at)
{
    if (*at == '"' && at > text && at[-1] == 'R') {
        char *open = strchr(at, '(');
        if (!open || open - at > 17)
            return at + 1;
        char end[24];
        (void)snprintf(end, sizeof(end), ")%.*s\"", (int)(open - at - 1), at + 1);
        char *close = strstr(open, end);
        return close ? close + strlen(end) : at + strlen(at);
    }
    if (*at != '"' && (*at != '\'' || (at > text && isxdigit((unsigned char)at[-1]))))
        return at;
    char quote = *at++;
    while (*at && *at != quote && *at != '\n')
        at += at[0] == '\\' && at[1] ? 2 : 1;
    return *at == quote ? at + 1 : at;
}

/* Behind the third of three characters `c` with nothing but spaces between them; NULL: they do not
 * begin at `at`. */
static char *three(char *at, char c)
{
    for (unsigned n = 0; n < 3; n++, at++) {
        at += n ? strspn(at, " \t\n") : 0;
        if (*at != c)
            return NULL;
    }
    return at;
}

/* Moves the spaces between three brackets behind them; true: there were any. */
static bool close_up(char *at, char *end)
{
    char c = *at, *to = at + 3;
    char spaces[64];
    size_t between = (size_t)(end - at) - 3, n = 0;
    if (!between || between > sizeof(spaces))
        return false;
    for (char *from = at; from < end; from++)
        if (*from != c)
            spaces[n++] = *from;
    memset(at, c, 3);
    memcpy(to, spaces, n);
    return true;
}

/* The brackets that end the launch whose configuration begins at `at`; NULL: it is none. */
static char *find_end(const char *text, char *at)
{
    int depth = 0;
    while (*at && depth >= 0 && (depth || *at != ';')) {
        char *behind = skip_literal(text, at);
        if (behind != at) {
            at = behind;
            continue;
        }
        depth += strchr("([{", *at) ? 1 : strchr(")]}", *at) ? -1 : 0;
        char *end = depth ? NULL : three(at, '>');
        if (end && end[strspn(end, " \t\n")] == '(')
            return at;
        at++;
    }
    return NULL;
}

const char *cc_before_spaces(const char *text, const char *at)
{
    while (at > text && isspace((unsigned char)at[-1]))
        at--;
    return at;
}

static bool after_word(const char *text, const char *at, const char *word)
{
    size_t length = strlen(word);
    at = cc_before_spaces(text, at);
    return (size_t)(at - text) >= length && memcmp(at - length, word, length) == 0;
}

bool cc_in_word(char c)
{
    return isalnum((unsigned char)c) || c == '_';
}

/* Whether the comma before `at` separates values: a bracket that is no block's is open, and no
 * statement has begun since. */
static bool among_values(const char *text, const char *at)
{
    for (int depth = 0; at > text && at[-1] != ';' && depth <= 0;) {
        at--;
        depth += strchr("({", *at) ? 1 : strchr(")}", *at) ? -1 : 0;
        const char *before = cc_before_spaces(text, at);
        if (depth > 0)
            return *at == '(' || (before > text && strchr("=(,", before[-1]));
    }
    return false;
}

/* The length of the word at `at` if it is one of the names, or 0. */
static size_t name_at(const char *at, const char *const *names, size_t count)
{
    size_t length = 0;
    for (size_t k = 0; k < count; k++)
        if (strncmp(at, names[k], strlen(names[k])) == 0)
            length = strlen(names[k]);
    return length && !cc_in_word(at[length]) ? length : 0;
}

static const char *const builtins[] = { "threadIdx", "blockIdx", "blockDim", "gridDim" };

/* The end, at its semicolon, of a declaration of a built-in variable that begins at `at`; NULL:
 * there is none. */
static char *find_declaration(const char *text, char *at)
{
    static const char *const words[] = { "extern" }, *const more[] = { "const", "dim3", "uint3" };
    size_t length = at > text && cc_in_word(at[-1]) ? 0 : name_at(at, words, 1);
    if (!length)
        return NULL;
    for (; length; length = name_at(at, more, 3))
        at += length + strspn(at + length, " \t\n");
    length = name_at(at, builtins, sizeof(builtins) / sizeof(*builtins));
    at += length + strspn(at + length, " \t\n");
    return length && *at == ';' ? at : NULL;
}

/* Behind the name of a built-in variable that is used as a whole, not declared, at `at`; NULL:
 * there is none. A declaration has a type or, in a list, no open bracket before the name. */
static char *find_value(const char *text, char *at)
{
    if (at > text && cc_in_word(at[-1]))
        return NULL;
    size_t length = name_at(at, builtins, sizeof(builtins) / sizeof(*builtins));
    char *end = at + length;
    char next = end[strspn(end, " \t\n")];
    if (!length || !next || !strchr(";),:}", next))
        return NULL;
    const char *before = cc_before_spaces(text, at);
    if (before == text)
        return NULL;
    bool used = strchr("(=?:{", before[-1]) ||
                (before[-1] == ',' && next != ';' && among_values(text, before - 1)) ||
                (before < at && after_word(text, before, "return"));
    return used ? end : NULL;
}

/* What has been read of the text, and what becomes of it. */
struct respelling {
    char *text, *at;
    char *out;
    size_t size;
    bool changed;
    bool pragma; /* force_cuda_host_device is in the text */
};

static void copy_until(struct respelling *r, const char *end)
{
    memcpy(r->out + r->size, r->at, (size_t)(end - r->at));
    r->size += (size_t)(end - r->at);
    r->at += end - r->at;
}

/* The end of the literals that begin at `at`, with spaces and line markers between them. */
static char *skip_literals(const char *text, char *at)
{
    for (char *next = at; *next == '"'; next += strspn(next, " \t\n")) {
        at = next = skip_literal(text, next);
        while (next[strspn(next, " \t\n")] == '#' && strchr(next, '\n'))
            next = strchr(next + strspn(next, " \t\n"), '\n');
    }
    return at;
}

/* What the text of an asm statement goes on with: if its literal ends at `at`, the next one. */
static const char *go_on(const char *at)
{
    const char *next = at + 1 + strspn(at + 1, " \t\n");
    return at[0] == '"' && next[0] == '"' ? next + 1 : at;
}

/* Copies the text of an asm statement that has operands. */
static void copy_asm(struct respelling *r, const char *end)
{
    while (r->at < end) {
        const char *next = memchr(r->at, '%', (size_t)(end - r->at));
        copy_until(r, next && next + 2 < end ? next + 1 : end);
        if (r->at >= end)
            return;
        next = go_on(r->at);
        bool letter = isalpha((unsigned char)*next) || *next == '_';
        if (letter && !isdigit((unsigned char)next[1]) && next[1] != '[') {
            r->out[r->size++] = '%';
            r->changed = true;
        }
        copy_until(r, r->at + 1);
    }
}

/* Whether the bracket before `at` is that of an asm statement. */
static bool in_asm(const char *text, const char *at)
{
    static const char *const words[] = { "asm", "__asm__", "__asm", "volatile", "__volatile__" };
    at = cc_before_spaces(text, at);
    bool found = false;
    for (size_t k = 0; at > text && at[-1] == '(' && k < sizeof(words) / sizeof(*words); k++)
        found |= after_word(text, at - 1, words[k]);
    return found;
}

static void put(struct respelling *r, const char *text)
{
    memcpy(r->out + r->size, text, strlen(text));
    r->size += strlen(text);
}

/* Where the body of the kernel that is declared at `at` begins, or its declaration ends. */
static char *find_body(const char *text, char *at)
{
    for (int depth = 0; *at && (depth > 0 || !strchr("{;", *at));) {
        char *behind = skip_literal(text, at);
        depth += behind != at ? 0 : strchr("([{", *at) ? 1 : strchr(")]}", *at) ? -1 : 0;
        at = behind != at ? behind : at + 1;
    }
    return at;
}

/* Copies a kernel's head, in which force_cuda_host_device does not hold; false: that is not next.
 */
static bool copy_kernel(struct respelling *r)
{
    static const char global[] = "__attribute__((global))";
    char *body = NULL;
    if (r->pragma && strncmp(r->at, global, sizeof(global) - 1) == 0)
        body = find_body(r->text, r->at);
    if (!body || !*body)
        return false;
    put(r, "_Pragma(\"clang force_cuda_host_device end\") ");
    copy_until(r, body + 1);
    put(r, " _Pragma(\"clang force_cuda_host_device begin\")");
    return r->changed = true;
}

/* Copies what clang would read otherwise; false: that is not next. */
static bool copy_changed(struct respelling *r)
{
    if (copy_kernel(r))
        return true;
    char *open = three(r->at, '<'), *close = NULL;
    if (open && (r->at == r->text || (r->at[-1] != '<' && !after_word(r->text, r->at, "operator"))))
        close = find_end(r->text, open);
    if (close) {
        r->changed |= close_up(r->at, open);
        r->changed |= close_up(close, three(close, '>'));
        copy_until(r, r->at + 3);
        return true;
    }
    char *declared = find_declaration(r->text, r->at);
    if (declared) {
        r->at = declared;
        return r->changed = true;
    }
    char *value = find_value(r->text, r->at);
    if (value) {
        put(r, "gmux_value(");
        copy_until(r, value);
        put(r, ")");
        return r->changed = true;
    }
    if (*r->at != '"' || !in_asm(r->text, r->at))
        return false;
    char *end = skip_literals(r->text, r->at);
    if (end[strspn(end, " \t\n")] == ':')
        copy_asm(r, end);
    else
        copy_until(r, end);
    return true;
}

bool cc_respell(const char *path)
{
    struct respelling r = { 0 };
    size_t size;
    bool again = false;
    r.text = r.at = cc_read(path, &size);
    r.out = r.text ? malloc(5 * size + 1) : NULL;
    if (!r.out)
        cc_fail("%s: cannot be read", path);
    r.pragma = strstr(r.text, "#pragma clang force_cuda_host_device begin");
    while (*r.at) {
        bool line_begins = r.at == r.text || r.at[-1] == '\n';
        char *behind = skip_literal(r.text, r.at);
        if (line_begins && r.at[strspn(r.at, " \t")] == '#') {
            again |= *r.at != '#';
            copy_until(&r, r.at + strcspn(r.at, "\n"));
        } else if (!copy_changed(&r)) {
            copy_until(&r, behind > r.at ? behind : r.at + 1);
        }
    }
    FILE *f = r.changed ? fopen(path, "we") : NULL;
    if (r.changed && (!f || fwrite(r.out, 1, r.size, f) != r.size || fclose(f) != 0))
        cc_fail("%s: cannot be written", path);
    free(r.text);
    free(r.out);
    return r.changed || again;
}
