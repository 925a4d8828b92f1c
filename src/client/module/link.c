/*
 * cuLink*: several images made into one, which a program then loads. Inputs are kept here until the
 * link is completed. A GPU's driver links them in the executor, and a cubin comes back. A device
 * that runs PTX links when it loads: the program gets the inputs' texts as one (units.h).
 *
 * What is wrong with an input is found at the end, not when it is added.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "client/gen/api.h"
#include "client/module/module.h"
#include "client/module/units.h"
#include "client/session/attach.h"
#include "client/stream/call.h"
#include "fatbin/cubin.h"
#include "fatbin/fatbin.h"
#include "fatbin/object.h"

#define INPUTS_MAX  256u
#define INPUT_BYTES (64u << 20)
#define PIECE       32000u
#define OPTIONS_MAX 16u

struct options {
    uint32_t count;
    uint32_t pair[OPTIONS_MAX][2];
};

struct input {
    char *data; /* with a zero behind */
    size_t size;
    CUjitInputType type;
    uint32_t kind; /* on its way to a GPU's driver */
    struct options options;
    char name[256];
};

struct rt_link {
    struct rt_object object;
    struct rt_context *context;
    struct rt_jit_log log;
    void **wall_time; /* the option's value, or NULL */
    struct options options;
    struct input *inputs;
    unsigned count;
    uint8_t *cubin;
    size_t cubin_size;
};

static struct rt_table links = RT_TABLE(RT_KIND_LINK, struct rt_link);
static pthread_mutex_t device_lock =
    PTHREAD_MUTEX_INITIALIZER; /* the device makes one link at a time */

/* --- what the program hands over -------------------------------------------------------------- */

/* Those that are numbers and steer the linker. */
static void take_options(struct options *o, unsigned count, const CUjit_option *options,
                         void *const *values)
{
    o->count = 0;
    for (unsigned i = 0; i < count && o->count < OPTIONS_MAX; i++) {
        switch (options[i]) {
        case CU_JIT_MAX_REGISTERS:
        case CU_JIT_OPTIMIZATION_LEVEL:
        case CU_JIT_GENERATE_DEBUG_INFO:
        case CU_JIT_LOG_VERBOSE:
        case CU_JIT_GENERATE_LINE_INFO:
        case CU_JIT_CACHE_MODE:
            o->pair[o->count][0] = (uint32_t)options[i];
            o->pair[o->count++][1] = (uint32_t)(uintptr_t)values[i];
            break;
        default:
            break;
        }
    }
}

static struct wire_bytes option_bytes(const struct options *o)
{
    return (struct wire_bytes) { .data = o->pair, .size = o->count * (uint32_t)sizeof(o->pair[0]) };
}

static int enter(CUlinkState state, struct rt_link **l)
{
    int r = rt_enter_any();
    if (r)
        return r;
    *l = rt_object_find(&links, state);
    return *l ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}

CUresult rt_cuLinkCreate_v2(unsigned int numOptions, CUjit_option *options, void **optionValues,
                            CUlinkState *stateOut)
{
    struct rt_context *c;
    struct rt_jit_log log;
    int r = rt_enter(&c);
    if (r)
        return r;
    if (!stateOut)
        return CUDA_ERROR_INVALID_VALUE;
    r = rt_jit_log_options(&log, numOptions, options, optionValues);
    if (r)
        return r;
    struct rt_link *l = rt_object_take(&links);
    if (!l)
        return CUDA_ERROR_OUT_OF_MEMORY;
    l->context = rt_context_owner(c);
    l->log = log;
    for (unsigned i = 0; i < numOptions; i++)
        if (options[i] == CU_JIT_WALL_TIME)
            l->wall_time = &optionValues[i];
    take_options(&l->options, numOptions, options, optionValues);
    rt_object_publish(&l->object);
    *stateOut = (CUlinkState)rt_object_handle(&links, &l->object);
    return CUDA_SUCCESS;
}

