/*
 * Managed variables of a cubin, moved to memory of the caller's. A GPU's driver gives them memory that only the process that loads the
 * cubin can touch. Machine code does not know where a variable lies: its address is entered when the code is loaded. Here it is entered
 * beforehand, and the driver is left with variables that nobody uses.
 *
 * The cubin may be hostile, as in cubin.h.
 */
#ifndef GMUX_FATBIN_MANAGED_H
#define GMUX_FATBIN_MANAGED_H

#include "fatbin/cubin.h"

struct fb_managed {
    const char *name; /* in the cubin */
    uint64_t offset;  /* from where all of them start */
    uint64_t size;
    uint64_t symbol;
};

struct fb_managed_list {
    struct fb_managed *at; /* malloc, the caller's */
    uint32_t count;
    uint64_t size; /* of all */
};

/* 0, -EBADMSG, -ENOMEM, or -E2BIG if they are too many or too large. */
GM_MUST_CHECK int fb_managed_find(const struct fb_cubin *c, struct fb_managed_list *out);
/* Moves them to `address`; their first values are written to `contents`, l->size zeroes. `cubin` is what `c` was opened over, writable. 0;
 * -ENOTSUP if code refers to one of them in a way not known here, or one's value is the address of a variable that stays; -EBADMSG. */
GM_MUST_CHECK int fb_managed_move(const struct fb_cubin *c, void *cubin, const struct fb_managed_list *l,
                                  uint64_t address, void *contents);

#endif
