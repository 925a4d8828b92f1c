/*
 * A parser by recursive descent. It stops at the first mistake, and reports its line.
 */
#include "base/toml.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"

#define SEEN_MAX   4096 /* keys that a file may have */
#define ARRAYS_MAX 256  /* arrays of tables that a file may have */

/* A path of keys. The texts lie one behind the other in `storage`. */
struct path {
    unsigned depth;
    size_t used;
    size_t start[GM_TOML_DEPTH_MAX];
    char storage[GM_TOML_TEXT_MAX + 1];
};

struct reader {
    const char *at, *end;
    unsigned line;
    struct path table, key; /* the key includes its table */
    char *seen[SEEN_MAX];
    unsigned seen_count;
    struct {
        struct path name;
        unsigned last; /* number of the array's last table */
    } * arrays;
    unsigned arrays_count;
    struct gm_toml_error *error;
};

static bool fail(struct reader *r, const char *why)
{
    r->error->line = r->line;
    snprintf(r->error->why, sizeof(r->error->why), "%s", why);
    return false;
}

static int peek(const struct reader *r)
{
    return r->at < r->end ? (unsigned char)*r->at : -1;
}

static bool take(struct reader *r, char c)
{
    if (peek(r) != c)
        return false;
    r->at++;
    return true;
}

static void skip_blanks(struct reader *r)
{
    while (peek(r) == ' ' || peek(r) == '\t')
        r->at++;
}

/* --- strings ---------------------------------------------------------------------------------- */

struct text {
    size_t size;
    char data[GM_TOML_TEXT_MAX + 1];
};

static bool put(struct reader *r, struct text *t, const char *bytes, size_t n)
{
    if (n > GM_TOML_TEXT_MAX - t->size)
        return fail(r, "the text is too long");
    memcpy(t->data + t->size, bytes, n);
    t->size += n;
    t->data[t->size] = '\0';
    return true;
}

static bool put_code_point(struct reader *r, struct text *t, unsigned digits)
{
    char hex[9] = "", out[4];
    if ((size_t)(r->end - r->at) < digits)
        return fail(r, "the escape is cut short");
    memcpy(hex, r->at, digits);
    r->at += digits;
    if (strspn(hex, "0123456789abcdefABCDEF") != digits)
        return fail(r, "an escape has hexadecimal digits");
    unsigned long c = strtoul(hex, NULL, 16);
    if (c == 0 || c > 0x10ffff || (c >= 0xd800 && c < 0xe000))
        return fail(r, "the escape is no character");
    if (c < 0x80) {
        out[0] = (char)c;
        return put(r, t, out, 1);
    }
    size_t n = c < 0x800 ? 2 : c < 0x10000 ? 3 : 4;
    for (size_t i = n - 1; i > 0; i--, c >>= 6)
        out[i] = (char)(0x80 | (c & 0x3f));
    out[0] = (char)((0xf00 >> n & 0xf0) | c);
    return put(r, t, out, n);
}

static bool put_escape(struct reader *r, struct text *t)
{
    static const char letters[] = "btnfr\"\\", values[] = "\b\t\n\f\r\"\\";
    int c = peek(r);
    r->at++;
    const char *known = c > 0 ? strchr(letters, c) : NULL;
    if (known)
        return put(r, t, &values[known - letters], 1);
    if (c == 'u' || c == 'U')
        return put_code_point(r, t, c == 'u' ? 4 : 8);
    return fail(r, "the escape is unknown");
}

/* Reads a string whose first quote has been read. */
static bool read_string(struct reader *r, struct text *t, char quote)
{
    t->size = 0;
    t->data[0] = '\0';
    if (r->end - r->at >= 2 && r->at[0] == quote && r->at[1] == quote)
        return fail(r, "strings of several lines are not understood here");
    while (!take(r, quote)) {
        int c = peek(r);
        if (c < 0 || c == '\n')
            return fail(r, "the string does not end");
        if ((c < 0x20 && c != '\t') || c == 0x7f)
            return fail(r, "a string has no control characters");
        if (c == '\\' && quote == '"') {
            r->at++;
            if (!put_escape(r, t))
                return false;
            continue;
        }
        size_t n = gm_utf8_size(r->at, (size_t)(r->end - r->at));
        if (n == 0)
            return fail(r, "the text is no UTF-8");
        if (!put(r, t, r->at, n))
            return false;
        r->at += n;
    }
    return true;
}

/* --- keys ------------------------------------------------------------------------------------- */

static bool add_key(struct reader *r, struct path *p, const char *key)
{
    size_t n = strlen(key) + 1;
    if (p->depth == GM_TOML_DEPTH_MAX || n > sizeof(p->storage) - p->used)
        return fail(r, "the key is too long");
    p->start[p->depth++] = p->used;
    memcpy(p->storage + p->used, key, n);
    p->used += n;
    return true;
}