/* What the text, cubin or fat binary of `size` bytes is on its way to the device. */
static int input_kind(CUjitInputType type, const void *data, size_t size, uint32_t *kind)
{
    static atomic_bool said;
    struct fb_objects objects;
    if ((unsigned)type >= CU_JIT_NUM_INPUT_TYPES)
        return CUDA_ERROR_INVALID_VALUE;
    switch (type) {
    case CU_JIT_INPUT_PTX:
        *kind = WIRE_IMAGE_KIND_PTX;
        return CUDA_SUCCESS;
    case CU_JIT_INPUT_CUBIN:
        if (!rt_session->memory_apart && rt_units_are(data, size)) { /* linked before */
            *kind = WIRE_IMAGE_KIND_PTX;
            return CUDA_SUCCESS;
        }
        *kind = WIRE_IMAGE_KIND_CUBIN;
        return fb_elf_fits(data, size) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_IMAGE;
    case CU_JIT_INPUT_FATBINARY:
        *kind = WIRE_IMAGE_KIND_FATBIN;
        return size >= FB_HEADER_SIZE && fb_size(data) && fb_size(data) <= size
                   ? CUDA_SUCCESS
                   : CUDA_ERROR_INVALID_IMAGE;
    case CU_JIT_INPUT_OBJECT:
    case CU_JIT_INPUT_LIBRARY:
        *kind = WIRE_IMAGE_KIND_FATBIN;
        if (!rt_session->memory_apart)
            return fb_objects_open(&objects, data, size) == 0 ? CUDA_SUCCESS
                                                              : CUDA_ERROR_INVALID_IMAGE;
        return rt_not_supported("linking of a host compiler's objects and libraries", &said);
    default:
        return rt_not_supported("linking of this kind of input", &said);
    }
}

static int add(struct rt_link *l, CUjitInputType type, const void *data, size_t size,
               const char *name, const struct options *options)
{
    struct input i = { .type = type, .options = *options };
    int r = input_kind(type, data, size, &i.kind);
    if (r)
        return r;
    if (l->cubin)
        return CUDA_ERROR_INVALID_VALUE; /* completed */
    if (l->count == INPUTS_MAX || size > INPUT_BYTES)
        return CUDA_ERROR_OUT_OF_MEMORY;
    struct input *more = realloc(l->inputs, (l->count + 1) * sizeof(*more));
    if (!more)
        return CUDA_ERROR_OUT_OF_MEMORY;
    l->inputs = more;
    i.data = malloc(size + 1);
    if (!i.data)
        return CUDA_ERROR_OUT_OF_MEMORY;
    memcpy(i.data, data, size);
    i.data[size] = '\0';
    i.size = i.kind == WIRE_IMAGE_KIND_PTX ? strlen(i.data) : size;
    (void)snprintf(i.name, sizeof(i.name), "%s", name ? name : "");
    l->inputs[l->count++] = i;
    return CUDA_SUCCESS;
}

CUresult rt_cuLinkAddData_v2(CUlinkState state, CUjitInputType type, void *data, size_t size,
                             const char *name, unsigned int numOptions, CUjit_option *options,
                             void **optionValues)
{
    struct rt_link *l;
    struct rt_jit_log log;
    struct options o;
    int r = enter(state, &l);
    if (r)
        return r;
    if (!data || size == 0)
        return CUDA_ERROR_INVALID_VALUE;
    r = rt_jit_log_options(&log, numOptions, options, optionValues);
    if (r)
        return r;
    take_options(&o, numOptions, options, optionValues);
    return add(l, type, data, size, name, &o);
}

CUresult rt_cuLinkAddFile_v2(CUlinkState state, CUjitInputType type, const char *path,
                             unsigned int numOptions, CUjit_option *options, void **optionValues)
{
    struct rt_link *l;
    int r = enter(state, &l);
    if (r)
        return r;
    if (!path)
        return CUDA_ERROR_INVALID_VALUE;
    GM_AUTO_FREE char *data = NULL;
    size_t size;
    r = rt_image_read(path, INPUT_BYTES, &data, &size);
    if (r || size == 0)
        return r ? r : CUDA_ERROR_INVALID_IMAGE;
    return rt_cuLinkAddData_v2(state, type, data, size, path, numOptions, options, optionValues);
}

/* --- a GPU's driver links --------------------------------------------------------------------- */

static int send_begin(const struct rt_link *l)
{
    struct rt_call c;
    rt_call_begin(&c, WIRE_CALL_LINK_BEGIN, 0);
    wire_put_call_link_begin(&c.args, &(struct wire_call_link_begin) { option_bytes(&l->options) });
    return rt_call_end(&c, rt_call_run(&c));
}

