/*
 * Scopes. All visible names form one list, inner scopes last. They are found through hash buckets
 * whose chains begin with the newest name, so leaving a scope shortens the list and the chains.
 *
 * "%r<100>" is one name, the prefix. "%r42" is looked up as it stands and as "%r", and the newer of
 * the two wins, so that an inner scope can hide one element of an outer range.
 */
#define XXH_INLINE_ALL
#include <xxhash.h>

#include <sys/random.h>

#include "base/clock.h"
#include "device/soft/ptx/parse.h"

static uint32_t name_hash(const struct ptx_names *n, const char *text, uint32_t length)
{
    return (uint32_t)XXH3_64bits_withSeed(text, length, n->seed);
}

bool ptx_names_init(struct ptx_names *n)
{
    if (getrandom(&n->seed, sizeof(n->seed), GRND_NONBLOCK) != (ssize_t)sizeof(n->seed))
        n->seed = gm_now_ns();
    n->bucket_count = 256;
    n->buckets = malloc(n->bucket_count * sizeof(*n->buckets));
    if (n->buckets)
        memset(n->buckets, 0xff, n->bucket_count * sizeof(*n->buckets));
    return n->buckets != NULL;
}

void ptx_names_finish(struct ptx_names *n)
{
    free(n->list);
    free(n->buckets);
}

/* A range and a single register may have the same text ("%r<4>" and "%r"); `range` says which one
 * is meant. */
static struct ptx_name *find(const struct ptx_names *n, const char *text, uint32_t length,
                             uint32_t hash, bool range)
{
    for (uint32_t i = n->buckets[hash & (n->bucket_count - 1)]; i != IR_NONE; i = n->list[i].next) {
        struct ptx_name *name = &n->list[i];
        if (name->hash == hash && name->length == length &&
            (name->kind == PTX_NAME_RANGE) == range && memcmp(name->text, text, length) == 0)
            return name;
    }
    return NULL;
}

struct ptx_name *ptx_names_find(const struct ptx_names *n, const char *text, uint32_t length)
{
    return find(n, text, length, name_hash(n, text, length), false);
}

static bool rehash(struct ptx_names *n)
{
    uint32_t count = n->bucket_count * 4;
    uint32_t *buckets = malloc((size_t)count * sizeof(*buckets));
    if (!buckets)
        return false;
    memset(buckets, 0xff, (size_t)count * sizeof(*buckets));
    for (uint32_t i = 0; i < n->count; i++) {
        uint32_t *bucket = &buckets[n->list[i].hash & (count - 1)];
        n->list[i].next = *bucket;
        *bucket = i;
    }
    free(n->buckets);
    n->buckets = buckets;
    n->bucket_count = count;
    return true;
}

struct ptx_name *ptx_names_add(struct ptx_names *n, const struct ptx_token *name, uint32_t length,
                               enum ptx_name_kind kind, uint32_t index, uint32_t depth, bool *twice)
{
    uint32_t hash = name_hash(n, name->text, length);
    struct ptx_name *old = find(n, name->text, length, hash, kind == PTX_NAME_RANGE);
    *twice = old && old->depth == depth;
    if (*twice || (n->count > n->bucket_count * 2 && !rehash(n)))
        return NULL;
    struct ptx_name *added = IR_PUSH(n->list, n->count, n->cap);
    if (!added)
        return NULL;
    uint32_t *bucket = &n->buckets[hash & (n->bucket_count - 1)];
    *added = (struct ptx_name) { .text = name->text,
                                 .length = length,
                                 .hash = hash,
                                 .next = *bucket,
                                 .index = index,
                                 .kind = (uint8_t)kind,
                                 .depth = (uint8_t)depth };
    *bucket = n->count - 1;
    return added;
}

void ptx_names_drop(struct ptx_names *n, uint32_t keep)
{
    while (n->count > keep) {
        struct ptx_name *last = &n->list[--n->count];
        n->buckets[last->hash & (n->bucket_count - 1)] = last->next;
    }
}

bool ptx_declare(struct ptx_parser *p, const struct ptx_token *name, uint32_t length,
                 enum ptx_name_kind kind, uint32_t index, uint32_t count)
{
    bool twice;
    struct ptx_name *added = ptx_names_add(&p->names, name, length, kind, index, p->depth, &twice);
    if (twice)
        return ptx_fail(p, -EINVAL, name, "'%.*s' is declared twice", PTX_TEXT(name));
    if (!added)
        return ptx_out_of_memory(p);
    added->count = count;
    return true;
}

/* Splits "%r42" into prefix length and number. False: there is no number, or one that is in no
 * range ("%r042"). */
static bool split_number(const struct ptx_token *name, uint32_t *prefix, uint32_t *number)
{
    uint32_t length = name->length;
    while (length > 0 && name->text[length - 1] >= '0' && name->text[length - 1] <= '9')
        length--;
    uint32_t digits = name->length - length;
    if (digits == 0 || digits > 8 || (digits > 1 && name->text[length] == '0'))
        return false;
    uint32_t value = 0;
    for (uint32_t i = length; i < name->length; i++)
        value = value * 10 + (uint32_t)(name->text[i] - '0');
    *prefix = length;
    *number = value;
    return true;
}

bool ptx_lookup(const struct ptx_parser *p, const struct ptx_token *name, struct ptx_name *out)
{
    const struct ptx_names *n = &p->names;
    struct ptx_name *found = ptx_names_find(n, name->text, name->length);
    uint32_t prefix, number;
    if (split_number(name, &prefix, &number)) {
        struct ptx_name *range =
            find(n, name->text, prefix, name_hash(n, name->text, prefix), true);
        if (range && number < range->count && (!found || range > found)) {
            *out = *range;
            out->kind = range->width > 1   ? PTX_NAME_VECTOR
                        : range->width > 0 ? PTX_NAME_REG
                                           : PTX_NAME_TEMP;
            out->index += range->width > 1 ? number * range->width : number;
            return true;
        }
    }
    if (!found)
        return false;
    *out = *found;
    return true;
}

bool ptx_scope_begin(struct ptx_parser *p)
{
    if (p->depth + 1 >= PTX_MAX_DEPTH)
        return ptx_fail(p, -E2BIG, &p->token, "scopes nested over %d deep", PTX_MAX_DEPTH - 1);
    p->scopes[++p->depth] =
        (struct ptx_scope) { .names = p->names.count, .fixups = p->fixup_count };
    return true;
}

static void resolve(struct ptx_parser *p, const struct ptx_fixup *f, uint32_t label)
{
    if (f->in_targets)
        p->raw->targets[f->index] = label;
    else
        p->raw->instrs[f->index].target = label;
}

bool ptx_scope_end(struct ptx_parser *p)
{
    struct ptx_scope *scope = &p->scopes[p->depth];
    uint32_t kept = scope->fixups;
    for (uint32_t i = scope->fixups; i < p->fixup_count; i++) {
        struct ptx_fixup *f = &p->fixups[i];
        struct ptx_name *name = ptx_names_find(&p->names, f->name.text, f->name.length);
        if (name && name->depth == p->depth) {
            if (name->kind != PTX_NAME_LABEL)
                return ptx_fail(p, -EINVAL, &f->name, "'%.*s' is no label", PTX_TEXT(&f->name));
            resolve(p, f, name->index);
        } else if (p->depth == 1) {
            return ptx_fail(p, -EINVAL, &f->name, "label '%.*s' is not defined",
                            PTX_TEXT(&f->name));
        } else {
            p->fixups[kept++] = *f;
        }
    }
    p->fixup_count = kept;
    ptx_names_drop(&p->names, scope->names);
    p->depth--;
    return true;
}
