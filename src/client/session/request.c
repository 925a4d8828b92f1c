/*
 * Requests on the session socket: one at a time, answered by a packet with the same serial. Frees alone are not waited
 * for; their answers are counted as they come by, and waited for where it matters that they were carried out.
 */
#include "client/session/session.h"

#include <cuda.h>
#include <errno.h>
#include <string.h>

#include "base/cleanup.h"

#define FREES_OUT_MAX 32u

static int server_gone(struct rt_session *s)
{
    tp_session_fail(&s->shared, CUDA_ERROR_MPS_RPC_FAILURE, 0);
    return rt_session_error(s);
}

static void begin(struct rt_session *s, struct wire_enc *e)
{
    pthread_mutex_lock(&s->request_lock);
    wire_enc_init(e, s->request, WIRE_PACKET_MAX);
}

/* In the place of another answer a status is a failure. */
static int status_result(struct tp_packet *p)
{
    struct wire_status m;
    wire_get_status(&p->body, &m);
    return m.result ? m.result : CUDA_ERROR_UNKNOWN;
}

/* Sends what was encoded with `serial`, and waits for its answer in s->packet. An answer of another type than
 * `want` must be a status, whose result is returned. With serial 0 there is no answer. */
static int exchange(struct rt_session *s, struct wire_enc *e, uint64_t serial, unsigned want, int fd)
{
    if (tp_send(s->fd, e, &fd, fd >= 0 ? 1 : 0) < 0)
        return server_gone(s);
    while (serial) {
        struct tp_packet *p = s->packet;
        int r = tp_recv(s->fd, p);
        if (r <= 0)
            return server_gone(s);
        if (p->header.serial == serial && p->header.type == want)
            return CUDA_SUCCESS;
        if (p->header.serial == serial && p->header.type == WIRE_STATUS)
            return status_result(p);
        if (p->header.serial && s->frees_out)
            s->frees_out--;
        tp_packet_finish(p);
    }
    return CUDA_SUCCESS;
}

static int end(struct rt_session *s, int result)
{
    tp_packet_finish(s->packet);
    pthread_mutex_unlock(&s->request_lock);
    return result;
}

/* The end of a request that is answered by a status, which is the result. */
static int end_with_status(struct rt_session *s, struct wire_enc *e, uint64_t serial)
{
    struct wire_status answer = { 0 };
    int r = exchange(s, e, serial, WIRE_STATUS, -1);
    if (r == CUDA_SUCCESS) {
        wire_get_status(&s->packet->body, &answer);
        r = answer.result;
    }
    return end(s, r);
}

int rt_request_ready(struct rt_session *s)
{
    struct wire_enc e;
    begin(s, &e);
    uint64_t serial = ++s->serial;
    wire_pack_session_ready(&e, serial, &(struct wire_session_ready) { 0 });
    return end_with_status(s, &e, serial);
}

int rt_request_context_open(struct rt_session *s, uint32_t context, int device)
{
    struct wire_enc e;
    begin(s, &e);
    uint64_t serial = ++s->serial;
    wire_pack_context_open(&e, serial,
                           &(struct wire_context_open) { .context = context, .device = s->devices[device].index });
    return end_with_status(s, &e, serial);
}

int rt_request_peer_access(struct rt_session *s, int device, int peer, bool enabled)
{
    struct wire_enc e;
    begin(s, &e);
    uint64_t serial = ++s->serial;
    wire_pack_peer_access(&e, serial,
                          &(struct wire_peer_access) { .device = s->devices[device].index,
                                                       .peer = s->devices[peer].index,
                                                       .enabled = enabled });
    return end_with_status(s, &e, serial);
}

int rt_request_context_close(struct rt_session *s, uint32_t context)
{
    struct wire_enc e;
    begin(s, &e);
    wire_pack_context_close(&e, 0, &(struct wire_context_close) { .context = context });
    return end(s, exchange(s, &e, 0, 0, -1));
}

/* Waits for the frees under way; request lock held. */
static int settle_frees(struct rt_session *s)
{
    while (s->frees_out) {
        if (tp_recv(s->fd, s->packet) <= 0)
            return server_gone(s);
        s->frees_out -= s->packet->header.serial != 0;
        tp_packet_finish(s->packet);
    }
    return CUDA_SUCCESS;
}

