#include "files.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define EDGE (1u << 20)

struct file file_read(const char *name)
{
    char path[4096];
    struct file f = { .data = malloc(EDGE) };
    snprintf(path, sizeof(path), "%s/%s", getenv("IMAGES"), name);
    FILE *in = fopen(path, "rb");
    cr_assert(in, "%s", path);
    f.size = fread(f.data, 1, EDGE, in);
    fclose(in);
    cr_assert(f.size > 0 && f.size < EDGE);
    return f;
}

uint8_t *at_the_edge(const void *data, size_t size)
{
    static uint8_t *area;
    if (!area) {
        area = mmap(NULL, EDGE + 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        cr_assert_neq(area, MAP_FAILED);
        cr_assert_eq(mprotect(area + EDGE, 4096, PROT_NONE), 0);
    }
    return memcpy(area + EDGE - size, data, size);
}

uint32_t next_random(uint64_t *state)
{
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(*state >> 33);
}

void mutate(uint8_t *data, size_t size, uint64_t *state)
{
    static const uint8_t favourites[] = { 0, 1, 0x7f, 0x80, 0xff };
    for (uint32_t n = next_random(state) % 8 + 1; n > 0; n--) {
        uint32_t how = next_random(state);
        size_t at = next_random(state) % (how & 1 && size > 128 ? 128 : size);
        data[at] = how & 2 ? favourites[how % sizeof(favourites)] : (uint8_t)(how >> 8);
    }
}
