/*
 * Linking for a client. What the client sends is kept until all of it is there, and then the
 * driver's linker gets it at once. A client has one link at a time; what an unfinished one keeps is
 * bounded, and is freed with the client.
 *
 * The driver trusts what it links just as it trusts an image that it loads, so the same checks come
 * first. Objects and archives of a host compiler are refused.
 */
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "device/cuda/call.h"
#include "device/cuda/image.h"
#include "device/cuda/link.h"
#include "device/cuda/state.h"

#define INPUTS_MAX  256u
#define BYTES_MAX   (64u << 20) /* of all inputs; and of what comes out */
#define OPTIONS_MAX 16u
#define LOG_BYTES   16384u
#define LOGS        4u /* options of our own */

struct options {
    uint32_t count;
    CUjit_option option[OPTIONS_MAX + LOGS];
    void *value[OPTIONS_MAX + LOGS];
};

struct input {
    uint32_t kind;
    uint64_t size, have;
    uint8_t *bytes;
    struct options options;
    char name[256];
};

struct cuda_link {
    struct options options;
    struct input *inputs;
    uint32_t count;
    uint64_t size; /* of all inputs */
    uint8_t *cubin;
    uint64_t cubin_size;
    char info[LOG_BYTES], error[LOG_BYTES];
};

void cuda_link_finish(struct dev_client *c)
{
    struct cuda_link *l = c->linking;
    if (!l)
        return;
    for (uint32_t i = 0; i < l->count; i++)
        free(l->inputs[i].bytes);
    free(l->inputs);
    free(l->cubin);
    free(l);
    c->linking = NULL;
}

static void set_option(struct options *o, CUjit_option option, void *value)
{
    o->option[o->count] = option;
    o->value[o->count++] = value;
}

static bool is_number(uint32_t option)
{
    return option == CU_JIT_MAX_REGISTERS || option == CU_JIT_OPTIMIZATION_LEVEL ||
           option == CU_JIT_GENERATE_DEBUG_INFO || option == CU_JIT_LOG_VERBOSE ||
           option == CU_JIT_GENERATE_LINE_INFO || option == CU_JIT_CACHE_MODE;
}

/* Takes options whose value is a number. Where logs go is not up to the client. */
static bool take_options(struct options *o, struct wire_bytes bytes)
{
    uint32_t pair[2];
    *o = (struct options) { 0 };
    for (uint32_t at = 0; at + sizeof(pair) <= bytes.size && o->count < OPTIONS_MAX;
         at += (uint32_t)sizeof(pair)) {
        memcpy(pair, (const uint8_t *)bytes.data + at, sizeof(pair));
        if (!is_number(pair[0]))
            return false;
        set_option(o, (CUjit_option)pair[0],
                   (void *)(uintptr_t)pair[1]); /* NOLINT: the interface's way to say it */
    }
    return bytes.size % sizeof(pair) == 0;
}

int cuda_link_begin(struct dev_client *c, struct wire_dec *args, struct wire_enc *reply GM_UNUSED)
{
    struct wire_call_link_begin w;
    wire_get_call_link_begin(args, &w);
    if (args->fatal)
        return GM_CUDA_INVALID_VALUE;
    cuda_link_finish(c);
    c->linking = calloc(1, sizeof(*c->linking));
    if (!c->linking)
        return GM_CUDA_OUT_OF_MEMORY;
    return take_options(&c->linking->options, w.options) ? GM_CUDA_SUCCESS : GM_CUDA_INVALID_VALUE;
}

int cuda_link_input(struct dev_client *c, struct wire_dec *args, struct wire_enc *reply GM_UNUSED)
{
    struct wire_call_link_input w;
    struct cuda_link *l = c->linking;
    wire_get_call_link_input(args, &w);
    if (args->fatal || !l || w.size == 0 ||
        (w.kind != WIRE_IMAGE_KIND_PTX && w.kind != WIRE_IMAGE_KIND_CUBIN &&
         w.kind != WIRE_IMAGE_KIND_FATBIN))
        return GM_CUDA_INVALID_VALUE;
    if (w.size > BYTES_MAX - l->size ||
        !gm_array_room(&l->inputs, sizeof(*l->inputs), l->count, INPUTS_MAX))
        return GM_CUDA_OUT_OF_MEMORY;
    struct input *i = &l->inputs[l->count];
    *i = (struct input) { .kind = w.kind, .size = w.size };
    if (!take_options(&i->options, w.options))
        return GM_CUDA_INVALID_VALUE;
    i->bytes = malloc(w.size);
    if (!i->bytes)
        return GM_CUDA_OUT_OF_MEMORY;
    (void)strncpy(i->name, w.name, sizeof(i->name) - 1);
    l->size += w.size;
    l->count++;
    return GM_CUDA_SUCCESS;
}

int cuda_link_data(struct dev_client *c, struct wire_dec *args, struct wire_enc *reply GM_UNUSED)
{
    struct wire_call_link_data w;
    struct cuda_link *l = c->linking;
    wire_get_call_link_data(args, &w);
    if (args->fatal || !l || l->count == 0)
        return GM_CUDA_INVALID_VALUE;
    struct input *i = &l->inputs[l->count - 1];
    if (w.data.size > i->size - i->have)
        return GM_CUDA_INVALID_VALUE;
    memcpy(i->bytes + i->have, w.data.data, w.data.size);
    i->have += w.data.size;
    return GM_CUDA_SUCCESS;
}

