/*
 * The code is loaded in another form, in which it finds its variables at another address
 * (fatbin/move.h). Before that, the library is loaded as the program sent it, so that the driver
 * reports whatever is wrong with it.
 */
#include "device/cuda/variables.h"
#include "device/cuda/module.h"

#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "device/cuda/library.h"

static struct gm_log_topic topic = GM_LOG_TOPIC("cuda");

struct cuda_variables {
    struct cuda_movable movable; /* the code, until they have their place */
    char *names;                 /* of the list: the code does not stay */
    uint64_t address;
};

void cuda_variables_close(struct cuda_variables *v)
{
    if (!v)
        return;
    cuda_movable_close(&v->movable);
    free(v->names);
    free(v);
}

static bool keep_names(struct cuda_variables *v)
{
    struct fb_move_list *l = &v->movable.list;
    size_t size = 0, at = 0;
    for (uint32_t i = 0; i < l->count; i++)
        size += strlen(l->at[i].name) + 1;
    v->names = malloc(size);
    if (!v->names)
        return false;
    for (uint32_t i = 0; i < l->count; i++) {
        size_t length = strlen(l->at[i].name) + 1;
        l->at[i].name = memcpy(v->names + at, l->at[i].name, length);
        at += length;
    }
    return true;
}

/* Makes a copy of the machine code that can be changed and outlives the image. */
static bool take_code(struct cuda_variables *v)
{
    struct cuda_movable *m = &v->movable;
    if (!keep_names(v) || !cuda_code_own(&m->code))
        return false;
    m->cubin.data = m->code.bytes;
    return true;
}

void cuda_variables_open(struct dev_module *m)
{
    struct cuda_library *l = m->library;
    if (!l->movable.code.bytes)
        return;
    struct cuda_variables *v = calloc(1, sizeof(*v));
    if (!v) {
        cuda_movable_close(&l->movable);
        return;
    }
    v->movable = l->movable; /* a library with variables belongs to this module alone */
    l->movable = (struct cuda_movable) { 0 };
    if (take_code(v))
        m->variables = v;
    else
        cuda_variables_close(v);
}

uint64_t cuda_variables_size(const struct dev_module *m)
{
    return m->variables ? m->variables->movable.list.size : 0;
}

/* Replaces the module's library by one whose variables lie at `address`; their first values are in
 * `contents`. */
static bool load_moved(struct dev_module *m, struct cuda_variables *v, uint64_t address,
                       void *contents)
{
    struct cuda_code *code = &v->movable.code;
    char *log = NULL;
    int r = fb_move(&v->movable.cubin, code->unpacked, &v->movable.list, address, contents);
    if (r < 0) {
        gm_info(&topic, "a module's variables stay in the executor: %s", strerror(-r));
        return false;
    }
    r = cuda_library_replace(m, code->bytes, code->size, &log);
    if (r != GM_CUDA_SUCCESS)
        gm_warn(&topic, "a module's variables stay in the executor: error %d: %s", r,
                log ? log : "");
    free(log);
    if (r != GM_CUDA_SUCCESS)
        return false;
    v->address = address;
    cuda_code_close(code);
    return true;
}

static CUresult write_values(const struct dev_module *m, uint64_t address, const void *contents,
                             uint64_t size)
{
    const struct cuda_driver *api = &m->client->dev->api;
    CUresult r = api->cuMemcpyHtoDAsync_v2(address, contents, size, m->gpu->print_stream);
    return r == CUDA_SUCCESS ? api->cuStreamSynchronize(m->gpu->print_stream) : r;
}

int cuda_variables_place(struct dev_module *m, uint64_t address, bool initialise)
{
    struct cuda_variables *v = m->variables;
    void *contents = calloc(1, v->movable.list.size);
    CUresult r = CUDA_SUCCESS;
    cuda_enter(m->gpu);
    if (!contents || !load_moved(m, v, address, contents)) {
        cuda_variables_close(v);
        m->variables = NULL;
    } else if (initialise) {
        r = write_values(m, address, contents, v->movable.list.size);
    }
    free(contents);
    return (int)r;
}

bool cuda_variables_find(const struct dev_module *m, const char *name, uint64_t *address,
                         uint64_t *size)
{
    const struct cuda_variables *v = m->variables;
    for (uint32_t i = 0; v && i < v->movable.list.count; i++)
        if (strcmp(v->movable.list.at[i].name, name) == 0) {
            *address = v->address + v->movable.list.at[i].offset;
            *size = v->movable.list.at[i].size;
            return true;
        }
    return false;
}
