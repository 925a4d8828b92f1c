/*
 * The parser's own state and the functions its files call in each other. From the top down:
 *
 *   parse               from a text to a module
 *   runtime             the device runtime, appended to a text that wants it
 *   module              directives, heads of functions
 *   link                what several units have in common
 *   body                statements, labels
 *   instr               opcode, modifiers, their rules
 *   expand              opcodes that become several instructions (expand.h), and where each is
 *                       made: async, bulk, mbarrier, move, newer, packed, matrix, stack, wmma,
 *                       mma, mma_quads, surface, texture, video
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
    uint32_t next; /* the next name in its bucket */
    uint32_t index, count;
    uint8_t kind;
    uint8_t depth; /* 0: module scope */
    uint8_t width; /* of registers: how many each name means; of a range of .param variables: 0 */
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
    uint32_t names, fixups; /* how many there were when the scope began */
};

/* A part of a text that has its own names (link.c). */
struct ptx_unit {
    const char *name; /* in the text */
    uint32_t length;
    uint32_t line; /* where it begins */
    uint8_t rank;  /* the rank of its definitions */
};

/* What a name that units share means: the best declaration so far. */
struct ptx_link {
    uint8_t kind; /* PTX_NAME_FN, PTX_NAME_SYMBOL */
    uint8_t rank;
    uint32_t index;
    uint32_t unit; /* the unit of that declaration, from 1; 0: none */
};

/* One unit's declaration of such a name. */
struct ptx_same {
    uint8_t kind;
    uint32_t index;
    uint32_t link;
};

/* A function that stands for another one. */
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
    uint32_t fn;            /* the function that is being parsed, or IR_NONE */
    struct ir_raw_fn *raw;  /* its code */
    struct ptx_scope scopes[PTX_MAX_DEPTH];
    uint32_t depth; /* 0: module scope */
    struct ptx_fixup *fixups;
    uint32_t fixup_count, fixup_cap;
    uint32_t instr_total, instr_most, reg_total;
    struct ir_problem *lacking; /* why some of the module's variables cannot be used */
    uint32_t lacking_count, lacking_cap;
    uint32_t target;        /* sm number of the text that is being parsed */
    struct ptx_unit *units; /* none: the text has no units */
    uint32_t unit_count, unit_cap;
    struct ptx_names exports; /* shared names; `index` is that of a link */
    struct ptx_link *links;
    uint32_t link_count, link_cap;
    struct ptx_same *same;
    uint32_t same_count, same_cap;
    struct ptx_alias *aliases;
    uint32_t alias_count, alias_cap;
    bool has_workspace;
    uint32_t workspace; /* the symbol of the hidden parameter (reserved.c) */
    bool has_stack;
    uint32_t stack;     /* the symbol of the thread's stack (stack.c) */
    uint32_t stack_top; /* the kernel's register with the end of what it took, or IR_NONE */
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
/* An integer constant from 0 to max. A unary minus is allowed if min < 0. */
bool ptx_expect_uint(struct ptx_parser *p, uint64_t max, uint64_t *value, const char *what);
bool ptx_is_dot(const struct ptx_parser *p, const char *word);
bool ptx_accept_dot(struct ptx_parser *p, const char *word);
bool ptx_text_is(const struct ptx_token *t, const char *word);
/* "%.*s" arguments for a token; long ones are cut. */
#define PTX_TEXT(t) (int)GM_MIN((t)->length, 60u), (t)->text
bool ptx_intern(struct ptx_parser *p, const struct ptx_token *name, uint32_t length, uint32_t *out);
struct ptx_mark ptx_here(const struct ptx_parser *p);
void ptx_return_to(struct ptx_parser *p, const struct ptx_mark *mark);

/* constant.c */
/* An integer, or a constant expression of integers: its 64 bits. */
bool ptx_parse_integer(struct ptx_parser *p, uint64_t *out);
/* "+ 4 - 8" behind a variable or register, or nothing: 0. */
bool ptx_parse_displacement(struct ptx_parser *p, int64_t *out);
/* Whether a floating-point number is next; consumes the sign in front of it, if there is one. */
bool ptx_accept_real(struct ptx_parser *p, bool *minus);