static CUresult add(struct dev *d, CUlinkState state, struct input *i)
{
    struct cuda_image image;
    bool text = i->kind == WIRE_IMAGE_KIND_PTX;
    CUjitInputType type = text                               ? CU_JIT_INPUT_PTX
                          : i->kind == WIRE_IMAGE_KIND_CUBIN ? CU_JIT_INPUT_CUBIN
                                                             : CU_JIT_INPUT_FATBINARY;
    if (i->have != i->size)
        return CUDA_ERROR_INVALID_VALUE;
    CUresult r = (CUresult)cuda_image_open(&image, i->bytes, i->size, i->kind);
    if (r == CUDA_SUCCESS)
        r = d->api.cuLinkAddData_v2(state, type, (void *)(uintptr_t)image.data, i->size + text,
                                    i->name[0] ? i->name : NULL, i->options.count,
                                    i->options.option, i->options.value);
    cuda_image_close(&image);
    return r;
}

/* Copies the cubin, whose memory belongs to the link's state. */
static CUresult keep(struct cuda_link *l, const void *cubin, size_t size)
{
    if (size == 0 || size > BYTES_MAX)
        return CUDA_ERROR_OUT_OF_MEMORY;
    l->cubin = malloc(size);
    if (!l->cubin)
        return CUDA_ERROR_OUT_OF_MEMORY;
    memcpy(l->cubin, cubin, size);
    l->cubin_size = size;
    return CUDA_SUCCESS;
}

static CUresult link_all(struct dev *d, struct cuda_link *l)
{
    struct options o = l->options;
    CUlinkState state;
    void *cubin = NULL;
    size_t size = 0;
    set_option(&o, CU_JIT_INFO_LOG_BUFFER, l->info);
    set_option(&o, CU_JIT_INFO_LOG_BUFFER_SIZE_BYTES,
               (void *)(uintptr_t)(LOG_BYTES - 1)); /* NOLINT */
    set_option(&o, CU_JIT_ERROR_LOG_BUFFER, l->error);
    set_option(&o, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES,
               (void *)(uintptr_t)(LOG_BYTES - 1)); /* NOLINT */
    CUresult r = d->api.cuLinkCreate_v2(o.count, o.option, o.value, &state);
    if (r != CUDA_SUCCESS)
        return r;
    for (uint32_t i = 0; i < l->count && r == CUDA_SUCCESS; i++)
        r = add(d, state, &l->inputs[i]);
    if (r == CUDA_SUCCESS)
        r = d->api.cuLinkComplete(state, &cubin, &size);
    if (r == CUDA_SUCCESS)
        r = keep(l, cubin, size);
    (void)d->api.cuLinkDestroy(state);
    return r;
}

int cuda_link_text(struct dev *d, const void *text, size_t size, void **cubin, size_t *cubin_size)
{
    struct cuda_link *l = calloc(1, sizeof(*l));
    struct input i = {
        .kind = WIRE_IMAGE_KIND_PTX, .size = size, .have = size, .bytes = malloc(size)
    };
    CUresult r = l && i.bytes ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
    if (r == CUDA_SUCCESS) {
        memcpy(i.bytes, text, size);
        l->inputs = &i;
        l->count = 1;
        r = link_all(d, l);
    }
    if (r == CUDA_SUCCESS) {
        *cubin = l->cubin;
        *cubin_size = l->cubin_size;
    }
    free(i.bytes);
    free(l);
    return (int)r;
}

int cuda_link_complete(struct dev_client *c, struct wire_dec *args, struct wire_enc *reply)
{
    struct cuda_link *l = c->linking;
    if (!wire_dec_end(args) || !l || l->cubin)
        return GM_CUDA_INVALID_VALUE;
    CUresult r = link_all(c->dev, l);
    l->info[LOG_BYTES - 1] = l->error[LOG_BYTES - 1] = '\0';
    wire_put_call_linked(reply, &(struct wire_call_linked) { l->cubin_size, l->info, l->error });
    return (int)r;
}

int cuda_link_read(struct dev_client *c, struct wire_dec *args, struct wire_enc *reply)
{
    struct wire_call_link_read w;
    struct cuda_link *l = c->linking;
    wire_get_call_link_read(args, &w);
    if (args->fatal || !l || !l->cubin || w.offset > l->cubin_size)
        return GM_CUDA_INVALID_VALUE;
    uint64_t left = l->cubin_size - w.offset;
    const struct wire_call_link_data data = {
        .data = { .data = l->cubin + w.offset, .size = (uint32_t)GM_MIN(left, (uint64_t)32000) }
    };
    wire_put_call_link_data(reply, &data);
    return GM_CUDA_SUCCESS;
}

int cuda_link_end(struct dev_client *c, struct wire_dec *args, struct wire_enc *reply GM_UNUSED)
{
    cuda_link_finish(c);
    return wire_dec_end(args) ? GM_CUDA_SUCCESS : GM_CUDA_INVALID_VALUE;
}
