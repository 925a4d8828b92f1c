/* Recognising images, and handles. */
#include <criterion/criterion.h>
#include <elf.h>
#include <stdlib.h>
#include <string.h>

#include "client/module/module.h"
#include "client/module/units.h"
#include "client/session/handle.h"
#include "client/session/session.h"

static int look(const void *data, struct rt_image *out)
{
    memset(out, 0, sizeof(*out));
    return rt_image_look(data, out);
}

Test(image, ptx_behind_blanks_and_comments)
{
    static const char *const good[] = {
        ".version 6.0\n",           "\n \t\r\n.version 6.0",
        "// comment\n.version 6.0", "/* one\n * two */ // three\n\n.version 6.0",
        "//\n//\n.version",
    };
    struct rt_image image;
    for (size_t i = 0; i < GM_ARRAY_LEN(good); i++) {
        cr_assert_eq(look(good[i], &image), CUDA_SUCCESS, "%zu", i);
        cr_assert_eq(image.kind, WIRE_IMAGE_KIND_PTX);
        cr_assert_eq(image.size, strlen(good[i]));
    }
}

Test(image, not_ptx)
{
    static const char *const bad[] = {
        "", "x", "// only a comment", "/* never closed", ".versio", "version", "//\n"
    };
    struct rt_image image;
    for (size_t i = 0; i < GM_ARRAY_LEN(bad); i++)
        cr_assert_eq(look(bad[i], &image), CUDA_ERROR_INVALID_IMAGE, "%zu", i);
}

static void put32(uint8_t *p, uint32_t v)
{
    memcpy(p, &v, 4);
}

static void put64(uint8_t *p, uint64_t v)
{
    memcpy(p, &v, 8);
}

/* An entry of a fat binary; where the next one goes. */
static uint8_t *entry(uint8_t *at, uint16_t kind, uint32_t arch, uint32_t compressed,
                      const char *text)
{
    uint64_t size = (strlen(text) + 1 + 7) / 8 * 8;
    memset(at, 0, 64 + size);
    memcpy(at, &kind, 2);
    put32(at + 4, 64);
    put64(at + 8, size);
    put32(at + 16, compressed);
    put32(at + 28, arch);
    strcpy((char *)at + 64, text);
    return at + 64 + size;
}

static void header(uint8_t *fatbin, const uint8_t *end)
{
    put32(fatbin, 0xba55ed50);
    put32(fatbin + 4, 1 | 16u << 16);
    put64(fatbin + 8, (uint64_t)(end - fatbin) - 16);
}

/* A session whose device is of compute capability 7.5; `apart`: a GPU's. */
static void with_session(bool apart)
{
    static struct rt_device device;
    static struct rt_session session = { .device_count = 1, .devices = &device };
    device.attributes[CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR] = 7;
    device.attributes[CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR] = 5;
    session.memory_apart = apart;
    rt_session = &session;
}

struct wrapper {
    uint32_t magic, version;
    const void *data, *list;
};

Test(image, fatbin_with_text)
{
    static uint8_t fatbin[1024];
    struct wrapper wrapper = { 0x466243b1, 1, fatbin, NULL };
    struct rt_image image;
    uint8_t *at = entry(fatbin + 16, 2, 90, 0, "machine code");
    at = entry(at, 1, 60, 0, ".version 6.0 // old");
    at = entry(at, 1, 75, 0, ".version 7.0 // right");
    at = entry(at, 1, 80, 0, ".version 8.0 // new");
    at = entry(at, 1, 75, 11, "compressed by whom?");
    header(fatbin, at);
    with_session(false);
    cr_assert_eq(look(fatbin, &image), CUDA_SUCCESS);
    cr_assert_eq(image.kind, WIRE_IMAGE_KIND_PTX);
    cr_assert_eq(image.size, strlen(".version 7.0 // right"));
    cr_assert_eq(memcmp(image.data, ".version 7.0 // right", image.size), 0);
    rt_image_drop(&image);
    cr_assert_eq(look(&wrapper, &image), CUDA_SUCCESS);
    rt_image_drop(&image);
    wrapper.data = NULL;
    cr_assert_eq(look(&wrapper, &image), CUDA_ERROR_INVALID_IMAGE);
}