/* names.c */
bool ptx_names_init(struct ptx_names *n);
void ptx_names_finish(struct ptx_names *n);
struct ptx_name *ptx_names_find(const struct ptx_names *n, const char *text, uint32_t length);
/* Adds a name to the current scope. NULL: no memory, or (*twice) the scope has it already. */
struct ptx_name *ptx_names_add(struct ptx_names *n, const struct ptx_token *name, uint32_t length,
                               enum ptx_name_kind kind, uint32_t index, uint32_t depth,
                               bool *twice);
void ptx_names_drop(struct ptx_names *n, uint32_t keep);
/* Adds a name to the current scope, or fails. */
bool ptx_declare(struct ptx_parser *p, const struct ptx_token *name, uint32_t length,
                 enum ptx_name_kind kind, uint32_t index, uint32_t count);
/* Looks up a name in an operand: a register (for one of a range `index` is the register itself), a
 * symbol and so on. False: there is none. */
bool ptx_lookup(const struct ptx_parser *p, const struct ptx_token *name, struct ptx_name *out);
bool ptx_scope_begin(struct ptx_parser *p);
/* Ends a scope, and resolves the branches to its labels. */
bool ptx_scope_end(struct ptx_parser *p);

/* lacking.c */
/* Whether PTX has the word as an instruction, or modifier or directive, that this device does not
 * have. */
bool ptx_lacks_instruction(const struct ptx_token *t);
bool ptx_lacks_type(const struct ptx_token *t);
bool ptx_lacks_directive(const struct ptx_token *t);
/* Called after an error. If this device lacks a feature, notes that for the current function, if
 * there is one, and returns true: parsing goes on. */
bool ptx_set_aside(struct ptx_parser *p);
/* Like ptx_set_aside(), and goes on behind the statement that began at `start`. */
bool ptx_recover_statement(struct ptx_parser *p, const struct ptx_mark *start);
/* Like ptx_set_aside(), for a variable of the module: functions that use its name lack
 * something. */
bool ptx_recover_variable(struct ptx_parser *p, const struct ptx_mark *start);
/* On behind the end of a body begun at depth `outer`. */
bool ptx_skip_body(struct ptx_parser *p, uint32_t outer);
/* Reports the use of a name that is PTX_NAME_LACKING. */
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
/* Parses ".align 8 .b8 name[16]" after the space, without initial value and end. */
bool ptx_parse_variable(struct ptx_parser *p, enum ir_space space, struct ptx_variable *v);
/* Parses the statement after the word for the space: variables, initial values, semicolon. */
bool ptx_parse_variables(struct ptx_parser *p, enum ir_space space, uint8_t flags);
/* ".u64 name, ..;" after .tex, which is what PTX before 1.5 has in place of .global .texref. */
bool ptx_parse_textures(struct ptx_parser *p, uint8_t flags);
bool ptx_new_symbol(struct ptx_parser *p, const struct ptx_variable *v, uint8_t flags,
                    uint32_t *out);
bool ptx_new_temp(struct ptx_parser *p, const struct ptx_variable *v, uint32_t *out);
bool ptx_parse_type(struct ptx_parser *p, enum ir_type *type);

/* registers.c */
/* Parses what follows ".reg", with the semicolon. */
bool ptx_parse_registers(struct ptx_parser *p);
/* Parses what follows ".reg" in the head of a function: declares `width` registers, from *first
 * on. */
bool ptx_parse_formal_register(struct ptx_parser *p, uint32_t *first, uint8_t *width);
/* Parses what follows ".reg" in a prototype: what each register counts in a signature, and how many
 * there are. */
bool ptx_parse_register_size(struct ptx_parser *p, uint64_t *part, uint8_t *width);
bool ptx_new_register(struct ptx_parser *p, const struct ptx_token *at, enum ir_type type,
                      uint32_t name, uint32_t number, uint32_t *out);
/* Takes one register of the vector whose name was just consumed, and the letter behind it. */
bool ptx_take_element(struct ptx_parser *p, const struct ptx_token *t, struct ptx_name *name);
/* Whether a vector as a whole is next; _accept_: consumed then. */
bool ptx_vector_follows(const struct ptx_parser *p);
bool ptx_accept_vector(struct ptx_parser *p, struct ptx_name *out);

/* module.c */
bool ptx_parse_module(struct ptx_parser *p);
/* Parses what follows the header, to the end of the text. */
bool ptx_parse_units(struct ptx_parser *p);