static int send_input(const struct input *i)
{
    struct rt_call c;
    const struct wire_call_link_input w = {
        .kind = i->kind, .size = i->size, .options = option_bytes(&i->options), .name = i->name
    };
    rt_call_begin(&c, WIRE_CALL_LINK_INPUT, 0);
    wire_put_call_link_input(&c.args, &w);
    int r = rt_call_end(&c, rt_call_run(&c));
    for (size_t at = 0; at < i->size && r == CUDA_SUCCESS; at += PIECE) {
        const struct wire_bytes piece = { i->data + at,
                                          (uint32_t)GM_MIN(i->size - at, (size_t)PIECE) };
        rt_call_begin(&c, WIRE_CALL_LINK_DATA, 0);
        wire_put_call_link_data(&c.args, &(struct wire_call_link_data) { piece });
        r = rt_call_end(&c, rt_call_run(&c));
    }
    return r;
}

static int complete(struct rt_link *l)
{
    struct rt_call c;
    struct wire_call_linked w = { 0 };
    rt_call_begin(&c, WIRE_CALL_LINK_COMPLETE, 0);
    int r = rt_call_run(&c);
    wire_get_call_linked(&c.reply, &w); /* in failure, too: the logs */
    if (!c.reply.fatal)
        rt_jit_log_give(&l->log, w.info, w.error);
    l->cubin_size = w.size;
    return rt_call_end(&c, r);
}

static int receive(struct rt_link *l)
{
    if (l->cubin_size == 0 || l->cubin_size > INPUT_BYTES)
        return CUDA_ERROR_UNKNOWN;
    uint8_t *cubin = malloc(l->cubin_size);
    int r = cubin ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
    for (size_t at = 0; at < l->cubin_size && r == CUDA_SUCCESS;) {
        struct rt_call c;
        struct wire_call_link_data w = { 0 };
        rt_call_begin(&c, WIRE_CALL_LINK_READ, 0);
        wire_put_call_link_read(&c.args, &(struct wire_call_link_read) { .offset = at });
        r = rt_call_run(&c);
        if (r == CUDA_SUCCESS) {
            wire_get_call_link_data(&c.reply, &w);
            if (c.reply.fatal || w.data.size == 0 || w.data.size > l->cubin_size - at)
                r = CUDA_ERROR_UNKNOWN;
        }
        if (r == CUDA_SUCCESS)
            memcpy(cubin + at, w.data.data, w.data.size);
        at += w.data.size;
        r = rt_call_end(&c, r);
    }
    if (r)
        free(cubin);
    else
        l->cubin = cubin;
    return r;
}

static int link_on_device(struct rt_link *l)
{
    struct rt_call c;
    pthread_mutex_lock(&device_lock);
    int r = send_begin(l);
    for (unsigned i = 0; i < l->count && r == CUDA_SUCCESS; i++)
        r = send_input(&l->inputs[i]);
    r = r ? r : complete(l);
    r = r ? r : receive(l);
    rt_call_begin(&c, WIRE_CALL_LINK_END, 0); /* nothing stays there, whatever happened */
    int ended = rt_call_end(&c, rt_call_run(&c));
    pthread_mutex_unlock(&device_lock);
    return r ? r : ended;
}

int rt_link_text(const void *text, size_t size, uint8_t **cubin, size_t *cubin_size)
{
    struct input input = { .data = (char *)(uintptr_t)text,
                           .size = size,
                           .kind = WIRE_IMAGE_KIND_PTX };
    struct rt_link l = { .inputs = &input, .count = 1 };
    int r = link_on_device(&l);
    *cubin = l.cubin;
    *cubin_size = l.cubin_size;
    return r;
}

/* --- the software device links ---------------------------------------------------------------- */

/* The PTX that an input has, as part of the text. */
static int add_text(struct rt_units *u, const struct input *i)
{
    struct rt_image image = { 0 };
    enum rt_unit kind = i->type == CU_JIT_INPUT_LIBRARY ? RT_UNIT_LIBRARY : RT_UNIT_OBJECT;
    if (i->type == CU_JIT_INPUT_OBJECT || i->type == CU_JIT_INPUT_LIBRARY)
        return rt_units_add_objects(u, kind, i->name, i->data, i->size);
    if (i->kind == WIRE_IMAGE_KIND_PTX)
        return rt_units_add(u, kind, i->name, i->data, i->size);
    if (i->kind == WIRE_IMAGE_KIND_CUBIN)
        return CUDA_ERROR_NO_BINARY_FOR_GPU;
    int r = rt_image_text(i->data, FB_WANT_PTX | FB_WANT_ANY_PTX, &image);
    r = r ? r : rt_units_add(u, kind, i->name, image.data, image.size);
    rt_image_drop(&image);
    return r;
}