Test(image, fatbin_without_text)
{
    static uint8_t fatbin[1024];
    struct rt_image image;
    with_session(false);
    header(fatbin, entry(fatbin + 16, 2, 90, 0, "machine code"));
    cr_assert_eq(look(fatbin, &image), CUDA_ERROR_NO_BINARY_FOR_GPU);
    cr_assert(strstr(image.why, "1 of 1") && strstr(image.why, "PTX"), "%s", image.why);
    put64(fatbin + 16 + 8, 1 << 20); /* an entry longer than the whole */
    cr_assert_eq(look(fatbin, &image), CUDA_ERROR_INVALID_IMAGE);
    put64(fatbin + 8, UINT64_MAX);
    cr_assert_eq(look(fatbin, &image), CUDA_ERROR_INVALID_IMAGE);
}

/* A program for a later architecture (nvcc -rdc=true -arch=compute_80): all its parts are taken. */
Test(image, relocatable_for_later)
{
    static uint8_t linked[16], parts[2][512];
    const void *list[] = { parts[0], parts[1], NULL };
    struct wrapper wrapper = { 0x466243b1, 2, linked, list };
    struct rt_image image;
    header(linked, linked + 16);
    header(parts[0], entry(parts[0] + 16, 1, 75, 0, ".version 7.0\n.func g() { ret; }"));
    header(parts[1], entry(parts[1] + 16, 1, 80, 0, ".version 7.0\n.entry k() { ret; }"));
    with_session(false);
    cr_assert_eq(look(&wrapper, &image), CUDA_SUCCESS);
    cr_assert(strstr(image.data, ".entry k") && strstr(image.data, ".func g"));
    rt_image_drop(&image);
    list[0] = parts[1];
    list[1] = NULL;
    cr_assert_eq(look(&wrapper, &image), CUDA_SUCCESS);
    cr_assert(strstr(image.data, ".entry k"));
    rt_image_drop(&image);
}

/* What was linked ahead, and parts: of the program, of a file without device code, of NVIDIA's
 * library. */
Test(image, relocatable)
{
    static uint8_t linked[16], parts[4][512];
    const void *list[] = { parts[0], parts[1], parts[2], NULL, NULL };
    struct wrapper wrapper = { 0x466243b1, 2, linked, list };
    struct rt_image image;
    header(linked, linked + 16);
    header(parts[0], entry(parts[0] + 16, 1, 75, 0, ".version 7.0 // nothing"));
    header(parts[1], entry(parts[1] + 16, 1, 75, 0, ".version 7.0\n.entry k() { ret; }"));
    header(parts[2], entry(parts[2] + 16, 1, 121, 0, ".version 9.0\n.func f() { ret; }"));
    header(parts[3], entry(parts[3] + 16, 1, 60, 0, ".version 6.0\n.func g() { ret; }"));
    with_session(false);
    cr_assert_eq(look(&wrapper, &image), CUDA_SUCCESS);
    cr_assert(strstr(image.data, ".entry k"));
    rt_image_drop(&image);
    list[3] = parts[3];
    cr_assert_eq(look(&wrapper, &image), CUDA_SUCCESS);
    cr_assert(strstr(image.data, ".entry k") && strstr(image.data, ".func g") &&
              !strstr(image.data, ".func f"));
    cr_assert(rt_units_are(image.data, image.size));
    cr_assert_eq(image.size, strlen(image.data));
    rt_image_drop(&image);

    with_session(true);
    parts[0][8] -= 3; /* not a multiple of eight */
    cr_assert_eq(look(&wrapper, &image), CUDA_SUCCESS);
    cr_assert_eq(image.kind, WIRE_IMAGE_KIND_FATBIN_LIST);
    const uint8_t *at = image.data;
    cr_assert_eq(memcmp(at, linked, 16), 0);
    at += 16;
    for (int i = 0; i < 4; i++) {
        uint64_t size;
        memcpy(&size, parts[i] + 8, 8);
        cr_assert_eq(memcmp(at, parts[i], 16 + (size_t)size), 0, "part %d", i);
        at += (16 + size + 7) / 8 * 8;
    }
    cr_assert_eq(at, (const uint8_t *)image.data + image.size);
    rt_image_drop(&image);
    wrapper.version = 1;
    cr_assert_eq(look(&wrapper, &image), CUDA_SUCCESS);
    cr_assert_eq(image.kind, WIRE_IMAGE_KIND_FATBIN);
    cr_assert_eq(image.size, 16);
    cr_assert_eq(image.data, linked, "as it lies there");
    rt_image_drop(&image);
}

