/*
 * Texts of several units: whose definition a name means, what is refused, and that places are those
 * of the unit.
 */
#include <criterion/criterion.h>
#include <errno.h>

#include "common.h"

#define UNIT(kind, name) ".pragma \"gmux unit " kind " " name "\";\n" PTX_HEADER
#define OBJECT(name)     UNIT("object", name)
#define LIBRARY(name)    UNIT("library", name)
#define USE(f)           ".extern .func " f ";\n.visible .entry k() { call " f "; ret; }\n"

static struct ir_module *parse(const char *text)
{
    struct ptx_error err;
    struct ir_module *m = ptx_try(text, &err);
    cr_assert(m != NULL, "%s:%u:%u %s\n%s", err.unit, err.line, err.column, err.text, text);
    return m;
}

/* The value that kernel k writes last: of the first store's constant. */
static uint64_t stored(const struct ir_module *m, const char *kernel)
{
    uint32_t f = ir_module_find_fn(m, kernel);
    cr_assert(f != IR_NONE && m->fns[f].lacks == 0, "%s",
              f == IR_NONE ? "" : ir_name(m, m->fns[f].lacks));
    for (uint32_t i = 0; i < m->fns[f].instr_count; i++)
        if (m->fns[f].instrs[i].op == IR_OP_ST)
            return m->fns[f].instrs[i].src[0].bits;
    cr_assert_fail("no store in %s", kernel);
    return 0;
}

/* A function that stores `value` at 0. */
#define FUNCTION(linkage, name, value)                                                             \
    linkage " .func " name " { st.global.u32 [0], " value "; ret; }\n"

Test(ptx_link, which_definition)
{
    static const struct {
        const char *text;
        uint64_t value;
    } cases[] = {
        { PTX_HEADER OBJECT("a") USE("f") OBJECT("b") FUNCTION(".visible", "f", "7"), 7 },
        { PTX_HEADER OBJECT("b") FUNCTION(".visible", "f", "7") OBJECT("a") USE("f"), 7 },
        { PTX_HEADER OBJECT("b") FUNCTION(".weak", "f", "6") OBJECT("a") USE("f") OBJECT("c")
              FUNCTION(".visible", "f", "7"),
          7 },
        { PTX_HEADER OBJECT("b") FUNCTION(".weak", "f", "6") OBJECT("a") USE("f") OBJECT("c")
              FUNCTION(".weak", "f", "7"),
          6 },
        /* Static ones are of their own unit. */
        { PTX_HEADER OBJECT("b") FUNCTION("", "f", "6") OBJECT("a") USE("f") OBJECT("c")
              FUNCTION(".visible", "f", "7"),
          7 },
        { PTX_HEADER OBJECT("a")
              FUNCTION("", "f", "6") ".visible .entry k() { call f; ret; }\n" OBJECT("c")
                  FUNCTION(".visible", "f", "7"),
          6 },
        /* A library's give way. */
        { PTX_HEADER LIBRARY("b") FUNCTION(".visible", "f", "6") OBJECT("a") USE("f") OBJECT("c")
              FUNCTION(".weak", "f", "7"),
          7 },
        { PTX_HEADER LIBRARY("b") FUNCTION(".visible", "f", "6") LIBRARY("c")
              FUNCTION(".visible", "f", "7") OBJECT("a") USE("f"),
          6 },
        /* A weak kernel is there once. */
        { PTX_HEADER OBJECT("a") ".weak .entry k() { st.global.u32 [0], 8; ret; }\n" OBJECT(
              "b") ".weak .entry k() { st.global.u32 [0], 9; ret; }\n",
          8 },
    };
    for (size_t i = 0; i < GM_ARRAY_LEN(cases); i++) {
        struct ir_module *m = parse(cases[i].text);
        unsigned entries = 0;
        for (uint32_t f = 0; f < m->fn_count; f++)
            entries += m->fns[f].is_entry;
        cr_expect(stored(m, "k") == cases[i].value, "case %zu", i);
        cr_expect(entries == 1, "case %zu: %u kernels", i, entries);
        ir_module_destroy(m);
    }
}

Test(ptx_link, variables)
{
    struct ir_module *m = parse(
        PTX_HEADER OBJECT("a") ".extern .global .align 4 .b8 v[];\n"
                               ".global .u64 to = generic(v) + 4;\n"
                               ".weak .global .u64 w[2] = {v, 5};\n"
                               ".common .global .u32 c;\n"
                               ".visible .entry k() { st.global.u32 [v+4], 1; ret; }\n" OBJECT(
                                   "b") ".visible .global .align 4 .b8 v[8] = {1, 2};\n"
                                        ".weak .global .u64 w[2] = {v, 6};\n"
                                        ".common .global .align 8 .b8 c[16];\n");
    uint32_t v = ir_module_find_symbol(m, "v"), c = ir_module_find_symbol(m, "c");
    cr_assert(v != IR_NONE && m->symbols[v].size == 8 && m->symbols[v].init_size == 2);
    cr_assert(c != IR_NONE && m->symbols[c].size == 16);
    cr_assert_eq(m->reloc_count, 2); /* that of the second w is gone */
    for (uint32_t r = 0; r < 2; r++)
        cr_assert(m->relocs[r].target == v &&
                  !(m->symbols[m->relocs[r].symbol].flags & IR_SYM_DROPPED));
    uint32_t k = ir_module_find_fn(m, "k");
    cr_assert_eq(m->fns[k].instrs[0].address.symbol, v);
    unsigned named_v = 0;
    for (uint32_t s = 0; s < m->symbol_count; s++)
        named_v += ir_symbol_is_placed(m, s) && strcmp(ir_name(m, m->symbols[s].name), "v") == 0;
    cr_assert_eq(named_v, 1);
    ir_module_destroy(m);
}

