/*
 * Cubins: ELF files with machine code for one GPU architecture, and their variables. As in
 * fatbin.h everything may be hostile, and nothing is kept but pointers into the file.
 */
#ifndef GMUX_FATBIN_CUBIN_H
#define GMUX_FATBIN_CUBIN_H

#include <elf.h>
#include <stddef.h>
#include <stdint.h>

#include "base/attr.h"

/* False if an ELF file that fits (fb_elf_fits) is machine code of GPUs with another major number
 * than `sm` has (90 ..). Toolkits before 13 wrote the architecture elsewhere: either place will do.
 */
bool fb_cubin_serves(const void *data, uint32_t sm);

struct fb_cubin {
    const uint8_t *data;
    size_t size;
    uint32_t sm;
    uint64_t sections_at;
    uint64_t sections_count;
    Elf64_Shdr symbols;
    Elf64_Shdr strings; /* of the symbols */
    Elf64_Shdr names;   /* of the sections */
    Elf64_Shdr indices; /* sections of symbols that need more than 16 bits; or empty */
};

struct fb_variable {
    const char *name;
    uint64_t size;
    bool is_const;    /* __constant__: a program writes it, kernels do not */
    bool is_managed;  /* __managed__ */
    bool of_compiler; /* a string or a table that no program knows of, or an object without state:
                         nobody writes it */
};

/* The length of the ELF file at `elf`, as its headers say: reads as far as they point, so only for
 * memory that is the caller's own risk. 0 if it is none, or longer than `limit`. */
size_t fb_elf_size(const void *elf, size_t limit);

/* True if it is an ELF file of 64 bits whose tables and sections lie within `size` bytes. */
bool fb_elf_fits(const void *elf, size_t size);

/* 0, or -EBADMSG if it is no cubin with symbols. */
GM_MUST_CHECK int fb_cubin_open(struct fb_cubin *c, const void *data, size_t size);
/* The next variable at or after symbol *at, which starts as 0: 1, 0 at the end, -EBADMSG. */
GM_MUST_CHECK int fb_cubin_variable(const struct fb_cubin *c, uint64_t *at, struct fb_variable *v);
/* True if neither a program nor its kernels can leave anything in the cubin: it has no variables
 * that are theirs. */
bool fb_cubin_is_constant(const struct fb_cubin *c);

/* --- what lies below: for those that change one ----------------------------------------------- */

#define FB_SYMBOL_MANAGED 0x04u /* in st_other */

/* Some of NVIDIA's types of sections have none in the file, as SHT_NOBITS. */
bool fb_section_has_bytes(const Elf64_Shdr *s);
/* Section `index`; its bytes, if it has any, lie within the file. */
GM_MUST_CHECK bool fb_cubin_section(const struct fb_cubin *c, uint64_t index, Elf64_Shdr *s);
/* Symbol `index` and the section that it lies in, 0 for none. */
GM_MUST_CHECK bool fb_cubin_symbol(const struct fb_cubin *c, uint64_t index, Elf64_Sym *s,
                                   uint64_t *section);
/* A symbol's name; "" if it is none. */
const char *fb_cubin_string(const struct fb_cubin *c, uint32_t at);

#endif
