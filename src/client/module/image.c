/*
 * Finds out what kind of image a program passes, and how long it is, because programs pass nothing
 * but a pointer. The image is read in the program's own process and from its own memory; the real
 * parsers are on the other side. A device that runs PTX gets the text only. It is unpacked here,
 * where text that unpacks to a huge size harms nobody else. The driver of a GPU gets everything
 * that it could use, and chooses.
 */
#include "client/module/module.h"

#include <elf.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client/module/units.h"
#include "client/session/session.h"
#include "fatbin/cubin.h"
#include "fatbin/fatbin.h"

#define PTX_MAX     (256u << 20) /* bytes after unpacking */
#define MEMBERS_MAX 65536u       /* in the list of a wrapper */

/* PTX starts with ".version", after white space and comments. */
static bool is_ptx(const char *s)
{
    for (;;) {
        s += strspn(s, " \t\r\n\v\f");
        if (s[0] == '/' && s[1] == '/') {
            s += strcspn(s, "\n");
        } else if (s[0] == '/' && s[1] == '*') {
            const char *end = strstr(s + 2, "*/");
            if (!end)
                return false;
            s = end + 2;
        } else {
            break;
        }
    }
    return strncmp(s, ".version", 8) == 0;
}

static int result_of(int error)
{
    return error == -ENOMEM || error == -EFBIG ? CUDA_ERROR_OUT_OF_MEMORY
                                               : CUDA_ERROR_INVALID_IMAGE;
}

uint32_t rt_image_capability(void)
{
    if (!rt_session || rt_session->device_count == 0)
        return 0;
    const int32_t *a = rt_session->devices[rt_current_device()].attributes;
    return (uint32_t)(10 * a[CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR] +
                      a[CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR]);
}

/* --- for a device that runs PTX --------------------------------------------------------------- */

int rt_image_text(const void *fatbin, unsigned wanted, struct rt_image *out)
{
    struct fb_entry e;
    void *text;
    int r = fb_pick(fatbin, fb_size(fatbin), rt_image_capability(), wanted, &e);
    if (r == 0)
        return CUDA_ERROR_NO_BINARY_FOR_GPU;
    r = r < 0 ? r : fb_unpack(&e, PTX_MAX, &text, &out->size);
    if (r < 0)
        return result_of(r);
    out->size = strnlen(text, out->size); /* the text is followed by its zero and by padding */
    out->data = out->owned = text;
    out->kind = WIRE_IMAGE_KIND_PTX;
    return CUDA_SUCCESS;
}

static void say_none(struct rt_image *out, const void *fatbin)
{
    struct fb_reader r;
    struct fb_entry e;
    unsigned count = 0, cubins = 0;
    if (fb_open(&r, fatbin, fb_size(fatbin)) == 0)
        for (; fb_next(&r, &e) > 0; count++)
            cubins += e.kind == FB_KIND_CUBIN;
    snprintf(out->why, sizeof(out->why),
             "the fat binary has machine code for GPUs (%u of %u images) and no PTX that could be "
             "read; this device "
             "needs PTX "
             "(nvcc -gencode arch=compute_75,code=compute_75)",
             cubins, count);
}

/* Whether the text is empty: a source file without device code yields one that declares nothing. */
static bool is_empty(const char *text)
{
    static const char *const something[] = { ".entry", ".func", ".global", ".const" };
    for (size_t i = 0; i < GM_ARRAY_LEN(something); i++)
        if (strstr(text, something[i]))
            return false;
    return true;
}

/* What has been taken of relocatable device code. */
struct parts {
    struct rt_units all;
    bool kernels, later; /* there are kernels; there is text for later architectures only */
};

/* Takes a part's text unless it declares nothing. */
static int take_part(struct parts *p, const void *part, unsigned wanted)
{
    struct rt_image one = { 0 };
    int r = rt_image_text(part, wanted, &one);
    if (r == CUDA_SUCCESS && !is_empty(one.data)) {
        p->kernels |= strstr(one.data, ".entry") != NULL;
        r = rt_units_add(&p->all, RT_UNIT_LIBRARY, NULL, one.data, one.size);
    } else if (r == CUDA_ERROR_NO_BINARY_FOR_GPU) {
        p->later = true;
        r = CUDA_SUCCESS;
    }
    rt_image_drop(&one);
    return r;
}

static int take_parts(const void *const *list, unsigned wanted, struct parts *p)
{
    int r = CUDA_SUCCESS;
    *p = (struct parts) { 0 };
    for (unsigned i = 0; i < MEMBERS_MAX && list[i] && r == CUDA_SUCCESS; i++)
        r = take_part(p, list[i], wanted);
    return r;
}

/* Makes one text of relocatable device code. A single text is complete; several are linked when
 * they are loaded. nvlink has made sure that nothing is missing or defined twice. NVIDIA's own
 * library is in many lists, large, seldom needed, and for the latest architecture. So texts for
 * later architectures are left out, unless the program itself is for one. */
