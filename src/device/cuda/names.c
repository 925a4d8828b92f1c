/*
 * The driver finds a variable by its name, but cannot say which there are. In PTX they are declared, in a cubin they
 * are symbols; a fat binary is not looked into.
 */
#include <elf.h>
#include <stdlib.h>
#include <string.h>

#include "device/cuda/state.h"
#include "device/null/scan.h"

typedef void found_fn(void *arg, const char *name);

static void names_of_ptx(const char *text, size_t size, found_fn *found, void *arg)
{
    struct dev_module_info scanned = { 0 };
    struct wire_module_info info;
    struct wire_global_info g;
    struct wire_dec d;
    uint32_t functions;
    if (dev_null_scan(text, size, &scanned, &functions) != GM_CUDA_SUCCESS) {
        free(scanned.log);
        return;
    }
    wire_dec_init(&d, scanned.info.data, scanned.info.size);
    wire_get_module_info(&d, &info);
    wire_dec_init(&d, info.globals.data, info.globals.size);
    while (!wire_dec_end(&d)) {
        wire_get_global_info(&d, &g);
        if (!d.fatal)
            found(arg, g.name);
    }
    free((void *)(uintptr_t)scanned.info.data);
}

/* Section `index`, if it is there and lies within the file. */
static bool section(const uint8_t *base, size_t size, const Elf64_Ehdr *e, unsigned index, Elf64_Shdr *out)
{
    uint64_t at = e->e_shoff + (uint64_t)index * sizeof(*out);
    if (index >= e->e_shnum || at > size || size - at < sizeof(*out))
        return false;
    memcpy(out, base + at, sizeof(*out));
    return out->sh_offset <= size && out->sh_size <= size - out->sh_offset;
}

static void names_of_symbols(const uint8_t *base, const Elf64_Shdr *symbols, const Elf64_Shdr *strings,
                             found_fn *found, void *arg)
{
    if (strings->sh_size == 0 || base[strings->sh_offset + strings->sh_size - 1] != '\0')
        return;
    for (uint64_t at = 0; at + sizeof(Elf64_Sym) <= symbols->sh_size; at += sizeof(Elf64_Sym)) {
        Elf64_Sym s;
        memcpy(&s, base + symbols->sh_offset + at, sizeof(s));
        const char *name = s.st_name < strings->sh_size ? (const char *)base + strings->sh_offset + s.st_name : "";
        if (ELF64_ST_TYPE(s.st_info) == STT_OBJECT && *name)
            found(arg, name);
    }
}

static void names_of_cubin(const uint8_t *base, size_t size, found_fn *found, void *arg)
{
    Elf64_Ehdr e;
    Elf64_Shdr symbols, strings;
    if (size < sizeof(e))
        return;
    memcpy(&e, base, sizeof(e));
    if (memcmp(e.e_ident, ELFMAG, SELFMAG) != 0 || e.e_shentsize != sizeof(Elf64_Shdr) || e.e_shoff > size)
        return;
    for (unsigned i = 0; i < e.e_shnum; i++)
        if (section(base, size, &e, i, &symbols) && symbols.sh_type == SHT_SYMTAB &&
            section(base, size, &e, symbols.sh_link, &strings))
            names_of_symbols(base, &symbols, &strings, found, arg);
}

void cuda_names(const void *image, size_t size, uint32_t kind, found_fn *found, void *arg)
{
    if (kind == WIRE_IMAGE_KIND_PTX)
        names_of_ptx(image, size, found, arg);
    else if (kind == WIRE_IMAGE_KIND_CUBIN)
        names_of_cubin(image, size, found, arg);
}
