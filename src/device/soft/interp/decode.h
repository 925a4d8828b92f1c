/*
 * From a function of the ir to the interpreter's program: what decode.c, layout.c and emit.c share.
 */
#ifndef GMUX_SOFT_INTERP_DECODE_H
#define GMUX_SOFT_INTERP_DECODE_H

#include "device/soft/interp/program.h"
#include "device/soft/interp/vector.h"

/* 64-bit slots for operands that have to be computed before the instruction */
#define INTERP_TEMPS IR_MAX_SRC

/* Where registers lie in the frame, and in which order blocks come. */
struct interp_layout {
    uint32_t *order; /* the reachable blocks of the ir */
    uint32_t order_count;
    bool *polls;      /* by block of the ir: it begins a loop that waits for other threads */
    interp_at *at;    /* by register; INTERP_NOWHERE: it is never used */
    uint8_t *width;   /* by register: enum interp_width */
    interp_at *clear; /* slots that are zeroed when a warp starts */
    uint32_t clear_count;
    bool clear_all;
    uint32_t pred_count, slot_count;
    /* Offsets in the frame. Set by interp_layout_place(), which also turns `at` and `clear` into
     * offsets. */
    uint32_t waiting_at, slots_at, temps_at, frame_bytes;
};

/* Chooses order and places; `at` and `clear` are numbers of places until the next call. False: no
 * memory. */
bool interp_layout_make(struct interp_layout *l, const struct ir_module *m, uint32_t fn);
/* Computes the offsets, once the number of the program's blocks is known. False: the frame is too
 * large. */
bool interp_layout_place(struct interp_layout *l, const struct ir_fn *f, uint32_t blocks);
void interp_layout_finish(struct interp_layout *l);

struct interp_builder {
    const struct ir_module *m;
    const struct ir_fn *f;
    const struct interp_vector *vector;
    struct interp_program *p;
    struct interp_layout layout;
    uint32_t *number;       /* block of the ir -> block of the program */
    uint32_t *predecessors; /* by block of the ir: how many edges lead to it */
    /* by block of the ir: where lanes that come back to it go, or INTERP_NO_BLOCK */
    uint32_t *again;
    uint32_t *starts; /* by block of the program: its first instruction */
    uint32_t current; /* the block that is being made */
    uint32_t temps;   /* how many the current instruction uses */
    uint32_t insn_room, access_room, slow_room, target_room, const_room;
    bool checked; /* use the handlers of check.c */
    /* for checked programs, by register: its value matters for more than copying */
    bool *computed;
    bool guarded;     /* the current instruction is guarded */
    bool scalar_only; /* no vector handlers */
    bool no_memory;
    char *why; /* set when an instruction cannot be interpreted */
    size_t why_size;
};

/* emit.c. Emits one instruction that does not end a block. False: `why` says why not. */
bool interp_emit(struct interp_builder *b, const struct ir_instr *i);
/* The next free instruction of the program, zeroed. */
struct interp_insn *interp_insn_add(struct interp_builder *b, interp_fn *run);
struct interp_slow *interp_slow_add(struct interp_builder *b, const struct ir_instr *i,
                                    uint32_t *index);
/* A source as an operand of at least the given width; *width: its width. May emit instructions that
 * compute it. */
interp_at interp_source(struct interp_builder *b, const struct ir_src *s, uint8_t want,
                        uint8_t *width);
/* `value` in all lanes. */
interp_at interp_constant(struct interp_builder *b, uint64_t value, uint8_t width);
/* Whether the instruction waits for all members of the warp to execute it together. */
bool interp_is_sync(const struct ir_instr *i);
/* Makes room for one more element in an array of `count`, by doubling it. NULL: no memory. */
void *interp_grow(struct interp_builder *b, void *array, uint32_t count, uint32_t *room,
                  size_t size);

#endif
