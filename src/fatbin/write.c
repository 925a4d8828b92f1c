/*
 * Makes a fat binary of PTX, as compilers embed it.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "fatbin/fatbin.h"
#include "fatbin/layout.h"

int fb_make(const struct fb_ptx *ptx, size_t count, void **out, size_t *out_size)
{
    size_t total = sizeof(struct header);
    for (size_t i = 0; i < count; i++)
        total += sizeof(struct entry) + ((ptx[i].size + 8) & ~(size_t)7); /* with the zero byte */
    if (total > FB_SIZE_MAX)
        return -EFBIG;
    uint8_t *at = calloc(1, total);
    if (!at)
        return -ENOMEM;
    *out = at;
    *out_size = total;
    struct header h = { FB_MAGIC, 1, sizeof(h), total - sizeof(h) };
    memcpy(at, &h, sizeof(h));
    at += sizeof(h);
    for (size_t i = 0; i < count; i++) {
        struct entry e = { .kind = FB_KIND_PTX,
                           .version = 0x101,
                           .header_size = sizeof(e),
                           .size = (ptx[i].size + 8) & ~(size_t)7,
                           .isa_major = ptx[i].isa_major,
                           .isa_minor = ptx[i].isa_minor,
                           .sm = ptx[i].sm,
                           .flags = FB_FLAG_64BIT };
        memcpy(at, &e, sizeof(e));
        memcpy(at + sizeof(e), ptx[i].text, ptx[i].size);
        at += sizeof(e) + e.size;
    }
    return 0;
}
