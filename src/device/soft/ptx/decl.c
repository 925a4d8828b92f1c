/*
 * Declarations of variables of the memory spaces, with their initial values.
 */
#include "device/soft/ptx/parse.h"
#include "device/texture.h"

bool ptx_parse_type(struct ptx_parser *p, enum ir_type *type)
{
    const struct ptx_token *t = &p->token;
    if (t->kind != PTX_DOT)
        return ptx_fail(p, -EINVAL, t, "type expected");
    const struct ptx_word *word = ptx_words_find(&p->words, PTX_WORD_TYPE, t->text, t->length);
    if (!word)
        return ptx_lacks_type(t)
                   ? ptx_fail(p, -ENOTSUP, t, "type '.%.*s' is not supported", PTX_TEXT(t))
                   : ptx_fail(p, -EINVAL, t, "type '.%.*s' is not known", PTX_TEXT(t));
    *type = word->value;
    ptx_advance(p);
    return true;
}

/* --- variables -------------------------------------------------------------------------------- */

static bool parse_align(struct ptx_parser *p, uint32_t *align)
{
    uint64_t value;
    struct ptx_token at = p->token;
    if (!ptx_expect_uint(p, IR_MAX_ALIGN, &value, "alignment"))
        return false;
    if (!gm_is_pow2(value))
        return ptx_fail(p, -EINVAL, &at, "alignment is not a power of two");
    *align = (uint32_t)value;
    return true;
}

/* .attribute(.managed), .attribute(.unified(1, 2)). All memory of this device is managed; but a
 * program can ask whether a variable was declared so. */
static bool parse_attribute(struct ptx_parser *p, struct ptx_variable *v)
{
    if (!ptx_expect(p, '('))
        return false;
    for (unsigned open = 1; open > 0;) {
        if (p->token.kind == PTX_END)
            return ptx_fail(p, -EINVAL, &p->token, "')' expected");
        open += ptx_token_is(&p->token, '(');
        open -= ptx_token_is(&p->token, ')');
        v->is_managed |= ptx_is_dot(p, "managed");
        ptx_advance(p);
    }
    return !p->why.error;
}

/* One word between the space and the name. */
static bool parse_variable_word(struct ptx_parser *p, struct ptx_variable *v, bool *pointer,
                                uint32_t *align)
{
    uint32_t ignored;
    const struct ptx_token *t = &p->token;
    /* After .ptr an alignment is that of the memory pointed to. */
    if (ptx_accept_dot(p, "align"))
        return parse_align(p, *pointer ? &ignored : align);
    if (ptx_accept_dot(p, "ptr"))
        return *pointer = true;
    if (*pointer && (ptx_accept_dot(p, "global") || ptx_accept_dot(p, "shared") ||
                     ptx_accept_dot(p, "const") || ptx_accept_dot(p, "local")))
        return true;
    if (ptx_accept_dot(p, "attribute"))
        return parse_attribute(p, v);
    if (ptx_is_dot(p, "v2") || ptx_is_dot(p, "v4")) {
        v->vector = t->text[1] == '2' ? 2 : 4;
        ptx_advance(p);
        return true;
    }
    if (v->type != IR_VOID)
        return ptx_fail(p, -EINVAL, t, "'.%.*s' does not belong here", PTX_TEXT(t));
    v->reference = ptx_accept_dot(p, "texref")       ? IR_REFERENCE_TEXTURE
                   : ptx_accept_dot(p, "surfref")    ? IR_REFERENCE_SURFACE
                   : ptx_accept_dot(p, "samplerref") ? IR_REFERENCE_SAMPLER
                                                     : IR_REFERENCE_NONE;
    v->type = IR_B64;
    return v->reference || ptx_parse_type(p, &v->type);
}

static bool parse_dims(struct ptx_parser *p, struct ptx_variable *v)
{
    while (ptx_accept(p, '[')) {
        v->is_array = true;
        if (v->dim_count == PTX_MAX_DIMS)
            return ptx_fail(p, -E2BIG, &p->token, "array of over %d dimensions", PTX_MAX_DIMS);
        uint64_t *dim = &v->dims[v->dim_count++];
        if (ptx_accept(p, ']')) {
            if (v->dim_count > 1)
                return ptx_fail(p, -EINVAL, &p->token, "only the first dimension may be left open");
            v->is_unsized = true;
            *dim = 0;
            continue;
        }
        if (!ptx_expect_uint(p, IR_MAX_GLOBAL_BYTES, dim, "array size") || !ptx_expect(p, ']'))
            return false;
    }
    return true;
}

