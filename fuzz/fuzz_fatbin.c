/*
 * A fat binary or a cubin, as a program may carry it. Beyond not crashing: what is found lies
 * inside what was given, and what is unpacked has the size that was said.
 */
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "fatbin/cubin.h"
#include "fatbin/fatbin.h"
#include "fatbin/move.h"
#include "fatbin/object.h"

#define LIMIT (1u << 20)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool fact)
{
    if (!fact)
        abort();
}

static void read_cubin(const uint8_t *data, size_t size)
{
    struct fb_cubin c;
    struct fb_variable v;
    if (fb_cubin_open(&c, data, size) != 0)
        return;
    for (uint64_t at = 0; fb_cubin_variable(&c, &at, &v) > 0;)
        require((const uint8_t *)v.name >= data &&
                (const uint8_t *)v.name + strlen(v.name) < data + size);
}

/* Moved in a copy. */
static void move(const uint8_t *data, size_t size, enum fb_move_which which)
{
    struct fb_cubin c;
    struct fb_move_list l;
    uint8_t *copy = malloc(size + 1);
    require(copy != NULL);
    memcpy(copy, data, size);
    if (fb_cubin_open(&c, copy, size) == 0 && fb_move_find(&c, which, &l) == 0) {
        uint8_t *contents = l.size <= LIMIT ? calloc(1, l.size + 1) : NULL;
        if (contents)
            (void)!fb_move(&c, copy, &l, 0x10000000, contents);
        free(contents);
        free(l.at);
    }
    free(copy);
}

static void read_entry(const struct fb_entry *e, const uint8_t *data, size_t size)
{
    void *out;
    size_t out_size;
    require(e->data >= data && e->data <= data + size &&
            e->size <= size - (size_t)(e->data - data));
    int r = fb_unpack(e, LIMIT, &out, &out_size);
    require((r == 0) == (out != NULL));
    if (r == 0) {
        require(out_size == e->whole_size && out_size <= LIMIT && ((char *)out)[out_size] == '\0');
        read_cubin(out, out_size);
    }
    free(out);
}

static void read_objects(const uint8_t *data, size_t size)
{
    struct fb_objects o;
    const void *fatbin;
    if (fb_objects_open(&o, data, size) != 0)
        return;
    while (fb_objects_next(&o, &fatbin) > 0) {
        const uint8_t *at = fatbin;
        require(at >= data && at < data + size && fb_size(at) <= size - (size_t)(at - data));
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct fb_reader r;
    struct fb_entry e;
    read_cubin(data, size);
    read_objects(data, size);
    move(data, size, FB_MOVE_MANAGED);
    move(data, size, FB_MOVE_GLOBAL);
    if (fb_open(&r, data, size) != 0)
        return 0;
    require(fb_size(data) <= size);
    while (fb_next(&r, &e) > 0)
        read_entry(&e, data, size);
    for (unsigned wanted = 1; wanted < 8; wanted++)
        if (fb_pick(data, size, 90, wanted, &e) > 0)
            require(e.kind == FB_KIND_PTX ? (wanted & ~FB_WANT_CUBIN) != 0
                                          : (wanted & FB_WANT_CUBIN) != 0);
    void *slim = NULL;
    size_t slim_size = 0;
    if (fb_slim(data, size, 90, &slim, &slim_size) > 0)
        require(slim_size < size && fb_size(slim) == slim_size &&
                fb_open(&r, slim, slim_size) == 0);
    free(slim);
    return 0;
}
