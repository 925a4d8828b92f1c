#include "device/cuda/image.h"

#include <elf.h>
#include <stdlib.h>
#include <string.h>

#include "base/result.h"
#include "device/device.h"
#include "device/null/scan.h"
#include "fatbin/cubin.h"

#define MEMBERS_MAX  65537u
#define UNPACKED_MAX (256u << 20)

static bool fatbin_fits(const void *bytes, size_t size)
{
    struct fb_reader r;
    struct fb_entry e;
    int more = fb_open(&r, bytes, size) < 0 ? -1 : 1;
    while (more > 0 && (more = fb_next(&r, &e)) > 0)
        if (e.kind == FB_KIND_CUBIN && e.packing == FB_PLAIN && !fb_elf_fits(e.data, e.size))
            return false;
    return more == 0;
}

/* The driver does not ask what a text is said to be: it looks for magic numbers first. */
static bool is_binary(const void *bytes, size_t size)
{
    uint32_t magic = 0;
    memcpy(&magic, bytes, GM_MIN(size, sizeof(magic)));
    return magic == FB_MAGIC || magic == FB_WRAPPER_MAGIC || memcmp(&magic, ELFMAG, sizeof(magic)) == 0;
}

/* The driver reads up to a zero byte, which the image need not have. */
static int text_open(struct cuda_image *i, const void *bytes, size_t size)
{
    if (is_binary(bytes, size))
        return GM_CUDA_INVALID_IMAGE;
    i->text = malloc(size + 1);
    if (!i->text)
        return GM_CUDA_OUT_OF_MEMORY;
    memcpy(i->text, bytes, size);
    i->text[size] = '\0';
    i->data = i->text;
    return GM_CUDA_SUCCESS;
}

/* How many fat binaries stand one behind the other; 0 if they do not fit. With `list`, where they are. */
static size_t list_read(const uint8_t *bytes, size_t size, const void **list)
{
    size_t count = 0;
    for (size_t at = 0; at < size; count++) {
        if (count == MEMBERS_MAX || !fatbin_fits(bytes + at, size - at))
            return 0;
        if (list)
            list[count] = bytes + at;
        size_t padded = (fb_size(bytes + at) + 7) & ~(size_t)7;
        at += GM_MIN(padded, size - at);
    }
    return count;
}

static int list_open(struct cuda_image *i, const void *bytes, size_t size)
{
    size_t count = list_read(bytes, size, NULL);
    if (count == 0)
        return GM_CUDA_INVALID_IMAGE;
    i->list = calloc(count + 1, sizeof(*i->list));
    if (!i->list)
        return GM_CUDA_OUT_OF_MEMORY;
    (void)list_read(bytes, size, i->list);
    i->wrapper = (struct fb_wrapper) { FB_WRAPPER_MAGIC, 2, i->list[0], i->list + 1 };
    i->data = &i->wrapper;
    return GM_CUDA_SUCCESS;
}

int cuda_image_open(struct cuda_image *i, const void *bytes, size_t size, uint32_t kind)
{
    *i = (struct cuda_image) { .data = bytes };
    switch (kind) {
    case WIRE_IMAGE_KIND_PTX:
        return text_open(i, bytes, size);
    case WIRE_IMAGE_KIND_CUBIN:
        return fb_elf_fits(bytes, size) ? GM_CUDA_SUCCESS : GM_CUDA_INVALID_IMAGE;
    case WIRE_IMAGE_KIND_FATBIN:
        return fatbin_fits(bytes, size) ? GM_CUDA_SUCCESS : GM_CUDA_INVALID_IMAGE;
    case WIRE_IMAGE_KIND_FATBIN_LIST:
        return list_open(i, bytes, size);
    default:
        return GM_CUDA_INVALID_IMAGE;
    }
}

void cuda_image_close(struct cuda_image *i)
{
    free(i->list);
    free(i->text);
    i->list = NULL;
    i->text = NULL;
}

bool cuda_image_has_cubin(const void *bytes, size_t size, uint32_t kind, uint32_t sm)
{
    struct fb_entry e;
    return kind == WIRE_IMAGE_KIND_CUBIN ||
           (kind == WIRE_IMAGE_KIND_FATBIN && fb_pick(bytes, size, sm, FB_WANT_CUBIN, &e) > 0);
}

static bool cubin_has_variables(const void *bytes, size_t size)
{
    struct fb_cubin c;
    return fb_cubin_open(&c, bytes, size) != 0 || !fb_cubin_is_constant(&c);
}

/* Compilers give names with a dollar sign to what is theirs. */
static bool ptx_has_variables(const char *text, size_t size)
{
    struct dev_module_info scanned = { 0 };
    struct wire_module_info info;
    struct wire_global_info g;
    struct wire_dec d;
    uint32_t functions;
    bool found = dev_null_scan(text, size, &scanned, &functions) != GM_CUDA_SUCCESS;
    free(scanned.log);
    if (found)
        return true;
    wire_dec_init(&d, scanned.info.data, scanned.info.size);
    wire_get_module_info(&d, &info);
    wire_dec_init(&d, info.globals.data, info.globals.size);
    while (!found && !wire_dec_end(&d)) {
        wire_get_global_info(&d, &g);
        found = d.fatal || g.name[0] != '$';
    }
    free((void *)(uintptr_t)scanned.info.data);
    return found;
}

