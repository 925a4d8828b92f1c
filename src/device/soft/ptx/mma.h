/*
 * What mma.c (products) and wmma.c (fragments in memory) share.
 */
#ifndef GMUX_SOFT_PTX_MMA_H
#define GMUX_SOFT_PTX_MMA_H

#include "device/soft/ptx/expand.h"

struct ptx_mma_kind {
    const char *name;
    uint8_t mma;  /* enum ir_mma */
    uint8_t bits; /* of an element */
};
extern const struct ptx_mma_kind ptx_mma_f16;

/* NULL: none of that name (or no token). */
const struct ptx_mma_kind *ptx_mma_find_kind(const struct ptx_token *t);
/* Takes ".sync.aligned" of wmma. */
bool ptx_mma_take_sync(struct ptx_expand *x);
/* Takes m, n, k of "m16n8k16". */
bool ptx_mma_take_shape(struct ptx_expand *x, unsigned shape[3]);
static inline bool ptx_mma_is(const struct ptx_token *t, const char *word)
{
    return t && ptx_text_is(t, word);
}
bool ptx_mma_wrong_count(struct ptx_expand *x);

/* How wmma's matrices are cut into tiles of 16 x 8, in the transposed product where `transposed`;
 * `half`: 8 x 8. */
struct ptx_tiling {
    unsigned rows, columns; /* tiles */
    bool transposed, half;
};
bool ptx_mma_find_tiling(const unsigned shape[3], const struct ptx_mma_kind *k,
                         struct ptx_tiling *out);
/* Registers of a fragment of A or B as the text has them, where `used` of them say something. */
unsigned ptx_mma_fragment(const struct ptx_mma_kind *k, unsigned used);
/* What follows "wmma.mma". */
bool ptx_mma_multiply(struct ptx_expand *x);
/* mma_quads.c */
/* out[0], out[1]: two f16 of a register as f32. */
void ptx_mma_widen(struct ptx_expand *x, struct ir_src pair, struct ir_src *out);
/* mma.m8n8k4 of f16. Registers as the text has them; C has eight of f32 or, where
 * `half_c`, four of pairs of f16. */
struct ptx_mma_quads {
    struct ir_src a[2], b[2], c[8];
    bool rows_a, rows_b; /* .row, or .col */
    bool half_c, half_d; /* f16 in D only with f16 in C */
};
/* d: f32 for each element that a lane has of D, as those of f16 or of f32 lie. */
void ptx_mma_quads(struct ptx_expand *x, const struct ptx_mma_quads *m, struct ir_src d[8]);

#endif
