/*
 * Relocatable device code. Before main() each object calls a function with a name of its own, with
 * its fat binary and what it registers (clang and nvcc both do this); the link has to define that
 * function. This file finds the names among the undefined symbols of objects and archives, and
 * writes the source that defines them: it gathers the fat binaries into a list, which the driver
 * links when something of it is first used.
 */
#include <ar.h>
#include <elf.h>
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "cudart/cc/cc.h"

#define PREFIX "__cudaRegisterLinkedBinary"

/* The bytes of an object. Only what lies inside of them is read. */
struct object {
    const char *at;
    size_t size;
};

static const void *part(const struct object *o, uint64_t offset, uint64_t size)
{
    return offset <= o->size && size <= o->size - offset ? o->at + offset : NULL;
}

static bool is_in(const struct cc_list *l, const char *name)
{
    for (size_t i = 0; i < l->count; i++)
        if (strcmp(l->at[i], name) == 0)
            return true;
    return false;
}

static void look_at_symbols(const struct object *o, const Elf64_Shdr *symbols,
                            const Elf64_Shdr *names, struct cc_list *wanted,
                            struct cc_list *defined)
{
    const char *text = part(o, names->sh_offset, names->sh_size);
    const char *table = part(o, symbols->sh_offset, symbols->sh_size);
    if (!text || !table || names->sh_size == 0 || text[names->sh_size - 1])
        return;
    for (uint64_t i = 0; i < symbols->sh_size / sizeof(Elf64_Sym); i++) {
        Elf64_Sym s;
        memcpy(&s, table + i * sizeof(s), sizeof(s));
        if (s.st_name >= names->sh_size || strncmp(text + s.st_name, PREFIX, strlen(PREFIX)) != 0)
            continue;
        struct cc_list *l = s.st_shndx == SHN_UNDEF ? wanted : defined;
        if (!is_in(l, text + s.st_name))
            cc_add(l, cc_format("%s", text + s.st_name));
    }
}

static void look_at_object(const struct object *o, struct cc_list *wanted, struct cc_list *defined)
{
    const char *head = part(o, 0, sizeof(Elf64_Ehdr));
    Elf64_Ehdr e;
    if (!head)
        return;
    memcpy(&e, head, sizeof(e));
    if (memcmp(e.e_ident, ELFMAG, SELFMAG) != 0 || e.e_ident[EI_CLASS] != ELFCLASS64 ||
        e.e_type != ET_REL || e.e_shentsize != sizeof(Elf64_Shdr))
        return;
    const char *sections = part(o, e.e_shoff, (uint64_t)e.e_shnum * sizeof(Elf64_Shdr));
    for (unsigned i = 0; sections && i < e.e_shnum; i++) {
        Elf64_Shdr s, names;
        memcpy(&s, sections + i * sizeof(s), sizeof(s));
        if (s.sh_type != SHT_SYMTAB || s.sh_link >= e.e_shnum)
            continue;
        memcpy(&names, sections + s.sh_link * sizeof(s), sizeof(s));
        look_at_symbols(o, &s, &names, wanted, defined);
    }
}

static void look_at_archive(const struct object *a, struct cc_list *wanted, struct cc_list *defined)
{
    size_t at = SARMAG;
    const struct ar_hdr *h;
    while ((h = part(a, at, sizeof(*h)))) {
        char digits[sizeof(h->ar_size) + 1] = "";
        memcpy(digits, h->ar_size, sizeof(h->ar_size));
        size_t size = strtoul(digits, NULL, 10);
        const char *body = part(a, at + sizeof(*h), size);
        if (!body)
            return;
        look_at_object(&(struct object) { body, size }, wanted, defined);
        at += sizeof(*h) + size + (size & 1);
    }
}

/* Lists which of these functions an input of the link needs and which it defines. */
static void look_at(const char *path, struct cc_list *wanted, struct cc_list *defined)
{
    struct object o = { 0 };
    o.at = cc_read(path, &o.size);
    if (!o.at)
        return; /* the linker reports this */
    if (o.size > SARMAG && memcmp(o.at, ARMAG, SARMAG) == 0)
        look_at_archive(&o, wanted, defined);
    else
        look_at_object(&o, wanted, defined);
    free((void *)(uintptr_t)o.at);
}

static const char source[] =
    "/* An empty fat binary: nothing was linked ahead. */\n"
    "static const struct { unsigned magic; unsigned short version, header; unsigned long size; }\n"
    "    none = { 0xba55ed50u, 1, 16, 0 };\n"
    "static const void *list[%zu];\n"
    "static struct { unsigned magic, version; const void *data; const void *const *list; }\n"
    "    all = { 0x466243b1u, 2, &none, list };\n"
    "extern void **__cudaRegisterFatBinary(void *);\n"
    "extern void __cudaRegisterFatBinaryEnd(void **);\n"
    "extern void __cudaUnregisterFatBinary(void **);\n"
    "extern int atexit(void (*)(void));\n"
    "static void **handle;\n"
    "static unsigned count;\n"
    "static void finish(void) { __cudaUnregisterFatBinary(handle); }\n"
    "static void add(void (*use)(void **), const void *const *wrapper)\n"
    "{\n"
    "    list[count++] = wrapper[1];\n"
    "    if (!handle) {\n"
    "        handle = __cudaRegisterFatBinary(&all);\n"
    "        atexit(finish);\n"
    "    }\n"
    "    use(handle);\n"
    "    __cudaRegisterFatBinaryEnd(handle);\n"
    "}\n";

bool cc_write_registrations(const struct cc_list *inputs, const char *path)
{
    static struct cc_list wanted, defined;
    size_t count = 0;
    for (size_t i = 0; i < inputs->count; i++)
        if (inputs->at[i][0] != '-')
            look_at(inputs->at[i], &wanted, &defined);
    for (size_t i = 0; i < wanted.count; i++)
        count += !is_in(&defined, wanted.at[i]);
    if (count == 0)
        return false;
    FILE *f = fopen(path, "we");
    if (!f)
        cc_fail("%s: %s", path, strerror(errno));
    (void)fprintf(f, source, count + 1);
    for (size_t i = 0; i < wanted.count; i++)
        if (!is_in(&defined, wanted.at[i]))
            (void)fprintf(f,
                          "void %s(void (*use)(void **), void *wrapper, void *id, void *unused)\n"
                          "{\n    add(use, wrapper);\n}\n",
                          wanted.at[i]);
    if (fclose(f) != 0)
        cc_fail("%s: %s", path, strerror(errno));
    return true;
}