static uint64_t element_size(const struct ptx_variable *v)
{
    /* As a parameter it is a handle. */
    if (v->reference && v->space != IR_SPACE_PARAM)
        return DEV_TEXTURE_BYTES;
    return (uint64_t)ir_types[v->type].size * v->vector;
}

bool ptx_parse_variable(struct ptx_parser *p, enum ir_space space, struct ptx_variable *v)
{
    uint32_t align = 0;
    bool pointer = false;
    memset(v, 0, sizeof(*v));
    v->space = space;
    v->vector = 1;
    while (p->token.kind == PTX_DOT)
        if (!parse_variable_word(p, v, &pointer, &align))
            return false;
    if (v->type == IR_VOID)
        return ptx_fail(p, -EINVAL, &p->token, "type expected");
    if (v->type == IR_PRED)
        return ptx_fail(p, -EINVAL, &p->token, "a variable in memory cannot be .pred");
    if (!ptx_expect_ident(p, &v->name, "variable name") || !parse_dims(p, v))
        return false;
    v->size = element_size(v);
    v->align = align ? align : v->reference ? DEV_TEXTURE_ALIGN : (uint32_t)element_size(v);
    /* The text decides where parameters lie. Elsewhere it does no harm to align an element. */
    if (space != IR_SPACE_PARAM)
        v->align = GM_MAX(v->align, (uint32_t)ir_types[v->type].size);
    for (uint32_t i = v->is_unsized; i < v->dim_count; i++)
        if (__builtin_mul_overflow(v->size, v->dims[i], &v->size) || v->size > IR_MAX_GLOBAL_BYTES)
            return ptx_fail(p, -E2BIG, &v->name, "'%.*s' is too large", PTX_TEXT(&v->name));
    return true;
}

bool ptx_new_symbol(struct ptx_parser *p, const struct ptx_variable *v, uint8_t flags,
                    uint32_t *out)
{
    struct ir_module *m = p->m;
    uint32_t name;
    if (m->symbol_count >= IR_MAX_SYMBOLS)
        return ptx_fail(p, -E2BIG, &v->name, "over %u variables", IR_MAX_SYMBOLS);
    if (!ptx_intern(p, &v->name, v->name.length, &name))
        return false;
    struct ir_symbol *s = IR_PUSH(m->symbols, m->symbol_count, p->symbol_cap);
    if (!s)
        return ptx_out_of_memory(p);
    *s = (struct ir_symbol) { .space = (uint8_t)v->space,
                              .type = (uint8_t)v->type,
                              .flags = (uint8_t)(flags | (v->is_array ? IR_SYM_ARRAY : 0) |
                                                 (v->is_managed ? IR_SYM_MANAGED : 0)),
                              .reference =
                                  v->space == IR_SPACE_GLOBAL ? v->reference : IR_REFERENCE_NONE,
                              .name = name,
                              .fn = p->fn,
                              .align = v->align,
                              .size = v->is_unsized ? 0 : v->size,
                              .line = v->name.line,
                              .element = v->dim_count == 1 ? (uint32_t)element_size(v) : 0 };
    *out = m->symbol_count - 1;
    return true;
}

bool ptx_new_temp(struct ptx_parser *p, const struct ptx_variable *v, uint32_t *out)
{
    struct ir_raw_fn *raw = p->raw;
    if (raw->temp_count >= IR_MAX_SYMBOLS || v->size > IR_MAX_PARAM_BYTES || v->is_unsized)
        return ptx_fail(p, -E2BIG, &v->name, "too many or too large .param variables");
    struct ir_temp *temp = IR_PUSH(raw->temps, raw->temp_count, raw->temp_cap);
    if (!temp)
        return ptx_out_of_memory(p);
    *temp = (struct ir_temp) { .size = v->size, .align = v->align, .line = v->name.line };
    *out = raw->temp_count - 1;
    return true;
}

