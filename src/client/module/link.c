/*
 * cuLink*: makes one image of several, which a program then loads. The inputs are kept here until
 * the link is completed. A device that runs PTX links when it loads: the program gets the inputs'
 * texts as one (units.h). For other devices link_device.c asks the GPU's driver.
 *
 * An error in an input is found at the end, not when the input is added.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "client/gen/api.h"
#include "client/module/link.h"
#include "client/module/units.h"
#include "client/session/attach.h"
#include "fatbin/cubin.h"
#include "fatbin/fatbin.h"
#include "fatbin/object.h"

#define INPUTS_MAX 256u
#define EMPTY      ".version 6.0\n.target sm_50\n.address_size 64\n"

struct rt_link {
    struct rt_object object;
    struct rt_context *context;
    void **wall_time; /* the option's value, or NULL */
    int error;        /* of an input that is no machine code as it should be: the link fails */
    struct rt_linking all;
};

static struct rt_table links = RT_TABLE(RT_KIND_LINK, struct rt_link);

/* --- what the program hands over -------------------------------------------------------------- */

/* Takes the options that are numbers for the linker. */
static void take_options(struct rt_link_options *o, unsigned count, const CUjit_option *options,
                         void *const *values)
{
    o->count = 0;
    for (unsigned i = 0; i < count && o->count < RT_LINK_OPTIONS; i++) {
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
    l->all.log = log;
    for (unsigned i = 0; i < numOptions; i++)
        if (options[i] == CU_JIT_WALL_TIME)
            l->wall_time = &optionValues[i];
    take_options(&l->all.options, numOptions, options, optionValues);
    rt_object_publish(&l->object);
    *stateOut = (CUlinkState)rt_object_handle(&links, &l->object);
    return CUDA_SUCCESS;
}

/* The error of an object or archive that is none. */
static int unreadable(CUjitInputType type)
{
    return type == CU_JIT_INPUT_OBJECT ? CUDA_ERROR_UNKNOWN : CUDA_ERROR_INVALID_IMAGE;
}

/* Finds out as what kind the text, cubin or fat binary of `size` bytes goes to the device. */
static int input_kind(CUjitInputType type, const void *data, size_t size, uint32_t *kind)
{
    static atomic_bool said;
    struct fb_objects objects;
    if ((unsigned)type >= CU_JIT_NUM_INPUT_TYPES)
        return CUDA_ERROR_INVALID_VALUE;
    const bool fat = size >= FB_HEADER_SIZE && fb_size(data);
    switch (type) {
    case CU_JIT_INPUT_PTX:
        *kind = WIRE_IMAGE_KIND_PTX;
        return CUDA_SUCCESS;
    case CU_JIT_INPUT_CUBIN:
        /* The output of an earlier link. */
        if (!rt_session->memory_apart && rt_units_are(data, size)) {
            *kind = WIRE_IMAGE_KIND_PTX;
            return CUDA_SUCCESS;
        }
        *kind = WIRE_IMAGE_KIND_CUBIN;
        return fb_elf_fits(data, size) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_IMAGE;
    case CU_JIT_INPUT_FATBINARY:
        *kind = fat ? WIRE_IMAGE_KIND_FATBIN : WIRE_IMAGE_KIND_PTX; /* a text is taken, too */
        return fat && fb_size(data) > size ? CUDA_ERROR_INVALID_IMAGE : CUDA_SUCCESS;
    case CU_JIT_INPUT_OBJECT:
    case CU_JIT_INPUT_LIBRARY:
        *kind = WIRE_IMAGE_KIND_FATBIN;
        return fb_objects_open(&objects, data, size) == 0 ? CUDA_SUCCESS : unreadable(type);
    default:
        return rt_not_supported("linking of this kind of input", &said);
    }
}

static int add_one(struct rt_link *l, CUjitInputType type, const void *data, size_t size,
                   const char *name, const struct rt_link_options *options)
{
    struct rt_link_input i = { .type = type, .options = *options };
    int r = input_kind(type, data, size, &i.kind);
    if (r && type == CU_JIT_INPUT_CUBIN)
        l->error = r;
    if (r || l->error)
        return r ? r : l->error;
    if (l->all.cubin)
        return CUDA_ERROR_INVALID_VALUE; /* the link is completed already */
    if (l->all.count == INPUTS_MAX || size > RT_LINK_INPUT_BYTES)
        return CUDA_ERROR_OUT_OF_MEMORY;
    struct rt_link_input *more = realloc(l->all.inputs, (l->all.count + 1) * sizeof(*more));
    if (!more)
        return CUDA_ERROR_OUT_OF_MEMORY;
    l->all.inputs = more;
    i.data = malloc(size + 1);
    if (!i.data)
        return CUDA_ERROR_OUT_OF_MEMORY;
    memcpy(i.data, data, size);
    i.data[size] = '\0';
    i.size = i.kind == WIRE_IMAGE_KIND_PTX ? strlen(i.data) : size;
    (void)snprintf(i.name, sizeof(i.name), "%s", name ? name : "");
    l->all.inputs[l->all.count++] = i;
    return CUDA_SUCCESS;
}

/* A GPU's driver gets the fat binaries in an object or archive of the host's compiler. */
static int add_fat_binaries(struct rt_link *l, CUjitInputType type, const void *data, size_t size,
                            const char *name, const struct rt_link_options *options)
{
    struct fb_objects o;
    const void *fatbin;
    int added = CUDA_SUCCESS, r = fb_objects_open(&o, data, size);
    while (r >= 0 && added == CUDA_SUCCESS && (r = fb_objects_next(&o, &fatbin)) > 0)
        added = add_one(l, CU_JIT_INPUT_FATBINARY, fatbin, fb_size(fatbin), name, options);
    return r < 0 ? unreadable(type) : added;
}

static int add(struct rt_link *l, CUjitInputType type, const void *data, size_t size,
               const char *name, const struct rt_link_options *options)
{
    const bool objects = type == CU_JIT_INPUT_OBJECT || type == CU_JIT_INPUT_LIBRARY;
    return objects && rt_session->memory_apart
               ? add_fat_binaries(l, type, data, size, name, options)
               : add_one(l, type, data, size, name, options);
}

CUresult rt_cuLinkAddData_v2(CUlinkState state, CUjitInputType type, void *data, size_t size,
                             const char *name, unsigned int numOptions, CUjit_option *options,
                             void **optionValues)
{
    struct rt_link *l;
    struct rt_jit_log log;
    struct rt_link_options o;
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
    r = rt_image_read(path, RT_LINK_INPUT_BYTES, &data, &size);
    if (r || size == 0)
        return r ? r : CUDA_ERROR_INVALID_IMAGE;
    return rt_cuLinkAddData_v2(state, type, data, size, path, numOptions, options, optionValues);
}

/* --- the software device links ---------------------------------------------------------------- */

/* Adds the PTX of the fat binaries in an object or archive of the host's compiler. */
static int add_objects(struct rt_units *u, enum rt_unit kind, const char *name, const void *data,
                       size_t size)
{
    struct fb_objects o;
    const void *fatbin;
    int r = fb_objects_open(&o, data, size);
    if (r < 0)
        return CUDA_ERROR_INVALID_IMAGE;
    while ((r = fb_objects_next(&o, &fatbin)) > 0) {
        struct rt_image image = { 0 };
        int added = rt_image_text(fatbin, FB_WANT_PTX, &image);
        if (added == CUDA_SUCCESS)
            added = rt_units_add(u, kind, name, image.data, image.size);
        rt_image_drop(&image);
        if (added && added != CUDA_ERROR_NO_BINARY_FOR_GPU)
            return added;
    }
    return r < 0 ? CUDA_ERROR_INVALID_IMAGE : CUDA_SUCCESS;
}

/* Adds the PTX of an input to the text. */
static int add_text(struct rt_units *u, const struct rt_link_input *i)
{
    struct rt_image image = { 0 };
    enum rt_unit kind = i->type == CU_JIT_INPUT_LIBRARY ? RT_UNIT_LIBRARY : RT_UNIT_OBJECT;
    if (i->type == CU_JIT_INPUT_OBJECT || i->type == CU_JIT_INPUT_LIBRARY)
        return add_objects(u, kind, i->name, i->data, i->size);
    if (i->kind == WIRE_IMAGE_KIND_PTX)
        return rt_units_add(u, kind, i->name, i->data, i->size);
    if (i->kind == WIRE_IMAGE_KIND_CUBIN)
        return CUDA_ERROR_NO_BINARY_FOR_GPU;
    int r = rt_image_text(i->data, FB_WANT_PTX | FB_WANT_ANY_PTX, &image);
    r = r ? r : rt_units_add(u, kind, i->name, image.data, image.size);
    rt_image_drop(&image);
    return r;
}

/* Notes how many registers the text's kernels report. */
static int add_registers(struct rt_units *u, const struct rt_link_options *o)
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

/* Makes one text of the inputs. It is linked each time it is loaded, and once now, to see whether
 * it can be linked. */
static int link_texts(struct rt_link *l)
{
    struct rt_units u = { 0 };
    struct rt_module *m;
    char why[400] = "error   : no memory";
    int r = CUDA_SUCCESS;
    for (unsigned i = 0; i < l->all.count && r == CUDA_SUCCESS; i++) {
        r = add_text(&u, &l->all.inputs[i]);
        (void)snprintf(why, sizeof(why), "error   : %s in '%s'",
                       r == CUDA_ERROR_NO_BINARY_FOR_GPU
                           ? "machine code for GPUs and no PTX, which this device needs,"
                           : "nothing that can be read",
                       l->all.inputs[i].name);
    }
    r = r ? r : add_registers(&u, &l->all.options);
    if (r == CUDA_SUCCESS && u.count == 0) /* a link of nothing gives an empty image */
        r = rt_units_add(&u, RT_UNIT_OBJECT, NULL, EMPTY, strlen(EMPTY));
    if (r)
        rt_jit_log_give(&l->all.log, "", why);
    r = r ? r : rt_module_load(l->context, u.text, &l->all.log, &m);
    if (r) {
        free(u.text);
        return r;
    }
    rt_module_destroy(m);
    l->all.cubin = (uint8_t *)u.text;
    l->all.cubin_size = u.size + 1; /* with the zero at its end */
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
    if (!l->all.cubin)
        r = l->error                   ? l->error
            : rt_session->memory_apart ? rt_link_on_device(&l->all)
                                       : link_texts(l);
    if (l->wall_time) {
        float ms = (float)(gm_now_ns() - start) * 1e-6f;
        memcpy((void *)l->wall_time, &ms, sizeof(ms));
    }
    if (r)
        return r;
    *cubinOut = l->all.cubin;
    if (sizeOut)
        *sizeOut = l->all.cubin_size;
    return CUDA_SUCCESS;
}

CUresult rt_cuLinkDestroy(CUlinkState state)
{
    struct rt_link *l;
    int r = enter(state, &l);
    if (r)
        return r;
    for (unsigned i = 0; i < l->all.count; i++)
        free(l->all.inputs[i].data);
    free(l->all.inputs);
    free(l->all.cubin);
    rt_object_release(&links, &l->object);
    return CUDA_SUCCESS;
}

/* --- the calls' first names, which NVIDIA's runtime asks for
 * ---------------------------------------- */

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
