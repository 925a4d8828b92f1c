/*
 * The parser's own state and the functions its files call in each other. From the top down:
 *
 *   parse               from a text to a module
 *   runtime, heap       the device runtime, appended to a text that wants it
 *   module              directives, heads of functions
 *   link                what several units have in common
 *   body                statements, labels
 *   instr               opcode, modifiers, their rules
 *   expand              opcodes that become several instructions (expand.h), and where each is
 * made: async, bulk, mbarrier, newer, packed, matrix, wmma, mma, mma_quads, surface, texture, video
 *   forms               the forms of operand lists
 *   call                operands of calls
 *   take                what expansions take from the text
 *   operand             operands
 *   reserved            special registers that are memory
 *   emit                instructions that expansions make
 *   code                instructions appended, branches noted
 *   registers, decl     registers, variables, initial values
 *   debug               what carries no meaning here
 *   lacking             what this device does not have
 *   names               scopes
 *   cursor              the next token, errors
 *   words, lex          words of PTX, tokens
 *
 * Recursive descent over one token of look-ahead. Every function returns false once something is
 * wrong; the first problem is kept, and from then on the token is PTX_END, so that loops end by
 * themselves.
 */
#ifndef GMUX_SOFT_PTX_PARSE_H
#define GMUX_SOFT_PTX_PARSE_H

#include <errno.h>

#include "device/soft/ir/raw.h"
#include "device/soft/ptx/lex.h"
#include "device/soft/ptx/ptx.h"
#include "device/soft/ptx/words.h"

#define PTX_MAX_TEXT  (256u << 20)
#define PTX_MAX_DEPTH 64 /* nested { } of a function */
#define PTX_MAX_DIMS  8  /* of an array */
#define PTX_MAX_NAME  4096

enum ptx_name_kind {
    PTX_NAME_REG,     /* index: register */
    PTX_NAME_VECTOR,  /* index: first of `width` registers */
    PTX_NAME_RANGE,   /* index: first register, count: of "%r<count>" */
    PTX_NAME_SYMBOL,  /* index: symbol */
    PTX_NAME_TEMP,    /* index: temp of the function (.param variable) */
    PTX_NAME_FN,      /* index: function */
    PTX_NAME_LABEL,   /* index: label */
    PTX_NAME_LIST,    /* index: list of .branchtargets */
    PTX_NAME_PROTO,   /* .callprototype */
    PTX_NAME_LACKING, /* index: problem in `lacking` */
};

struct ptx_name {
    const char *text; /* in the PTX text */
    uint32_t length;
    uint32_t hash;
    uint32_t next; /* in its bucket */
    uint32_t index, count;
    uint8_t kind;
    uint8_t depth; /* 0: module scope */
    uint8_t width; /* of registers: how many each name means; of a range of .param variables 0 */
};

/* All names visible now, inner scopes last. */
struct ptx_names {
    struct ptx_name *list;
    uint32_t count, cap;
    uint32_t *buckets;
    uint32_t bucket_count; /* power of two */
    uint64_t seed;         /* so that nobody can choose names that collide */
};

/* A branch target not resolved yet: in an instruction, or in raw->targets. */
struct ptx_fixup {
    struct ptx_token name;
    uint32_t index;
    bool in_targets;
};

struct ptx_scope {
    uint32_t names, fixups; /* how many there were when it began */
};

/* A part of a text with names of its own (link.c). */
struct ptx_unit {
    const char *name; /* in the text */
    uint32_t length;
    uint32_t line; /* where it is begun */
    uint8_t rank;  /* what its definitions count */
};

/* What a name means in all units: the best declaration so far. */
struct ptx_link {
    uint8_t kind; /* PTX_NAME_FN, PTX_NAME_SYMBOL */
    uint8_t rank;
    uint32_t index;
    uint32_t unit; /* from 1; 0: none */
};

/* A declaration of such a name in one unit. */
struct ptx_same {
    uint8_t kind;
    uint32_t index;
    uint32_t link;
};

