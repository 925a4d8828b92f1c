/* Fat binaries as nvcc writes them, in all its ways of compressing; cut short, changed, and bombs.
 */
#include <criterion/criterion.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <zstd.h>

#include "fatbin/cubin.h"
#include "fatbin/fatbin.h"
#include "files.h"

#define LIMIT (1u << 20)

TestSuite(fatbin, .timeout = 100);

static const char *const names[] = { "none.fatbin",       "speed.fatbin", "balance.fatbin",
                                     "size.fatbin",       "many.fatbin",  "machine.fatbin",
                                     "relocatable.fatbin" };

static struct fb_entry entry_of(const struct file *f, enum fb_kind kind)
{
    struct fb_reader r;
    struct fb_entry e, found = { 0 };
    unsigned count = 0;
    int more;
    cr_assert_eq(fb_open(&r, f->data, f->size), 0);
    while ((more = fb_next(&r, &e)) > 0)
        if (e.kind == kind) {
            found = e;
            count++;
        }
    cr_assert_eq(more, 0);
    cr_assert_eq(count, 1);
    return found;
}

Test(fatbin, all_ways_of_compressing)
{
    static const enum fb_packing ptx[] = { FB_PLAIN, FB_LZ4, FB_ZSTD, FB_ZSTD };
    static const enum fb_packing cubin[] = { FB_PLAIN, FB_PLAIN, FB_PLAIN, FB_ZSTD };
    char *first = NULL;
    for (int i = 0; i < 4; i++) {
        struct file f = file_read(names[i]);
        void *text, *machine;
        size_t size;
        cr_assert_eq(fb_size(f.data), f.size);
        struct fb_entry e = entry_of(&f, FB_KIND_PTX);
        cr_assert_eq(e.packing, ptx[i]);
        cr_assert_eq(e.sm, 75);
        cr_assert_eq(e.isa_major, 9);
        cr_assert_eq(fb_unpack(&e, LIMIT, &text, &size), 0);
        cr_assert_eq(size, e.whole_size);
        cr_assert(strstr(text, ".entry plain("));
        if (i == 0)
            first = text;
        cr_assert_str_eq(text, first, "%s", names[i]);

        e = entry_of(&f, FB_KIND_CUBIN);
        cr_assert_eq(e.packing, cubin[i]);
        cr_assert_eq(fb_unpack(&e, LIMIT, &machine, &size), 0);
        cr_assert(fb_elf_size(machine, LIMIT) <= size && fb_elf_size(machine, LIMIT) + 8 > size);
        cr_assert_eq(fb_unpack(&e, size - 1, &machine, &size), -EFBIG);
    }
}

/* many.fatbin: cubins 75, 80, 86, 90, 90a, 100f; PTX 75, 90. */
Test(fatbin, best_for_an_architecture)
{
    static const struct {
        uint32_t sm;
        unsigned wanted;
        int found;
        uint16_t kind;
        uint32_t is;
        uint64_t flag;
    } cases[] = {
        { 75, FB_WANT_CUBIN | FB_WANT_PTX, 1, FB_KIND_CUBIN, 75, 0 },
        { 80, FB_WANT_CUBIN | FB_WANT_PTX, 1, FB_KIND_CUBIN, 80, 0 },
        { 86, FB_WANT_CUBIN | FB_WANT_PTX, 1, FB_KIND_CUBIN, 86, 0 },
        { 89, FB_WANT_CUBIN | FB_WANT_PTX, 1, FB_KIND_CUBIN, 86, 0 },
        { 90, FB_WANT_CUBIN | FB_WANT_PTX, 1, FB_KIND_CUBIN, 90, FB_FLAG_EXACT },
        { 100, FB_WANT_CUBIN | FB_WANT_PTX, 1, FB_KIND_CUBIN, 100, FB_FLAG_FAMILY },
        { 103, FB_WANT_CUBIN | FB_WANT_PTX, 1, FB_KIND_CUBIN, 100, FB_FLAG_FAMILY },
        { 110, FB_WANT_CUBIN | FB_WANT_PTX, 1, FB_KIND_PTX, 90, 0 },
        { 120, FB_WANT_CUBIN, 0, 0, 0, 0 },
        { 89, FB_WANT_PTX, 1, FB_KIND_PTX, 75, 0 },
        { 90, FB_WANT_PTX, 1, FB_KIND_PTX, 90, 0 },
        { 70, FB_WANT_CUBIN | FB_WANT_PTX, 0, 0, 0, 0 },
        { 70, FB_WANT_PTX | FB_WANT_ANY_PTX, 1, FB_KIND_PTX, 75, 0 },
    };
    struct file f = file_read("many.fatbin");
    for (size_t i = 0; i < GM_ARRAY_LEN(cases); i++) {
        struct fb_entry e = { 0 };
        cr_assert_eq(fb_pick(f.data, f.size, cases[i].sm, cases[i].wanted, &e), cases[i].found,
                     "case %zu", i);
        cr_assert_eq(e.kind, cases[i].kind, "case %zu", i);
        cr_assert_eq(e.sm, cases[i].is, "case %zu", i);
        cr_assert_eq(e.flags & (FB_FLAG_EXACT | FB_FLAG_FAMILY), cases[i].flag, "case %zu", i);
    }
    f = file_read("machine.fatbin");
    struct fb_entry e;
    cr_assert_eq(fb_pick(f.data, f.size, 90, FB_WANT_PTX | FB_WANT_ANY_PTX, &e), 0);
}

