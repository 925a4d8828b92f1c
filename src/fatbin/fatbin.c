/*
 * A fat binary is a header, and entries one behind the other up to the size that the header states.
 * Each entry has a header, whose length grew from toolkit to toolkit. The fields used here were
 * always in its first 64 bytes.
 */
#include "fatbin/fatbin.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "fatbin/layout.h"

#define FLAG_LZ4  0x2000u
#define FLAG_ZSTD 0x8000u

static bool header_read(const void *data, struct header *h)
{
    memcpy(h, data, sizeof(*h));
    return h->magic == FB_MAGIC && h->header_size >= sizeof(*h) &&
           h->size <= FB_SIZE_MAX - h->header_size;
}

size_t fb_size(const void *header)
{
    struct header h;
    return header_read(header, &h) ? (size_t)(h.header_size + h.size) : 0;
}

int fb_open(struct fb_reader *r, const void *data, size_t size)
{
    struct header h;
    if (size < sizeof(h) || !header_read(data, &h) || h.header_size > size ||
        h.size > size - h.header_size)
        return -EBADMSG;
    r->at = (const uint8_t *)data + h.header_size;
    r->left = (size_t)h.size;
    return 0;
}

static enum fb_packing packing_of(const struct entry *e)
{
    if (e->packed_size == 0)
        return FB_PLAIN;
    return e->flags & FLAG_ZSTD ? FB_ZSTD : e->flags & FLAG_LZ4 ? FB_LZ4 : FB_UNKNOWN;
}

int fb_next(struct fb_reader *r, struct fb_entry *out)
{
    struct entry e;
    if (r->left < sizeof(e)) /* the rest, if there is any, is padding */
        return 0;
    memcpy(&e, r->at, sizeof(e));
    if (e.header_size < sizeof(e) || e.header_size > r->left || e.size > r->left - e.header_size ||
        e.packed_size > e.size)
        return -EBADMSG;
    *out = (struct fb_entry) {
        .kind = e.kind,
        .isa_major = e.isa_major,
        .isa_minor = e.isa_minor,
        .sm = e.sm,
        .flags = e.flags,
        .packing = packing_of(&e),
        .data = r->at + e.header_size,
        .size = e.packed_size ? e.packed_size : (size_t)e.size,
        .whole_size = e.packed_size ? e.whole_size : e.size,
        .whole = r->at,
        .entry_size = e.header_size + (size_t)e.size,
    };
    r->at += out->entry_size;
    r->left -= out->entry_size;
    return 1;
}

/* --- choosing --------------------------------------------------------------------------------- */

/* Whether a cubin runs on `sm`. The number of an architecture is its major number and one digit of
 * minor number. */
static bool runs_cubin(const struct fb_entry *e, uint32_t sm)
{
    return e->flags & FB_FLAG_EXACT ? e->sm == sm : e->sm <= sm && e->sm / 10 == sm / 10;
}

static bool compiles_ptx(const struct fb_entry *e, uint32_t sm)
{
    return e->flags & (FB_FLAG_EXACT | FB_FLAG_FAMILY) ? runs_cubin(e, sm) : e->sm <= sm;
}

/* Returns how well an image suits `sm`; 0: not at all. */
static uint64_t rank(const struct fb_entry *e, uint32_t sm, unsigned wanted)
{
    const uint64_t cubin = 3ull << 62, ptx = 2ull << 62, any = 1ull << 62;
    uint64_t special = e->flags & FB_FLAG_EXACT ? 2 : e->flags & FB_FLAG_FAMILY ? 1 : 0;
    uint64_t newest = ((uint64_t)e->sm << 2) + special;
    if (e->packing == FB_UNKNOWN || e->size == 0)
        return 0;
    if (e->kind == FB_KIND_CUBIN && (wanted & FB_WANT_CUBIN) && runs_cubin(e, sm))
        return cubin + newest;
    if (e->kind != FB_KIND_PTX)
        return 0;
    if ((wanted & FB_WANT_PTX) && compiles_ptx(e, sm))
        return ptx + newest;
    return wanted & FB_WANT_ANY_PTX ? any + (UINT32_MAX - e->sm) : 0;
}

int fb_pick(const void *data, size_t size, uint32_t sm, unsigned wanted, struct fb_entry *out)
{
    struct fb_reader r;
    struct fb_entry e;
    uint64_t best = 0;
    int more = fb_open(&r, data, size);
    if (more < 0)
        return more;
    while ((more = fb_next(&r, &e)) > 0) {
        uint64_t n = rank(&e, sm, wanted);
        if (n > best) {
            best = n;
            *out = e;
        }
    }
    return more < 0 ? more : best != 0;
}

/* --- leaving out ------------------------------------------------------------------------------ */

static bool is_code(const struct fb_entry *e)
{
    return e->kind == FB_KIND_CUBIN || e->kind == FB_KIND_PTX;
}

/* Whether an entry is needed for `sm`. An entry of an unknown kind stays. */
static bool is_useful(const struct fb_entry *e, uint32_t sm)
{
    return e->kind == FB_KIND_CUBIN ? runs_cubin(e, sm)
           : e->kind == FB_KIND_PTX ? compiles_ptx(e, sm)
                                    : true;
}

bool fb_serves(const void *data, size_t size, uint32_t sm)
{
    struct fb_reader r;
    struct fb_entry e;
    int more = fb_open(&r, data, size);
    while (more >= 0 && (more = fb_next(&r, &e)) > 0)
        if (is_useful(&e, sm))
            return true;
    return more < 0;
}

int fb_slim(const void *data, size_t size, uint32_t sm, void **out, size_t *out_size)
{
    struct fb_reader r;
    struct fb_entry e;
    struct header h;
    size_t kept = 0, all = 0, code = 0;
    int more = fb_open(&r, data, size);
    while (more >= 0 && (more = fb_next(&r, &e)) > 0) {
        bool useful = is_useful(&e, sm);
        kept += useful ? e.entry_size : 0;
        code += useful && is_code(&e);
        all += e.entry_size;
    }
    if (more < 0)
        return more;
    if (kept == all || code == 0 || fb_open(&r, data, size) < 0)
        return 0;
    uint8_t *to = malloc(sizeof(h) + kept);
    if (!to)
        return -ENOMEM;
    memcpy(&h, data, sizeof(h));
    h.header_size = sizeof(h);
    h.size = kept;
    memcpy(to, &h, sizeof(h));
    *out = to;
    *out_size = sizeof(h) + kept;
    to += sizeof(h);
    while (fb_next(&r, &e) > 0)
        if (is_useful(&e, sm)) {
            memcpy(to, e.whole, e.entry_size);
            to += e.entry_size;
        }
    return 1;
}