/* A function that is another one. */
struct ptx_alias {
    uint32_t fn, is;
};

struct ptx_parser {
    struct ptx_lexer lexer;
    struct ptx_token token; /* the next one, not consumed yet */
    struct ir_problem why;
    struct ptx_words words;
    struct ptx_names names;
    struct ir_module *m;
    uint32_t fn_cap, raw_count, raw_cap, symbol_cap, param_cap, reloc_cap;
    uint64_t init_cap, strings_cap;
    struct ir_raw_fn *raws; /* parallel to m->fns */
    uint32_t fn;            /* being parsed, or IR_NONE */
    struct ir_raw_fn *raw;  /* its code */
    struct ptx_scope scopes[PTX_MAX_DEPTH];
    uint32_t depth; /* 0: module scope */
    struct ptx_fixup *fixups;
    uint32_t fixup_count, fixup_cap;
    uint32_t instr_total, instr_most, reg_total;
    struct ir_problem *lacking; /* why variables of the module cannot be had */
    uint32_t lacking_count, lacking_cap;
    struct ptx_unit *units; /* none: a plain text */
    uint32_t unit_count, unit_cap;
    struct ptx_names exports; /* index: of a link */
    struct ptx_link *links;
    uint32_t link_count, link_cap;
    struct ptx_same *same;
    uint32_t same_count, same_cap;
    struct ptx_alias *aliases;
    uint32_t alias_count, alias_cap;
    bool has_workspace;
    uint32_t workspace; /* symbol of the hidden parameter (reserved.c) */
};

/* A place in the text to return to. */
struct ptx_mark {
    struct ptx_lexer lexer;
    struct ptx_token token;
};

/* cursor.c */
bool ptx_fail(struct ptx_parser *p, int error, const struct ptx_token *at, const char *fmt, ...)
    GM_PRINTF(4, 5);
bool ptx_out_of_memory(struct ptx_parser *p);
void ptx_advance(struct ptx_parser *p);
bool ptx_accept(struct ptx_parser *p, char punct);
bool ptx_expect(struct ptx_parser *p, char punct);
bool ptx_expect_ident(struct ptx_parser *p, struct ptx_token *name, const char *what);
/* An integer constant 0 .. max, perhaps with unary minus where min < 0. */
bool ptx_expect_uint(struct ptx_parser *p, uint64_t max, uint64_t *value, const char *what);
bool ptx_is_dot(const struct ptx_parser *p, const char *word);
bool ptx_accept_dot(struct ptx_parser *p, const char *word);
bool ptx_text_is(const struct ptx_token *t, const char *word);
/* "%.*s" arguments for a token; long ones are cut. */
#define PTX_TEXT(t) (int)GM_MIN((t)->length, 60u), (t)->text
bool ptx_intern(struct ptx_parser *p, const struct ptx_token *name, uint32_t length, uint32_t *out);
struct ptx_mark ptx_here(const struct ptx_parser *p);
void ptx_return_to(struct ptx_parser *p, const struct ptx_mark *mark);

/* names.c */
bool ptx_names_init(struct ptx_names *n);
void ptx_names_finish(struct ptx_names *n);
struct ptx_name *ptx_names_find(const struct ptx_names *n, const char *text, uint32_t length);
/* NULL: out of memory, or (*twice) already in this scope. */
struct ptx_name *ptx_names_add(struct ptx_names *n, const struct ptx_token *name, uint32_t length,
                               enum ptx_name_kind kind, uint32_t index, uint32_t depth,
                               bool *twice);
void ptx_names_drop(struct ptx_names *n, uint32_t keep);
/* Adds to the current scope. */
bool ptx_declare(struct ptx_parser *p, const struct ptx_token *name, uint32_t length,
                 enum ptx_name_kind kind, uint32_t index, uint32_t count);
/* What a name in an operand is: a register (also of a range: index is the register), symbol ..
 * NULL: nothing. */
