/*
 * Writes first inputs for fuzz_wire and fuzz_ring, from the samples of the specification: fuzz_seed
 * wire|ring FOLDER The corpora in fuzz/corpus began as these; run it again when messages are added.
 */
#include <stdio.h>
#include <stdlib.h>

#include "sample.h"

static void write_file(const char *folder, const char *name, unsigned variant, const void *data,
                       size_t size)
{
    char path[4096];
    (void)snprintf(path, sizeof(path), "%s/%s-%u", folder, name, variant);
    FILE *f = fopen(path, "wb");
    if (!f || fwrite(data, 1, size, f) != size || fclose(f) != 0) {
        perror(path);
        exit(1);
    }
}

static void seed_wire(const char *folder)
{
    static uint8_t buffer[1 << 20];
    for (size_t i = 0; i < samples_count; i++) {
        for (unsigned v = SAMPLE_ZERO; v <= SAMPLE_SOME; v++) {
            /* A message as a packet, a struct as a body. */
            buffer[0] = samples[i].type ? 0 : (uint8_t)(i + 1);
            size_t size = sample_pack(&samples[i], v, 1, buffer + 1, sizeof(buffer) - 1);
            write_file(folder, samples[i].name, v, buffer, size + 1);
        }
    }
}

/* Each record alone, then all of them in one ring that wraps. */
static void seed_ring(const char *folder)
{
    static uint8_t all[1 << 14];
    uint32_t used = 0;
    for (size_t i = 0; i < sample_records_count; i++) {
        uint8_t one[8 + 512] = { 0 };
        const struct sample_record *s = &sample_records[i];
        uint32_t size = (uint32_t)(s->fixed + GM_MIN(s->variable, 8));
        const struct wire_record head = {
            .op = (uint16_t)s->op, .size = size, .stream = 1, .seq = i + 1
        };
        memcpy(one, &size, sizeof(size));
        memcpy(one + 8, &head, sizeof(head));
        write_file(folder, s->name, 1, one, 8 + size);
        memcpy(all + 8 + used, &head, sizeof(head));
        used += size;
    }
    memcpy(all, &used, sizeof(used));
    write_file(folder, "all", 1, all, 8 + used);
    const uint32_t wrapped[2] = { 64, UINT32_MAX - 63 }; /* the indices, not the ring, wrap */
    memcpy(all, wrapped, sizeof(wrapped));
    write_file(folder, "wrapped", 1, all, sizeof(all));
    const uint32_t impossible[2] = { UINT32_MAX, 0 };
    memcpy(all, impossible, sizeof(impossible));
    write_file(folder, "impossible", 1, all, 8 + used);
}

int main(int argc, char **argv)
{
    if (argc == 3 && strcmp(argv[1], "wire") == 0)
        seed_wire(argv[2]);
    else if (argc == 3 && strcmp(argv[1], "ring") == 0)
        seed_ring(argv[2]);
    else
        return fprintf(stderr, "usage: fuzz_seed wire|ring FOLDER\n"), 2;
    return 0;
}
