/*
 * What the loader does with an address is written down in the relocations. Those that concern managed variables are done here
 * and taken out of their tables.
 */
#include "fatbin/managed.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"

#define MANAGED_MAX 65536u
#define BYTES_MAX   (1ull << 34)
#define ALIGN       256u /* what the driver gives */

/* The two types that compilers write: a word of 64 bits (in data, and in the bank of constants that code reads addresses
 * from), and halves of an address in an instruction, whose number starts at its second word. */
#define TYPE_64   0x02u
#define TYPE_LOW  0x38u
#define TYPE_HIGH 0x39u

int fb_managed_find(const struct fb_cubin *c, struct fb_managed_list *out)
{
    Elf64_Sym s;
    uint64_t section, offset = 0;
    *out = (struct fb_managed_list) { 0 };
    for (uint64_t i = 0; fb_cubin_symbol(c, i, &s, &section); i++) {
        unsigned type = ELF64_ST_TYPE(s.st_info);
        if (!(s.st_other & FB_SYMBOL_MANAGED) || (type != STT_OBJECT && type < STT_LOOS) || section == 0)
            continue;
        if (!gm_array_room(&out->at, sizeof(*out->at), out->count, MANAGED_MAX) || s.st_size > BYTES_MAX - offset) {
            free(out->at);
            out->at = NULL;
            return -E2BIG;
        }
        out->at[out->count++] = (struct fb_managed) {
            .name = fb_cubin_string(c, s.st_name), .offset = offset, .size = s.st_size, .symbol = i
        };
        offset = (offset + s.st_size + ALIGN - 1) & ~(uint64_t)(ALIGN - 1);
        out->size = offset;
    }
    return 0;
}

static const struct fb_managed *find(const struct fb_managed_list *l, uint64_t symbol)
{
    for (uint32_t i = 0; i < l->count; i++)
        if (l->at[i].symbol == symbol)
            return &l->at[i];
    return NULL;
}

/* Whether one of them has its first value in these bytes of this section. */
static bool touches(const struct fb_cubin *c, const struct fb_managed_list *l, uint64_t section, uint64_t at)
{
    Elf64_Sym s;
    uint64_t in;
    for (uint32_t i = 0; i < l->count; i++)
        if (fb_cubin_symbol(c, l->at[i].symbol, &s, &in) && in == section && at >= s.st_value &&
            at - s.st_value < s.st_size)
            return true;
    return false;
}

/* Whether the symbol stands for a whole section with one of them in it. */
static bool is_around(const struct fb_cubin *c, const struct fb_managed_list *l, uint64_t symbol)
{
    Elf64_Sym s, of;
    uint64_t section, in;
    if (!fb_cubin_symbol(c, symbol, &s, &section) || ELF64_ST_TYPE(s.st_info) != STT_SECTION)
        return false;
    for (uint32_t i = 0; i < l->count; i++)
        if (fb_cubin_symbol(c, l->at[i].symbol, &of, &in) && in == section)
            return true;
    return false;
}

/* Does what a relocation says, in the section's bytes. */
static int apply(uint8_t *bytes, uint64_t size, const Elf64_Rela *r, uint64_t value)
{
    uint32_t half = (uint32_t)(ELF64_R_TYPE(r->r_info) == TYPE_HIGH ? value >> 32 : value);
    switch (ELF64_R_TYPE(r->r_info)) {
    case TYPE_64:
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

struct move {
    const struct fb_cubin *c;
    uint8_t *cubin;
    const struct fb_managed_list *list;
    uint64_t address;
};

/* One table: those that stay move together. */
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
        const struct fb_managed *v = find(m->list, ELF64_R_SYM(r.r_info));
        if (!v) {
            if (is_around(m->c, m->list, ELF64_R_SYM(r.r_info)) || touches(m->c, m->list, table->sh_info, r.r_offset))
                return -ENOTSUP;
            memmove(at + kept++ * sizeof(r), &r, sizeof(r));
            continue;
        }
        if (!fb_section_has_bytes(&to))
            return -EBADMSG;
        int e = apply(m->cubin + to.sh_offset, to.sh_size, &r, m->address + v->offset + (uint64_t)r.r_addend);
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
            r = -ENOTSUP; /* of old compilers */
        else if (s.sh_type == SHT_RELA)
            r = move_table(m, i, &s);
    }
    return r;
}

/* Writes down the first values, and makes ordinary variables of them. */
static int move_values(const struct move *m, uint8_t *contents)
{
    for (uint32_t i = 0; i < m->list->count; i++) {
        const struct fb_managed *v = &m->list->at[i];
        Elf64_Shdr in;
        Elf64_Sym s;
        uint64_t section;
        if (!fb_cubin_symbol(m->c, v->symbol, &s, &section) || !fb_cubin_section(m->c, section, &in))
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

int fb_managed_move(const struct fb_cubin *c, void *cubin, const struct fb_managed_list *l, uint64_t address,
                    void *contents)
{
    const struct move m = { .c = c, .cubin = cubin, .list = l, .address = address };
    int r = move_tables(&m);
    return r ? r : move_values(&m, contents);
}
