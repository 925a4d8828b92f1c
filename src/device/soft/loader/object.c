/*
 * Reads the headers of an object, places its sections, copies and relocates them, and makes the
 * code executable; from then on it cannot be written.
 */
#include "device/soft/loader/object.h"

#include <elf.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "device/soft/loader/relocate.h"

#if defined(__x86_64__)
#define HOST_MACHINE EM_X86_64
#elif defined(__aarch64__)
#define HOST_MACHINE EM_AARCH64
#else
#define HOST_MACHINE EM_NONE
#endif

#define SECTIONS_MAX  4096u
#define ALIGNMENT_MAX 4096u
#define SYMBOLS_MAX   65536u

/* A function or datum that can be looked up; the rest of the symbol table is dropped after
 * loading. */
struct exported {
    char name[32];
    uint64_t offset; /* in the mapping */
    uint64_t size;
    bool code;
};
#define EXPORTS_MAX 8

struct loader_object {
    uint8_t *memory;
    size_t mapped;    /* bytes, whole pages */
    size_t code_size; /* executable part, whole pages, at the front; the rest is read-only */
    struct exported exports[EXPORTS_MAX];
    unsigned exports_count;
};

/* The file while it is being read. */
struct image {
    const uint8_t *bytes;
    size_t size;
    Elf64_Ehdr header;
    Elf64_Shdr *sections; /* an array of header.e_shnum */
    /* Offset of each section in the mapping; NOT_LOADED if it is not mapped. */
    uint64_t *place;
    uint32_t names;   /* index of the section name table */
    uint32_t symbols; /* index of the symbol table, 0 if there is none */
    uint32_t symbol_count;
    char *why;
    size_t why_size;
};
#define NOT_LOADED UINT64_MAX

static int GM_PRINTF(2, 3) bad(struct image *m, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(m->why, m->why_size, fmt, ap);
    va_end(ap);
    return -EBADMSG;
}

static bool inside(uint64_t offset, uint64_t size, uint64_t limit)
{
    return offset <= limit && size <= limit - offset;
}

/* A string of string table `section`; NULL if there is none at the offset. */
static const char *string_at(const struct image *m, uint32_t section, uint32_t offset)
{
    const Elf64_Shdr *s = &m->sections[section];
    if (s->sh_type != SHT_STRTAB || offset >= s->sh_size)
        return NULL;
    const char *p = (const char *)m->bytes + s->sh_offset + offset;
    return memchr(p, 0, s->sh_size - offset) ? p : NULL;
}

static int read_header(struct image *m)
{
    static const uint8_t ident[] = { ELFMAG0,    ELFMAG1,     ELFMAG2,   ELFMAG3,
                                     ELFCLASS64, ELFDATA2LSB, EV_CURRENT };
    if (m->size < sizeof(m->header) || m->size > LOADER_CODE_MAX)
        return bad(m, "object of %zu bytes", m->size);
    memcpy(&m->header, m->bytes, sizeof(m->header));
    const Elf64_Ehdr *h = &m->header;
    if (memcmp(h->e_ident, ident, sizeof(ident)) != 0 || h->e_type != ET_REL)
        return bad(m, "not a relocatable ELF64 object");
    if (h->e_machine != HOST_MACHINE)
        return bad(m, "object for machine %u", h->e_machine);
    if (h->e_shentsize != sizeof(Elf64_Shdr) || h->e_shnum == 0 || h->e_shnum > SECTIONS_MAX)
        return bad(m, "%u sections of %u bytes", h->e_shnum, h->e_shentsize);
    if (!inside(h->e_shoff, (uint64_t)h->e_shnum * sizeof(Elf64_Shdr), m->size))
        return bad(m, "section table outside of the object");
    if (h->e_shstrndx >= h->e_shnum)
        return bad(m, "no section names");
    return 0;
}

static int read_sections(struct image *m)
{
    size_t n = m->header.e_shnum;
    m->sections = malloc(n * sizeof(*m->sections));
    m->place = malloc(n * sizeof(*m->place));
    if (!m->sections || !m->place)
        return -ENOMEM;
    memcpy(m->sections, m->bytes + m->header.e_shoff, n * sizeof(*m->sections));
    m->names = m->header.e_shstrndx;
    for (uint32_t i = 0; i < n; i++) {
        const Elf64_Shdr *s = &m->sections[i];
        m->place[i] = NOT_LOADED;
        if (s->sh_type == SHT_NULL || s->sh_type == SHT_NOBITS)
            continue;
        if (!inside(s->sh_offset, s->sh_size, m->size))
            return bad(m, "section %u outside of the object", i);
        if (s->sh_type == SHT_REL)
            return bad(m, "section %u: relocations without addends", i);
        if (s->sh_type != SHT_SYMTAB)
            continue;
        if (m->symbols)
            return bad(m, "two symbol tables");
        if (s->sh_entsize != sizeof(Elf64_Sym) || s->sh_size / sizeof(Elf64_Sym) > SYMBOLS_MAX ||
            s->sh_link >= n)
            return bad(m, "symbol table of %llu bytes", (unsigned long long)s->sh_size);
        m->symbols = i;
        m->symbol_count = (uint32_t)(s->sh_size / sizeof(Elf64_Sym));
    }
    return 0;
}

