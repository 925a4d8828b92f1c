/* Managed variables that are moved: their addresses stand where compilers want them, and the loader
 * finds nothing left to do. */
#include <criterion/criterion.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "fatbin/move.h"
#include "files.h"

#define ADDRESS 0x123456789000ull

TestSuite(move, .timeout = 100);

struct moved {
    struct file file;
    struct fb_cubin before, after; /* `before` of the file as it was */
    struct fb_move_list list;
    uint8_t *contents;
};

static struct moved move_some(const char *name, enum fb_move_which which)
{
    struct moved m = { .file = file_read(name) };
    uint8_t *copy = malloc(m.file.size);
    cr_assert_not_null(copy);
    memcpy(copy, m.file.data, m.file.size);
    cr_assert_eq(fb_cubin_open(&m.before, m.file.data, m.file.size), 0);
    cr_assert_eq(fb_cubin_open(&m.after, copy, m.file.size), 0);
    cr_assert_eq(fb_move_find(&m.before, which, &m.list), 0);
    m.contents = calloc(1, m.list.size + 1);
    cr_assert_not_null(m.contents);
    cr_assert_eq(fb_move(&m.after, copy, &m.list, ADDRESS, m.contents), 0);
    return m;
}

static const struct fb_moved *named(const struct moved *m, const char *name)
{
    for (uint32_t i = 0; i < m->list.count; i++)
        if (strcmp(m->list.at[i].name, name) == 0)
            return &m->list.at[i];
    cr_assert_fail("no %s", name);
    return NULL;
}

/* How many relocations are to what is, or was, managed; those that are checked to have been done.
 */
static unsigned relocations(const struct fb_cubin *c, const struct moved *m, unsigned *others)
{
    Elf64_Shdr s, to;
    unsigned count = 0;
    *others = 0;
    for (uint64_t i = 0; i < c->sections_count; i++) {
        cr_assert(fb_cubin_section(c, i, &s));
        for (uint64_t at = 0; s.sh_type == SHT_RELA && at < s.sh_size; at += sizeof(Elf64_Rela)) {
            Elf64_Rela r;
            const struct fb_moved *v = NULL;
            memcpy(&r, c->data + s.sh_offset + at, sizeof(r));
            for (uint32_t k = 0; k < m->list.count; k++)
                if (m->list.at[k].symbol == ELF64_R_SYM(r.r_info))
                    v = &m->list.at[k];
            *others += !v;
            count += v != NULL;
            if (!v)
                continue;
            uint64_t want = ADDRESS + v->offset + (uint64_t)r.r_addend, got = 0;
            cr_assert(fb_cubin_section(&m->after, s.sh_info, &to));
            const uint8_t *bytes = m->after.data + to.sh_offset + r.r_offset;
            switch (ELF64_R_TYPE(r.r_info)) {
            case 0x02:
            case 0x04:
                memcpy(&got, bytes, 8);
                break;
            case 0x38:
                memcpy(&got, bytes + 4, 4);
                want &= UINT32_MAX;
                break;
            case 0x39:
                memcpy(&got, bytes + 4, 4);
                want >>= 32;
                break;
            case 0x54 ... 0x5b:
                got = bytes[0];
                want = want >> 8 * (ELF64_R_TYPE(r.r_info) - 0x54) & 255;
                break;
            default:
                cr_assert_fail("a type that compilers do not write");
            }
            cr_assert_eq(got, want, "%s", v->name);
        }
    }
    return count;
}

static void check(const char *name, unsigned uses, unsigned all)
{
    struct moved m = move_some(name, FB_MOVE_MANAGED);
    struct fb_variable v;
    unsigned others, others_before, variables = 0;
    int first = 0;
    cr_assert_eq(m.list.count, 3);
    cr_assert_eq(named(&m, "table")->size, 400);
    cr_assert_eq(named(&m, "to_device")->size, 8);
    memcpy(&first, m.contents + named(&m, "first")->offset, sizeof(first));
    cr_assert_eq(first, 7);
    cr_assert_eq(m.contents[named(&m, "table")->offset], 0);
    cr_assert_eq(relocations(&m.before, &m, &others_before), uses);
    cr_assert_geq(others_before, 1);
    cr_assert_eq(relocations(&m.after, &m, &others), 0);
    cr_assert_eq(others, others_before);
    for (uint64_t at = 0; fb_cubin_variable(&m.after, &at, &v) > 0; variables++)
        cr_assert_not(v.is_managed, "%s", v.name);
    cr_assert_eq(variables, all);
}

Test(move, addresses_among_constants)
{
    check("managed.cubin", 3, 4);
}

Test(move, addresses_in_instructions)
{
    check("managed-words.cubin", 6, 4);
}

Test(move, in_packed_structures)
{
    check("managed-bytes.cubin", 19, 5);
}

