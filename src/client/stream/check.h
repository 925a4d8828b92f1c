/*
 * The client's side of the checker (device/soft/check/check.h): tells the device what it does not
 * see, which is what the program allocates, to the byte, and what this library copies itself; and
 * says at the end how much was found.
 */
#ifndef GMUX_CLIENT_STREAM_CHECK_H
#define GMUX_CLIENT_STREAM_CHECK_H

#include <stdint.h>

struct rt_range;

/* The first thing that a session asks. CUresult. */
int rt_check_begin(void);
/* The program has it from here on. Waits for what may still use what it had there before. */
void rt_check_entered(const struct rt_range *r);
/* The program gives memory back, and it is not in the map any more. Waits for what may use it.
 * Nothing where the program is not checked. */
void rt_check_left(const struct rt_range *r);
/* What to allocate for `size` bytes, so that there is room between allocations that nobody may
 * touch. */
uint64_t rt_check_padded(uint64_t size);
/* Memory of this library's own that kernels use. */
void rt_check_lent(uint64_t address, uint64_t size);
/* Somebody but the device has written there. */
void rt_check_wrote(uint64_t address, uint64_t size);
/* The program ends: waits for its kernels, and writes the last line of the report. */
void rt_check_end(void);

#endif