/* Sets *out if the section becomes part of the mapping. Unwind tables do not: nothing unwinds
 * through a kernel. */
static int wanted(struct image *m, uint32_t i, bool *out)
{
    const Elf64_Shdr *s = &m->sections[i];
    *out = false;
    if (s->sh_type == SHT_NULL || !(s->sh_flags & SHF_ALLOC) || s->sh_size == 0)
        return 0;
    const char *name = string_at(m, m->names, s->sh_name);
    if (!name)
        return bad(m, "section %u has no name", i);
    if (strcmp(name, ".eh_frame") == 0)
        return 0;
    if (s->sh_type != SHT_PROGBITS || (s->sh_flags & (SHF_WRITE | SHF_TLS | SHF_COMPRESSED)))
        return bad(m, "section %u is not plain code or constants", i);
    if (s->sh_addralign > ALIGNMENT_MAX || (s->sh_addralign && !gm_is_pow2(s->sh_addralign)))
        return bad(m, "section %u has a strange alignment", i);
    *out = true;
    return 0;
}

/* Places the sections: code first, constants from the next page on. */
static int place_sections(struct image *m, struct loader_object *o)
{
    uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);
    uint64_t at = 0;
    for (int data = 0; data < 2; data++) {
        for (uint32_t i = 0; i < m->header.e_shnum; i++) {
            const Elf64_Shdr *s = &m->sections[i];
            bool take;
            int r = wanted(m, i, &take);
            if (r < 0)
                return r;
            if (!take || ((s->sh_flags & SHF_EXECINSTR) != 0) != (data == 0))
                continue;
            if (!gm_align_up(at, s->sh_addralign ? s->sh_addralign : 1, &at) ||
                !inside(at, s->sh_size, LOADER_CODE_MAX))
                return bad(m, "more than %u bytes of code", LOADER_CODE_MAX);
            m->place[i] = at;
            at += s->sh_size;
        }
        if (!gm_align_up(at, page, &at))
            return bad(m, "too big");
        if (data == 0)
            o->code_size = at;
    }
    if (o->code_size == 0)
        return bad(m, "no code");
    o->mapped = at;
    return 0;
}