bool ptx_lookup(const struct ptx_parser *p, const struct ptx_token *name, struct ptx_name *out);
bool ptx_scope_begin(struct ptx_parser *p);
/* Resolves branches to labels of the scope that ends. */
bool ptx_scope_end(struct ptx_parser *p);

/* lacking.c */
/* Words that PTX has and this device does not. */
bool ptx_lacks_instruction(const struct ptx_token *t);
bool ptx_lacks_type(const struct ptx_token *t);
bool ptx_lacks_directive(const struct ptx_token *t);
/* After something went wrong: if the reason is that this device lacks something, notes that for the
 * current function, if there is one, and returns true, so that parsing goes on. */
bool ptx_set_aside(struct ptx_parser *p);
/* The same, and goes on behind the statement that began at `start`. */
bool ptx_recover_statement(struct ptx_parser *p, const struct ptx_mark *start);
/* The same for a variable of the module: functions that use its name lack something. */
bool ptx_recover_variable(struct ptx_parser *p, const struct ptx_mark *start);
/* On behind the end of a body begun at depth `outer`. */
bool ptx_skip_body(struct ptx_parser *p, uint32_t outer);
/* Refuses the use of a PTX_NAME_LACKING. */
bool ptx_refuse_lacking(struct ptx_parser *p, const struct ptx_token *t,
                        const struct ptx_name *name);

/* decl.c */
struct ptx_variable {
    struct ptx_token name;
    enum ir_space space;
    enum ir_type type;
    uint32_t vector; /* 1, 2, 4 */
    uint32_t align;
    uint64_t size;
    bool is_array, is_unsized, is_managed;
    uint8_t reference; /* enum ir_reference */
    uint32_t dim_count;
    uint64_t dims[PTX_MAX_DIMS];
};
/* ".align 8 .b8 name[16]" after the space; without initial value and end. */
bool ptx_parse_variable(struct ptx_parser *p, enum ir_space space, struct ptx_variable *v);
/* The whole statement after the space word: one or more variables, initial values, semicolon. */
bool ptx_parse_variables(struct ptx_parser *p, enum ir_space space, uint8_t flags);
/* ".u64 name, ..;" after .tex, which is what PTX before 1.5 has in place of .global .texref. */
bool ptx_parse_textures(struct ptx_parser *p, uint8_t flags);
bool ptx_new_symbol(struct ptx_parser *p, const struct ptx_variable *v, uint8_t flags,
                    uint32_t *out);
bool ptx_new_temp(struct ptx_parser *p, const struct ptx_variable *v, uint32_t *out);
bool ptx_parse_type(struct ptx_parser *p, enum ir_type *type);

/* registers.c */
/* After ".reg", with the semicolon. */
bool ptx_parse_registers(struct ptx_parser *p);
/* After ".reg" in the head of a function: declared, `width` registers from *first on. */
bool ptx_parse_formal_register(struct ptx_parser *p, uint32_t *first, uint8_t *width);
/* After ".reg" in a prototype: what each of them counts in a signature, and how many there are. */
bool ptx_parse_register_size(struct ptx_parser *p, uint64_t *part, uint8_t *width);
bool ptx_new_register(struct ptx_parser *p, const struct ptx_token *at, enum ir_type type,
                      uint32_t name, uint32_t number, uint32_t *out);
/* The name of a vector, just consumed, and the letter behind it: one of its registers. */
bool ptx_take_element(struct ptx_parser *p, const struct ptx_token *t, struct ptx_name *name);
/* Whether a vector as a whole is next; _accept_: consumed then. */
bool ptx_vector_follows(const struct ptx_parser *p);
bool ptx_accept_vector(struct ptx_parser *p, struct ptx_name *out);

/* module.c */
bool ptx_parse_module(struct ptx_parser *p);
/* What follows the header, to the end of the text. */
bool ptx_parse_units(struct ptx_parser *p);

/* debug.c */
/* .loc, .file, .pragma, .section: everything that carries no meaning here. *was tells whether there
 * was one. */
bool ptx_skip_debug(struct ptx_parser *p, bool *was);