static bool read_key(struct reader *r, struct path *p)
{
    struct text t;
    do {
        skip_blanks(r);
        if (take(r, '"')) {
            if (!read_string(r, &t, '"'))
                return false;
        } else if (take(r, '\'')) {
            if (!read_string(r, &t, '\''))
                return false;
        } else {
            t.size = 0;
            while (isalnum(peek(r)) || peek(r) == '_' || peek(r) == '-') {
                if (!put(r, &t, r->at, 1))
                    return false;
                r->at++;
            }
            if (t.size == 0)
                return fail(r, "a key is missing");
        }
        if (!add_key(r, p, t.data))
            return false;
        skip_blanks(r);
    } while (take(r, '.'));
    return true;
}

static void name_path(const struct path *p, char out[GM_TOML_TEXT_MAX + 1])
{
    int n = 0;
    out[0] = '\0';
    for (unsigned i = 0; i < p->depth && n <= GM_TOML_TEXT_MAX; i++)
        n += snprintf(out + n, (size_t)(GM_TOML_TEXT_MAX + 1 - n), "%s%s", i ? "." : "",
                      p->storage + p->start[i]);
}

/* Whether the path has not been used before. `kind` tells tables and keys apart. */
static bool is_new(struct reader *r, const struct path *p, char kind)
{
    char name[GM_TOML_TEXT_MAX + 2];
    name[0] = kind;
    /* The ends of the parts count: a."b.c" is not a.b.c. */
    memcpy(name + 1, p->storage, p->used);
    for (size_t i = 1; i < p->used; i++)
        if (!name[i])
            name[i] = '\1';
    name[p->used] = '\0';
    for (unsigned i = 0; i < r->seen_count; i++)
        if (strcmp(r->seen[i], name) == 0)
            return fail(r, kind == '[' ? "the table is there twice" : "the key is there twice");
    if (r->seen_count == SEEN_MAX || !(r->seen[r->seen_count] = strdup(name)))
        return fail(r, "there are too many keys");
    r->seen_count++;
    return true;
}

/* --- values ----------------------------------------------------------------------------------- */

/* Reads a number, which may have underscores between its digits, and makes it a decimal one. */
static bool read_number(struct reader *r, struct text *t, enum gm_toml_type *type)
{
    char *end;
    t->size = 0;
    while (isalnum(peek(r)) || (peek(r) > 0 && strchr("+-._:", peek(r)))) {
        if (peek(r) == '_' && (r->at + 1 == r->end || !isxdigit((unsigned char)r->at[1]) ||
                               t->size == 0 || !isxdigit((unsigned char)r->at[-1])))
            return fail(r, "an underscore stands between digits");
        if (peek(r) != '_' && !put(r, t, r->at, 1))
            return false;
        r->at++;
    }
    t->data[t->size] = '\0';
    const char *digits = t->data + (t->data[0] == '+' || t->data[0] == '-');
    int base = strncmp(digits, "0x", 2) == 0   ? 16
               : strncmp(digits, "0o", 2) == 0 ? 8
               : strncmp(digits, "0b", 2) == 0 ? 2
                                               : 10;
    if (!isdigit((unsigned char)digits[0]))
        return fail(r, "that is no value");
    const char *dash = strchr(digits, '-');
    if (strchr(digits, ':') || (dash && dash[-1] != 'e' && dash[-1] != 'E'))
        return fail(r, "dates and times are not understood here");
    if (base == 10 && digits[0] == '0' && isdigit((unsigned char)digits[1]))
        return fail(r, "a number does not begin with 0");
    *type = base == 10 && strpbrk(digits, ".eE") ? GM_TOML_FLOAT : GM_TOML_INTEGER;
    if (*type == GM_TOML_FLOAT) {
        (void)strtod(digits, &end);
        return *end || digits[strlen(digits) - 1] == '.' ? fail(r, "that is no number") : true;
    }
    if (base != 10 && digits != t->data)
        return fail(r, "that is no number");
    errno = 0;
    long long value = strtoll(base == 10 ? t->data : digits + 2, &end, base);
    if (*end || errno || end == digits + (base == 10 ? 0 : 2))
        return fail(r, "that is no number");
    t->size = (size_t)snprintf(t->data, sizeof(t->data), "%lld", value);
    return true;
}

static bool read_word(struct reader *r, const char *word)
{
    size_t n = strlen(word);
    if ((size_t)(r->end - r->at) < n || memcmp(r->at, word, n) != 0 ||
        (r->at + n < r->end && (isalnum((unsigned char)r->at[n]) || r->at[n] == '_')))
        return false;
    r->at += n;
    return true;
}

static bool read_value(struct reader *r, struct text *t, enum gm_toml_type *type)
{
    *type = GM_TOML_STRING;
    if (take(r, '"'))
        return read_string(r, t, '"');
    if (take(r, '\''))
        return read_string(r, t, '\'');
    if (peek(r) == '[')
        return fail(r, "arrays are not understood here");
    if (peek(r) == '{')
        return fail(r, "inline tables are not understood here");
    for (int i = 0; i < 2; i++)
        if (read_word(r, i ? "true" : "false")) {
            *type = GM_TOML_BOOLEAN;
            t->size = (size_t)snprintf(t->data, sizeof(t->data), i ? "true" : "false");
            return true;
        }
    return read_number(r, t, type);
}

