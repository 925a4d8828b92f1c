/*
 * Has a GPU's driver link, in the executor: the inputs go there piece by piece, and a cubin comes
 * back.
 */
#include "client/module/link.h"

#include <stdlib.h>
#include <string.h>

#include "client/stream/call.h"

#define PIECE 32000u

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* the device makes one link at a time */

static struct wire_bytes option_bytes(const struct rt_link_options *o)
{
    return (struct wire_bytes) { .data = o->pair, .size = o->count * (uint32_t)sizeof(o->pair[0]) };
}

static int send_begin(const struct rt_linking *l)
{
    struct rt_call c;
    rt_call_begin(&c, WIRE_CALL_LINK_BEGIN, 0);
    wire_put_call_link_begin(&c.args, &(struct wire_call_link_begin) { option_bytes(&l->options) });
    return rt_call_end(&c, rt_call_run(&c));
}

static int send_input(const struct rt_link_input *i)
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

static int complete(struct rt_linking *l)
{
    struct rt_call c;
    struct wire_call_linked w = { 0 };
    rt_call_begin(&c, WIRE_CALL_LINK_COMPLETE, 0);
    int r = rt_call_run(&c);
    wire_get_call_linked(&c.reply, &w); /* the logs come after a failure, too */
    if (!c.reply.fatal)
        rt_jit_log_give(&l->log, w.info, w.error);
    l->cubin_size = w.size;
    return rt_call_end(&c, r);
}

static int receive(struct rt_linking *l)
{
    if (l->cubin_size == 0 || l->cubin_size > RT_LINK_INPUT_BYTES)
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

int rt_link_on_device(struct rt_linking *l)
{
    struct rt_call c;
    pthread_mutex_lock(&lock);
    int r = send_begin(l);
    for (unsigned i = 0; i < l->count && r == CUDA_SUCCESS; i++)
        r = send_input(&l->inputs[i]);
    r = r ? r : complete(l);
    r = r ? r : receive(l);
    rt_call_begin(&c, WIRE_CALL_LINK_END, 0); /* so nothing stays there, whatever happened */
    int ended = rt_call_end(&c, rt_call_run(&c));
    pthread_mutex_unlock(&lock);
    return r ? r : ended;
}

int rt_link_text(const void *text, size_t size, uint8_t **cubin, size_t *cubin_size)
{
    struct rt_link_input input = { .data = (char *)(uintptr_t)text,
                                   .size = size,
                                   .kind = WIRE_IMAGE_KIND_PTX };
    struct rt_linking l = { .inputs = &input, .count = 1 };
    int r = rt_link_on_device(&l);
    *cubin = l.cubin;
    *cubin_size = l.cubin_size;
    return r;
}