/* Everything there is to read; the entries met. */
static int read_all(const uint8_t *data, size_t size)
{
    struct fb_reader r;
    struct fb_entry e;
    int entries = 0, more = fb_open(&r, data, size);
    if (more < 0)
        return more;
    while ((more = fb_next(&r, &e)) > 0) {
        void *out;
        size_t out_size;
        struct fb_cubin c;
        entries++;
        int got = fb_unpack(&e, LIMIT, &out, &out_size);
        cr_assert_eq(got == 0, out != NULL);
        cr_assert(got < 0 || out_size == e.whole_size);
        if (got == 0)
            (void)!fb_cubin_open(&c, out, out_size);
        free(out);
    }
    (void)!fb_pick(data, size, 90, FB_WANT_CUBIN | FB_WANT_PTX | FB_WANT_ANY_PTX, &e);
    void *slim = NULL;
    (void)!fb_slim(data, size, 90, &slim, &(size_t) { 0 });
    free(slim);
    return more < 0 ? more : entries;
}

/* What is left out changes nothing for the GPU it is meant for. */
Test(fatbin, slimmed)
{
    static const struct {
        uint32_t sm;
        int entries; /* 0: nothing to leave out, or nothing left */
    } cases[] = { { 75, 2 }, { 80, 2 }, { 89, 3 }, { 90, 4 }, { 100, 3 }, { 120, 2 }, { 70, 0 } };
    const unsigned wanted = FB_WANT_CUBIN | FB_WANT_PTX;
    struct file f = file_read("many.fatbin");
    for (size_t i = 0; i < GM_ARRAY_LEN(cases); i++) {
        void *slim = NULL;
        size_t size;
        struct fb_entry before, after;
        int r = fb_slim(f.data, f.size, cases[i].sm, &slim, &size);
        cr_assert_eq(r, cases[i].entries != 0, "case %zu", i);
        if (r == 0)
            continue;
        cr_assert(size < f.size);
        uint8_t *copy = at_the_edge(slim, size);
        cr_assert_eq(fb_size(copy), size);
        cr_assert_eq(read_all(copy, size), cases[i].entries, "case %zu", i);
        cr_assert_eq(fb_pick(f.data, f.size, cases[i].sm, wanted, &before), 1);
        cr_assert_eq(fb_pick(copy, size, cases[i].sm, wanted, &after), 1);
        cr_assert_eq(before.entry_size, after.entry_size);
        cr_assert_eq(memcmp(before.whole, after.whole, before.entry_size), 0);
        cr_assert_eq(fb_slim(copy, size, cases[i].sm, &slim, &size), 0, "once is enough");
    }
    f = file_read("size.fatbin");
    void *slim;
    size_t size;
    cr_assert_eq(fb_slim(f.data, f.size, 75, &slim, &size), 0);
    cr_assert_eq(fb_slim(f.data, f.size - 1, 90, &slim, &size), -EBADMSG);
}

Test(fatbin, for_which_gpus)
{
    struct file none = file_read("none.fatbin"), machine = file_read("machine.fatbin");
    struct file old = file_read("machine-75.fatbin"), cubin = file_read("plain.cubin");
    cr_assert(fb_serves(none.data, none.size, 120), "its text");
    cr_assert(fb_serves(machine.data, machine.size, 90));
    cr_assert_not(fb_serves(machine.data, machine.size, 100));
    cr_assert(fb_serves(old.data, old.size, 75));
    cr_assert_not(fb_serves(old.data, old.size, 90));
    cr_assert(fb_serves(machine.data, machine.size / 2, 100), "which cannot be read");
    cr_assert(fb_cubin_serves(cubin.data, 90));
    cr_assert_not(fb_cubin_serves(cubin.data, 75));
    free(none.data);
    free(machine.data);
    free(old.data);
    free(cubin.data);
}

Test(fatbin, cut_at_every_length)
{
    for (size_t i = 0; i < GM_ARRAY_LEN(names); i++) {
        struct file f = file_read(names[i]);
        int whole = read_all(at_the_edge(f.data, f.size), f.size);
        cr_assert(whole > 0);
        for (size_t n = 0; n < f.size; n++) {
            cr_assert_eq(read_all(at_the_edge(f.data, n), n), -EBADMSG, "%s, %zu", names[i], n);
            if (n < FB_HEADER_SIZE)
                continue;
            /* This time with a header that says so. */
            uint8_t *cut = at_the_edge(f.data, n);
            memcpy(cut + 8, &(uint64_t) { n - FB_HEADER_SIZE }, 8);
            int r = read_all(cut, n);
            cr_assert(r == -EBADMSG || (r >= 0 && r < whole), "%s, %zu", names[i], n);
        }
    }
}

