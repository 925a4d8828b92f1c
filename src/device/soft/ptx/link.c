/*
 * Linking. A text may consist of several units. Each is a PTX text of its own, behind a line that
 * begins it:
 *
 *     .pragma "gmux unit object NAME";
 *
 * cuLinkComplete makes such a text of its inputs. Each unit has its own names. Names that are
 * .extern, .visible, .weak or .common, and all entries, mean the same thing in every unit. Of
 * several definitions one is chosen as linkers do: a .visible one before .weak and .common ones,
 * and of these the largest; two that are .visible are an error. Instead of "object" a unit may be a
 * "library": its definitions give way to others, and what it does not find itself is missed only by
 * kernels that use it. The device's own units (runtime.c) rank between objects and libraries, those
 * for which a program may bring NVIDIA's with it before objects.
 *
 * In a text without units, and in libraries, a reference without a definition counts as a feature
 * that its kernel lacks, with one exception: see allocate_constant().
 */
#include "device/soft/ptx/parse.h"

#include <stdio.h>

#define MARK "gmux unit "

/* Ranks of definitions; a higher one wins. */
enum {
    RANK_NONE, /* .extern, or a prototype */
    RANK_LIBRARY_WEAK,
    RANK_LIBRARY,
    RANK_OWN,
    RANK_WEAK,
    RANK_STRONG,
    RANK_RUNTIME,
};

/* --- units ------------------------------------------------------------------------------------ */

static const struct ptx_unit *unit_of(const struct ptx_parser *p, uint32_t line)
{
    /* Units before `low` begin before the line, units from `high` on behind it. */
    uint32_t low = 0, high = p->unit_count;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (p->units[middle].line < line)
            low = middle + 1;
        else
            high = middle;
    }
    return low ? &p->units[low - 1] : NULL;
}

void ptx_place_of(const struct ptx_parser *p, struct ptx_error *place)
{
    const struct ptx_unit *u = unit_of(p, place->line);
    place->unit[0] = '\0';
    if (!u)
        return;
    place->line -= u->line;
    (void)snprintf(place->unit, sizeof(place->unit), "%.*s", (int)GM_MIN(u->length, 60u), u->name);
}

static bool take(const char **text, uint32_t *length, const char *word)
{
    size_t n = strlen(word);
    if (*length < n || memcmp(*text, word, n) != 0)
        return false;
    *text += n;
    *length -= (uint32_t)n;
    return true;
}

bool ptx_unit_begin(struct ptx_parser *p, bool *was)
{
    const struct ptx_mark start = ptx_here(p);
    struct ptx_unit unit = { .line = p->token.line };
    *was = false;
    if (!ptx_accept_dot(p, "pragma"))
        return true;
    unit.name = p->token.text;
    unit.length = p->token.length;
    if (p->token.kind != PTX_STRING || !take(&unit.name, &unit.length, MARK)) {
        ptx_return_to(p, &start);
        return true;
    }
    unit.rank = take(&unit.name, &unit.length, "library ")   ? RANK_LIBRARY
                : take(&unit.name, &unit.length, "own ")     ? RANK_OWN
                : take(&unit.name, &unit.length, "runtime ") ? RANK_RUNTIME
                : take(&unit.name, &unit.length, "object ")  ? RANK_STRONG
                                                             : RANK_NONE;
    if (unit.rank == RANK_NONE)
        return ptx_fail(p, -EINVAL, &p->token, "this begins no unit");
    ptx_advance(p);
    if (!ptx_expect(p, ';') || !ptx_unit_end(p))
        return false;
    struct ptx_unit *added = IR_PUSH(p->units, p->unit_count, p->unit_cap);
    if (!added)
        return ptx_out_of_memory(p);
    *added = unit;
    *was = true;
    return true;
}

/* --- what units have in common ---------------------------------------------------------------- */

static uint8_t rank_of(const struct ptx_parser *p, bool defined, bool weak)
{
    uint8_t rank = p->unit_count ? p->units[p->unit_count - 1].rank : RANK_STRONG;
    if (!defined)
        return RANK_NONE;
    if (rank == RANK_OWN || rank == RANK_RUNTIME)
        return rank;
    return (uint8_t)(rank - weak);
}

/* Whether a name of the unit can mean a declaration of another unit, which this one then is. */
static bool is_linked(const struct ptx_parser *p, const struct ptx_name *name,
                      struct ptx_link *link)
{
    *link = (struct ptx_link) { .kind = name->kind, .index = name->index, .unit = p->unit_count };
    if (name->kind == PTX_NAME_FN) {
        const struct ir_fn *fn = &p->m->fns[name->index];
        uint8_t linkage = p->raws[name->index].linkage;
        link->rank = rank_of(p, fn->is_defined, linkage & IR_SYM_WEAK);
        return fn->is_entry || (linkage & (IR_SYM_EXTERN | IR_SYM_VISIBLE));
    }
    if (name->kind != PTX_NAME_SYMBOL)
        return false;
    const struct ir_symbol *s = &p->m->symbols[name->index];
    link->rank = rank_of(p, !(s->flags & IR_SYM_EXTERN), s->flags & IR_SYM_WEAK);
    return s->flags & (IR_SYM_EXTERN | IR_SYM_VISIBLE);
}

