/*
 * The code is loaded in another form (fatbin/move.h), in which it finds its variables elsewhere. PTX is linked for that.
 *
 * The library of the image as it came is loaded all the same, before: whatever is wrong with it is said then.
 */
#include "device/cuda/values.h"

#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "device/cuda/image.h"
#include "device/cuda/library.h"
#include "fatbin/move.h"

static struct gm_log_topic topic = GM_LOG_TOPIC("cuda");

struct cuda_values {
    struct cuda_code code; /* until they have their place */
    struct fb_cubin cubin;
    struct fb_move_list list;
    char *names; /* of the list, once the code is gone */
    uint64_t address;
};

void cuda_values_close(struct cuda_values *v)
{
    if (!v)
        return;
    cuda_code_close(&v->code);
    free(v->list.at);
    free(v->names);
    free(v);
}

static bool compile(struct dev *d, struct cuda_code *c)
{
    struct cuda_code made = { 0 };
    if (cuda_link_text(d, c->bytes, c->text_size, &made.unpacked, &made.size) != GM_CUDA_SUCCESS)
        return false;
    made.bytes = made.unpacked;
    cuda_code_close(c);
    *c = made;
    return true;
}

/* Machine code that may be written. */
static bool take_code(struct dev_module *m, const void *image, size_t size, uint32_t kind, struct cuda_code *c)
{
    return cuda_code_open(c, image, size, kind, cuda_capability(m->gpu)) > 0 &&
           (c->is_ptx ? compile(m->client->dev, c) : cuda_code_own(c));
}

void cuda_values_open(struct dev_module *m, const void *image, size_t size, uint32_t kind)
{
    struct cuda_library *l = m->library; /* it has variables: it is this module's alone */
    if (!l->loses_values || l->managed_apart || kind == WIRE_IMAGE_KIND_FATBIN_LIST)
        return; /* with managed ones it comes again without them */
    struct cuda_values *v = calloc(1, sizeof(*v));
    bool known = v && take_code(m, image, size, kind, &v->code) &&
                 fb_cubin_open(&v->cubin, v->code.bytes, v->code.size) == 0 &&
                 fb_move_find(&v->cubin, FB_MOVE_GLOBAL, &v->list) == 0;
    l->loses_values = !known || v->list.count != 0; /* of a text this was not known before */
    if (known && v->list.count)
        m->values = v;
    else
        cuda_values_close(v);
}

uint64_t cuda_values_size(const struct dev_module *m)
{
    return m->values ? m->values->list.size : 0;
}

/* So that the code, in which they stand, need not stay. */
static bool keep_names(struct cuda_values *v)
{
    size_t size = 0, at = 0;
    for (uint32_t i = 0; i < v->list.count; i++)
        size += strlen(v->list.at[i].name) + 1;
    v->names = malloc(size);
    if (!v->names)
        return false;
    for (uint32_t i = 0; i < v->list.count; i++) {
        size_t length = strlen(v->list.at[i].name) + 1;
        v->list.at[i].name = memcpy(v->names + at, v->list.at[i].name, length);
        at += length;
    }
    return true;
}

/* True: the module's library is one with its variables there, whose first values are in `contents`. */
static bool load_moved(struct dev_module *m, struct cuda_values *v, uint64_t address, void *contents)
{
    struct cuda_library *moved = NULL;
    char *log = NULL;
    int r = fb_move(&v->cubin, v->code.unpacked, &v->list, address, contents);
    if (r < 0) {
        gm_info(&topic, "a module's variables stay in the executor: %s", strerror(-r));
        return false;
    }
    r = cuda_library_open(m->gpu, m->client, v->code.bytes, v->code.size, WIRE_IMAGE_KIND_CUBIN, &moved, &log);
    if (r != GM_CUDA_SUCCESS)
        gm_warn(&topic, "a module's variables stay in the executor: error %d: %s", r, log ? log : "");
    free(log);
    if (r != GM_CUDA_SUCCESS)
        return false;
    if (!keep_names(v)) {
        cuda_library_close(m->client->dev, moved);
        return false;
    }
    cuda_library_close(m->client->dev, m->library);
    m->library = moved;
    m->handle = moved->handle;
    v->address = address;
    cuda_code_close(&v->code);
    return true;
}

static CUresult write_values(const struct dev_module *m, uint64_t address, const void *contents, uint64_t size)
{
    const struct cuda_driver *api = &m->client->dev->api;
    CUresult r = api->cuMemcpyHtoDAsync_v2(address, contents, size, m->gpu->print_stream);
    return r == CUDA_SUCCESS ? api->cuStreamSynchronize(m->gpu->print_stream) : r;
}

int cuda_values_place(struct dev_module *m, uint64_t address, bool initialise)
{
    struct cuda_values *v = m->values;
    void *contents = calloc(1, v->list.size);
    CUresult r = CUDA_SUCCESS;
    cuda_enter(m->gpu);
    if (!contents || !load_moved(m, v, address, contents)) {
        cuda_values_close(v);
        m->values = NULL;
    } else if (initialise) {
        r = write_values(m, address, contents, v->list.size);
    }
    free(contents);
    return (int)r;
}

bool cuda_values_find(const struct dev_module *m, const char *name, uint64_t *address, uint64_t *size)
{
    const struct cuda_values *v = m->values;
    for (uint32_t i = 0; v && i < v->list.count; i++)
        if (strcmp(v->list.at[i].name, name) == 0) {
            *address = v->address + v->list.at[i].offset;
            *size = v->list.at[i].size;
            return true;
        }
    return false;
}
