/*
 * The relocations say what the loader does with an address. Those that concern the variables are
 * carried out here, and taken out of their tables.
 */
#include "fatbin/move.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"

#define VARIABLES_MAX 65536u
#define BYTES_MAX     (1ull << 34)

/* The types that compilers write: a word of 64 bits (in the bank of constants from which code reads
 * addresses), the same as a generic address (in data), and halves of an address in an instruction,
 * whose number counts from the second word. */
#define TYPE_64         0x02u
#define TYPE_GENERIC_64 0x04u
#define TYPE_LOW        0x38u
#define TYPE_HIGH       0x39u
#define TYPE_BYTE_0     0x54u /* a byte of the address, the lowest first: packed structures */
#define TYPE_BYTE_7     0x5bu

/* --- which ones ------------------------------------------------------------------------------- */

/* Returns a bit for each symbol that a relocation names, or NULL without memory. */
static uint8_t *used_symbols(const struct fb_cubin *c)
{
    const uint64_t count = c->symbols.sh_size / sizeof(Elf64_Sym);
    uint8_t *used = calloc(1, (size_t)(count / 8 + 1));
    Elf64_Shdr s;
    for (uint64_t i = 0; used && i < c->sections_count; i++) {
        if (!fb_cubin_section(c, i, &s) || (s.sh_type != SHT_REL && s.sh_type != SHT_RELA))
            continue;
        const size_t size = s.sh_type == SHT_REL ? sizeof(Elf64_Rel) : sizeof(Elf64_Rela);
        for (uint64_t at = 0; at + size <= s.sh_size; at += size) {
            Elf64_Rel r; /* the other kind of relocation begins in the same way */
            memcpy(&r, c->data + s.sh_offset + at, sizeof(r));
            if (ELF64_R_SYM(r.r_info) < count)
                used[ELF64_R_SYM(r.r_info) / 8] |= (uint8_t)(1u << ELF64_R_SYM(r.r_info) % 8);
        }
    }
    return used;
}

static bool is_wanted(const struct fb_variable *v, enum fb_move_which which, const uint8_t *used,
                      uint64_t symbol)
{
    if (which == FB_MOVE_MANAGED)
        return v->is_managed;
    return !v->is_managed && !v->is_const && !v->of_compiler &&
           (used[symbol / 8] >> symbol % 8 & 1);
}

static int list_add(struct fb_move_list *l, const struct fb_variable *v, uint64_t symbol)
{
    if (!gm_array_room(&l->at, sizeof(*l->at), l->count, VARIABLES_MAX) ||
        v->size > BYTES_MAX - l->size)
        return -E2BIG;
    l->at[l->count++] =
        (struct fb_moved) { .name = v->name, .offset = l->size, .size = v->size, .symbol = symbol };
    l->size = (l->size + v->size + FB_MOVE_ALIGN - 1) & ~(uint64_t)(FB_MOVE_ALIGN - 1);
    return 0;
}

int fb_move_find(const struct fb_cubin *c, enum fb_move_which which, struct fb_move_list *out)
{
    struct fb_variable v;
    uint64_t at = 0;
    int more;
    *out = (struct fb_move_list) { 0 };
    uint8_t *used = used_symbols(c);
    int r = used ? 0 : -ENOMEM;
    while (r == 0 && (more = fb_cubin_variable(c, &at, &v)) != 0)
        if (more < 0)
            r = more;
        else if (is_wanted(&v, which, used, at - 1))
            r = list_add(out, &v, at - 1);
    free(used);
    if (r) {
        free(out->at);
        *out = (struct fb_move_list) { 0 };
    }
    return r;
}

/* --- where they are --------------------------------------------------------------------------- */

/* A variable of the list, and its place in its section. */
struct spot {
    uint64_t section, begin, end;
};

struct move {
    const struct fb_cubin *c;
    uint8_t *cubin;
    const struct fb_move_list *list;
    struct spot *spots; /* sorted */
    uint64_t address;
};

static int by_place(const void *a, const void *b)
{
    const struct spot *x = a, *y = b;
    if (x->section != y->section)
        return x->section < y->section ? -1 : 1;
    return x->begin < y->begin ? -1 : x->begin > y->begin;
}

static int find_spots(struct move *m)
{
    m->spots = calloc(m->list->count + 1u, sizeof(*m->spots));
    if (!m->spots)
        return -ENOMEM;
    for (uint32_t i = 0; i < m->list->count; i++) {
        Elf64_Sym s;
        Elf64_Shdr in;
        uint64_t section;
        if (!fb_cubin_symbol(m->c, m->list->at[i].symbol, &s, &section) ||
            s.st_value > UINT64_MAX - s.st_size || !fb_cubin_section(m->c, section, &in))
            return -EBADMSG;
        if (in.sh_addralign > FB_MOVE_ALIGN)
            return -ENOTSUP;
        m->spots[i] = (struct spot) { section, s.st_value, s.st_value + s.st_size };
    }
    qsort(m->spots, m->list->count, sizeof(*m->spots), by_place);
    return 0;
}

/* Returns the last variable that begins at or before that place, in any section; NULL if there is
 * none. */
static const struct spot *spot_before(const struct move *m, uint64_t section, uint64_t at)
{
    const struct spot key = { section, at, at };
    uint32_t low = 0, high = m->list->count;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (by_place(&m->spots[middle], &key) <= 0)
            low = middle + 1;
        else
            high = middle;
    }
    return low ? &m->spots[low - 1] : NULL;
}

