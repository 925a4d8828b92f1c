/* What the cuda device hands to the driver, which believes every size in it. */
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "base/result.h"
#include "device/cuda/image.h"
#include "device/device.h"
#include "files.h"

TestSuite(image, .timeout = 60);

static int opens(const void *bytes, size_t size, uint32_t kind)
{
    struct cuda_image i;
    int r = cuda_image_open(&i, bytes, size, kind);
    cuda_image_close(&i);
    return r;
}

Test(image, text_ends)
{
    struct cuda_image i;
    cr_assert_eq(cuda_image_open(&i, at_the_edge(".version", 8), 8, WIRE_IMAGE_KIND_PTX), 0);
    cr_assert_str_eq(i.data, ".version");
    cuda_image_close(&i);
    cr_assert_eq(opens(at_the_edge("x", 1), 1, WIRE_IMAGE_KIND_PTX), 0,
                 "its errors are the driver's");
}

Test(image, nothing_else_than_what_it_says)
{
    static const char *const names[] = { "size.fatbin", "kernels.cubin" };
    static const uint32_t kinds[] = { WIRE_IMAGE_KIND_FATBIN, WIRE_IMAGE_KIND_CUBIN };
    for (int i = 0; i < 2; i++) {
        struct file f = file_read(names[i]);
        uint8_t *bytes = at_the_edge(f.data, f.size);
        cr_assert_eq(opens(bytes, f.size, kinds[i]), 0);
        cr_assert_eq(opens(bytes, f.size, kinds[1 - i]), GM_CUDA_INVALID_IMAGE);
        cr_assert_eq(opens(bytes, f.size, WIRE_IMAGE_KIND_PTX), GM_CUDA_INVALID_IMAGE);
        cr_assert_eq(opens(bytes, f.size, 77), GM_CUDA_INVALID_IMAGE);
    }
    uint32_t wrapper[6] = { FB_WRAPPER_MAGIC, 1 };
    cr_assert_eq(opens(wrapper, sizeof(wrapper), WIRE_IMAGE_KIND_PTX), GM_CUDA_INVALID_IMAGE);
    cr_assert_eq(opens(wrapper, sizeof(wrapper), WIRE_IMAGE_KIND_FATBIN), GM_CUDA_INVALID_IMAGE);
}

Test(image, cut)
{
    static const char *const names[] = { "size.fatbin", "none.fatbin", "kernels.cubin" };
    static const uint32_t kinds[] = { WIRE_IMAGE_KIND_FATBIN, WIRE_IMAGE_KIND_FATBIN,
                                      WIRE_IMAGE_KIND_CUBIN };
    for (int i = 0; i < 3; i++) {
        struct file f = file_read(names[i]);
        for (size_t n = 1; n < f.size; n++)
            cr_assert_eq(opens(at_the_edge(f.data, n), n, kinds[i]), GM_CUDA_INVALID_IMAGE,
                         "%s, %zu", names[i], n);
    }
    /* The fat binary is whole, a cubin in it is not. */
    struct file f = file_read("none.fatbin");
    cr_assert_eq(memcmp(f.data + 80, "\177ELF", 4), 0);
    memset(f.data + 80 + 0x28, 0xff, 8); /* where its sections are */
    cr_assert_eq(opens(f.data, f.size, WIRE_IMAGE_KIND_FATBIN), GM_CUDA_INVALID_IMAGE);
}

