/*
 * The parts of ELF that a cubin uses. Variables are object symbols in sections with known names.
 */
#include "fatbin/cubin.h"

#include <errno.h>
#include <string.h>

#define MACHINE_CUDA 190u
/* These three types have no bytes in the file, like SHT_NOBITS. */
#define SECTION_GLOBAL 0x70000007u
#define SECTION_LOCAL  0x70000009u
#define SECTION_SHARED 0x7000000au

/* Compilers use types of NVIDIA's beside the common ones. */
bool fb_section_has_bytes(const Elf64_Shdr *s)
{
    return s->sh_type != SHT_NULL && s->sh_type != SHT_NOBITS && s->sh_type != SECTION_GLOBAL &&
           s->sh_type != SECTION_LOCAL && s->sh_type != SECTION_SHARED;
}

size_t fb_elf_size(const void *elf, size_t limit)
{
    const uint8_t *base = elf;
    Elf64_Ehdr e;
    Elf64_Shdr s;
    memcpy(&e, elf, sizeof(e));
    if (memcmp(e.e_ident, ELFMAG, SELFMAG) != 0 || e.e_shoff > limit || e.e_phoff > limit ||
        (e.e_shoff && e.e_shentsize != sizeof(s)))
        return 0;
    uint64_t count = e.e_shnum;
    /* With more sections than fit there, the first section has their number. */
    if (count == 0 && e.e_shoff) {
        memcpy(&s, base + e.e_shoff, sizeof(s));
        count = s.sh_size;
    }
    if (count > limit / sizeof(s))
        return 0;
    uint64_t end = GM_MAX(sizeof(e), e.e_shoff + count * sizeof(s));
    end = GM_MAX(end, e.e_phoff + (uint64_t)e.e_phnum * e.e_phentsize);
    for (uint64_t i = 0; i < count; i++) {
        memcpy(&s, base + e.e_shoff + i * sizeof(s), sizeof(s));
        if (!fb_section_has_bytes(&s))
            continue;
        if (s.sh_offset > limit || s.sh_size > limit)
            return 0;
        end = GM_MAX(end, s.sh_offset + s.sh_size);
    }
    return end <= limit ? (size_t)end : 0;
}

static bool within(uint64_t size, uint64_t at, uint64_t length)
{
    return at <= size && length <= size - at;
}

bool fb_elf_fits(const void *elf, size_t size)
{
    const uint8_t *base = elf;
    Elf64_Ehdr e;
    Elf64_Shdr s;
    if (size < sizeof(e))
        return false;
    memcpy(&e, elf, sizeof(e));
    if (memcmp(e.e_ident, ELFMAG, SELFMAG) != 0 || e.e_ident[EI_CLASS] != ELFCLASS64 ||
        e.e_shentsize != sizeof(s) ||
        !within(size, e.e_phoff, (uint64_t)e.e_phnum * e.e_phentsize) ||
        !within(size, e.e_shoff, sizeof(s)))
        return false;
    memcpy(&s, base + e.e_shoff, sizeof(s));
    uint64_t count = e.e_shnum ? e.e_shnum : s.sh_size;
    if (count > (size - e.e_shoff) / sizeof(s))
        return false;
    for (uint64_t i = 1; i < count; i++) {
        memcpy(&s, base + e.e_shoff + i * sizeof(s), sizeof(s));
        if (fb_section_has_bytes(&s) && !within(size, s.sh_offset, s.sh_size))
            return false;
    }
    return true;
}

/* --- sections --------------------------------------------------------------------------------- */

bool fb_cubin_section(const struct fb_cubin *c, uint64_t index, Elf64_Shdr *s)
{
    if (index >= c->sections_count)
        return false;
    memcpy(s, c->data + c->sections_at + index * sizeof(*s), sizeof(*s));
    return !fb_section_has_bytes(s) || within(c->size, s->sh_offset, s->sh_size);
}

static bool strings_read(const struct fb_cubin *c, uint64_t index, Elf64_Shdr *s)
{
    return fb_cubin_section(c, index, s) && s->sh_type == SHT_STRTAB && s->sh_size > 0 &&
           c->data[s->sh_offset + s->sh_size - 1] == '\0';
}

static const char *string_at(const struct fb_cubin *c, const Elf64_Shdr *strings, uint32_t at)
{
    return at < strings->sh_size ? (const char *)c->data + strings->sh_offset + at : "";
}

bool fb_cubin_serves(const void *data, uint32_t sm)
{
    Elf64_Ehdr e;
    memcpy(&e, data, sizeof(e));
    return (e.e_flags & 0xff) / 10 == sm / 10 || (e.e_flags >> 8 & 0xff) / 10 == sm / 10;
}

