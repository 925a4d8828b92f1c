/*
 * What makes a random kernel, shared by the files that do it. Registers by kind, and how many of
 * each: %r (32 bits), %rd, %f, %fd, %h, %p hold values; %t0, %t1, %a0, %a1, %q are free between
 * statements; %me is the thread's number in its block, %all how many there are.
 */
#ifndef GMUX_TESTS_PTX_RANDOM_MAKER_H
#define GMUX_TESTS_PTX_RANDOM_MAKER_H

#include <stdio.h>

#include "base/attr.h"
#include "random_ptx.h"

#define INTS    8u
#define LONGS   4u
#define FLOATS  6u
#define DOUBLES 3u
#define SHORTS  3u
#define PREDS   4u

#define RANDOM_SHARED_ATOMS 48u /* words of the array %sa */
#define NEIGHBOUR_BYTES     32u /* of the array %near, per thread */
#define RANDOM_POLLS        8u  /* words of the array %po, all 0 at first */

struct maker {
    uint64_t state;
    FILE *out;
    unsigned labels;
    unsigned depth; /* of nesting */
    unsigned loops; /* loops around this place */
    unsigned left;  /* statements that may still be made */
    bool together;  /* all threads of the block come here, at the same time */
    bool exited;    /* some may have exited before */
    bool stay;      /* none may exit here: others wait for it */
    bool calls;     /* there are functions to call */
    bool deep;      /* the block has more than one layer */
    bool portable;  /* only what each device does alike */
    bool waits;     /* threads wait for others in loops; then all barriers are number 0 */
    unsigned polls; /* loops in which they do */
    unsigned loop_regs;
    unsigned opened[4], open; /* labels of loops around that some lanes may leave by themselves */
};

static inline uint32_t pick(struct maker *m, uint32_t n)
{
    m->state ^= m->state << 13;
    m->state ^= m->state >> 7;
    m->state ^= m->state << 17;
    return (uint32_t)((m->state * UINT64_C(0x2545f4914f6cdd1d) >> 33) % n);
}

#define PICK(m, array) ((array)[pick((m), GM_ARRAY_LEN(array))])

/* For instructions, of which some are not portable: random_ptx.c. */
const char *random_pick_op(struct maker *m, const char *const *ops, unsigned count);
#define PICK_OP(m, array) random_pick_op((m), (array), GM_ARRAY_LEN(array))

/* A line that stands where the temporaries are declared. Takes the text and gives it back with a
 * register for each definition of a temporary. */
#define RANDOM_TEMPORARIES "\t// temporaries\n"
char *random_fresh_temporaries(char *text);

/* Threads exchange values with a neighbour through shared memory. Only where all threads come
 * together. */
void random_neighbour_op(struct maker *m);
/* Uses elements whose index is made of the thread number's bits. */
void random_permuted_op(struct maker *m);
/* Lanes of a warp store to one element with one instruction, or have it changed by an atomic. */
void random_meeting_op(struct maker *m);

/* Any statements: random_ptx.c. */
void random_statements(struct maker *m, unsigned count);

/* random_ptx.c: a comparison; the predicate that has the result. */
unsigned random_compare(struct maker *m);

/* random_forms.c. */
void random_form(struct maker *m);

/* random_ways.c. A branch, loop, switch or tangle; a jump out of a loop; three that only all
 * threads together may come to, and one for those of which none has left. */
void random_way(struct maker *m);
void random_jump(struct maker *m);
void random_tiles_statement(struct maker *m);
void random_barrier_op(struct maker *m);
void random_parted_sync(struct maker *m);
void random_poll_statement(struct maker *m);

/* random_calls.c. Functions before the entry; a call; one that all lanes of a warp come to. */
void random_functions(struct maker *m);
void random_call(struct maker *m);
void random_meeting_call(struct maker *m);

/* random_more.c. A statement of a kind that is not common; two that only all threads together may
 * come to. */
void random_more_op(struct maker *m);
void random_read_shared_atomics(struct maker *m);
void random_members_statement(struct maker *m);

#endif