Test(image, relocatable)
{
    struct file parts[] = { file_read("relocatable.fatbin"), file_read("size.fatbin"),
                            file_read("speed.fatbin") };
    static uint8_t all[1 << 16];
    size_t used = 0, at[3];
    struct cuda_image image;
    for (int i = 0; i < 3; i++) {
        at[i] = used;
        memcpy(all + used, parts[i].data, parts[i].size);
        used += (parts[i].size + 7) / 8 * 8;
    }
    uint8_t *bytes = at_the_edge(all, used);
    cr_assert_eq(cuda_image_open(&image, bytes, used, WIRE_IMAGE_KIND_FATBIN_LIST), 0);
    const struct fb_wrapper *w = image.data;
    cr_assert_eq(w->magic, FB_WRAPPER_MAGIC);
    cr_assert_eq(w->version, 2);
    const void *const *list = w->list;
    cr_assert_eq(w->data, bytes);
    cr_assert_eq(list[0], bytes + at[1]);
    cr_assert_eq(list[1], bytes + at[2]);
    cr_assert_null(list[2]);
    cuda_image_close(&image);
    for (size_t n = 1; n < used; n++) {
        int r = opens(at_the_edge(all, n), n, WIRE_IMAGE_KIND_FATBIN_LIST);
        bool whole = n == parts[0].size || n == at[1] || n == at[2];
        cr_assert_eq(r, whole ? 0 : GM_CUDA_INVALID_IMAGE, "%zu", n);
    }
}

static struct cuda_image_traits look(const void *bytes, size_t size, uint32_t kind)
{
    struct cuda_image_traits t;
    struct cuda_movable m;
    cuda_image_look(bytes, size, kind, 90, &t, &m);
    cuda_movable_close(&m);
    return t;
}

static bool keeps_values(const void *bytes, size_t size, uint32_t kind)
{
    return look(bytes, size, kind).keeps_values;
}

static bool keeps(const char *text)
{
    return keeps_values(text, strlen(text), WIRE_IMAGE_KIND_PTX);
}

static bool loses_values(const void *bytes, size_t size, uint32_t kind)
{
    return look(bytes, size, kind).loses_values;
}

/* What an executor that takes over cannot bring back. */
Test(image, lost_values)
{
    static const char text[] =
        ".version 7.0\n.target sm_70\n.address_size 64\n.global .u32 counter;\n";
    static const char *const names[] = { "kernels.cubin", "managed.cubin", "globals.cubin",
                                         "plain.cubin", "tables.cubin" };
    struct file size = file_read("size.fatbin");
    for (unsigned i = 0; i < GM_ARRAY_LEN(names); i++) {
        struct file f = file_read(names[i]);
        cr_assert_eq(loses_values(f.data, f.size, WIRE_IMAGE_KIND_CUBIN), i < 3, "%s", names[i]);
    }
    cr_assert(loses_values(text, strlen(text), WIRE_IMAGE_KIND_PTX));
    cr_assert_not(loses_values(size.data, size.size, WIRE_IMAGE_KIND_FATBIN_LIST));
    cr_assert(loses_values("no code", 7, WIRE_IMAGE_KIND_CUBIN));
}

/* What no two programs can share. */
Test(image, values)
{
#define HEAD ".version 7.0\n.target sm_70\n.address_size 64\n"
#define ENTRY                                                                                      \
    ".visible .entry f(.param .u64 .ptr .global .align 4 p)\n{ ld.global.u32 %r1, [%rd1]; ret; "   \
    "}\n"
    cr_assert_not(keeps(HEAD ENTRY));
    cr_assert(keeps(HEAD ".global .u32 counter;\n" ENTRY));
    cr_assert(keeps(HEAD ".visible .const .align 4 .b8 table[16];\n" ENTRY));
    cr_assert_not(keeps(HEAD ".global .align 1 .b8 $str[4] = {97, 98, 99, 0};\n" ENTRY),
                  "a compiler's");
    cr_assert(keeps("no text at all"));
    struct file f = file_read("kernels.cubin"), plain = file_read("plain.cubin"),
                size = file_read("size.fatbin");
    cr_assert(keeps_values(f.data, f.size, WIRE_IMAGE_KIND_CUBIN));
    cr_assert_not(keeps_values(plain.data, plain.size, WIRE_IMAGE_KIND_CUBIN));
    cr_assert(keeps_values(size.data, size.size, WIRE_IMAGE_KIND_FATBIN_LIST), "cannot be known");
}