/* --- initial values --------------------------------------------------------------------------- */

/* Where the next initial value goes: byte `at` of symbol `symbol`. */
struct ptx_init {
    const struct ptx_variable *v;
    uint32_t symbol;
    uint64_t at;
    uint64_t limit; /* bytes */
    bool byte_of_address;
};

static bool init_reserve(struct ptx_parser *p, struct ptx_init *in, uint64_t bytes)
{
    struct ir_module *m = p->m;
    uint64_t end = m->symbols[in->symbol].init + in->at + bytes;
    if (in->at + bytes > in->limit)
        return ptx_fail(p, -EINVAL, &p->token, "more initial values than '%.*s' has elements",
                        PTX_TEXT(&in->v->name));
    if (end > IR_MAX_INIT_BYTES)
        return ptx_fail(p, -E2BIG, &p->token, "over %llu bytes of initial values",
                        IR_MAX_INIT_BYTES);
    if (end > p->init_cap) {
        uint64_t cap = GM_MAX(p->init_cap * 2, end + 256);
        uint8_t *grown = realloc(m->init_bytes, cap);
        if (!grown)
            return ptx_out_of_memory(p);
        m->init_bytes = grown;
        p->init_cap = cap;
    }
    if (end > m->init_size) {
        memset(m->init_bytes + m->init_size, 0, end - m->init_size);
        m->init_size = end;
    }
    return true;
}

static bool init_bits(struct ptx_parser *p, struct ptx_init *in, uint64_t bits)
{
    uint64_t size = ir_types[in->v->type].size;
    if (!init_reserve(p, in, size))
        return false;
    memcpy(p->m->init_bytes + p->m->symbols[in->symbol].init + in->at, &bits,
           GM_MIN(size, sizeof(bits)));
    in->at += size;
    return true;
}

/* sym, sym+4, generic(sym), generic(sym)+4. `shift`, for elements of one byte: which byte of the
 * address. */
static bool init_address(struct ptx_parser *p, struct ptx_init *in, uint8_t shift)
{
    struct ptx_token name;
    bool generic = false;
    if (!ptx_expect_ident(p, &name, "variable name"))
        return false;
    if (ptx_text_is(&name, "generic") && ptx_accept(p, '(')) {
        generic = true;
        if (!ptx_expect_ident(p, &name, "variable name") || !ptx_expect(p, ')'))
            return false;
    }
    struct ptx_name found;
    if (!ptx_lookup(p, &name, &found))
        return ptx_fail(p, -EINVAL, &name, "'%.*s' is not declared", PTX_TEXT(&name));
    if (found.kind == PTX_NAME_LACKING)
        return ptx_refuse_lacking(p, &name, &found);
    bool to_fn = found.kind == PTX_NAME_FN;
    if (!to_fn && (found.kind != PTX_NAME_SYMBOL || !ir_symbol_is_placed(p->m, found.index)))
        return ptx_fail(p, -EINVAL, &name, "'%.*s' has no address that an initial value could be%s",
                        PTX_TEXT(&name),
                        generic ? "" : " (only .global and .const variables have)");
    uint64_t addend = 0;
    bool minus = ptx_token_is(&p->token, '-');
    if (minus || ptx_token_is(&p->token, '+')) {
        ptx_advance(p);
        if (!ptx_expect_uint(p, INT64_MAX, &addend, "offset"))
            return false;
    }
    uint8_t size = ir_types[in->v->type].size;
    bool byte = in->byte_of_address && size == 1;
    if ((size < (to_fn ? 8 : 4) && !byte) || ir_type_is_float(in->v->type))
        return ptx_fail(p, -ENOTSUP, &name, "an address in a variable of type .%s is not supported",
                        ir_types[in->v->type].text);
    struct ir_reloc *r = IR_PUSH(p->m->relocs, p->m->reloc_count, p->reloc_cap);
    if (!r)
        return ptx_out_of_memory(p);
    *r = (struct ir_reloc) { .symbol = in->symbol,
                             .target = found.index,
                             .offset = in->at,
                             .addend = minus ? -(int64_t)addend : (int64_t)addend,
                             .size = size,
                             .shift = shift,
                             .to_fn = to_fn };
    return init_bits(p, in, 0);
}