Test(fatbin, changed_bytes)
{
    uint64_t random = 1;
    for (size_t i = 0; i < GM_ARRAY_LEN(names); i++) {
        struct file f = file_read(names[i]);
        for (int n = 0; n < 4000; n++) {
            uint8_t *changed = at_the_edge(f.data, f.size);
            mutate(changed, f.size, &random);
            (void)read_all(changed, f.size);
        }
    }
}

static struct fb_entry packed(enum fb_packing packing, const void *data, size_t size,
                              uint64_t whole)
{
    return (struct fb_entry) {
        .kind = FB_KIND_PTX, .packing = packing, .data = data, .size = size, .whole_size = whole
    };
}

Test(fatbin, bombs)
{
    size_t zeros_size = 64u << 20, bound = ZSTD_compressBound(zeros_size), size;
    void *zeros = calloc(1, zeros_size), *small = malloc(bound), *out;
    size_t n = ZSTD_compress(small, bound, zeros, zeros_size, 3);
    cr_assert(n < zeros_size / 1000);

    struct fb_entry e = packed(FB_ZSTD, small, n, zeros_size);
    cr_assert_eq(fb_unpack(&e, LIMIT, &out, &size), -EFBIG, "it says what it is");
    e.whole_size = LIMIT;
    cr_assert_eq(fb_unpack(&e, LIMIT, &out, &size), -EBADMSG, "it says less than it is");
    e.whole_size = 2 * zeros_size;
    cr_assert_eq(fb_unpack(&e, SIZE_MAX, &out, &size), -EBADMSG, "it says more than it is");
    e.whole_size = UINT64_MAX;
    cr_assert_eq(fb_unpack(&e, LIMIT, &out, &size), -EFBIG);
    e.whole_size = zeros_size;
    cr_assert_eq(fb_unpack(&e, zeros_size, &out, &size), 0);
    cr_assert_eq(memcmp(out, zeros, zeros_size), 0);

    e = packed(FB_LZ4, small, 100, LIMIT);
    cr_assert_eq(fb_unpack(&e, LIMIT, &out, &size), -EBADMSG, "no LZ4 becomes so much more");
    e = packed(FB_UNKNOWN, small, n, LIMIT);
    cr_assert_eq(fb_unpack(&e, LIMIT, &out, &size), -ENOTSUP);
    cr_assert_null(out);
}

Test(fatbin, sizes_that_lie)
{
    struct file f = file_read("none.fatbin");
    struct fb_reader r;
    memcpy(f.data + 8, &(uint64_t) { UINT64_MAX }, 8);
    cr_assert_eq(fb_size(f.data), 0);
    cr_assert_eq(fb_open(&r, f.data, f.size), -EBADMSG);
    memcpy(f.data + 8, &(uint64_t) { f.size }, 8);
    cr_assert_eq(fb_open(&r, f.data, f.size), -EBADMSG);
    memcpy(f.data + 8, &(uint64_t) { 0 }, 8); /* what is linked ahead of PTX: nothing */
    cr_assert_eq(fb_size(f.data), FB_HEADER_SIZE);
    cr_assert_eq(read_all(f.data, f.size), 0);
    f.data[0] = 0;
    cr_assert_eq(fb_size(f.data), 0);
}

/* What is made is read again: each text with a zero byte behind it, for its architecture. */
Test(fatbin, made_of_ptx)
{
    const struct fb_ptx ptx[] = { { "seven..", 7, 8, 3, 75 }, { "eight...", 8, 8, 3, 90 } };
    void *data, *text;
    size_t size, text_size;
    struct fb_reader r;
    struct fb_entry e;
    cr_assert_eq(fb_make(ptx, 2, &data, &size), 0);
    cr_assert_eq(fb_size(data), size);
    /* As nvcc writes it: without options, and NVIDIA's driver looks where they would be. */
    const uint8_t *entry = (const uint8_t *)data + FB_HEADER_SIZE;
    static const uint8_t options[16] = { 72 };
    cr_assert(entry[4] == 80 && entry[20] == 64);
    cr_assert_arr_eq(entry + 64, options, sizeof(options));
    cr_assert_eq(fb_open(&r, data, size), 0);
    for (int i = 0; i < 2; i++) {
        cr_assert_eq(fb_next(&r, &e), 1);
        cr_assert(e.kind == FB_KIND_PTX && e.sm == ptx[i].sm && e.isa_major == 8 &&
                  e.isa_minor == 3);
        cr_assert_eq(fb_unpack(&e, LIMIT, &text, &text_size), 0);
        cr_assert_str_eq(text, ptx[i].text);
        free(text);
    }
    cr_assert_eq(fb_next(&r, &e), 0);
    free(data);
}
