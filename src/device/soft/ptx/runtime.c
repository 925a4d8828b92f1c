/*
 * The device's own replacement for NVIDIA's device runtime, written in PTX (runtime/): functions
 * with the runtime's names, in units of their own (link.c), which are added to a text that calls
 * one of them.
 */
#include "device/soft/ptx/parse.h"

/* The files in runtime/, NUL-terminated. */
extern const char ptx_grid[], ptx_heap[], ptx_children[], ptx_moves[];

static bool begins(const char *name, const char *with)
{
    return strncmp(name, with, strlen(with)) == 0;
}

static bool is_of_grid(const char *name)
{
    return begins(name, "cudaCG") || strcmp(name, "cudaGraphSetConditional") == 0;
}

static bool is_of_heap(const char *name)
{
    return strcmp(name, "malloc") == 0 || strcmp(name, "free") == 0;
}

static bool is_of_moves(const char *name)
{
    return begins(name, "__cudaCDP2Mem");
}

static bool is_of_children(const char *name)
{
    return begins(name, "__cudaCDP2");
}

/* Whether that name is one of those functions, which is not defined there. */
static bool is_missing(const struct ptx_parser *p, uint8_t kind, uint32_t index,
                       bool (*is_one)(const char *name))
{
    return kind == PTX_NAME_FN && !p->m->fns[index].is_defined &&
           is_one(ir_name(p->m, p->m->fns[index].name));
}

/* Whether a unit declares one of those functions, and no unit defines it. */
static bool lacks(const struct ptx_parser *p, bool (*is_one)(const char *name))
{
    for (uint32_t n = 0; n < p->link_count; n++)
        if (is_missing(p, p->links[n].kind, p->links[n].index, is_one))
            return true;
    return false;
}

/* Whether a unit declares one of those functions without defining it itself. */
static bool wants(const struct ptx_parser *p, bool (*is_one)(const char *name))
{
    for (uint32_t n = 0; n < p->same_count; n++)
        if (is_missing(p, p->same[n].kind, p->same[n].index, is_one))
            return true;
    return false;
}

static bool read_unit(struct ptx_parser *p, const char *text)
{
    uint32_t line = p->lexer.line;
    ptx_lexer_init(&p->lexer, text, strlen(text));
    /* These units come behind the text's lines. */
    p->lexer.line = line + 1;
    ptx_advance(p);
    return ptx_parse_units(p) && ptx_unit_end(p);
}

bool ptx_add_runtime(struct ptx_parser *p)
{
    /* Each may call functions of those behind it. */
    return (!wants(p, is_of_moves) || read_unit(p, ptx_moves)) &&
           (!wants(p, is_of_children) || read_unit(p, ptx_children)) &&
           (!lacks(p, is_of_grid) || read_unit(p, ptx_grid)) &&
           (!lacks(p, is_of_heap) || read_unit(p, ptx_heap));
}