/* 0xFF00(sym): the byte of the address that the mask selects. `mask` and the parenthesis are
 * consumed already. */
static bool init_byte_of_address(struct ptx_parser *p, struct ptx_init *in,
                                 const struct ptx_token *mask)
{
    unsigned shift = mask->value ? (unsigned)__builtin_ctzll(mask->value) : 0;
    if (mask->kind != PTX_INT || mask->value >> shift != 0xff || shift % 8 != 0)
        return ptx_fail(p, -EINVAL, mask, "mask of an address that is not one byte");
    in->byte_of_address = true;
    bool right = init_address(p, in, (uint8_t)shift) && ptx_expect(p, ')');
    in->byte_of_address = false;
    return right;
}

static bool init_value(struct ptx_parser *p, struct ptx_init *in)
{
    if (p->token.kind == PTX_IDENT)
        return init_address(p, in, 0);
    bool minus, real = ptx_accept_real(p, &minus);
    struct ptx_token t = p->token;
    enum ir_type type = in->v->type;
    uint64_t bits = t.value;
    if (!real && !ir_type_is_float(type)) {
        if (!ptx_parse_integer(p, &bits))
            return false;
    } else if (t.kind == PTX_F32 && (type == IR_F32 || type == IR_B32)) {
        bits ^= minus ? 0x80000000u : 0;
    } else if (t.kind == PTX_F64 && (type == IR_F64 || type == IR_B64)) {
        bits ^= minus ? 1ull << 63 : 0;
    } else if (t.kind == PTX_F64 && type == IR_F32) {
        double wide;
        memcpy(&wide, &bits, sizeof(wide));
        float narrow = (float)(minus ? -wide : wide);
        bits = 0;
        memcpy(&bits, &narrow, sizeof(narrow));
    } else {
        return ptx_fail(p, -EINVAL, &t, "constant does not suit type .%s", ir_types[type].text);
    }
    if (real)
        ptx_advance(p);
    return ptx_accept(p, '(') ? init_byte_of_address(p, in, &t) : init_bits(p, in, bits);
}

/* Nested braces as in C. A brace at depth d begins an element of dimension d; its end skips to the
 * next element. */
static bool init_list(struct ptx_parser *p, struct ptx_init *in)
{
    uint64_t stride[PTX_MAX_DIMS + 2], begin[PTX_MAX_DIMS + 2];
    uint32_t dims = in->v->dim_count, depth = 0, most = dims + (in->v->vector > 1);
    uint64_t size = element_size(in->v);
    if (most == 0)
        return ptx_fail(p, -EINVAL, &p->token, "'{' does not suit '%.*s'", PTX_TEXT(&in->v->name));
    stride[most] = ir_types[in->v->type].size;
    stride[dims] = size;
    for (uint32_t d = dims; d-- > 0;)
        stride[d] = stride[d + 1] * (d == 0 && in->v->is_unsized ? 1 : in->v->dims[d]);
    do {
        if (ptx_token_is(&p->token, '{')) {
            ptx_advance(p);
            if (++depth > most)
                return ptx_fail(p, -EINVAL, &p->token, "braces nested deeper than the array");
            begin[depth] = in->at;
            if (!ptx_token_is(&p->token, '}'))
                continue;
        } else if (!init_value(p, in)) {
            return false;
        }
        while (depth > 0 && ptx_accept(p, '}')) {
            depth--;
            if (depth > 0) /* the rest of the element stays zero */
                in->at = GM_MAX(in->at, begin[depth + 1] + stride[depth]);
        }
        if (depth > 0 && !ptx_expect(p, ','))
            return false;
    } while (depth > 0 && !p->why.error);
    return !p->why.error;
}