static const char *unit_text(const struct ptx_parser *p, uint32_t unit, int *length)
{
    *length = unit ? (int)GM_MIN(p->units[unit - 1].length, 60u) : 0;
    return unit ? p->units[unit - 1].name : "";
}

static bool refuse_second(struct ptx_parser *p, const struct ptx_name *name,
                          const struct ptx_link *a, const struct ptx_link *b)
{
    int first, second;
    const char *in_first = unit_text(p, a->unit, &first),
               *in_second = unit_text(p, b->unit, &second);
    const struct ptx_token at = { 0 };
    return ptx_fail(p, -EEXIST, &at,
                    "Multiple definition of '%.*s' in '%.*s', first defined in '%.*s'",
                    (int)GM_MIN(name->length, 60u), name->text, second, in_second, first, in_first);
}

static bool is_better(const struct ptx_parser *p, const struct ptx_link *have,
                      const struct ptx_link *new)
{
    if (new->rank != have->rank)
        return new->rank > have->rank;
    return new->kind == PTX_NAME_SYMBOL &&
           p->m->symbols[new->index].size > p->m->symbols[have->index].size;
}

static bool enter(struct ptx_parser *p, const struct ptx_name *name, const struct ptx_link *link)
{
    const struct ptx_token text = { .text = name->text, .length = name->length };
    struct ptx_name *known = ptx_names_find(&p->exports, name->text, name->length);
    struct ptx_same *same = IR_PUSH(p->same, p->same_count, p->same_cap);
    bool twice;
    if (!same)
        return ptx_out_of_memory(p);
    *same = (struct ptx_same) { .kind = link->kind, .index = link->index };
    if (!known) {
        struct ptx_link *added = IR_PUSH(p->links, p->link_count, p->link_cap);
        same->link = p->link_count - 1;
        if (!added ||
            !ptx_names_add(&p->exports, &text, text.length, PTX_NAME_SYMBOL, same->link, 0, &twice))
            return ptx_out_of_memory(p);
        *added = *link;
        return true;
    }
    struct ptx_link *have = &p->links[known->index];
    same->link = known->index;
    if (have->kind != link->kind || (have->rank == RANK_STRONG && link->rank == RANK_STRONG))
        return refuse_second(p, name, have, link);
    if (is_better(p, have, link))
        *have = *link;
    return true;
}

/* Whether the variable `index` may be declared under a name that another one has already: they are
 * the same one, which at most one of them defines. */
static bool is_same(const struct ptx_parser *p, const struct ptx_name *old, uint32_t index,
                    struct ptx_link *link)
{
    struct ptx_name name = *old;
    name.index = index;
    if (old->kind != PTX_NAME_SYMBOL || old->depth != p->depth || !is_linked(p, &name, link) ||
        !is_linked(p, old, link))
        return false;
    const struct ir_symbol *a = &p->m->symbols[old->index], *b = &p->m->symbols[index];
    return ((a->flags | b->flags) & IR_SYM_EXTERN) && a->space == b->space && a->type == b->type;
}

bool ptx_declare_variable(struct ptx_parser *p, const struct ptx_token *name, uint32_t index)
{
    struct ptx_name *old = ptx_names_find(&p->names, name->text, name->length);
    struct ptx_link link;
    if (!old || !is_same(p, old, index, &link))
        return ptx_declare(p, name, name->length, PTX_NAME_SYMBOL, index, 1);
    old->index = index;
    return enter(p, old, &link);
}

bool ptx_unit_end(struct ptx_parser *p)
{
    struct ptx_link link;
    for (uint32_t n = 0; n < p->names.count; n++) {
        const struct ptx_name *name = &p->names.list[n];
        if (is_linked(p, name, &link) && !enter(p, name, &link))
            return false;
    }
    ptx_names_drop(&p->names, 0);
    return true;
}

/* --- at the end of the text ------------------------------------------------------------------- */

struct ptx_maps {
    uint32_t *fn, *symbol; /* what each function and symbol becomes */
};

/* Says what is not defined, in the words of NVIDIA's assembler, or linker. */
static bool refuse_undefined(struct ptx_parser *p, const char *kind, uint32_t name, uint32_t unit)
{
    int length;
    const char *in = unit_text(p, unit, &length);
    const struct ptx_token at = { 0 };
    if (!unit)
        return ptx_fail(p, -EINVAL, &at, "Unresolved extern %s '%.60s'", kind, ir_name(p->m, name));
    return ptx_fail(p, -ENOENT, &at, "Undefined reference to '%.60s' in '%.*s'",
                    ir_name(p->m, name), length, in);
}

/* Whether everything has to be defined that the unit uses: not in a library. */
static bool is_strict(const struct ptx_parser *p, uint32_t unit)
{
    return !unit || p->units[unit - 1].rank == RANK_STRONG;
}

static bool is_missing(const struct ir_symbol *s)
{
    return (s->flags & IR_SYM_EXTERN) &&
           (s->space == IR_SPACE_GLOBAL || s->space == IR_SPACE_CONST);
}