static int copy_sections(const struct image *m, struct loader_object *o)
{
    void *p = mmap(NULL, o->mapped, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (p == MAP_FAILED)
        return -ENOMEM;
    o->memory = p;
    for (uint32_t i = 0; i < m->header.e_shnum; i++)
        if (m->place[i] != NOT_LOADED)
            memcpy(o->memory + m->place[i], m->bytes + m->sections[i].sh_offset,
                   m->sections[i].sh_size);
    return 0;
}

static Elf64_Sym symbol_at(const struct image *m, uint32_t i)
{
    Elf64_Sym s;
    memcpy(&s, m->bytes + m->sections[m->symbols].sh_offset + (uint64_t)i * sizeof(s), sizeof(s));
    return s;
}

/* Finds the offset of symbol `i` in the mapping. */
static int resolve(struct image *m, uint32_t i, uint64_t *out)
{
    if (!m->symbols || i >= m->symbol_count)
        return bad(m, "relocation against symbol %u of %u", i, m->symbol_count);
    Elf64_Sym s = symbol_at(m, i);
    if (s.st_shndx == SHN_UNDEF) {
        const char *name = string_at(m, m->sections[m->symbols].sh_link, s.st_name);
        return bad(m, "external symbol %.64s", name ? name : "without a name");
    }
    if (s.st_shndx >= m->header.e_shnum || m->place[s.st_shndx] == NOT_LOADED)
        return bad(m, "symbol %u is not in code or constants", i);
    if (s.st_value > m->sections[s.st_shndx].sh_size)
        return bad(m, "symbol %u is outside of its section", i);
    *out = m->place[s.st_shndx] + s.st_value;
    return 0;
}

static int relocate_section(struct image *m, struct loader_object *o, const Elf64_Shdr *s)
{
    uint32_t target = s->sh_info;
    if (target >= m->header.e_shnum)
        return bad(m, "relocations for section %u", target);
    if (m->place[target] == NOT_LOADED)
        return 0;
    if (s->sh_entsize != sizeof(Elf64_Rela))
        return bad(m, "relocations of %llu bytes", (unsigned long long)s->sh_entsize);
    for (uint64_t at = 0; at + sizeof(Elf64_Rela) <= s->sh_size; at += sizeof(Elf64_Rela)) {
        Elf64_Rela rela;
        uint64_t symbol;
        memcpy(&rela, m->bytes + s->sh_offset + at, sizeof(rela));
        int r = resolve(m, (uint32_t)ELF64_R_SYM(rela.r_info), &symbol);
        if (r < 0)
            return r;
        uint32_t type = (uint32_t)ELF64_R_TYPE(rela.r_info);
        uint32_t width = loader_relocation_width(type);
        if (width == 0)
            return bad(m, "relocation of type %u", type);
        if (!inside(rela.r_offset, width, m->sections[target].sh_size))
            return bad(m, "relocation outside of its section");
        uint8_t *where = o->memory + m->place[target] + rela.r_offset;
        if (!loader_relocate(type, where, (uint64_t)(uintptr_t)(o->memory + symbol), rela.r_addend))
            return bad(m, "relocation of type %u out of range", type);
    }
    return 0;
}

static int relocate_all(struct image *m, struct loader_object *o)
{
    for (uint32_t i = 0; i < m->header.e_shnum; i++) {
        if (m->sections[i].sh_type != SHT_RELA)
            continue;
        int r = relocate_section(m, o, &m->sections[i]);
        if (r < 0)
            return r;
    }
    return 0;
}

/* Collects the global symbols of mapped sections. */
static int collect_exports(struct image *m, struct loader_object *o)
{
    for (uint32_t i = 1; i < m->symbol_count; i++) {
        Elf64_Sym s = symbol_at(m, i);
        uint64_t offset;
        if (ELF64_ST_BIND(s.st_info) != STB_GLOBAL)
            continue;
        int r = resolve(m, i, &offset);
        if (r < 0)
            return r;
        const char *name = string_at(m, m->sections[m->symbols].sh_link, s.st_name);
        const Elf64_Shdr *section = &m->sections[s.st_shndx];
        if (!name || strlen(name) >= sizeof(o->exports[0].name) ||
            o->exports_count == EXPORTS_MAX || !inside(s.st_value, s.st_size, section->sh_size))
            return bad(m, "global symbol %u is none of ours", i);
        struct exported *e = &o->exports[o->exports_count++];
        snprintf(e->name, sizeof(e->name), "%s", name);
        e->offset = offset;
        e->size = s.st_size;
        e->code = (section->sh_flags & SHF_EXECINSTR) != 0;
    }
    return 0;
}

static int protect(struct loader_object *o)
{
    if (mprotect(o->memory, o->code_size, PROT_READ | PROT_EXEC) < 0)
        return -errno;
    if (o->mapped > o->code_size &&
        mprotect(o->memory + o->code_size, o->mapped - o->code_size, PROT_READ) < 0)
        return -errno;
    __builtin___clear_cache((char *)o->memory, (char *)o->memory + o->code_size);
    return 0;
}

int loader_object_load(const void *bytes, size_t size, struct loader_object **out, char *why,
                       size_t why_size)
{
    struct image m = { .bytes = bytes, .size = size, .why = why, .why_size = why_size };
    struct loader_object *o = calloc(1, sizeof(*o));
    int r = o ? 0 : -ENOMEM;

    if (r == 0)
        r = read_header(&m);
    if (r == 0)
        r = read_sections(&m);
    if (r == 0)
        r = place_sections(&m, o);
    if (r == 0)
        r = copy_sections(&m, o);
    if (r == 0)
        r = relocate_all(&m, o);
    if (r == 0)
        r = collect_exports(&m, o);
    if (r == 0)
        r = protect(o);
    free(m.sections);
    free(m.place);
    if (r < 0) {
        if (r != -EBADMSG)
            snprintf(why, why_size, "%s", strerror(-r));
        loader_object_unload(o);
        return r;
    }
    *out = o;
    return 0;
}

void loader_object_unload(struct loader_object *o)
{
    if (!o)
        return;
    if (o->memory)
        munmap(o->memory, o->mapped);
    free(o);
}

static const struct exported *find_export(const struct loader_object *o, const char *name,
                                          bool code)
{
    for (unsigned i = 0; i < o->exports_count; i++)
        if (o->exports[i].code == code && strcmp(o->exports[i].name, name) == 0)
            return &o->exports[i];
    return NULL;
}

void *loader_object_function(const struct loader_object *o, const char *name)
{
    const struct exported *e = find_export(o, name, true);
    return e ? o->memory + e->offset : NULL;
}

const void *loader_object_data(const struct loader_object *o, const char *name, size_t size)
{
    const struct exported *e = find_export(o, name, false);
    return e && e->size >= size && e->offset % 8 == 0 ? o->memory + e->offset : NULL;
}

size_t loader_object_size(const struct loader_object *o)
{
    return o->mapped;
}
