/* Fat binaries in objects and archives, made here as gcc, nvcc and ar lay them out (System V ABI;
 * ar(5)). */
#include <criterion/criterion.h>
#include <elf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fatbin/fatbin.h"
#include "fatbin/object.h"
#include "files.h"

TestSuite(object, .timeout = 60);

struct bytes {
    uint8_t *data;
    size_t size;
};

static size_t put(struct bytes *b, const void *data, size_t size)
{
    size_t at = (b->size + 7) & ~(size_t)7;
    b->data = realloc(b->data, at + size);
    memset(b->data + b->size, 0, at - b->size);
    memcpy(b->data + at, data, size);
    b->size = at + size;
    return at;
}

/* An object with a section of that name, in which the fat binary stands twice. */
static struct bytes object(const char *section, const struct file *fatbin)
{
    char names[64] = "\0.shstrtab\0";
    Elf64_Ehdr e = { .e_ident = { ELFMAG0, ELFMAG1, ELFMAG2, ELFMAG3, ELFCLASS64, ELFDATA2LSB,
                                  EV_CURRENT },
                     .e_type = ET_REL,
                     .e_machine = EM_X86_64,
                     .e_ehsize = sizeof(e),
                     .e_shentsize = sizeof(Elf64_Shdr),
                     .e_shnum = 3,
                     .e_shstrndx = 1 };
    Elf64_Shdr s[3] = { { 0 },
                        { .sh_name = 1, .sh_type = SHT_STRTAB },
                        { .sh_name = 11, .sh_type = SHT_PROGBITS } };
    struct bytes b = { 0 };
    strcpy(names + 11, section);
    put(&b, &e, sizeof(e));
    s[1].sh_size = 11 + strlen(section) + 1;
    s[1].sh_offset = put(&b, names, s[1].sh_size);
    s[2].sh_offset = put(&b, fatbin->data, fatbin->size);
    put(&b, fatbin->data, fatbin->size);
    s[2].sh_size = b.size - s[2].sh_offset;
    e.e_shoff = put(&b, s, sizeof(s));
    memcpy(b.data, &e, sizeof(e));
    return b;
}

static void member(struct bytes *archive, const char *name, const void *data, size_t size)
{
    char header[61];
    archive->data = realloc(archive->data, archive->size + 60 + size + 1);
    (void)snprintf(header, sizeof(header), "%-16s%-12d%-6d%-6d%-8o%-10zu`\n", name, 0, 0, 0, 0644u,
                   size);
    memcpy(archive->data + archive->size, header, 60);
    memcpy(archive->data + archive->size + 60, data, size);
    archive->size += 60 + size;
    if (size % 2)
        archive->data[archive->size++] = '\n';
}

/* How many fat binaries there are; each lies in the bytes and is whole. -1: not readable. */
static int count(const uint8_t *data, size_t size)
{
    struct fb_objects o;
    const void *fatbin;
    int n = 0, r;
    if (fb_objects_open(&o, data, size) != 0)
        return -1;
    while ((r = fb_objects_next(&o, &fatbin)) > 0) {
        const uint8_t *at = fatbin;
        cr_assert(at >= data && at + FB_HEADER_SIZE <= data + size &&
                  fb_size(at) <= size - (size_t)(at - data));
        n++;
    }
    return r < 0 ? -1 : n;
}

Test(object, sections)
{
    struct file f = file_read("size.fatbin");
    static const struct {
        const char *name;
        int count;
    } cases[] = {
        { ".nv_fatbin", 2 }, { "__nv_relfatbin", 2 }, { ".data", 0 }, { ".nv_fatbin2", 0 }
    };
    for (size_t i = 0; i < GM_ARRAY_LEN(cases); i++) {
        struct bytes b = object(cases[i].name, &f);
        cr_expect_eq(count(at_the_edge(b.data, b.size), b.size), cases[i].count, "%s",
                     cases[i].name);
        free(b.data);
    }
    cr_expect_eq(count(f.data, f.size), -1);
}

Test(object, archives)
{
    struct file f = file_read("size.fatbin");
    struct bytes b = object(".nv_fatbin", &f), archive = { .data = malloc(8), .size = 8 };
    memcpy(archive.data, "!<arch>\n", 8);
    cr_expect_eq(count(archive.data, archive.size), 0);
    member(&archive, "/", "\0\0\0\0", 4);
    member(&archive, "a.o/", b.data, b.size);
    member(&archive, "readme.txt/", "odd", 3);
    member(&archive, "b.o/", b.data, b.size);
    cr_expect_eq(count(at_the_edge(archive.data, archive.size), archive.size), 4);
    free(archive.data);
    free(b.data);
}

Test(object, cut_and_bent)
{
    struct file f = file_read("size.fatbin");
    struct bytes b = object(".nv_fatbin", &f), archive = { .data = malloc(8), .size = 8 };
    memcpy(archive.data, "!<arch>\n", 8);
    member(&archive, "a.o/", b.data, b.size);
    for (size_t n = 0; n < b.size; n++)
        cr_expect_leq(count(at_the_edge(b.data, n), n), 2);
    for (size_t n = 0; n < archive.size; n++)
        cr_expect_leq(count(at_the_edge(archive.data, n), n), 2);
    for (size_t n = 0; n < b.size; n++) {
        uint8_t was = b.data[n];
        b.data[n] = 0xff;
        (void)count(at_the_edge(b.data, b.size), b.size);
        b.data[n] = was;
    }
    free(archive.data);
    free(b.data);
}