static int alloc_once(struct rt_session *s, const struct wire_memory_alloc *m, uint64_t *address)
{
    struct wire_memory_allocated answer = { 0 };
    struct wire_enc e;
    uint64_t serial = ++s->serial;
    wire_enc_init(&e, s->request, WIRE_PACKET_MAX);
    wire_pack_memory_alloc(&e, serial, m);
    int r = exchange(s, &e, serial, WIRE_MEMORY_ALLOCATED, -1);
    if (r)
        return r;
    wire_get_memory_allocated(&s->packet->body, &answer);
    tp_packet_finish(s->packet);
    if (answer.result)
        return answer.result;
    uint64_t area = m->kind == WIRE_MEMORY_KIND_HOST ? s->window_base + s->window_half : s->window_base;
    uint64_t offset = answer.address - area; /* wraps far away if the address lies below */
    if (offset >= s->window_half || m->size > s->window_half - offset)
        return server_gone(s);
    *address = answer.address;
    return CUDA_SUCCESS;
}

static uint32_t index_of(const struct rt_session *s, uint32_t kind, int device)
{
    return kind == WIRE_MEMORY_KIND_DEVICE ? s->devices[device].index : 0;
}

int rt_request_alloc(struct rt_session *s, uint64_t size, uint64_t align, uint32_t kind, int device,
                     uint64_t *address)
{
    const struct wire_memory_alloc m = {
        .size = size, .align = align, .kind = kind, .device = index_of(s, kind, device)
    };
    *address = 0;
    pthread_mutex_lock(&s->request_lock);
    int r = alloc_once(s, &m, address);
    if (r == CUDA_ERROR_OUT_OF_MEMORY && s->frees_out) {
        r = settle_frees(s);
        r = r ? r : alloc_once(s, &m, address);
    }
    return end(s, r);
}

int rt_request_free(struct rt_session *s, uint64_t address)
{
    struct wire_enc e;
    begin(s, &e);
    wire_pack_memory_free(&e, ++s->serial, &(struct wire_memory_free) { .address = address });
    int r = exchange(s, &e, 0, 0, -1);
    if (r == CUDA_SUCCESS && ++s->frees_out >= FREES_OUT_MAX)
        r = settle_frees(s);
    return end(s, r);
}

int rt_request_array_memory(struct rt_session *s, int device, uint64_t bytes)
{
    struct wire_enc e;
    begin(s, &e);
    int r = settle_frees(s);
    if (r)
        return end(s, r);
    uint64_t serial = ++s->serial;
    wire_pack_array_memory(&e, serial,
                           &(struct wire_array_memory) { .bytes = bytes, .device = s->devices[device].index });
    return end_with_status(s, &e, serial);
}

int rt_request_memory_info(struct rt_session *s, int device, struct rt_memory_info *out)
{
    struct wire_memory_info_is answer = { 0 };
    struct wire_enc e;
    begin(s, &e);
    int r = settle_frees(s);
    uint64_t serial = ++s->serial;
    wire_pack_memory_info(&e, serial, &(struct wire_memory_info) { .device = s->devices[device].index });
    r = r ? r : exchange(s, &e, serial, WIRE_MEMORY_INFO_IS, -1);
    if (r == CUDA_SUCCESS)
        wire_get_memory_info_is(&s->packet->body, &answer);
    *out = (struct rt_memory_info) { .free = answer.free, .ready = answer.ready, .total = answer.total };
    return end(s, r);
}

int rt_request_module_load(struct rt_session *s, int fd, uint64_t size, uint32_t kind, int device,
                           struct rt_loaded *out)
{
    struct wire_module_loaded answer = { 0 };
    struct wire_enc e;

    *out = (struct rt_loaded) { .info_fd = -1 };
    begin(s, &e);
    uint64_t serial = ++s->serial;
    wire_pack_module_load(&e, serial,
                          &(struct wire_module_load) {
                              .size = size, .kind = kind, .log_level = 1, .device = s->devices[device].index });
    int r = exchange(s, &e, serial, WIRE_MODULE_LOADED, fd);
    if (r != CUDA_SUCCESS)
        return end(s, r);
    wire_get_module_loaded(&s->packet->body, &answer);
    if (answer.log && *answer.log)
        out->log = strdup(answer.log);
    out->module = answer.module;
    out->globals_address = answer.globals_address;
    r = answer.result;
    if (r == CUDA_SUCCESS) {
        out->info_fd = tp_packet_take_fd(s->packet, 0);
        if (out->info_fd < 0)
            r = server_gone(s);
    }
    return end(s, r);
}