/* --- lines ------------------------------------------------------------------------------------ */

static bool read_end(struct reader *r)
{
    skip_blanks(r);
    if (take(r, '#'))
        while (peek(r) >= 0 && peek(r) != '\n') {
            size_t n = gm_utf8_size(r->at, (size_t)(r->end - r->at));
            if (n == 0 || ((unsigned char)*r->at < 0x20 && *r->at != '\t' && *r->at != '\r') ||
                *r->at == 0x7f)
                return fail(r, "a comment is UTF-8 without control characters");
            r->at += n;
        }
    (void)take(r, '\r');
    if (peek(r) >= 0 && !take(r, '\n'))
        return fail(r, "something follows that does not belong there");
    return true;
}

/* Returns the index of an array in `arrays`, or arrays_count. */
static unsigned find_array(const struct reader *r, const struct path *p)
{
    unsigned i = 0;
    while (i < r->arrays_count && (r->arrays[i].name.used != p->used ||
                                   memcmp(r->arrays[i].name.storage, p->storage, p->used) != 0))
        i++;
    return i;
}

static bool add_number(struct reader *r, struct path *p, unsigned number)
{
    char text[16];
    snprintf(text, sizeof(text), "%u", number);
    return add_key(r, p, text);
}

/* Adds a table to an array, which may be a new one. */
static bool add_table(struct reader *r, struct path *p)
{
    unsigned i = find_array(r, p);
    if (i < r->arrays_count)
        return add_number(r, p, ++r->arrays[i].last);
    void *more = i < ARRAYS_MAX ? reallocarray(r->arrays, i + 1, sizeof(*r->arrays)) : NULL;
    if (!more)
        return fail(r, "there are too many arrays");
    r->arrays = more;
    r->arrays[i].name = *p;
    r->arrays[i].last = 0;
    r->arrays_count++;
    return add_number(r, p, 0);
}

/* Finds where a path leads. What lies below an array is in the array's last table. */
static bool resolve(struct reader *r, const struct path *written, bool array)
{
    struct path *p = &r->table;
    memset(p, 0, sizeof(*p));
    for (unsigned i = 0; i < written->depth; i++) {
        if (!add_key(r, p, written->storage + written->start[i]))
            return false;
        const unsigned found = find_array(r, p);
        const bool last = i + 1 == written->depth;
        if (last && array) {
            if (!add_table(r, p))
                return false;
        } else if (found < r->arrays_count && !add_number(r, p, r->arrays[found].last)) {
            return false;
        }
    }
    return true;
}

static bool read_table(struct reader *r)
{
    struct path written = { .depth = 0 };
    const bool array = take(r, '[');
    if (!read_key(r, &written))
        return false;
    name_path(&written, r->error->key);
    if (!take(r, ']') || (array && !take(r, ']')))
        return fail(r, "a ] is missing");
    return resolve(r, &written, array) && is_new(r, &r->table, '[');
}

static bool read_pair(struct reader *r, gm_toml_fn *each, void *arg)
{
    struct text t;
    struct gm_toml_item item = { .line = r->line };
    r->key = r->table;
    if (!read_key(r, &r->key))
        return false;
    name_path(&r->key, r->error->key);
    if (!take(r, '='))
        return fail(r, "a = is missing");
    skip_blanks(r);
    if (!is_new(r, &r->key, '=') || !read_value(r, &t, &item.type))
        return false;
    item.text = t.data;
    item.depth = r->key.depth;
    for (unsigned i = 0; i < item.depth; i++)
        item.path[i] = r->key.storage + r->key.start[i];
    const char *why = each(arg, &item);
    return why ? fail(r, why) : true;
}

static bool read_line(struct reader *r, gm_toml_fn *each, void *arg)
{
    r->error->key[0] = '\0';
    skip_blanks(r);
    int c = peek(r);
    if (take(r, '[')) {
        if (!read_table(r))
            return false;
    } else if (c >= 0 && c != '\n' && c != '\r' && c != '#') {
        if (!read_pair(r, each, arg))
            return false;
    }
    return read_end(r);
}

int gm_toml_read(const char *text, size_t size, gm_toml_fn *each, void *arg,
                 struct gm_toml_error *error)
{
    struct reader *r = calloc(1, sizeof(*r));
    bool good = r != NULL;
    *error = (struct gm_toml_error) { .line = 0 };
    if (!r) {
        snprintf(error->why, sizeof(error->why), "out of memory");
        return -EINVAL;
    }
    r->at = text;
    r->end = text + size;
    r->error = error;
    while (good && r->at < r->end) {
        r->line++;
        good = read_line(r, each, arg);
    }
    for (unsigned i = 0; i < r->seen_count; i++)
        free(r->seen[i]);
    free(r->arrays);
    free(r);
    return good ? 0 : -EINVAL;
}
