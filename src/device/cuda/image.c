/*
 * Checks images before the driver sees them, and gives them the form that it takes: a text with a
 * zero behind it, a wrapper for a list of fat binaries.
 */
#include "device/cuda/image.h"

#include <elf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/result.h"
#include "device/device.h"
#include "device/null/scan.h"

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
    return magic == FB_MAGIC || magic == FB_WRAPPER_MAGIC ||
           memcmp(&magic, ELFMAG, sizeof(magic)) == 0;
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

/* Images stand one behind the other, each padded to 8 bytes. Returns where the next one begins, or
 * the end. */
static size_t behind(const uint8_t *bytes, size_t at, size_t size)
{
    return at + GM_MIN((size_t)gm_padded(fb_size(bytes + at)), size - at);
}

/* How many fat binaries stand one behind the other; 0 if they do not fit. With `list`, where they
 * are. */
static size_t list_read(const uint8_t *bytes, size_t size, const void **list)
{
    size_t count = 0;
    for (size_t at = 0; at < size; at = behind(bytes, at, size), count++) {
        if (count == MEMBERS_MAX || !fatbin_fits(bytes + at, size - at))
            return 0;
        if (list)
            list[count] = bytes + at;
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

/* --- what is in the code that a GPU takes of it ----------------------------------------------- */

int cuda_code_open(struct cuda_code *c, const void *bytes, size_t size, uint32_t kind, uint32_t sm)
{
    struct fb_entry e;
    *c = (struct cuda_code) {
        .bytes = bytes, .size = size, .is_ptx = kind == WIRE_IMAGE_KIND_PTX, .text_size = size
    };
    if (kind == WIRE_IMAGE_KIND_PTX || kind == WIRE_IMAGE_KIND_CUBIN)
        return 1;
    int r = fb_pick(bytes, size, sm, FB_WANT_CUBIN | FB_WANT_PTX, &e);
    if (r <= 0)
        return r;
    c->bytes = e.data;
    c->size = e.size;
    if (e.packing != FB_PLAIN) {
        if (fb_unpack(&e, UNPACKED_MAX, &c->unpacked, &c->size) < 0)
            return -EBADMSG;
        c->bytes = c->unpacked;
    }
    c->is_ptx = e.kind == FB_KIND_PTX;
    c->text_size = c->is_ptx ? strnlen(c->bytes, c->size) : 0;
    return 1;
}

bool cuda_code_own(struct cuda_code *c)
{
    if (c->unpacked)
        return true;
    c->unpacked = malloc(c->size);
    if (!c->unpacked)
        return false;
    c->bytes = memcpy(c->unpacked, c->bytes, c->size);
    return true;
}

void cuda_code_close(struct cuda_code *c)
{
    free(c->unpacked);
    *c = (struct cuda_code) { 0 };
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

static bool cubin_has_managed(const struct fb_cubin *c)
{
    struct fb_variable v;
    uint64_t at = 0;
    while (fb_cubin_variable(c, &at, &v) > 0)
        if (v.is_managed)
            return true;
    return false;
}

/* Words of a comment are taken for some: then there is one look more. */
static bool has_word(const struct cuda_code *c, const char *word)
{
    return memmem(c->bytes, c->size, word, strlen(word)) != NULL;
}

static void look_for_calls(const struct cuda_code *c, struct cuda_image_traits *t)
{
    t->prints |= has_word(c, "vprintf");
    t->asserts |= has_word(c, "__assertfail");
    t->allocates |= has_word(c, "malloc");
}

static void look_for_variables_of_text(const struct cuda_code *c, struct cuda_image_traits *t)
{
    if (!ptx_has_variables(c->bytes, c->text_size))
        return;
    t->keeps_values = t->loses_values = true;
    t->has_managed |= has_word(c, ".managed");
}

static void look_for_variables(struct cuda_movable *m, struct cuda_image_traits *t)
{
    if (fb_cubin_open(&m->cubin, m->code.bytes, m->code.size) != 0) {
        t->keeps_values = t->loses_values = true;
    } else if (!fb_cubin_is_constant(&m->cubin)) {
        t->keeps_values = true;
        t->loses_values |=
            fb_move_find(&m->cubin, FB_MOVE_GLOBAL, &m->list) != 0 || m->list.count != 0;
        t->has_managed |= cubin_has_managed(&m->cubin);
    }
}

static void look_at(struct cuda_movable *m, struct cuda_image_traits *t)
{
    look_for_calls(&m->code, t);
    if (m->code.is_ptx)
        look_for_variables_of_text(&m->code, t);
    else
        look_for_variables(m, t);
}

void cuda_movable_close(struct cuda_movable *m)
{
    cuda_code_close(&m->code);
    free(m->list.at);
    *m = (struct cuda_movable) { 0 };
}

bool cuda_movable_compiled(struct cuda_movable *m, struct cuda_code *made)
{
    cuda_movable_close(m);
    const bool known = made->bytes && fb_cubin_open(&m->cubin, made->bytes, made->size) == 0 &&
                       fb_move_find(&m->cubin, FB_MOVE_GLOBAL, &m->list) == 0;
    const bool loses = !known || m->list.count != 0;
    if (known && loses) {
        m->code = *made;
        *made = (struct cuda_code) { 0 };
    } else {
        cuda_movable_close(m);
    }
    return loses;
}

/* What was linked is the first of a list; its parts are loaded with it. */
static void look_at_list(const uint8_t *bytes, size_t size, uint32_t sm,
                         struct cuda_image_traits *t)
{
    t->keeps_values = true;
    for (size_t at = 0; at < size; at = behind(bytes, at, size)) {
        struct cuda_movable m = { 0 };
        int r = cuda_code_open(&m.code, bytes + at, size - at, WIRE_IMAGE_KIND_FATBIN, sm);
        if (r > 0)
            look_at(&m, t);
        else if (r < 0)
            t->prints = t->asserts = t->allocates = t->loses_values = true;
        cuda_movable_close(&m);
    }
}

void cuda_image_look(const void *bytes, size_t size, uint32_t kind, uint32_t sm,
                     struct cuda_image_traits *t, struct cuda_movable *m)
{
    *t = (struct cuda_image_traits) { 0 };
    *m = (struct cuda_movable) { 0 };
    if (kind == WIRE_IMAGE_KIND_FATBIN_LIST) {
        look_at_list(bytes, size, sm, t);
        return;
    }
    int r = cuda_code_open(&m->code, bytes, size, kind, sm);
    if (r > 0)
        look_at(m, t);
    else
        t->keeps_values = t->loses_values = true;
    if (r < 0)
        t->prints = t->asserts = t->allocates = t->has_managed = true;
    if (r <= 0 || !(m->code.is_ptx ? t->loses_values : m->list.count != 0))
        cuda_movable_close(m);
}