Test(image, elf_size)
{
    static uint8_t elf[4096];
    Elf64_Ehdr e = {
        .e_ident = ELFMAG, .e_shoff = 1000, .e_shentsize = sizeof(Elf64_Shdr), .e_shnum = 3
    };
    Elf64_Shdr s[3] = { { 0 },
                        { .sh_type = SHT_PROGBITS, .sh_offset = 2000, .sh_size = 500 },
                        { .sh_type = SHT_NOBITS, .sh_offset = 2500, .sh_size = 100000 } };
    struct rt_image image;
    memcpy(elf, &e, sizeof(e));
    memcpy(elf + 1000, s, sizeof(s));
    cr_assert_eq(look(elf, &image), CUDA_SUCCESS);
    cr_assert_eq(image.kind, WIRE_IMAGE_KIND_CUBIN);
    cr_assert_eq(image.size, 2500);
}

struct thing {
    struct rt_object object;
    int value;
};

static struct rt_table things = RT_TABLE(RT_KIND_EVENT, struct thing);
static struct rt_table others = RT_TABLE(RT_KIND_STREAM, struct thing);

Test(handle, found_while_alive)
{
    struct thing *t = rt_object_take(&things);
    cr_assert_null(rt_object_find(&things, rt_object_handle(&things, &t->object)), "not published");
    rt_object_publish(&t->object);
    void *h = rt_object_handle(&things, &t->object);
    cr_assert_eq(rt_object_find(&things, h), t);
    cr_assert_null(rt_object_find(&others, h), "another kind");
    rt_object_release(&things, &t->object);
    cr_assert_null(rt_object_find(&things, h));
    struct thing *again = rt_object_take(&things);
    cr_assert_eq(again, t, "slots are used again");
    rt_object_publish(&again->object);
    cr_assert_null(rt_object_find(&things, h), "but old handles stay dead");
    cr_assert_eq(again->value, 0);
}

Test(handle, invented)
{
    struct thing *t = rt_object_take(&things);
    rt_object_publish(&t->object);
    uintptr_t good = (uintptr_t)rt_object_handle(&things, &t->object);
    static const uint64_t flips[] = { 1ull << 0,  1ull << 31, 1ull << 32,
                                      1ull << 55, 1ull << 56, 1ull << 63 };
    for (size_t i = 0; i < GM_ARRAY_LEN(flips); i++)
        cr_assert_null(rt_object_find(&things, (void *)(good ^ flips[i])), "bit %zu", i);
    cr_assert_null(rt_object_find(&things, NULL));
    cr_assert_null(rt_object_find(&things, t));
    cr_assert_null(rt_object_find(&things, (void *)UINTPTR_MAX));
}

static void count(struct rt_object *o GM_UNUSED, void *arg)
{
    ++*(int *)arg;
}

Test(handle, many)
{
    static struct thing *t[1000];
    int living = 0;
    for (int i = 0; i < 1000; i++) {
        t[i] = rt_object_take(&things);
        t[i]->value = i;
        rt_object_publish(&t[i]->object);
    }
    for (int i = 0; i < 1000; i += 2)
        rt_object_release(&things, &t[i]->object);
    rt_table_each(&things, count, &living);
    cr_assert_eq(living, 500);
    for (int i = 1; i < 1000; i += 2) {
        struct thing *found = rt_object_find(&things, rt_object_handle(&things, &t[i]->object));
        cr_assert(found && found->value == i);
    }
}
