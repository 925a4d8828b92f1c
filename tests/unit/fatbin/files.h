/* Images from data/, and bytes that end where memory ends: reading one too many is a crash, with or
 * without a sanitizer. */
#ifndef GMUX_TESTS_FATBIN_FILES_H
#define GMUX_TESTS_FATBIN_FILES_H

#include <stddef.h>
#include <stdint.h>

struct file {
    uint8_t *data; /* malloc */
    size_t size;
};
struct file file_read(const char *name);

/* The bytes, behind which nothing can be read; valid until the next call. */
uint8_t *at_the_edge(const void *data, size_t size);

/* Numbers that are the same in each run. */
uint32_t next_random(uint64_t *state);
/* Changes a few bytes. */
void mutate(uint8_t *data, size_t size, uint64_t *state);

#endif