/* What the text's kernels are said to have. */
static int add_registers(struct rt_units *u, const struct options *o)
{
    char line[64];
    for (unsigned i = 0; i < o->count; i++) {
        if (o->pair[i][0] != CU_JIT_MAX_REGISTERS || !u->count)
            continue;
        (void)snprintf(line, sizeof(line), "\n.pragma \"gmux registers %u\";\n", o->pair[i][1]);
        return rt_units_append(u, line, strlen(line));
    }
    return CUDA_SUCCESS;
}

/* The inputs' texts as one, which is linked whenever it is loaded; once now, to know that it can
 * be. */
static int link_texts(struct rt_link *l)
{
    struct rt_units u = { 0 };
    struct rt_module *m;
    char why[400];
    int r = CUDA_SUCCESS;
    for (unsigned i = 0; i < l->count && r == CUDA_SUCCESS; i++) {
        r = add_text(&u, &l->inputs[i]);
        (void)snprintf(why, sizeof(why), "error   : %s in '%s'",
                       r == CUDA_ERROR_NO_BINARY_FOR_GPU
                           ? "machine code for GPUs and no PTX, which this device needs,"
                           : "nothing that can be read",
                       l->inputs[i].name);
    }
    r = r ? r : add_registers(&u, &l->options);
    if (r == CUDA_SUCCESS && u.count == 0) {
        r = CUDA_ERROR_INVALID_IMAGE;
        (void)snprintf(why, sizeof(why), "error   : nothing to link");
    }
    if (r)
        rt_jit_log_give(&l->log, "", why);
    r = r ? r : rt_module_load(l->context, u.text, &l->log, &m);
    if (r) {
        free(u.text);
        return r;
    }
    rt_module_destroy(m);
    l->cubin = (uint8_t *)u.text;
    l->cubin_size = u.size + 1; /* with its end */
    return CUDA_SUCCESS;
}

CUresult rt_cuLinkComplete(CUlinkState state, void **cubinOut, size_t *sizeOut)
{
    struct rt_link *l;
    int r = enter(state, &l);
    if (r)
        return r;
    if (!cubinOut)
        return CUDA_ERROR_INVALID_VALUE;
    uint64_t start = gm_now_ns();
    if (!l->cubin)
        r = rt_session->memory_apart ? link_on_device(l) : link_texts(l);
    if (l->wall_time) {
        float ms = (float)(gm_now_ns() - start) * 1e-6f;
        memcpy((void *)l->wall_time, &ms, sizeof(ms));
    }
    if (r)
        return r;
    *cubinOut = l->cubin;
    if (sizeOut)
        *sizeOut = l->cubin_size;
    return CUDA_SUCCESS;
}

CUresult rt_cuLinkDestroy(CUlinkState state)
{
    struct rt_link *l;
    int r = enter(state, &l);
    if (r)
        return r;
    for (unsigned i = 0; i < l->count; i++)
        free(l->inputs[i].data);
    free(l->inputs);
    free(l->cubin);
    rt_object_release(&links, &l->object);
    return CUDA_SUCCESS;
}

/* --- the same under their first names, which NVIDIA's runtime asks for ------------------------ */

CUresult rt_cuLinkCreate(unsigned int numOptions, CUjit_option *options, void **optionValues,
                         CUlinkState *stateOut)
{
    return rt_cuLinkCreate_v2(numOptions, options, optionValues, stateOut);
}

CUresult rt_cuLinkAddData(CUlinkState state, CUjitInputType type, void *data, size_t size,
                          const char *name, unsigned int numOptions, CUjit_option *options,
                          void **optionValues)
{
    return rt_cuLinkAddData_v2(state, type, data, size, name, numOptions, options, optionValues);
}

CUresult rt_cuLinkAddFile(CUlinkState state, CUjitInputType type, const char *path,
                          unsigned int numOptions, CUjit_option *options, void **optionValues)
{
    return rt_cuLinkAddFile_v2(state, type, path, numOptions, options, optionValues);
}
