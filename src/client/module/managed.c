/*
 * __managed__ variables on a GPU. The GPU's driver would give them memory that only the executor
 * can touch. So the image is loaded in another form: as machine code in which the variables'
 * addresses are those of pinned host memory in this program's window (fatbin/move.h), which all
 * managed memory is here (managed.c). PTX is compiled by the driver first.
 *
 * The device reports whether an image has such variables, so that an image without any is not
 * unpacked here.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "client/memory/memory.h"
#include "client/module/link.h"
#include "fatbin/fatbin.h"
#include "fatbin/move.h"

#define UNPACKED_MAX (256u << 20)

static int result_of(int error)
{
    static atomic_bool said;
    if (error == -ENOTSUP)
        return rt_not_supported("a managed variable whose address stands in an unusual place",
                                &said);
    return error == -ENOMEM || error == -E2BIG || error == -EFBIG ? CUDA_ERROR_OUT_OF_MEMORY
                                                                  : CUDA_ERROR_INVALID_IMAGE;
}

static int compile(const void *text, size_t size, struct rt_image *out)
{
    uint8_t *cubin = NULL;
    int r = rt_link_text(text, size, &cubin, &out->size);
    out->owned = cubin;
    return r;
}

/* Finds the machine code of the best image of a fat binary. */
static int code_of_fatbin(const void *fatbin, size_t size, uint32_t sm, struct rt_image *out)
{
    struct fb_entry e;
    void *text;
    size_t length;
    int r = fb_pick(fatbin, size, sm, FB_WANT_CUBIN, &e);
    if (r > 0) {
        r = fb_unpack(&e, UNPACKED_MAX, &out->owned, &out->size);
        return r < 0 ? result_of(r) : CUDA_SUCCESS;
    }
    r = fb_pick(fatbin, size, sm, FB_WANT_PTX, &e);
    if (r <= 0)
        return CUDA_ERROR_NO_BINARY_FOR_GPU;
    r = fb_unpack(&e, UNPACKED_MAX, &text, &length);
    if (r < 0)
        return result_of(r);
    /* The text is followed by its zero and by padding. */
    r = compile(text, strnlen(text, length), out);
    free(text);
    return r;
}

/* Has the driver link relocatable code of which nothing was linked ahead: fat binaries one behind
 * the other. */
static int code_of_list(const struct rt_image *image, struct rt_image *out)
{
    const uint8_t *bytes = image->data;
    struct rt_linking l = { 0 };
    size_t count = 0;
    for (size_t at = 0; at < image->size; at += gm_padded(fb_size(bytes + at)))
        count++;
    l.inputs = calloc(count, sizeof(*l.inputs));
    if (!l.inputs)
        return CUDA_ERROR_OUT_OF_MEMORY;
    for (size_t at = 0; at < image->size; at += gm_padded(fb_size(bytes + at))) {
        const size_t size = fb_size(bytes + at);
        if (size > FB_HEADER_SIZE)
            l.inputs[l.count++] = (struct rt_link_input) { .data = (char *)(uintptr_t)(bytes + at),
                                                           .size = size,
                                                           .kind = WIRE_IMAGE_KIND_FATBIN };
    }
    const int r = rt_link_on_device(&l);
    free(l.inputs);
    out->owned = l.cubin;
    out->size = l.cubin_size;
    return r;
}

/* Copies the code into memory that may be written. */
static int code_of(const struct rt_image *image, uint32_t sm, struct rt_image *out)
{
    if (image->kind == WIRE_IMAGE_KIND_PTX)
        return compile(image->data, image->size, out);
    if (image->kind != WIRE_IMAGE_KIND_CUBIN) { /* the first image of a list is the linked one */
        const int r = code_of_fatbin(image->data, image->size, sm, out);
        return r == CUDA_ERROR_NO_BINARY_FOR_GPU && image->kind == WIRE_IMAGE_KIND_FATBIN_LIST
                   ? code_of_list(image, out)
                   : r;
    }
    out->size = image->size;
    out->owned = malloc(image->size);
    if (!out->owned)
        return CUDA_ERROR_OUT_OF_MEMORY;
    memcpy(out->owned, image->data, image->size);
    return CUDA_SUCCESS;
}

static int allocate(struct rt_module *m, uint64_t size)
{
    int r = rt_request_alloc(rt_session, size, 0, WIRE_MEMORY_KIND_HOST, 0, &m->managed);
    if (r == CUDA_ERROR_OUT_OF_MEMORY && rt_memory_reap(true))
        r = rt_request_alloc(rt_session, size, 0, WIRE_MEMORY_KIND_HOST, 0, &m->managed);
    return r;
}

static int move(struct rt_module *m, const struct fb_cubin *c, void *cubin,
                const struct fb_move_list *l)
{
    const bool again = m->managed != 0; /* renew.c loads the same image again */
    int r = again ? CUDA_SUCCESS : allocate(m, l->size);
    if (r)
        return r;
    memset((void *)(uintptr_t)m->managed, 0,
           /* Another variable may have had the memory, and not all variables have values. */
           l->size);
    r = fb_move(c, cubin, l, m->managed,
                (void *)(uintptr_t)m->managed); /* NOLINT: an address of the host's, too */
    if (r < 0)
        return result_of(r);
    for (uint32_t i = 0; i < l->count && r == CUDA_SUCCESS && !again; i++)
        r = rt_lookup_add_managed(m, l->at[i].name, m->managed + l->at[i].offset, l->at[i].size);
    return r;
}

static int move_all(struct rt_module *m, struct rt_image *image)
{
    struct fb_cubin c;
    struct fb_move_list list = { 0 };
    int r = fb_cubin_open(&c, image->owned, image->size);
    r = r ? r : fb_move_find(&c, FB_MOVE_MANAGED, &list);
    if (r < 0)
        return result_of(r);
    if (list.size)
        r = move(m, &c, image->owned, &list);
    free(list.at);
    return r;
}

int rt_module_managed_move(struct rt_module *m, const struct rt_image *image, struct rt_image *out)
{
    *out = (struct rt_image) { .kind = WIRE_IMAGE_KIND_CUBIN };
    int r = code_of(image, rt_image_capability(), out);
    r = r ? r : move_all(m, out);
    out->data = out->owned;
    if (r)
        rt_image_drop(out);
    return r;
}

void rt_module_managed_finish(struct rt_module *m)
{
    if (m->managed)
        (void)rt_request_free(rt_session, m->managed);
    m->managed = 0;
}