/* Those that kernels may change; what is constant stays. One's value is the address of another. */
Test(move, globals)
{
    struct moved m = move_some("globals.cubin", FB_MOVE_GLOBAL);
    unsigned others, others_before;
    uint64_t inside;
    int words[3];
    cr_assert_eq(m.list.count, 4);
    for (uint32_t i = 0; i < m.list.count; i++)
        cr_assert_str_neq(m.list.at[i].name, "scale");
    memcpy(words, m.contents + named(&m, "counter")->offset, 4);
    cr_assert_eq(words[0], 3);
    memcpy(words, m.contents + named(&m, "table")->offset, sizeof(words));
    cr_assert_eq(words[0] + 10 * words[1] + 100 * words[2], 321);
    memcpy(&inside, m.contents + named(&m, "inside")->offset, sizeof(inside));
    cr_assert_eq(inside, ADDRESS + named(&m, "table")->offset + 3 * sizeof(int));
    cr_assert_eq(relocations(&m.before, &m, &others_before), 5);
    cr_assert_eq(relocations(&m.after, &m, &others), 0);
    cr_assert_eq(others, others_before);
    /* Once they are moved, nobody refers to them: there is nothing to move again. */
    free(m.list.at);
    cr_assert_eq(fb_move_find(&m.after, FB_MOVE_GLOBAL, &m.list), 0);
    cr_assert_eq(m.list.count, 0);
}

Test(move, aligned_to_more)
{
    struct file f = file_read("globals.cubin");
    struct fb_cubin c;
    struct fb_move_list l;
    Elf64_Ehdr e;
    memcpy(&e, f.data, sizeof(e));
    for (unsigned i = 0; i < e.e_shnum; i++) {
        const uint64_t much = 1024;
        memcpy(f.data + e.e_shoff + i * sizeof(Elf64_Shdr) + offsetof(Elf64_Shdr, sh_addralign),
               &much, sizeof(much));
    }
    cr_assert_eq(fb_cubin_open(&c, f.data, f.size), 0);
    cr_assert_eq(fb_move_find(&c, FB_MOVE_GLOBAL, &l), 0);
    uint8_t *contents = calloc(1, l.size);
    cr_assert_eq(fb_move(&c, f.data, &l, ADDRESS, contents), -ENOTSUP);
    free(contents);
    free(l.at);
}

/* Strings of printf are found by the driver where it has put them. */
Test(move, not_the_compilers)
{
    struct moved m = move_some("tables.cubin", FB_MOVE_GLOBAL);
    cr_assert_eq(m.list.count, 0);
}

/* The type of the first relocation of one of them becomes another. */
Test(move, a_relocation_that_is_not_known)
{
    struct moved m = move_some("managed.cubin", FB_MOVE_MANAGED);
    Elf64_Shdr s;
    unsigned changed = 0;
    for (uint64_t i = 0; i < m.before.sections_count && !changed; i++) {
        cr_assert(fb_cubin_section(&m.before, i, &s));
        for (uint64_t at = 0; s.sh_type == SHT_RELA && at < s.sh_size && !changed;
             at += sizeof(Elf64_Rela)) {
            Elf64_Rela r;
            memcpy(&r, m.file.data + s.sh_offset + at, sizeof(r));
            if (ELF64_R_SYM(r.r_info) != m.list.at[0].symbol)
                continue;
            r.r_info = ELF64_R_INFO(ELF64_R_SYM(r.r_info), 0x60);
            memcpy(m.file.data + s.sh_offset + at, &r, sizeof(r));
            changed = 1;
        }
    }
    cr_assert(changed);
    cr_assert_eq(fb_move(&m.before, m.file.data, &m.list, ADDRESS, m.contents), -ENOTSUP);
}

static void move_any(uint8_t *data, size_t size, enum fb_move_which which)
{
    struct fb_cubin c;
    struct fb_move_list l;
    if (fb_cubin_open(&c, data, size) != 0 || fb_move_find(&c, which, &l) != 0 || l.size > 1 << 20)
        return;
    uint8_t *contents = calloc(1, l.size + 1);
    cr_assert_not_null(contents);
    int r = fb_move(&c, data, &l, ADDRESS, contents);
    cr_assert(r == 0 || r == -EBADMSG || r == -ENOTSUP);
    free(contents);
    free(l.at);
}

static void change(const char *name, enum fb_move_which which)
{
    struct file f = file_read(name);
    uint64_t random = 9;
    Elf64_Ehdr e;
    memcpy(&e, f.data, sizeof(e));
    for (int n = 0; n < 30000; n++) {
        uint8_t *changed = at_the_edge(f.data, f.size);
        mutate(changed, f.size, &random);
        if (n & 1) /* among the section headers */
            mutate(changed + e.e_shoff, e.e_shnum * sizeof(Elf64_Shdr), &random);
        move_any(changed, f.size, which);
    }
}

Test(move, changed_bytes)
{
    change("managed.cubin", FB_MOVE_MANAGED);
    change("globals.cubin", FB_MOVE_GLOBAL);
}
