/*
 * The client's side of the checker (device/soft/check/check.h). It tells the device what the device
 * cannot see: what the program allocates, to the byte, and what this library copies itself. At the
 * end it reports how much was found.
 */
#ifndef GMUX_CLIENT_STREAM_CHECK_H
#define GMUX_CLIENT_STREAM_CHECK_H

#include <stdint.h>

struct rt_range;

/* The first call of a session. CUresult. */
int rt_check_begin(void);
/* The program has this memory from now on. Waits for work that may still use what it had there
 * before. */
void rt_check_entered(const struct rt_range *r);
/* The program frees memory, which is not in the map any more. Waits for work that may use it. Does
 * nothing if the program is not checked. */
void rt_check_left(const struct rt_range *r);
/* How much to allocate for `size` bytes, so that there is a gap between allocations that nobody may
 * touch. */
uint64_t rt_check_padded(uint64_t size);
/* Notes memory of this library's own that kernels use. */
void rt_check_lent(uint64_t address, uint64_t size);
/* Notes that the host has written there. */
void rt_check_wrote(uint64_t address, uint64_t size);
/* The program ends: waits for its kernels, and writes the last line of the report. */
void rt_check_end(void);

#endif