int rt_request_module_unload(struct rt_session *s, uint32_t module)
{
    struct wire_enc e;
    begin(s, &e);
    wire_pack_module_unload(&e, 0, &(struct wire_module_unload) { .module = module });
    return end(s, exchange(s, &e, 0, 0, -1));
}

/* --- memory objects ----------------------------------------------------------------------------------------------- */

/* Waits for object_made. */
static int end_with_object(struct rt_session *s, struct wire_enc *e, uint64_t serial, int send_fd,
                           struct rt_made *out)
{
    struct wire_object_made answer = { 0 };
    int r = exchange(s, e, serial, WIRE_OBJECT_MADE, send_fd);
    if (r == CUDA_SUCCESS) {
        wire_get_object_made(&s->packet->body, &answer);
        r = answer.result;
    }
    *out = (struct rt_made) { .object = answer.object,
                              .size = answer.size,
                              .device = rt_device_by_index(s, answer.device),
                              .compressible = answer.compressible != 0,
                              .fd = r == CUDA_SUCCESS ? tp_packet_take_fd(s->packet, 0) : -1 };
    return end(s, r);
}

int rt_request_object_create(struct rt_session *s, uint64_t size, uint32_t kind, int device, bool compressible,
                             struct rt_made *out)
{
    struct wire_enc e;
    *out = (struct rt_made) { .fd = -1 };
    begin(s, &e);
    int r = settle_frees(s);
    if (r)
        return end(s, r);
    wire_enc_init(&e, s->request, WIRE_PACKET_MAX);
    uint64_t serial = ++s->serial;
    wire_pack_object_create(
        &e, serial,
        &(struct wire_object_create) {
            .size = size, .kind = kind, .device = index_of(s, kind, device), .compressible = compressible });
    return end_with_object(s, &e, serial, -1, out);
}

int rt_request_object_release(struct rt_session *s, uint32_t object)
{
    struct wire_enc e;
    begin(s, &e);
    wire_pack_object_release(&e, 0, &(struct wire_object_release) { .object = object });
    return end(s, exchange(s, &e, 0, 0, -1));
}

int rt_request_object_export(struct rt_session *s, uint32_t object, int *fd)
{
    struct wire_object_token answer = { 0 };
    struct wire_enc e;
    begin(s, &e);
    uint64_t serial = ++s->serial;
    wire_pack_object_export(&e, serial, &(struct wire_object_export) { .object = object });
    int r = exchange(s, &e, serial, WIRE_OBJECT_TOKEN, -1);
    if (r == CUDA_SUCCESS) {
        wire_get_object_token(&s->packet->body, &answer);
        r = answer.result;
    }
    *fd = r == CUDA_SUCCESS ? tp_packet_take_fd(s->packet, 0) : -1;
    return end(s, r == CUDA_SUCCESS && *fd < 0 ? server_gone(s) : r);
}

int rt_request_object_import(struct rt_session *s, int fd, struct rt_made *out)
{
    struct wire_enc e;
    begin(s, &e);
    uint64_t serial = ++s->serial;
    wire_pack_object_import(&e, serial, &(struct wire_object_import) { 0 });
    int r = end_with_object(s, &e, serial, fd, out);
    if (r || out->device >= 0)
        return r;
    (void)rt_request_object_release(s, out->object);
    return CUDA_ERROR_INVALID_DEVICE;
}

/* True if the server's answer lies where it has to. */
static bool in_area(const struct rt_session *s, bool host, uint64_t address, uint64_t size)
{
    uint64_t offset = address - (host ? s->window_base + s->window_half : s->window_base);
    return offset < s->window_half && size <= s->window_half - offset;
}

