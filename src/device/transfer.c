/*
 * A piece is either a run of whole rows or, where rows are longer than a piece, a part of one row.
 * Both cases are numbered so that any piece can be found without the ones before it.
 */
#include "device/transfer.h"

#include <string.h>

/* Bytes from the first to behind the last one; false if that overflows, or if rows or slices
 * overlap: so the work is bounded by the size of the window. */
static bool extent(uint64_t width, uint64_t height, uint64_t depth, uint64_t pitch, uint64_t slice,
                   uint64_t *out)
{
    uint64_t rows, slices, sum;
    if (__builtin_mul_overflow(height - 1, pitch, &rows) ||
        __builtin_mul_overflow(depth - 1, slice, &slices) ||
        __builtin_add_overflow(rows, width, &rows) || __builtin_add_overflow(rows, slices, &sum))
        return false;
    if ((height > 1 && pitch < width) || (depth > 1 && slice < rows))
        return false;
    *out = sum;
    return true;
}

/* Contiguous boxes become one long row: the common case gets the long memcpy. */
static struct dev_box flatten(const struct dev_box *b)
{
    struct dev_box f = *b;
    if (f.height > 1 && f.width == f.dst_pitch && f.width == f.src_pitch) {
        if (f.depth == 1 || (f.dst_slice == f.width * f.height && f.src_slice == f.dst_slice)) {
            f.width *= f.height * f.depth;
            f.height = f.depth = 1;
        }
    }
    return f;
}

bool dev_box_check(const struct dev_window *w, const struct dev_box *b, uint64_t *address)
{
    uint64_t size;
    if (b->width == 0 || b->height == 0 || b->depth == 0)
        return true;
    *address = b->dst;
    if (!extent(b->width, b->height, b->depth, b->dst_pitch, b->dst_slice, &size) ||
        !dev_window_holds(w, b->dst, size))
        return false;
    *address = b->src;
    return extent(b->width, b->height, b->depth, b->src_pitch, b->src_slice, &size) &&
           dev_window_holds(w, b->src, size);
}

bool dev_area_check(const struct dev_window *w, const struct dev_area *a, uint64_t *address)
{
    uint64_t row, size;
    *address = a->dst;
    if (a->element_size != 1 && a->element_size != 2 && a->element_size != 4)
        return false;
    if (a->width == 0 || a->height == 0)
        return true;
    if (a->dst % a->element_size != 0 || (a->height > 1 && a->pitch % a->element_size != 0))
        return false;
    return !__builtin_mul_overflow(a->width, (uint64_t)a->element_size, &row) &&
           extent(row, a->height, 1, a->pitch, 0, &size) && dev_window_holds(w, a->dst, size);
}

static uint64_t volume(uint64_t a, uint64_t b, uint64_t c)
{
    uint64_t out;
    if (a == 0 || b == 0 || c == 0)
        return 0;
    if (__builtin_mul_overflow(a, b, &out) || __builtin_mul_overflow(out, c, &out))
        return UINT64_MAX;
    return out;
}

uint64_t dev_box_bytes(const struct dev_box *b)
{
    return volume(b->width, b->height, b->depth);
}

uint64_t dev_area_bytes(const struct dev_area *a)
{
    return volume(a->width, a->height, a->element_size);
}

/* How rows of `width` bytes are cut: `parts` pieces per row, or `group` rows per piece. */
struct cut {
    uint64_t parts;
    uint64_t group;
    uint64_t pieces;
};

static struct cut cut_rows(uint64_t width, uint64_t rows, uint64_t piece)
{
    struct cut c = { .parts = 1, .group = 1 };
    if (width > piece)
        c.parts = (width + piece - 1) / piece;
    else
        c.group = piece / width;
    c.pieces = c.parts > 1 ? c.parts * rows : (rows + c.group - 1) / c.group;
    return c;
}

static void *pointer(uint64_t address)
{
    return (void *)(uintptr_t)address;
}

uint64_t dev_box_pieces(const struct dev_box *box, uint64_t piece)
{
    const struct dev_box b = flatten(box);
    if (b.width == 0 || b.height == 0 || b.depth == 0)
        return 0;
    return cut_rows(b.width, b.height * b.depth, piece).pieces;
}

void dev_box_move(const struct dev_box *box, uint64_t piece, uint64_t index)
{
    const struct dev_box b = flatten(box);
    uint64_t rows = b.height * b.depth;
    const struct cut c = cut_rows(b.width, rows, piece);
    uint64_t first = c.parts > 1 ? index / c.parts : index * c.group;
    uint64_t last = GM_MIN(first + c.group, rows);
    uint64_t from = c.parts > 1 ? index % c.parts * piece : 0;
    uint64_t size = c.parts > 1 ? GM_MIN(piece, b.width - from) : b.width;

    for (uint64_t r = first; r < last; r++) {
        uint64_t y = r % b.height, z = r / b.height;
        memmove(pointer(b.dst + z * b.dst_slice + y * b.dst_pitch + from),
                pointer(b.src + z * b.src_slice + y * b.src_pitch + from), size);
    }
}

uint64_t dev_area_pieces(const struct dev_area *a, uint64_t piece)
{
    if (a->width == 0 || a->height == 0)
        return 0;
    return cut_rows(a->width * a->element_size, a->height, piece).pieces;
}

static void fill_row(void *row, uint64_t bytes, uint32_t value, uint32_t element_size)
{
    if (element_size == 1) {
        memset(row, (int)(value & 0xff), bytes);
    } else if (element_size == 2) {
        uint16_t *p = row;
        for (uint64_t i = 0; i < bytes / 2; i++)
            p[i] = (uint16_t)value;
    } else {
        uint32_t *p = row;
        for (uint64_t i = 0; i < bytes / 4; i++)
            p[i] = value;
    }
}

void dev_area_fill(const struct dev_area *a, uint64_t piece, uint64_t index)
{
    uint64_t width = a->width * a->element_size;
    const struct cut c = cut_rows(width, a->height, piece);
    uint64_t first = c.parts > 1 ? index / c.parts : index * c.group;
    uint64_t last = GM_MIN(first + c.group, a->height);
    uint64_t from = c.parts > 1 ? index % c.parts * piece : 0;
    uint64_t size = c.parts > 1 ? GM_MIN(piece, width - from) : width;

    for (uint64_t r = first; r < last; r++)
        fill_row(pointer(a->dst + r * a->pitch + from), size, a->value, a->element_size);
}
