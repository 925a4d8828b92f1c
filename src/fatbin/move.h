/*
 * Variables of a cubin, moved to memory of the caller's. A GPU's driver gives them memory of the
 * process that loads the cubin, which no other can touch and which goes with it. Machine code does
 * not know where a variable lies: its address is entered when the code is loaded. Here it is
 * entered beforehand, and the driver is left with variables that nobody uses.
 *
 * The cubin may be hostile, as in cubin.h.
 */
#ifndef GMUX_FATBIN_MOVE_H
#define GMUX_FATBIN_MOVE_H

#include "fatbin/cubin.h"

enum fb_move_which {
    FB_MOVE_MANAGED, /* __managed__ */
    FB_MOVE_GLOBAL,  /* __device__ ones that code refers to, but for the compiler's */
};

struct fb_moved {
    const char *name; /* in the cubin */
    uint64_t offset;  /* from where all of them start */
    uint64_t size;
    uint64_t symbol;
};

struct fb_move_list {
    struct fb_moved *at; /* malloc, the caller's; in the order of their symbols */
    uint32_t count;
    uint64_t size; /* of all */
};

/* of each, which is what the driver gives; the caller aligns the first */
#define FB_MOVE_ALIGN 256u

/* 0, -EBADMSG, -ENOMEM, or -E2BIG if they are too many or too large. On failure the list is empty.
 */
GM_MUST_CHECK int fb_move_find(const struct fb_cubin *c, enum fb_move_which which,
                               struct fb_move_list *out);
/* Moves them to `address`; their first values are written to `contents`, l->size zeroes. `cubin` is
 * what `c` was opened over, writable. 0; -ENOTSUP if code refers to one of them in a way not known
 * here, one's value is the address of a variable that stays, or they want to be aligned to more;
 * -EBADMSG; -ENOMEM. On failure the cubin is spoilt. */
GM_MUST_CHECK int fb_move(const struct fb_cubin *c, void *cubin, const struct fb_move_list *l,
                          uint64_t address, void *contents);

#endif