static int text_of_list(const void *const *list, struct rt_image *out)
{
    struct parts p;
    int r = take_parts(list, FB_WANT_PTX, &p);
    if (r == CUDA_SUCCESS && p.later && !p.kernels) {
        free(p.all.text);
        r = take_parts(list, FB_WANT_PTX | FB_WANT_ANY_PTX, &p);
    }
    if (r == CUDA_SUCCESS && p.all.count == 0)
        r = CUDA_ERROR_NO_BINARY_FOR_GPU;
    if (r) {
        free(p.all.text);
        return r;
    }
    *out = (struct rt_image) {
        .data = p.all.text, .owned = p.all.text, .size = p.all.size, .kind = WIRE_IMAGE_KIND_PTX
    };
    return CUDA_SUCCESS;
}

static int text_look(const void *fatbin, const void *const *list, struct rt_image *out)
{
    if (fb_size(fatbin) == 0)
        return CUDA_ERROR_INVALID_IMAGE;
    int r = rt_image_text(fatbin, FB_WANT_PTX | FB_WANT_ANY_PTX, out);
    if (r == CUDA_ERROR_NO_BINARY_FOR_GPU && list)
        r = text_of_list(list, out);
    if (r == CUDA_ERROR_NO_BINARY_FOR_GPU && !*out->why)
        say_none(out, fatbin);
    return r;
}

/* --- for a real GPU's driver ------------------------------------------------------------------ */

/* Puts the linked image and its parts one behind the other. Each says how long it is. */
static int gather(const void *linked, const void *const *list, struct rt_image *out)
{
    size_t total = 0, count = 0;
    for (const void *one = linked; one; one = list[count++]) {
        size_t size = fb_size(one);
        if (size == 0 || count >= MEMBERS_MAX || total + gm_padded(size) > FB_SIZE_MAX)
            return CUDA_ERROR_INVALID_IMAGE;
        total += gm_padded(size);
    }
    uint8_t *to = calloc(1, total);
    if (!to)
        return CUDA_ERROR_OUT_OF_MEMORY;
    *out = (struct rt_image) {
        .data = to, .owned = to, .size = total, .kind = WIRE_IMAGE_KIND_FATBIN_LIST
    };
    count = 0;
    for (const void *one = linked; one; one = list[count++]) {
        memcpy(to, one, fb_size(one));
        to += gm_padded(fb_size(one));
    }
    return CUDA_SUCCESS;
}

static int whole_look(const void *fatbin, const void *const *list, struct rt_image *out)
{
    if (list)
        return gather(fatbin, list, out);
    out->data = fatbin;
    out->size = fb_size(fatbin);
    out->kind = WIRE_IMAGE_KIND_FATBIN;
    if (out->size == 0)
        return CUDA_ERROR_INVALID_IMAGE;
    int r = fb_slim(fatbin, out->size, rt_image_capability(), &out->owned, &out->size);
    if (r > 0)
        out->data = out->owned;
    return r < 0 ? result_of(r) : CUDA_SUCCESS;
}

/* --- all -------------------------------------------------------------------------------------- */

static int fatbin_look(const void *fatbin, const void *const *list, struct rt_image *out)
{
    return rt_session && rt_session->memory_apart ? whole_look(fatbin, list, out)
                                                  : text_look(fatbin, list, out);
}

static int wrapper_look(const void *image, struct rt_image *out)
{
    struct fb_wrapper w;
    memcpy(&w, image, sizeof(w));
    if (!w.data)
        return CUDA_ERROR_INVALID_IMAGE;
    return fatbin_look(w.data, w.version == 2 ? w.list : NULL, out);
}

static int look(const void *image, struct rt_image *out)
{
    uint32_t magic;
    const char *text = image;
    /* No magic number contains a zero, and a text may be shorter than a magic number. */
    if (strnlen(text, sizeof(magic)) < sizeof(magic))
        return CUDA_ERROR_INVALID_IMAGE;
    memcpy(&magic, image, sizeof(magic));
    if (magic == FB_WRAPPER_MAGIC)
        return wrapper_look(image, out);
    if (magic == FB_MAGIC)
        return fatbin_look(image, NULL, out);
    out->data = image;
    if (memcmp(image, ELFMAG, SELFMAG) == 0) {
        out->size = fb_elf_size(image, FB_SIZE_MAX);
        out->kind = WIRE_IMAGE_KIND_CUBIN;
        return out->size ? CUDA_SUCCESS : CUDA_ERROR_INVALID_IMAGE;
    }
    if (!is_ptx(text))
        return CUDA_ERROR_INVALID_IMAGE;
    out->size = strlen(text);
    out->kind = WIRE_IMAGE_KIND_PTX;
    return CUDA_SUCCESS;
}

int rt_image_look(const void *image, struct rt_image *out)
{
    *out = (struct rt_image) { 0 };
    int r = look(image, out);
    if (r)
        rt_image_drop(out);
    return r;
}

void rt_image_drop(struct rt_image *image)
{
    free(image->owned);
    image->owned = NULL;
    image->data = NULL;
}
