/*
 * The memory operations themselves: checks that a box lies in the client's window, and copies or
 * fills a run of its rows. The moving functions touch the client's memory and are called inside a
 * guard.
 */
#ifndef GMUX_DEVICE_TRANSFER_H
#define GMUX_DEVICE_TRANSFER_H

#include "device/queue.h"

/* False if a byte of it lies outside the window, or the sizes do not make sense; *address then says
 * where. */
GM_MUST_CHECK bool dev_box_check(const struct dev_window *w, const struct dev_box *b,
                                 uint64_t *address);
GM_MUST_CHECK bool dev_area_check(const struct dev_window *w, const struct dev_area *a,
                                  uint64_t *address);

/* Bytes moved or written; saturates. */
uint64_t dev_box_bytes(const struct dev_box *b);
uint64_t dev_area_bytes(const struct dev_area *a);

/* Large ones are cut into pieces of about `piece` bytes: how many, and one of them. Rows longer
 * than a piece are cut, too. Pieces of one box may be moved by different threads at the same time.
 */
uint64_t dev_box_pieces(const struct dev_box *b, uint64_t piece);
void dev_box_move(const struct dev_box *b, uint64_t piece, uint64_t index);
uint64_t dev_area_pieces(const struct dev_area *a, uint64_t piece);
void dev_area_fill(const struct dev_area *a, uint64_t piece, uint64_t index);

#endif