/* { filter_mode = linear, addr_mode_0 = wrap ... }: the initial state of a reference. */
static bool parse_reference(struct ptx_parser *p, struct dev_texture *t)
{
    static const struct {
        const char *text;
        uint32_t value;
    } words[] = { { "wrap", DEV_ADDRESS_WRAP },
                  { "mirror", DEV_ADDRESS_MIRROR },
                  { "clamp_ogl", DEV_ADDRESS_CLAMP },
                  { "clamp_to_edge", DEV_ADDRESS_CLAMP },
                  { "clamp_to_border", DEV_ADDRESS_BORDER },
                  { "nearest", 0 },
                  { "linear", DEV_SAMPLER_LINEAR } };
    bool braces = ptx_accept(p, '{');
    do {
        struct ptx_token property, word;
        uint64_t number = 0;
        uint32_t value = 0;
        if (!ptx_expect_ident(p, &property, "property") || !ptx_expect(p, '='))
            return false;
        if (p->token.kind == PTX_IDENT) {
            ptx_expect_ident(p, &word, "value");
            for (size_t k = 0; k < GM_ARRAY_LEN(words); k++)
                value = ptx_text_is(&word, words[k].text) ? words[k].value : value;
        } else if (!ptx_expect_uint(p, UINT32_MAX, &number, "value")) {
            return false;
        }
        if (ptx_text_is(&property, "filter_mode"))
            t->sampler_flags |= value;
        else if (ptx_text_is(&property, "normalized_coords") && number)
            t->sampler_flags |= DEV_SAMPLER_NORMALIZED;
        for (unsigned d = 0; d < 3; d++)
            if (property.length == 11 && memcmp(property.text, "addr_mode_", 10) == 0 &&
                property.text[10] == (char)('0' + d))
                t->address[d] = value;
    } while (ptx_accept(p, ','));
    return !braces || ptx_expect(p, '}');
}

/* A sampler reference can be used at once, a texture reference when a texture is bound to it. */
static bool init_reference(struct ptx_parser *p, const struct ptx_variable *v, uint32_t symbol)
{
    struct dev_texture t = { .kind = v->reference == IR_REFERENCE_SAMPLER ? DEV_SAMPLER : 0,
                             .address = { DEV_ADDRESS_CLAMP, DEV_ADDRESS_CLAMP,
                                          DEV_ADDRESS_CLAMP } };
    struct ir_symbol *s = &p->m->symbols[symbol];
    if (ptx_accept(p, '=') && !parse_reference(p, &t))
        return false;
    if (!gm_align_up(p->m->init_size, 8, &s->init))
        return ptx_out_of_memory(p);
    struct ptx_init in = { .v = v, .symbol = symbol, .limit = sizeof(t) };
    if (!init_reserve(p, &in, sizeof(t)))
        return false;
    memcpy(p->m->init_bytes + s->init, &t, sizeof(t));
    s->init_size = sizeof(t);
    return true;
}

static bool parse_initial(struct ptx_parser *p, const struct ptx_variable *v, uint32_t symbol)
{
    if (v->space != IR_SPACE_GLOBAL && v->space != IR_SPACE_CONST)
        return ptx_fail(p, -EINVAL, &p->token,
                        "only .global and .const variables have initial values");
    struct ir_module *m = p->m;
    uint64_t start;
    if (!gm_align_up(m->init_size, 8, &start))
        return ptx_out_of_memory(p);
    m->symbols[symbol].init = start;
    struct ptx_init in = { .v = v,
                           .symbol = symbol,
                           .limit = v->is_unsized ? IR_MAX_INIT_BYTES : v->size };
    bool list = ptx_token_is(&p->token, '{');
    if (!(list ? init_list(p, &in) : init_value(p, &in)))
        return false;
    struct ir_symbol *s = &m->symbols[symbol];
    s->init_size = GM_MIN(in.at, in.limit);
    if (v->is_unsized)
        s->size = in.at;
    if (s->init_size > m->init_size - s->init) /* trailing zeros that a closing brace skipped */
        s->init_size = m->init_size > s->init ? m->init_size - s->init : 0;
    return true;
}