int rt_request_range_reserve(struct rt_session *s, uint64_t size, uint64_t align, uint32_t kind, uint64_t *address)
{
    struct wire_memory_allocated answer = { 0 };
    struct wire_enc e;
    begin(s, &e);
    int r = settle_frees(s); /* they give addresses back */
    if (r)
        return end(s, r);
    wire_enc_init(&e, s->request, WIRE_PACKET_MAX);
    uint64_t serial = ++s->serial;
    wire_pack_range_reserve(&e, serial, &(struct wire_range_reserve) { .size = size, .align = align, .kind = kind });
    r = exchange(s, &e, serial, WIRE_MEMORY_ALLOCATED, -1);
    if (r == CUDA_SUCCESS) {
        wire_get_memory_allocated(&s->packet->body, &answer);
        r = answer.result;
    }
    if (r == CUDA_SUCCESS && !in_area(s, kind == WIRE_MEMORY_KIND_HOST, answer.address, size))
        r = server_gone(s);
    *address = answer.address;
    return end(s, r);
}

int rt_request_range_release(struct rt_session *s, uint64_t address)
{
    struct wire_enc e;
    begin(s, &e);
    uint64_t serial = ++s->serial;
    wire_pack_range_release(&e, serial, &(struct wire_range_release) { .address = address });
    return end_with_status(s, &e, serial);
}

/* The same by the server's numbers. */
static uint32_t access_by_index(const struct rt_session *s, uint32_t access)
{
    uint32_t out = 0;
    for (unsigned i = 0; i < s->device_count; i++)
        out |= (access >> 2 * i & 3u) << 2 * s->devices[i].index;
    return out;
}

int rt_request_object_map(struct rt_session *s, uint32_t object, uint32_t access, uint64_t address, uint64_t size)
{
    struct wire_enc e;
    begin(s, &e);
    uint64_t serial = ++s->serial;
    wire_pack_object_map(
        &e, serial,
        &(struct wire_object_map) {
            .object = object, .access = access_by_index(s, access), .address = address, .size = size });
    return end_with_status(s, &e, serial);
}

int rt_request_object_unmap(struct rt_session *s, uint64_t address)
{
    struct wire_enc e;
    begin(s, &e);
    uint64_t serial = ++s->serial;
    wire_pack_object_unmap(&e, serial, &(struct wire_object_unmap) { .address = address });
    return end_with_status(s, &e, serial);
}

int rt_request_memory_share(struct rt_session *s, uint64_t address, uint32_t object, uint8_t token[RT_TOKEN_BYTES])
{
    struct wire_memory_shared answer = { 0 };
    struct wire_enc e;
    begin(s, &e);
    uint64_t serial = ++s->serial;
    wire_pack_memory_share(&e, serial, &(struct wire_memory_share) { .address = address, .object = object });
    int r = exchange(s, &e, serial, WIRE_MEMORY_SHARED, -1);
    if (r == CUDA_SUCCESS) {
        wire_get_memory_shared(&s->packet->body, &answer);
        r = answer.result;
    }
    if (r == CUDA_SUCCESS && answer.token.size != RT_TOKEN_BYTES)
        r = server_gone(s);
    if (r == CUDA_SUCCESS)
        memcpy(token, answer.token.data, RT_TOKEN_BYTES);
    return end(s, r);
}

int rt_request_memory_open(struct rt_session *s, const uint8_t token[RT_TOKEN_BYTES], uint64_t *address,
                           uint64_t *size, int *device, int *fd)
{
    struct wire_memory_opened answer = { 0 };
    struct wire_enc e;
    begin(s, &e);
    uint64_t serial = ++s->serial;
    wire_pack_memory_open(&e, serial, &(struct wire_memory_open) { .token = { token, RT_TOKEN_BYTES } });
    int r = exchange(s, &e, serial, WIRE_MEMORY_OPENED, -1);
    if (r == CUDA_SUCCESS) {
        wire_get_memory_opened(&s->packet->body, &answer);
        r = answer.result;
    }
    if (r == CUDA_SUCCESS)
        *fd = tp_packet_take_fd(s->packet, 0);
    else
        *fd = -1;
    if (r == CUDA_SUCCESS && !in_area(s, *fd >= 0, answer.address, answer.size))
        r = server_gone(s);
    *address = answer.address;
    *size = answer.size;
    *device = rt_device_by_index(s, answer.device);
    r = end(s, r);
    if (r || *fd >= 0 || *device >= 0)
        return r;
    (void)rt_request_object_unmap(s, *address);
    return CUDA_ERROR_INVALID_DEVICE;
}
