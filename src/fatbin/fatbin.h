/*
 * Fat binaries: what nvcc embeds in a program, several images of the same kernels (PTX, cubins) for
 * several GPUs, one after the other, each possibly compressed. The layout is not published by
 * NVIDIA as a whole (fatbinary_section.h has the wrapper); it was read from what nvcc 11 to 13
 * write.
 *
 * All of it may be hostile: nothing is read outside the bytes given, no size is believed, and what
 * is unpacked has a limit. Functions keep no state and may be called by any thread.
 */
#ifndef GMUX_FATBIN_FATBIN_H
#define GMUX_FATBIN_FATBIN_H

#include <stddef.h>
#include <stdint.h>

#include "base/attr.h"

#define FB_MAGIC         0xba55ed50u
#define FB_WRAPPER_MAGIC 0x466243b1u
#define FB_HEADER_SIZE   16u
#define FB_SIZE_MAX      (1ull << 31) /* of a fat binary */

/* What a compiler puts into a program's data section and registers; the pointers are the program's.
 */
struct fb_wrapper {
    uint32_t magic;
    uint32_t version; /* 1, or 2: relocatable device code */
    const void *data; /* a fat binary; version 2: what was linked ahead, empty if there was no
                         machine code */
    const void *list; /* version 2: the relocatable fat binaries, pointers up to a NULL */
};

enum fb_kind {
    FB_KIND_PTX = 1,
    FB_KIND_CUBIN = 2,
    FB_KIND_LTO = 8, /* for a linker; opaque here */
};

enum fb_packing {
    FB_PLAIN,
    FB_LZ4,
    FB_ZSTD,
    FB_UNKNOWN, /* compressed in a way not known here */
};

#define FB_FLAG_64BIT 0x1u
#define FB_FLAG_DEBUG 0x2u
#define FB_FLAG_LINUX 0x10u
#define FB_FLAG_EXACT 0x100000u /* "a" targets: this very architecture */
/* "f" targets: same major number, this minor number or a later one */
#define FB_FLAG_FAMILY 0x200000u

/* One image; points into the fat binary. */
struct fb_entry {
    uint16_t kind;      /* enum fb_kind, or one not known */
    uint16_t isa_major; /* PTX ISA version */
    uint16_t isa_minor;
    uint32_t sm; /* as in sm_90: 90 */
    uint64_t flags;
    enum fb_packing packing;
    const uint8_t *data;
    size_t size;          /* as it lies there; padding may follow a plain image */
    const uint8_t *whole; /* the entry with its header */
    size_t entry_size;    /* of that, with padding */
    uint64_t whole_size;  /* unpacked, as it says */
};

struct fb_reader {
    const uint8_t *at;
    size_t left;
};

/* The size of the whole fat binary, header included, as the FB_HEADER_SIZE bytes at `header` say; 0
 * if that is no header of one, or the size is beyond FB_SIZE_MAX. */
size_t fb_size(const void *header);

/* Starts reading the fat binary in `size` bytes at `data`; more bytes than it has are no error. 0,
 * or -EBADMSG. */
GM_MUST_CHECK int fb_open(struct fb_reader *r, const void *data, size_t size);
/* The next image: 1 and *e, 0 at the end, -EBADMSG if it does not fit. */
GM_MUST_CHECK int fb_next(struct fb_reader *r, struct fb_entry *e);

enum fb_wanted {
    FB_WANT_CUBIN = 1, /* that a GPU of this number runs */
    FB_WANT_PTX = 2,   /* that its driver compiles */
    FB_WANT_ANY_PTX =
        4, /* if there is none, the oldest of the others: for a device that is no GPU */
};

/* The best image for the architecture `sm`: a cubin of the same major number, its minor number not
 * above; failing that, PTX of the newest architecture not above. `wanted`: bits of enum fb_wanted.
 * 1 and *e, 0 if there is none, -EBADMSG. */
GM_MUST_CHECK int fb_pick(const void *data, size_t size, uint32_t sm, unsigned wanted,
                          struct fb_entry *e);

/* False if a GPU of architecture `sm` can use nothing of it. What cannot be read, or is of an
 * unknown kind, may be of use. */
bool fb_serves(const void *data, size_t size, uint32_t sm);

/* A copy without those images that a GPU of architecture `sm` cannot use: a fat binary may be made
 * for ten. 1 and the copy, which the caller frees; 0 if there is nothing to leave out, or nothing
 * would be left; -EBADMSG, -ENOMEM. */
GM_MUST_CHECK int fb_slim(const void *data, size_t size, uint32_t sm, void **out, size_t *out_size);

/* The image unpacked, in memory that the caller frees, with a zero byte behind it. -EFBIG if it is
 * larger than `limit`, -ENOTSUP if its packing is not known, -EBADMSG if it does not unpack to the
 * size it says, -ENOMEM. */
GM_MUST_CHECK int fb_unpack(const struct fb_entry *e, size_t limit, void **out, size_t *size);

struct fb_ptx {
    const char *text;
    size_t size;
    uint16_t isa_major, isa_minor;
    uint32_t sm;
};

/* A fat binary of these, in memory that the caller frees. 0, -EFBIG, -ENOMEM. */
GM_MUST_CHECK int fb_make(const struct fb_ptx *ptx, size_t count, void **out, size_t *size);

#endif
