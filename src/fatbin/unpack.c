/*
 * Unpacks an entry at once, into memory of the size that the entry states. Neither decompressor
 * needs more, whatever the stream contains, and one that would write more stops.
 */
#include <errno.h>
#include <limits.h>
#include <lz4.h>
#include <stdlib.h>
#include <string.h>
#include <zstd.h>

#include "base/cleanup.h"
#include "fatbin/fatbin.h"

#define LZ4_RATIO_MAX 256u /* 255 bytes for each byte, and the first few */

static bool unpack(const struct fb_entry *e, char *to, size_t whole)
{
    if (e->packing == FB_PLAIN) {
        memcpy(to, e->data, whole);
        return true;
    }
    if (e->packing == FB_ZSTD)
        return ZSTD_decompress(to, whole, e->data, e->size) ==
               whole; /* an error is a size beyond all others */
    if (e->size > INT_MAX || whole > INT_MAX)
        return false;
    return LZ4_decompress_safe((const char *)e->data, to, (int)e->size, (int)whole) == (int)whole;
}

int fb_unpack(const struct fb_entry *e, size_t limit, void **out, size_t *size)
{
    *out = NULL;
    *size = 0;
    if (e->packing == FB_UNKNOWN)
        return -ENOTSUP;
    if (e->whole_size > limit)
        return -EFBIG;
    size_t whole = (size_t)e->whole_size;
    if (e->packing == FB_LZ4 && whole / LZ4_RATIO_MAX > e->size)
        return -EBADMSG;
    GM_AUTO_FREE char *to = malloc(whole + 1);
    if (!to)
        return -ENOMEM;
    if (!unpack(e, to, whole))
        return -EBADMSG;
    to[whole] = '\0';
    *out = gm_take_ptr(to);
    *size = whole;
    return 0;
}