/* Gives a .local or function-scope variable its place, and checks what the space allows. */
static bool place_variable(struct ptx_parser *p, const struct ptx_variable *v, uint32_t symbol)
{
    struct ir_symbol *s = &p->m->symbols[symbol];
    if (v->is_unsized && s->size == 0 && !(s->flags & IR_SYM_EXTERN))
        return ptx_fail(p, -EINVAL, &v->name, "size of '%.*s' is not known", PTX_TEXT(&v->name));
    if (s->space == IR_SPACE_SHARED && s->size > IR_MAX_SHARED_BYTES)
        return ptx_fail(p, -E2BIG, &v->name, "'%.*s': over %u bytes of shared memory",
                        PTX_TEXT(&v->name), IR_MAX_SHARED_BYTES);
    if (s->space != IR_SPACE_LOCAL)
        return true;
    if (!p->raw)
        return ptx_fail(p, -EINVAL, &v->name, ".local variable outside of a function");
    uint64_t offset;
    if (!gm_align_up(p->raw->local_bytes, s->align, &offset) || s->size > IR_MAX_LOCAL_BYTES ||
        offset + s->size > IR_MAX_LOCAL_BYTES)
        return ptx_fail(p, -E2BIG, &v->name, "over %u bytes of local memory", IR_MAX_LOCAL_BYTES);
    s->offset = offset;
    p->raw->local_bytes = (uint32_t)(offset + s->size);
    return true;
}

/* .param .u64 name<2> */
static bool parse_temp_range(struct ptx_parser *p, const struct ptx_variable *v)
{
    uint64_t count;
    uint32_t first = p->raw->temp_count, ignored;
    if (!ptx_expect_uint(p, IR_MAX_SYMBOLS, &count, "number of variables") || !ptx_expect(p, '>'))
        return false;
    for (uint64_t i = 0; i < count; i++)
        if (!ptx_new_temp(p, v, &ignored))
            return false;
    return ptx_declare(p, &v->name, v->name.length, PTX_NAME_RANGE, first, (uint32_t)count);
}

static bool finish_variable(struct ptx_parser *p, const struct ptx_variable *v, uint8_t flags)
{
    uint32_t index;
    if (v->space == IR_SPACE_PARAM) {
        if (!p->raw)
            return ptx_fail(p, -EINVAL, &v->name, ".param variable outside of a function");
        if (ptx_accept(p, '<'))
            return parse_temp_range(p, v);
        return ptx_new_temp(p, v, &index) &&
               ptx_declare(p, &v->name, v->name.length, PTX_NAME_TEMP, index, 1);
    }
    if (!ptx_new_symbol(p, v, flags, &index) || !ptx_declare_variable(p, &v->name, index))
        return false;
    if (v->reference && v->space == IR_SPACE_GLOBAL && !v->is_array)
        return init_reference(p, v, index) && place_variable(p, v, index);
    if (ptx_accept(p, '=') && !parse_initial(p, v, index))
        return false;
    return place_variable(p, v, index);
}

bool ptx_parse_variables(struct ptx_parser *p, enum ir_space space, uint8_t flags)
{
    struct ptx_variable v;
    if (!ptx_parse_variable(p, space, &v) || !finish_variable(p, &v, flags))
        return false;
    while (ptx_accept(p, ',')) {
        struct ptx_variable next = v;
        next.is_array = next.is_unsized = false;
        next.dim_count = 0;
        next.size = element_size(&next);
        if (!ptx_expect_ident(p, &next.name, "variable name") || !parse_dims(p, &next))
            return false;
        for (uint32_t i = next.is_unsized; i < next.dim_count; i++)
            if (__builtin_mul_overflow(next.size, next.dims[i], &next.size) ||
                next.size > IR_MAX_GLOBAL_BYTES)
                return ptx_fail(p, -E2BIG, &next.name, "'%.*s' is too large", PTX_TEXT(&next.name));
        if (!finish_variable(p, &next, flags))
            return false;
    }
    return ptx_expect(p, ';');
}

bool ptx_parse_textures(struct ptx_parser *p, uint8_t flags)
{
    if (!ptx_accept_dot(p, "u32") && !ptx_accept_dot(p, "u64"))
        return ptx_fail(p, -EINVAL, &p->token, "a texture's type is .u32 or .u64");
    do {
        struct ptx_variable v = {
            .space = IR_SPACE_GLOBAL,
            .type = IR_B64,
            .vector = 1,
            .reference = IR_REFERENCE_TEXTURE,
            .size = DEV_TEXTURE_BYTES,
            .align = DEV_TEXTURE_ALIGN,
        };
        if (!ptx_expect_ident(p, &v.name, "texture name") || !finish_variable(p, &v, flags))
            return false;
    } while (ptx_accept(p, ','));
    return ptx_expect(p, ';');
}