int fb_cubin_open(struct fb_cubin *c, const void *data, size_t size)
{
    Elf64_Ehdr e;
    Elf64_Shdr s;
    *c = (struct fb_cubin) { .data = data, .size = size };
    if (!fb_elf_fits(data, size))
        return -EBADMSG;
    memcpy(&e, data, sizeof(e));
    if (e.e_machine != MACHINE_CUDA)
        return -EBADMSG;
    memcpy(&s, c->data + e.e_shoff, sizeof(s));
    c->sm = e.e_flags >> 8 & 0xff;
    c->sections_at = e.e_shoff;
    c->sections_count = e.e_shnum ? e.e_shnum : s.sh_size;
    bool found = false, named = strings_read(c, e.e_shstrndx, &c->names);
    for (uint64_t i = 0; i < c->sections_count; i++) {
        if (!fb_cubin_section(c, i, &s))
            return -EBADMSG;
        if (s.sh_type == SHT_SYMTAB) {
            c->symbols = s;
            found = strings_read(c, s.sh_link, &c->strings);
        } else if (s.sh_type == SHT_SYMTAB_SHNDX) {
            c->indices = s;
        }
    }
    return found && named ? 0 : -EBADMSG;
}

/* --- symbols ---------------------------------------------------------------------------------- */

bool fb_cubin_symbol(const struct fb_cubin *c, uint64_t index, Elf64_Sym *s, uint64_t *section)
{
    uint32_t wide = 0;
    if (index >= c->symbols.sh_size / sizeof(*s))
        return false;
    memcpy(s, c->data + c->symbols.sh_offset + index * sizeof(*s), sizeof(*s));
    if (s->st_shndx == SHN_XINDEX && index < c->indices.sh_size / sizeof(wide))
        memcpy(&wide, c->data + c->indices.sh_offset + index * sizeof(wide), sizeof(wide));
    *section = s->st_shndx == SHN_XINDEX ? wide : s->st_shndx < SHN_LORESERVE ? s->st_shndx : 0;
    return true;
}

const char *fb_cubin_string(const struct fb_cubin *c, uint32_t at)
{
    return string_at(c, &c->strings, at);
}

/* Whether the compiler made the object: a string of printf or assert, a table of sin, or one of the
 * objects of one byte without a state that NVIDIA's C++ libraries put into every file that includes
 * them. */
static bool is_of_compiler(const char *name, uint64_t size)
{
    static const char *const starts[] = { "$str", "__unnamed_", "__cudart_" };
    for (size_t i = 0; i < GM_ARRAY_LEN(starts); i++)
        if (strncmp(name, starts[i], strlen(starts[i])) == 0)
            return true;
    return size == 1 && strstr(name, "_INTERNAL_") &&
           (strstr(name, "4cuda3std") || strstr(name, "6thrust"));
}

/* Whether the section is shared memory, which is no variable of the module. Such sections have a
 * type or a name of their own. */
static bool is_shared(const struct fb_cubin *c, const Elf64_Shdr *s)
{
    static const char name[] = ".nv.shared";
    return s->sh_type == SECTION_SHARED || s->sh_type == SECTION_LOCAL ||
           strncmp(string_at(c, &c->names, s->sh_name), name, sizeof(name) - 1) == 0;
}

int fb_cubin_variable(const struct fb_cubin *c, uint64_t *at, struct fb_variable *v)
{
    Elf64_Sym s;
    Elf64_Shdr in;
    uint64_t section;
    while (fb_cubin_symbol(c, (*at)++, &s, &section)) {
        unsigned type = ELF64_ST_TYPE(s.st_info);
        if ((type != STT_OBJECT && type < STT_LOOS) ||
            section == 0) /* textures, surfaces and others of old compilers */
            continue;
        const char *name = fb_cubin_string(c, s.st_name);
        if (!*name || !fb_cubin_section(c, section, &in))
            return -EBADMSG;
        if (is_shared(c, &in))
            continue;
        *v = (struct fb_variable) {
            .name = name,
            .size = s.st_size,
            .is_const = !(in.sh_flags & SHF_WRITE),
            .is_managed = s.st_other & FB_SYMBOL_MANAGED,
            .of_compiler = is_of_compiler(name, s.st_size),
        };
        return 1;
    }
    return 0;
}

bool fb_cubin_is_constant(const struct fb_cubin *c)
{
    struct fb_variable v;
    uint64_t at = 0;
    int more;
    while ((more = fb_cubin_variable(c, &at, &v)) > 0)
        if (!v.of_compiler)
            return false;
    return more == 0;
}
