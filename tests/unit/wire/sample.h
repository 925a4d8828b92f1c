/*
 * A sample of everything that protocol/control.api describes, in three sizes. The table is
 * generated, so that a new message is tested from the day it is written down.
 */
#ifndef GMUX_TESTS_WIRE_SAMPLE_H
#define GMUX_TESTS_WIRE_SAMPLE_H

#include <string.h>

#include "wire/messages.h"

enum sample_variant {
    SAMPLE_ZERO, /* zeros, empty strings, no elements */
    SAMPLE_SOME,
    SAMPLE_FULL, /* everything as long as it may be */
    SAMPLE_VARIANTS,
};

struct sample {
    const char *name;
    unsigned type; /* enum wire_type; 0: a struct, which is no packet of its own */
    void (*put)(struct wire_enc *e, enum sample_variant v);  /* the body */
    bool (*same)(struct wire_dec *d, enum sample_variant v); /* decodes a whole body and compares */
    bool (*again)(struct wire_dec *d,
                  struct wire_enc *e); /* decodes any body and encodes it; false: malformed */
};
extern const struct sample samples[];
extern const size_t samples_count;

struct sample_record {
    const char *name;
    unsigned op;
    size_t fixed;    /* size without the bytes */
    size_t variable; /* most bytes behind it */
};
extern const struct sample_record sample_records[];
extern const size_t sample_records_count;

/* Value number i of a sample. */
uint32_t sample_u32(enum sample_variant v, unsigned i);
uint64_t sample_u64(enum sample_variant v, unsigned i);
int32_t sample_i32(enum sample_variant v, unsigned i);
double sample_f64(enum sample_variant v, unsigned i);
const char *sample_str(enum sample_variant v, unsigned i, uint32_t max);
struct wire_bytes sample_bytes(enum sample_variant v, unsigned i, uint32_t max);
uint32_t sample_count(enum sample_variant v, uint32_t max);
bool sample_same_str(const char *a, const char *b);
bool sample_same_bytes(struct wire_bytes a, struct wire_bytes b);

/* The packet of a message (the bare body of a struct) in `buffer`. Its size; 0 if it did not fit.
 */
size_t sample_pack(const struct sample *s, enum sample_variant v, uint64_t serial, void *buffer,
                   size_t capacity);

#endif