/* debug.c */
/* Skips .loc, .file, .pragma and .section, which have no meaning here. *was: whether there was
 * one. */
bool ptx_skip_debug(struct ptx_parser *p, bool *was);

/* element.c: what follows the name `array` of the variable `symbol`, from "[" on: as a place to
 * load from or store to, or as a value of that type, of 4 or 8 bytes. */
bool ptx_parse_element(struct ptx_parser *p, const struct ptx_token *array, uint32_t symbol,
                       struct ir_address *out);
bool ptx_parse_element_address(struct ptx_parser *p, const struct ptx_token *array, uint32_t symbol,
                               enum ir_type type, struct ir_src *out);

/* link.c */
/* Begins a unit, if one begins here (*was), and ends the one before. */
bool ptx_unit_begin(struct ptx_parser *p, bool *was);
bool ptx_unit_end(struct ptx_parser *p);
/* Gives the variable its name. One that is .extern may be declared again, before or after its
 * definition. */
bool ptx_declare_variable(struct ptx_parser *p, const struct ptx_token *name, uint32_t index);
/* At the end of the text: makes every reference mean the definition that was chosen. */
bool ptx_link(struct ptx_parser *p);
/* Turns a line of the whole text into a unit and a line of it. */
void ptx_place_of(const struct ptx_parser *p, struct ptx_error *place);

/* runtime.c */
/* Appends units with those functions of the device runtime that the text declares and does not
 * define. */
bool ptx_add_runtime(struct ptx_parser *p);

/* reserved.c */
/* One half of the workspace's address: 0 is the lower one, the value of %envreg2, and 1 that of
 * %envreg1. */
bool ptx_parse_workspace(struct ptx_parser *p, const struct ptx_token *t, unsigned half,
                         struct ir_src *out);
/* Whether `text` is a register that tells of the shared memory reserved for compilers in each
 * block; *out is then its value. */
bool ptx_parse_reserved(struct ptx_parser *p, const struct ptx_token *t, const char *text,
                        uint32_t length, struct ir_src *out);

/* stack.c. In front of a kernel that takes memory of its stack: where that begins. After its labels
 * are known. */
bool ptx_begin_stack(struct ptx_parser *p);

/* body.c. Parses from '{' to the matching '}'. */
bool ptx_parse_body(struct ptx_parser *p);

/* instr.c. Parses an instruction whose `opcode` is consumed already. */
bool ptx_parse_instr(struct ptx_parser *p, const struct ptx_token *opcode, uint32_t guard,
                     bool guard_not);

/* call.c. Parses what follows "call" and its modifiers. */
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
/* Whether the instruction has to be appended as several. */
bool ptx_is_in_pieces(const struct ir_instr *i);
bool ptx_append_pieces(struct ptx_parser *p, const struct ptx_token *opcode,
                       const struct ir_instr *i);

/* forms.c */
bool ptx_parse_operands(struct ptx_parser *p, struct ir_instr *i, const struct ptx_token *opcode);

/* operand.c */
enum {
    PTX_O_WIDER = 1, /* the register may be wider than the type */
    PTX_O_SYMBOL =
        2, /* an address of a variable is welcome, and a special register stays one (mov) */
};
bool ptx_parse_source(struct ptx_parser *p, enum ir_type type, unsigned flags, struct ir_src *out);
/* Checks that register `reg`, written at `t`, has the type. */
bool ptx_check_register(struct ptx_parser *p, const struct ptx_token *t, uint32_t reg,
                        enum ir_type type, bool wider);
/* Takes the next token as a register to read. */
bool ptx_parse_register(struct ptx_parser *p, enum ir_type type, bool wider, uint32_t *reg);
/* Takes the next token as a register to write; with `sink` it may be "_", which is IR_NONE. */
bool ptx_parse_destination(struct ptx_parser *p, enum ir_type type, bool wider, bool sink,
                           uint32_t *reg);
/* Parses [reg + 4], [variable + 4], [4] or an array's element into i->address, and i->space if a
 * variable decides it. */
bool ptx_parse_address(struct ptx_parser *p, struct ir_instr *i);
/* Checks that an access of `width` elements to a parameter by name stays inside the parameter. */
bool ptx_check_param_access(struct ptx_parser *p, const struct ir_instr *i,
                            const struct ptx_token *at, unsigned width);

#endif
