/* A cubin as ptxas writes it: what is in it is what kernels.cu says. */
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "fatbin/cubin.h"
#include "files.h"

TestSuite(cubin, .timeout = 100);

Test(cubin, variables)
{
    static const struct fb_variable want[] = {
        { .name = "scale", .size = 16, .is_const = true },
        { .name = "counter", .size = 4 },
        { .name = "buffer", .size = 256 },
        { .name = "managed_word", .size = 4, .is_managed = true },
    };
    struct file f = file_read("kernels.cubin");
    struct fb_cubin c;
    struct fb_variable v;
    unsigned seen = 0;
    cr_assert_eq(fb_elf_size(f.data, 1 << 20), f.size);
    cr_assert_eq(fb_elf_size(f.data, f.size - 1), 0);
    cr_assert_eq(fb_cubin_open(&c, f.data, f.size), 0);
    cr_assert_eq(c.sm, 90);
    for (uint64_t at = 0; fb_cubin_variable(&c, &at, &v) > 0; seen++) {
        size_t i = 0;
        while (i < GM_ARRAY_LEN(want) && strcmp(want[i].name, v.name) != 0)
            i++;
        cr_assert(i < GM_ARRAY_LEN(want), "%s", v.name);
        cr_assert_eq(v.size, want[i].size, "%s", v.name);
        cr_assert_eq(v.is_const, want[i].is_const, "%s", v.name);
        cr_assert_eq(v.is_managed, want[i].is_managed, "%s", v.name);
        cr_assert_not(v.of_compiler);
    }
    cr_assert_eq(seen, GM_ARRAY_LEN(want));
    cr_assert_not(fb_cubin_is_constant(&c));
}

/* A section of NVIDIA's own type for shared memory has a size and no bytes, as in images that nvcc
 * -rdc makes. */
Test(cubin, sections_without_bytes)
{
    struct file f = file_read("kernels.cubin");
    struct fb_cubin c;
    Elf64_Ehdr e;
    Elf64_Shdr s;
    unsigned changed = 0;
    memcpy(&e, f.data, sizeof(e));
    for (unsigned i = 0; i < e.e_shnum; i++) {
        uint8_t *at = f.data + e.e_shoff + i * sizeof(s);
        memcpy(&s, at, sizeof(s));
        if (s.sh_type != SHT_NOBITS || s.sh_size == 0)
            continue;
        s.sh_type = 0x7000000a;
        s.sh_size = 1 << 20;
        memcpy(at, &s, sizeof(s));
        changed++;
    }
    cr_assert_geq(changed, 1);
    cr_assert_eq(fb_elf_size(f.data, 1 << 20), f.size);
    cr_assert(fb_elf_fits(f.data, f.size));
    cr_assert_eq(fb_cubin_open(&c, f.data, f.size), 0);
    struct fb_variable v;
    for (uint64_t at = 0; fb_cubin_variable(&c, &at, &v) > 0;)
        cr_assert_str_neq(v.name, "buffer", "in shared memory now: no variable of the module");
}

/* What a compiler puts there is no state: strings of printf and assert, tables, tags. */
Test(cubin, nothing_to_leave_something_in)
{
    static const char *const quiet[] = { "tables.cubin", "plain.cubin" };
    struct fb_cubin c;
    struct fb_variable v;
    unsigned seen = 0;
    for (int i = 0; i < 2; i++) {
        struct file f = file_read(quiet[i]);
        cr_assert_eq(fb_cubin_open(&c, f.data, f.size), 0);
        cr_assert(fb_cubin_is_constant(&c), "%s", quiet[i]);
        for (uint64_t at = 0; fb_cubin_variable(&c, &at, &v) > 0;)
            seen += v.of_compiler;
    }
    cr_assert_geq(seen, 5);
}

/* Everything there is to read. */
static void read_all(const uint8_t *data, size_t size)
{
    struct fb_cubin c;
    struct fb_variable v;
    volatile size_t names = 0;
    if (fb_cubin_open(&c, data, size) != 0)
        return;
    for (uint64_t at = 0; fb_cubin_variable(&c, &at, &v) > 0;)
        names = names + strlen(v.name);
}

Test(cubin, cut_at_every_length)
{
    struct file f = file_read("kernels.cubin");
    for (size_t n = 0; n < f.size; n++)
        read_all(at_the_edge(f.data, n), n);
}

Test(cubin, changed_bytes)
{
    struct file f = file_read("kernels.cubin");
    uint64_t random = 7;
    for (int n = 0; n < 30000; n++) {
        uint8_t *changed = at_the_edge(f.data, f.size);
        mutate(changed, f.size, &random);
        if (n & 1) /* among the section headers, which stand at the end */
            mutate(changed + f.size - 2048, 2048, &random);
        read_all(changed, f.size);
    }
}