Test(ptx_link, shared_memory)
{
    struct ir_module *m = parse(PTX_HEADER OBJECT(
        "a") ".extern .shared .align 16 .b8 dyn[];\n.extern .shared .u32 fixed;\n"
             ".visible .entry k() { st.shared.u32 [dyn], 1; st.shared.u32 [fixed], 1; ret; "
             "}\n" OBJECT(
                 "b") ".visible .shared .u32 fixed;\n.extern .shared .align 32 .b8 dyn[];\n");
    const struct ir_fn *fn = &m->fns[ir_module_find_fn(m, "k")];
    cr_expect(fn->uses_dynamic_shared && fn->shared_static == 4 && fn->shared_dynamic % 16 == 0 &&
              fn->shared_dynamic > 0);
    ir_module_destroy(m);
}

Test(ptx_link, refused)
{
    static const struct {
        const char *text;
        int error;
        const char *unit, *says;
        uint32_t line;
    } cases[] = {
        { PTX_HEADER OBJECT("a.ptx") USE("f"), -ENOENT, "", "Undefined reference to 'f' in 'a.ptx'",
          0 },
        { PTX_HEADER OBJECT("a") USE("f") OBJECT("b") FUNCTION("", "f", "6"), -ENOENT, "",
          "Undefined reference to 'f' in 'a'", 0 },
        { PTX_HEADER OBJECT(
              "a") ".extern .global .u32 v;\n.visible .entry k() { st.global.u32 [v], 1; ret; }\n",
          -ENOENT, "", "Undefined reference to 'v' in 'a'", 0 },
        { PTX_HEADER OBJECT("a") ".extern .global .u32 v;\n.global .u64 p = v;\n", -ENOENT, "",
          "Undefined reference to 'v' in 'a'", 0 },
        { PTX_HEADER ".extern .global .u32 v[];\n.global .u64 p = v;\n", -EINVAL, "",
          "Unresolved extern variable 'v'", 0 },
        { PTX_HEADER USE("f"), -EINVAL, "", "Unresolved extern function 'f'", 0 },
        { PTX_HEADER OBJECT("a") FUNCTION(".visible", "f", "6") OBJECT("b")
              FUNCTION(".visible", "f", "6"),
          -EEXIST, "", "Multiple definition of 'f' in 'b', first defined in 'a'", 0 },
        { PTX_HEADER OBJECT("a") FUNCTION(".visible", "f", "6")
              OBJECT("b") ".visible .global .u32 f;\n",
          -EEXIST, "", "Multiple definition of 'f' in 'b', first defined in 'a'", 0 },
        { PTX_HEADER OBJECT("a") FUNCTION(".visible", "f", "6")
              OBJECT("b.ptx") "\n.global .u32 x\n.bad;\n",
          -EINVAL, "b.ptx", "", 6 },
        { PTX_HEADER ".pragma \"gmux unit what a\";\n", -EINVAL, "", "this begins no unit", 0 },
        { PTX_HEADER ".pragma \"gmux unit object a\";\n.global .u32 x;\n", -EINVAL, "a",
          "begins with '.version'", 1 },
    };
    for (size_t i = 0; i < GM_ARRAY_LEN(cases); i++) {
        struct ptx_error err;
        struct ir_module *m = NULL;
        int r = ptx_parse(cases[i].text, strlen(cases[i].text), &m, &err);
        cr_expect(r == cases[i].error, "case %zu: %d, %s", i, r, err.text);
        cr_expect(strstr(err.text, cases[i].says) != NULL, "case %zu: %s", i, err.text);
        cr_expect_str_eq(err.unit, cases[i].unit, "case %zu", i);
        cr_expect(cases[i].line == 0 || err.line == cases[i].line, "case %zu: line %u", i,
                  err.line);
    }
}

/* Many units with much to look up in each: time is linear, or nearly. */
Test(ptx_link, many_units, .timeout = 20)
{
    enum { UNITS = 30000 };
    char *text = malloc(UNITS * 200);
    size_t at = (size_t)sprintf(text, "%s", PTX_HEADER);
    for (int i = 0; i < UNITS; i++)
        at += (size_t)sprintf(text + at,
                              "%s.weak .global .u32 v%d;\n.global .u64 own[2] = {v%d, "
                              "v%d};\n.extern .global .u32 w;\n",
                              OBJECT("u"), i, i, i);
    (void)sprintf(text + at, "%s.visible .global .u32 w;\n", OBJECT("last"));
    struct ir_module *m = parse(text);
    cr_expect(m->reloc_count == 2 * UNITS);
    ir_module_destroy(m);
    free(text);
}

/* What a library does not find is missed by those kernels alone that come there. */
Test(ptx_link, lacks)
{
    struct ir_module *m =
        parse(PTX_HEADER LIBRARY("lib") "\n" USE("f") ".visible .entry good() { ret; }\n");
    const uint32_t lacks = m->fns[ir_module_find_fn(m, "k")].lacks;
    cr_assert(lacks != 0);
    cr_expect(strncmp(ir_name(m, lacks), "lib:6:", 6) == 0, "%s", ir_name(m, lacks));
    cr_expect(m->fns[ir_module_find_fn(m, "good")].lacks == 0);
    ir_module_destroy(m);
}