/* link.c */
/* If a unit begins here: *was, and what was before has ended. */
bool ptx_unit_begin(struct ptx_parser *p, bool *was);
bool ptx_unit_end(struct ptx_parser *p);
/* At the end of the text: every reference means the definition that was chosen. */
bool ptx_link(struct ptx_parser *p);
/* From a line of the whole text to the unit and its own line. */
void ptx_place_of(const struct ptx_parser *p, struct ptx_error *place);

/* runtime.c */
/* Behind the text: units with the functions of the device runtime that it declares and does not
 * define. */
bool ptx_add_runtime(struct ptx_parser *p);
extern const char ptx_heap[]; /* heap.c: malloc, free */
extern const size_t ptx_heap_size;

/* reserved.c */
/* A half of the workspace's address, 0 the lower one: the value of %envreg2, 1: of %envreg1. */
bool ptx_parse_workspace(struct ptx_parser *p, const struct ptx_token *t, unsigned half,
                         struct ir_src *out);
/* Whether `text` is a register of the memory that is reserved for compilers in each block; it is
 * *out then. */
bool ptx_parse_reserved(struct ptx_parser *p, const struct ptx_token *t, const char *text,
                        uint32_t length, struct ir_src *out);

/* body.c: from '{' to its '}' */
bool ptx_parse_body(struct ptx_parser *p);

/* instr.c: `opcode` is consumed already */
bool ptx_parse_instr(struct ptx_parser *p, const struct ptx_token *opcode, uint32_t guard,
                     bool guard_not);

/* call.c: what follows "call" and its modifiers */
bool ptx_parse_call(struct ptx_parser *p, struct ir_instr *i);

/* code.c */
bool ptx_append_instr(struct ptx_parser *p, const struct ir_instr *i);
bool ptx_add_fixup(struct ptx_parser *p, const struct ptx_token *name, uint32_t index,
                   bool in_targets);

/* expand.c: opcodes that become several instructions (expand.h) */
struct ptx_expand;
typedef bool ptx_expansion(struct ptx_expand *x);
bool ptx_is_expanded(const struct ptx_token *opcode, ptx_expansion **out);
bool ptx_parse_expanded(struct ptx_parser *p, const struct ptx_token *opcode, ptx_expansion *run,
                        uint32_t guard, bool guard_not);

/* packed.c */
/* Whether an instruction is to be appended as several. */
bool ptx_is_in_pieces(const struct ir_instr *i);
bool ptx_append_pieces(struct ptx_parser *p, const struct ptx_token *opcode,
                       const struct ir_instr *i);

/* forms.c */
bool ptx_parse_operands(struct ptx_parser *p, struct ir_instr *i, const struct ptx_token *opcode);

/* operand.c */
enum {
    PTX_O_WIDER = 1, /* the register may be wider than the type */
    PTX_O_SYMBOL =
        2,         /* an address of a variable is welcome, and a special register stays one (mov) */
    PTX_O_NOT = 4, /* !%p is welcome */
};
bool ptx_parse_source(struct ptx_parser *p, enum ir_type type, unsigned flags, struct ir_src *out);
/* Whether register `reg`, written at `t`, has the type. */
bool ptx_check_register(struct ptx_parser *p, const struct ptx_token *t, uint32_t reg,
                        enum ir_type type, bool wider);
/* The next token as a register. */
bool ptx_parse_register(struct ptx_parser *p, enum ir_type type, bool wider, uint32_t *reg);
/* The next token as a register to write; with `sink` also "_", which is IR_NONE. */
bool ptx_parse_destination(struct ptx_parser *p, enum ir_type type, bool wider, bool sink,
                           uint32_t *reg);
/* [reg + 4], [variable + 4], [4]: i->address, and i->space where a variable tells it. */
bool ptx_parse_address(struct ptx_parser *p, struct ir_instr *i);
/* An access of `width` elements to a parameter by name stays inside of it. */
bool ptx_check_param_access(struct ptx_parser *p, const struct ir_instr *i,
                            const struct ptx_token *at, unsigned width);

#endif