/* In a fat binary it is padded. */
static bool padded_ptx_has_variables(const void *bytes, size_t size)
{
    return ptx_has_variables(bytes, strnlen(bytes, size));
}

/* What cannot be unpacked may have some. */
static bool entry_has_variables(const struct fb_entry *e, bool (*has)(const void *bytes, size_t size))
{
    void *unpacked;
    size_t size;
    if (e->packing == FB_PLAIN)
        return has(e->data, e->size);
    if (fb_unpack(e, UNPACKED_MAX, &unpacked, &size) < 0)
        return true;
    bool found = has(unpacked, size);
    free(unpacked);
    return found;
}

bool cuda_image_keeps_values(const void *bytes, size_t size, uint32_t kind, uint32_t sm)
{
    struct fb_entry e;
    if (kind == WIRE_IMAGE_KIND_PTX)
        return ptx_has_variables(bytes, size);
    if (kind == WIRE_IMAGE_KIND_CUBIN)
        return cubin_has_variables(bytes, size);
    if (kind != WIRE_IMAGE_KIND_FATBIN)
        return true;
    if (fb_pick(bytes, size, sm, FB_WANT_CUBIN, &e) > 0)
        return entry_has_variables(&e, cubin_has_variables);
    return fb_pick(bytes, size, sm, FB_WANT_PTX, &e) <= 0 || entry_has_variables(&e, padded_ptx_has_variables);
}

static bool cubin_has_managed(const void *bytes, size_t size)
{
    struct fb_cubin c;
    struct fb_variable v;
    uint64_t at = 0;
    if (fb_cubin_open(&c, bytes, size) != 0)
        return false;
    while (fb_cubin_variable(&c, &at, &v) > 0)
        if (v.is_managed)
            return true;
    return false;
}

/* Words of a comment are taken for some: then there is one look more. */
static bool ptx_has_managed(const void *bytes, size_t size)
{
    return memmem(bytes, size, ".managed", strlen(".managed")) != NULL;
}

bool cuda_image_has_managed(const void *bytes, size_t size, uint32_t kind, uint32_t sm)
{
    struct fb_entry e;
    if (kind == WIRE_IMAGE_KIND_PTX)
        return ptx_has_managed(bytes, size);
    if (kind == WIRE_IMAGE_KIND_CUBIN)
        return cubin_has_managed(bytes, size);
    if (fb_pick(bytes, size, sm, FB_WANT_CUBIN, &e) > 0) /* of a list, what was linked */
        return entry_has_variables(&e, cubin_has_managed);
    return fb_pick(bytes, size, sm, FB_WANT_PTX, &e) > 0 && entry_has_variables(&e, ptx_has_managed);
}

/* --- what it calls of the driver's own ---------------------------------------------------------------------------------- */

struct calls {
    bool *prints, *asserts;
};

static void look_for(const struct calls *c, const void *bytes, size_t size)
{
    *c->prints |= memmem(bytes, size, "vprintf", strlen("vprintf")) != NULL;
    *c->asserts |= memmem(bytes, size, "__assertfail", strlen("__assertfail")) != NULL;
}

/* What cannot be looked into may do anything. */
static void look_in_fatbin(const struct calls *c, const void *bytes, size_t size, uint32_t sm)
{
    struct fb_entry e;
    void *unpacked = NULL;
    size_t whole = 0;
    int r = fb_pick(bytes, size, sm, FB_WANT_CUBIN | FB_WANT_PTX, &e);
    if (r == 0)
        return;
    if (r > 0 && e.packing == FB_PLAIN) {
        look_for(c, e.data, e.size);
    } else if (r < 0 || fb_unpack(&e, UNPACKED_MAX, &unpacked, &whole) < 0) {
        *c->prints = *c->asserts = true;
    } else {
        look_for(c, unpacked, whole);
        free(unpacked);
    }
}

void cuda_image_calls(const void *image, size_t size, uint32_t kind, uint32_t sm, bool *prints, bool *asserts)
{
    const struct calls c = { prints, asserts };
    const uint8_t *bytes = image;
    *prints = *asserts = false;
    if (kind != WIRE_IMAGE_KIND_FATBIN && kind != WIRE_IMAGE_KIND_FATBIN_LIST) {
        look_for(&c, image, size);
        return;
    }
    for (size_t at = 0; size - at >= FB_HEADER_SIZE;) {
        size_t one = fb_size(bytes + at);
        if (one == 0)
            return;
        look_in_fatbin(&c, bytes + at, size - at, sm);
        one = (one + 7) & ~(size_t)7;
        if (kind == WIRE_IMAGE_KIND_FATBIN || (*prints && *asserts) || one >= size - at)
            return;
        at += one;
    }
}