/* In a text that is loaded as it is, drivers give a variable of known size storage, although it is
 * .extern and nothing defines it: the program fills it by its name. (PoCL puts arguments there.) */
static void allocate(const struct ptx_parser *p, struct ir_symbol *s)
{
    if (is_missing(s) && s->size && !unit_of(p, s->line))
        s->flags = (uint8_t)((s->flags & ~IR_SYM_EXTERN) | IR_SYM_VISIBLE);
}

static bool map_symbol(struct ptx_parser *p, const struct ptx_maps *maps, struct ir_raw_fn *raw,
                       const struct ir_instr *i, uint32_t *symbol)
{
    if (*symbol == IR_NONE || (*symbol & IR_TEMP))
        return true;
    *symbol = maps->symbol[*symbol];
    const struct ir_symbol *s = &p->m->symbols[*symbol];
    if (!is_missing(s))
        return true;
    if (is_strict(p, raw->unit))
        return refuse_undefined(p, "variable", s->name, raw->unit);
    ir_refuse(&raw->lacks, -ENOTSUP, i->line, i->column, "variable '%.100s' of another module",
              ir_name(p->m, s->name));
    return true;
}

static bool map_function(struct ptx_parser *p, const struct ptx_maps *maps, struct ir_raw_fn *raw)
{
    for (uint32_t n = 0; n < raw->instr_count; n++) {
        struct ir_instr *i = &raw->instrs[n];
        if (!map_symbol(p, maps, raw, i, &i->address.symbol))
            return false;
        for (unsigned k = 0; k < i->src_count; k++)
            if (i->src[k].kind == IR_SRC_FN)
                i->src[k].index = maps->fn[i->src[k].index];
            else if (i->src[k].kind == IR_SRC_SYMBOL &&
                     !map_symbol(p, maps, raw, i, &i->src[k].index))
                return false;
    }
    for (uint32_t c = 0; c < raw->call_count; c++) {
        if (raw->calls[c].callee == IR_NONE)
            continue;
        raw->calls[c].callee = maps->fn[raw->calls[c].callee];
        const struct ir_fn *fn = &p->m->fns[raw->calls[c].callee];
        if (!fn->is_defined && is_strict(p, raw->unit) &&
            ir_find_helper(ir_name(p->m, fn->name)) == IR_HELPER_COUNT)
            return refuse_undefined(p, "function", fn->name, raw->unit);
    }
    return true;
}

/* Relocations of variables that gave way are dropped with them. */
static bool map_relocs(struct ptx_parser *p, const struct ptx_maps *maps)
{
    struct ir_module *m = p->m;
    uint32_t kept = 0;
    for (uint32_t n = 0; n < m->reloc_count; n++) {
        struct ir_reloc r = m->relocs[n];
        if (m->symbols[r.symbol].flags & IR_SYM_DROPPED)
            continue;
        r.target = (r.to_fn ? maps->fn : maps->symbol)[r.target];
        const struct ir_symbol *s = r.to_fn ? NULL : &m->symbols[r.target];
        const struct ptx_unit *u = unit_of(p, m->symbols[r.symbol].line);
        if (s && is_missing(s))
            return refuse_undefined(p, "variable", s->name, u ? (uint32_t)(u - p->units) + 1 : 0);
        m->relocs[kept++] = r;
    }
    m->reloc_count = kept;
    return true;
}

static bool map_all(struct ptx_parser *p, struct ptx_maps *maps)
{
    struct ir_module *m = p->m;
    for (uint32_t f = 0; f < m->fn_count; f++)
        maps->fn[f] = f;
    for (uint32_t s = 0; s < m->symbol_count; s++)
        maps->symbol[s] = s;
    for (uint32_t n = 0; n < p->same_count; n++) {
        const struct ptx_same *same = &p->same[n];
        uint32_t chosen = p->links[same->link].index;
        (same->kind == PTX_NAME_FN ? maps->fn : maps->symbol)[same->index] = chosen;
        if (same->kind == PTX_NAME_FN) {
            m->fns[same->index].is_entry &= chosen == same->index;
            continue;
        }
        allocate(p, &m->symbols[chosen]);
        if (chosen != same->index || is_missing(&m->symbols[same->index]))
            m->symbols[same->index].flags |= IR_SYM_DROPPED;
    }
    for (uint32_t n = 0; n < p->alias_count; n++)
        maps->fn[p->aliases[n].fn] = maps->fn[p->aliases[n].is];
    for (uint32_t f = 0; f < m->fn_count; f++)
        if (!map_function(p, maps, &p->raws[f]))
            return false;
    return map_relocs(p, maps);
}

bool ptx_link(struct ptx_parser *p)
{
    struct ptx_maps maps = { 0 };
    maps.fn = malloc(((size_t)p->m->fn_count + 1) * sizeof(*maps.fn));
    maps.symbol = malloc(((size_t)p->m->symbol_count + 1) * sizeof(*maps.symbol));
    bool right = maps.fn && maps.symbol ? map_all(p, &maps) : ptx_out_of_memory(p);
    free(maps.fn);
    free(maps.symbol);
    return right;
}
