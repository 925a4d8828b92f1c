/*
 * The parser's interface: from a text to a module in its final form.
 */
#include "device/soft/ptx/parse.h"

#include <stdio.h>

#include "base/cleanup.h"
#include "device/soft/ptx/ptx.h"

static void parser_finish(struct ptx_parser *p)
{
    ir_module_destroy(p->m);
    for (uint32_t i = 0; i < p->raw_count; i++)
        ir_raw_finish(&p->raws[i]);
    free(p->raws);
    free(p->fixups);
    free(p->lacking);
    free(p->units);
    free(p->links);
    free(p->same);
    free(p->aliases);
    ptx_names_finish(&p->names);
    ptx_names_finish(&p->exports);
    free(p);
}

static bool note_lack(struct ptx_parser *p, uint32_t fn)
{
    const struct ir_problem *why = &p->raws[fn].lacks;
    struct ptx_error place = { .line = why->line };
    char text[sizeof(why->text) + sizeof(place.unit) + 32];
    ptx_place_of(p, &place);
    int n = snprintf(text, sizeof(text), "%s%s%u:%u: %s", place.unit, place.unit[0] ? ":" : "",
                     place.line, why->column, why->text);
    struct ptx_token t = { .text = text };
    return ptx_intern(p, &t, (uint32_t)n, &p->m->fns[fn].lacks);
}

/* Brings the parsed text into its final form. */
static bool finish_module(struct ptx_parser *p)
{
    if (!ir_inline_calls(p->m, p->raws, p->instr_most, &p->why))
        return false;
    for (uint32_t f = 0; f < p->m->fn_count; f++) {
        struct ir_raw_fn *raw = &p->raws[f];
        const struct ir_fn *fn = &p->m->fns[f];
        if (!fn->is_entry)
            continue;
        p->raw = raw;
        if (!fn->is_defined)
            ir_refuse(&raw->lacks, -ENOTSUP, fn->line, 1, "the kernel has no body");
        if (!raw->lacks.error &&
            (!ir_promote_temps(raw, &p->why) || !ir_finish_fn(p->m, f, raw, &p->why)) &&
            !ptx_set_aside(p))
            return false;
        if (raw->lacks.error && !note_lack(p, f))
            return false;
    }
    return true;
}

static bool parse(struct ptx_parser *p, const char *text, size_t size)
{
    ptx_words_init(&p->words);
    p->m = calloc(1, sizeof(*p->m));
    if (!p->m || !ptx_names_init(&p->names) || !ptx_names_init(&p->exports))
        return ptx_out_of_memory(p);
    if (size > PTX_MAX_TEXT)
        return ir_refuse(&p->why, -E2BIG, 0, 0, "text of over %u MiB", PTX_MAX_TEXT >> 20);
    /* Offset 0 is the empty name. */
    struct ptx_token empty = { .text = "" };
    uint32_t zero;
    if (!ptx_intern(p, &empty, 0, &zero))
        return false;
    ptx_lexer_init(&p->lexer, text, size);
    ptx_advance(p);
    return ptx_parse_module(p) && ptx_unit_end(p) && ptx_add_runtime(p) && ptx_link(p) &&
           finish_module(p);
}

int ptx_parse(const char *text, size_t size, struct ir_module **out, struct ptx_error *err)
{
    return ptx_parse_within(text, size, IR_MAX_MODULE_INSTRS, out, err);
}

int ptx_parse_within(const char *text, size_t size, uint64_t instrs, struct ir_module **out,
                     struct ptx_error *err)
{
    struct ptx_parser *p = calloc(1, sizeof(*p));
    *out = NULL;
    memset(err, 0, sizeof(*err));
    if (!p) {
        snprintf(err->text, sizeof(err->text), "out of memory");
        return -ENOMEM;
    }
    p->fn = IR_NONE;
    p->instr_most = (uint32_t)GM_MIN(instrs, (uint64_t)IR_MAX_MODULE_INSTRS);
    if (parse(p, text, size) && !p->why.error)
        *out = gm_take_ptr(p->m);
    int error = p->why.error;
    if (error) {
        _Static_assert(sizeof(err->text) == sizeof(p->why.text), "same room");
        err->line = p->why.line;
        err->column = p->why.column;
        memcpy(err->text, p->why.text, sizeof(err->text));
        ptx_place_of(p, err);
    }
    parser_finish(p);
    return error;
}