/* Whether a variable has its first value in these bytes of the section. */
static bool touches(const struct move *m, uint64_t section, uint64_t at)
{
    const struct spot *s = spot_before(m, section, at);
    return s && s->section == section && at < s->end;
}

/* Whether the symbol stands for a whole section with one of the variables in it. */
static bool is_around(const struct move *m, uint64_t symbol)
{
    Elf64_Sym s;
    uint64_t section;
    if (!fb_cubin_symbol(m->c, symbol, &s, &section) || ELF64_ST_TYPE(s.st_info) != STT_SECTION)
        return false;
    const struct spot *last = spot_before(m, section, UINT64_MAX);
    return last && last->section == section;
}

static int by_symbol(const void *key, const void *element)
{
    const uint64_t symbol = *(const uint64_t *)key, of = ((const struct fb_moved *)element)->symbol;
    return symbol < of ? -1 : symbol > of;
}

static const struct fb_moved *find(const struct fb_move_list *l, uint64_t symbol)
{
    return l->count ? bsearch(&symbol, l->at, l->count, sizeof(*l->at), by_symbol) : NULL;
}

/* --- the move --------------------------------------------------------------------------------- */

/* Applies a relocation to the section's bytes. */
static int apply(uint8_t *bytes, uint64_t size, const Elf64_Rela *r, uint64_t value)
{
    const uint32_t type = (uint32_t)ELF64_R_TYPE(r->r_info),
                   half = (uint32_t)(type == TYPE_HIGH ? value >> 32 : value);
    if (type >= TYPE_BYTE_0 && type <= TYPE_BYTE_7) {
        if (r->r_offset >= size)
            return -EBADMSG;
        bytes[r->r_offset] = (uint8_t)(value >> 8 * (type - TYPE_BYTE_0));
        return 0;
    }
    switch (type) {
    case TYPE_64:
    case TYPE_GENERIC_64:
        if (r->r_offset > size || size - r->r_offset < sizeof(value))
            return -EBADMSG;
        memcpy(bytes + r->r_offset, &value, sizeof(value));
        return 0;
    case TYPE_LOW:
    case TYPE_HIGH:
        if (r->r_offset > size || size - r->r_offset < 16)
            return -EBADMSG;
        memcpy(bytes + r->r_offset + 4, &half, sizeof(half));
        return 0;
    default:
        return -ENOTSUP;
    }
}

/* Handles one table. The relocations that stay move together. */
static int move_table(const struct move *m, uint64_t index, const Elf64_Shdr *table)
{
    Elf64_Shdr to;
    uint64_t kept = 0, count = table->sh_size / sizeof(Elf64_Rela);
    if (!fb_cubin_section(m->c, table->sh_info, &to))
        return -EBADMSG;
    for (uint64_t i = 0; i < count; i++) {
        Elf64_Rela r;
        uint8_t *at = m->cubin + table->sh_offset;
        memcpy(&r, at + i * sizeof(r), sizeof(r));
        const struct fb_moved *v = find(m->list, ELF64_R_SYM(r.r_info));
        if (!v) {
            if (is_around(m, ELF64_R_SYM(r.r_info)) || touches(m, table->sh_info, r.r_offset))
                return -ENOTSUP;
            memmove(at + kept++ * sizeof(r), &r, sizeof(r));
            continue;
        }
        if (!fb_section_has_bytes(&to))
            return -EBADMSG;
        int e = apply(m->cubin + to.sh_offset, to.sh_size, &r,
                      m->address + v->offset + (uint64_t)r.r_addend);
        if (e < 0)
            return e;
    }
    Elf64_Shdr now = *table;
    now.sh_size = kept * sizeof(Elf64_Rela);
    memcpy(m->cubin + m->c->sections_at + index * sizeof(now), &now, sizeof(now));
    return 0;
}

static int move_tables(const struct move *m)
{
    Elf64_Shdr s;
    int r = 0;
    for (uint64_t i = 0; i < m->c->sections_count && r == 0; i++) {
        if (!fb_cubin_section(m->c, i, &s))
            return -EBADMSG;
        if (s.sh_type == SHT_REL)
            r = -ENOTSUP; /* from an old compiler */
        else if (s.sh_type == SHT_RELA)
            r = move_table(m, i, &s);
    }
    return r;
}

/* Writes the first values, and makes the variables ordinary ones. */
static int move_values(const struct move *m, uint8_t *contents)
{
    for (uint32_t i = 0; i < m->list->count; i++) {
        const struct fb_moved *v = &m->list->at[i];
        Elf64_Shdr in;
        Elf64_Sym s;
        uint64_t section;
        if (!fb_cubin_symbol(m->c, v->symbol, &s, &section) ||
            !fb_cubin_section(m->c, section, &in))
            return -EBADMSG;
        if (fb_section_has_bytes(&in)) {
            if (s.st_value > in.sh_size || v->size > in.sh_size - s.st_value)
                return -EBADMSG;
            memcpy(contents + v->offset, m->cubin + in.sh_offset + s.st_value, v->size);
        }
        s.st_other &= (unsigned char)~FB_SYMBOL_MANAGED;
        memcpy(m->cubin + m->c->symbols.sh_offset + v->symbol * sizeof(s), &s, sizeof(s));
    }
    return 0;
}

int fb_move(const struct fb_cubin *c, void *cubin, const struct fb_move_list *l, uint64_t address,
            void *contents)
{
    struct move m = { .c = c, .cubin = cubin, .list = l, .address = address };
    int r = find_spots(&m);
    r = r ? r : move_tables(&m);
    r = r ? r : move_values(&m, contents);
    free(m.spots);
    return r;
}
