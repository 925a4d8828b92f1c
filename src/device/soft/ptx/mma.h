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

/* Looks up a type; NULL: there is none of that name, or no token. */
const struct ptx_mma_kind *ptx_mma_find_kind(const struct ptx_token *t);
/* Takes ".sync.aligned", which wmma may have. */
bool ptx_mma_take_sync(struct ptx_expand *x);
/* Takes a shape like "m16n8k16": m, n, k. */
bool ptx_mma_take_shape(struct ptx_expand *x, unsigned shape[3]);
static inline bool ptx_mma_is(const struct ptx_token *t, const char *word)
{
    return t && ptx_text_is(t, word);
}
bool ptx_mma_wrong_count(struct ptx_expand *x);

/* How wmma's matrices are cut into tiles of 16 x 8, of the transposed product if `transposed`;
 * `half`: into tiles of 8 x 8. */
struct ptx_tiling {
    unsigned rows, columns; /* tiles */
    bool transposed, half;
};
bool ptx_mma_find_tiling(const unsigned shape[3], const struct ptx_mma_kind *k,
                         struct ptx_tiling *out);
/* How many registers of a fragment of A or B the text has; `used` of them hold elements that
 * count. */
unsigned ptx_mma_fragment(const struct ptx_mma_kind *k, unsigned used);
/* Parses what follows "wmma.mma". */
bool ptx_mma_multiply(struct ptx_expand *x);

/* mma_sparse.c: the sparse A of mma.sp. */
struct ptx_mma_sparse {
    struct ir_src a[4]; /* `steps` registers */
    struct ir_src metadata;
    unsigned selector;
    unsigned steps; /* of the product, 2 or 4 */
    bool wide;      /* elements of 16 bits or more */
};
/* How many of four lanes have metadata of a product. */
static inline unsigned ptx_mma_metadata_lanes(const struct ptx_mma_sparse *m)
{
    return m->steps / 2 * (m->wide ? 1 : 2);
}
/* full: the 2 * steps registers of A with its zeros. */
void ptx_mma_spread(struct ptx_expand *x, const struct ptx_mma_sparse *m, struct ir_src *full);

/* mma_quads.c */
/* Converts the two f16 of a register to f32: out[0] and out[1]. */
void ptx_mma_widen(struct ptx_expand *x, struct ir_src pair, struct ir_src *out);
/* mma.m8n8k4 of f16. The registers are those of the text; C has eight f32 or, if `half_c`, four
 * pairs of f16. */
struct ptx_mma_quads {
    struct ir_src a[2], b[2], c[8];
    bool rows_a, rows_b; /* .row, or .col */
    bool half_c, half_d; /* only together with half_c */
};
/* d: an f32 for each element of D that the lane has, in the order that D's type has. */
void ptx_mma_quads(struct ptx_expand *x, const struct ptx_mma_quads *m, struct ir_src d[8]);

#endif
