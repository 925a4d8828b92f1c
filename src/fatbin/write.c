/*
 * Makes a fat binary of PTX, as compilers embed it.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "fatbin/fatbin.h"
#include "fatbin/layout.h"

/* What is in front of an image. NVIDIA's driver reads the options even if there is no text. */
struct front {
    struct entry entry;
    struct options options;
};

int fb_make(const struct fb_ptx *ptx, size_t count, void **out, size_t *out_size)
{
    size_t total = sizeof(struct header);
    for (size_t i = 0; i < count; i++)
        total += sizeof(struct front) + ((ptx[i].size + 8) & ~(size_t)7); /* with the zero byte */
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
        struct front f = { .entry = { .kind = FB_KIND_PTX,
                                      .version = 0x101,
                                      .header_size = sizeof(f),
                                      .size = (ptx[i].size + 8) & ~(size_t)7,
                                      .options_at = offsetof(struct front, options),
                                      .isa_major = ptx[i].isa_major,
                                      .isa_minor = ptx[i].isa_minor,
                                      .sm = ptx[i].sm,
                                      .flags = FB_FLAG_64BIT | FB_FLAG_LINUX },
                           .options = { .text_at = offsetof(struct front, options.reserved) } };
        memcpy(at, &f, sizeof(f));
        memcpy(at + sizeof(f), ptx[i].text, ptx[i].size);
        at += sizeof(f) + f.entry.size;
    }
    return 0;
}
