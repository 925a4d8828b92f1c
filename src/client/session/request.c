/*
 * Asks the server, and turns its answers into what callers need. Messages are packed and unpacked
 * by ask.c, which the generator writes; packet.c has the socket. There is one request at a time.
 *
 * Only frees are not waited for. Their answers are counted as they come, and waited for where the
 * memory must really be free.
 */
#include "client/session/ask.h"

#include <cuda.h>
#include <string.h>

#include "base/cleanup.h"
#include "client/session/adopt.h"
#include "client/session/session.h"

#define FREES_OUT_MAX 32u

static void begin(struct rt_session *s)
{
    pthread_mutex_lock(&s->request_lock);
}

static int end(struct rt_session *s, int result)
{
    tp_packet_finish(s->packet);
    pthread_mutex_unlock(&s->request_lock);
    return result;
}

/* --- requests --------------------------------------------------------------------------------- */

/* Waits for the answers of all frees. Called with the request lock held. */
static int settle_frees(struct rt_session *s)
{
    while (s->frees_out) {
        if (tp_recv(s->fd, s->packet) <= 0)
            return rt_server_gone(s);
        s->frees_out -= s->packet->header.serial != 0;
        tp_packet_finish(s->packet);
    }
    return CUDA_SUCCESS;
}

/* Whether a range that the server has answered lies in the area where it has to be. */
static bool in_area(const struct rt_session *s, bool host, uint64_t address, uint64_t size)
{
    uint64_t area = host ? s->window_base + s->window_half : s->window_base;
    uint64_t offset = address - area; /* a huge number if the address lies below */
    return offset < s->window_half && size <= s->window_half - offset;
}

static uint32_t index_of(const struct rt_session *s, uint32_t kind, int device)
{
    return kind == WIRE_MEMORY_KIND_DEVICE ? s->devices[device].index : 0;
}

int rt_request_ready(struct rt_session *s)
{
    begin(s);
    return end(s, rt_ask_session_ready(s));
}

int rt_request_context_open(struct rt_session *s, uint32_t context, int device)
{
    const struct wire_context_open m = { .context = context, .device = s->devices[device].index };
    begin(s);
    return end(s, rt_ask_context_open(s, &m));
}

int rt_request_context_close(struct rt_session *s, uint32_t context)
{
    begin(s);
    return end(s, rt_ask_context_close(s, &(struct wire_context_close) { .context = context }));
}

int rt_request_peer_access(struct rt_session *s, int device, int peer, bool enabled)
{
    const struct wire_peer_access m = { .device = s->devices[device].index,
                                        .peer = s->devices[peer].index,
                                        .enabled = enabled };
    begin(s);
    return end(s, rt_ask_peer_access(s, &m));
}

static int alloc_once(struct rt_session *s, const struct wire_memory_alloc *m, uint64_t *address)
{
    struct wire_memory_allocated answer;
    int r = rt_ask_memory_alloc(s, m, &answer);
    if (r)
        return r;
    if (!in_area(s, m->kind == WIRE_MEMORY_KIND_HOST, answer.address, m->size))
        return rt_server_gone(s);
    *address = answer.address;
    return CUDA_SUCCESS;
}

int rt_request_alloc(struct rt_session *s, uint64_t size, uint64_t align, uint32_t kind, int device,
                     uint64_t *address)
{
    const struct wire_memory_alloc m = {
        .size = size, .align = align, .kind = kind, .device = index_of(s, kind, device)
    };
    *address = 0;
    begin(s);
    int r = alloc_once(s, &m, address);
    if (r == CUDA_ERROR_OUT_OF_MEMORY && s->frees_out) {
        r = settle_frees(s);
        r = r ? r : alloc_once(s, &m, address);
    }
    return end(s, r);
}

int rt_request_free(struct rt_session *s, uint64_t address)
{
    begin(s);
    int r = rt_ask_memory_free(s, &(struct wire_memory_free) { .address = address });
    if (r == CUDA_SUCCESS && ++s->frees_out >= FREES_OUT_MAX)
        r = settle_frees(s);
    return end(s, r);
}

int rt_request_array_memory(struct rt_session *s, int device, uint64_t bytes)
{
    const struct wire_array_memory m = { .bytes = bytes, .device = s->devices[device].index };
    begin(s);
    int r = settle_frees(s);
    return end(s, r ? r : rt_ask_array_memory(s, &m));
}

int rt_request_memory_info(struct rt_session *s, int device, struct rt_memory_info *out)
{
    const struct wire_memory_info m = { .device = s->devices[device].index };
    struct wire_memory_info_is answer = { 0 };
    begin(s);
    int r = settle_frees(s);
    r = r ? r : rt_ask_memory_info(s, &m, &answer);
    *out = (struct rt_memory_info) { .free = answer.free,
                                     .ready = answer.ready,
                                     .total = answer.total };
    return end(s, r);
}

int rt_request_module_load(struct rt_session *s, int fd, uint64_t size, uint32_t kind, int device,
                           struct rt_loaded *out)
{
    const struct wire_module_load m = {
        .size = size, .kind = kind, .log_level = 1, .device = s->devices[device].index
    };
    struct wire_module_loaded answer;
    begin(s);
    int info_fd, r = rt_ask_module_load(s, &m, fd, &answer, &info_fd);
    *out = (struct rt_loaded) { .module = answer.module,
                                .globals_address = answer.globals_address,
                                .info_fd = info_fd,
                                .log = answer.log && *answer.log ? strdup(answer.log) : NULL };
    return end(s, r == CUDA_SUCCESS && info_fd < 0 ? rt_server_gone(s) : r);
}

int rt_request_module_unload(struct rt_session *s, uint32_t module)
{
    begin(s);
    return end(s, rt_ask_module_unload(s, &(struct wire_module_unload) { .module = module }));
}

/* --- memory objects --------------------------------------------------------------------------- */

static struct rt_made made(const struct rt_session *s, const struct wire_object_made *answer,
                           int fd)
{
    return (struct rt_made) { .object = answer->object,
                              .size = answer->size,
                              .device = rt_device_by_index(s, answer->device),
                              .compressible = answer->compressible != 0,
                              .fd = fd };
}

int rt_request_object_create(struct rt_session *s, uint64_t size, uint32_t kind, int device,
                             bool compressible, struct rt_made *out)
{
    const struct wire_object_create m = { .size = size,
                                          .kind = kind,
                                          .device = index_of(s, kind, device),
                                          .compressible = compressible };
    struct wire_object_made answer = { 0 };
    int fd = -1;
    begin(s);
    int r = settle_frees(s);
    r = r ? r : rt_ask_object_create(s, &m, &answer, &fd);
    *out = made(s, &answer, fd);
    return end(s, r);
}

int rt_request_object_release(struct rt_session *s, uint32_t object)
{
    begin(s);
    return end(s, rt_ask_object_release(s, &(struct wire_object_release) { .object = object }));
}

int rt_request_object_export(struct rt_session *s, uint32_t object, int *fd)
{
    begin(s);
    int r = rt_ask_object_export(s, &(struct wire_object_export) { .object = object }, fd);
    return end(s, r == CUDA_SUCCESS && *fd < 0 ? rt_server_gone(s) : r);
}

/* Makes an object of ours of what another program's server has for the token. Called with the
 * request lock held. */
static int adopt(struct rt_session *s, const uint8_t token[RT_TOKEN_BYTES],
                 struct wire_object_made *answer, int *host_fd)
{
    GM_AUTO_FD int fd = rt_adopt_fetch(s, token);
    const struct wire_object_adopt m = { .token = { token, RT_TOKEN_BYTES } };
    return fd < 0 ? CUDA_ERROR_INVALID_VALUE : rt_ask_object_adopt(s, &m, fd, answer, host_fd);
}

int rt_request_object_import(struct rt_session *s, int fd, struct rt_made *out)
{
    uint8_t token[RT_TOKEN_BYTES];
    struct wire_object_made answer;
    int host_fd;
    begin(s);
    int r = rt_ask_object_import(s, fd, &answer, &host_fd);
    if (r == CUDA_ERROR_INVALID_VALUE && rt_adopt_token(s, fd, token))
        r = adopt(s, token, &answer, &host_fd);
    *out = made(s, &answer, host_fd);
    r = end(s, r);
    if (r || out->device >= 0)
        return r;
    (void)rt_request_object_release(s, out->object);
    return CUDA_ERROR_INVALID_DEVICE;
}

int rt_request_range_reserve(struct rt_session *s, uint64_t size, uint64_t align, uint32_t kind,
                             uint64_t *address)
{
    const struct wire_range_reserve m = { .size = size, .align = align, .kind = kind };
    struct wire_memory_allocated answer = { 0 };
    begin(s);
    int r = settle_frees(s); /* the frees give addresses back */
    r = r ? r : rt_ask_range_reserve(s, &m, &answer);
    if (r == CUDA_SUCCESS && !in_area(s, kind == WIRE_MEMORY_KIND_HOST, answer.address, size))
        r = rt_server_gone(s);
    *address = answer.address;
    return end(s, r);
}

int rt_request_range_release(struct rt_session *s, uint64_t address)
{
    begin(s);
    return end(s, rt_ask_range_release(s, &(struct wire_range_release) { .address = address }));
}

/* Translates the access bits from the server's numbers of the devices to this session's. */
static uint32_t access_by_index(const struct rt_session *s, uint32_t access)
{
    uint32_t out = 0;
    for (unsigned i = 0; i < s->device_count; i++)
        out |= (access >> 2 * i & 3u) << 2 * s->devices[i].index;
    return out;
}

int rt_request_object_map(struct rt_session *s, uint32_t object, uint32_t access, uint64_t address,
                          uint64_t size)
{
    const struct wire_object_map m = {
        .object = object, .access = access_by_index(s, access), .address = address, .size = size
    };
    begin(s);
    return end(s, rt_ask_object_map(s, &m));
}

int rt_request_object_unmap(struct rt_session *s, uint64_t address)
{
    begin(s);
    return end(s, rt_ask_object_unmap(s, &(struct wire_object_unmap) { .address = address }));
}

int rt_request_memory_share(struct rt_session *s, uint64_t address, uint32_t object,
                            uint8_t token[RT_TOKEN_BYTES])
{
    const struct wire_memory_share m = { .address = address, .object = object };
    struct wire_memory_shared answer;
    begin(s);
    int r = rt_ask_memory_share(s, &m, &answer);
    if (r == CUDA_SUCCESS && answer.token.size != RT_TOKEN_BYTES)
        r = rt_server_gone(s);
    if (r == CUDA_SUCCESS)
        memcpy(token, answer.token.data, RT_TOKEN_BYTES);
    return end(s, r);
}

/* Maps the object. Once it is mapped it needs no name. Called with the request lock held. */
static int open_adopted(struct rt_session *s, const struct wire_memory_open *m,
                        struct wire_memory_opened *answer, int *fd)
{
    struct wire_object_made made;
    GM_AUTO_FD int host_fd = -1;
    int r = adopt(s, m->token.data, &made, &host_fd);
    if (r)
        return r;
    uint32_t name = made.object;
    r = rt_ask_memory_open(s, m, answer, fd);
    (void)rt_ask_object_release(s, &(struct wire_object_release) { .object = name });
    return r;
}

int rt_request_memory_open(struct rt_session *s, const uint8_t token[RT_TOKEN_BYTES],
                           uint64_t *address, uint64_t *size, int *device, int *fd)
{
    const struct wire_memory_open m = { .token = { token, RT_TOKEN_BYTES } };
    struct wire_memory_opened answer;
    begin(s);
    int r = rt_ask_memory_open(s, &m, &answer, fd);
    if (r == CUDA_ERROR_INVALID_VALUE)
        r = open_adopted(s, &m, &answer, fd);
    if (r == CUDA_SUCCESS && !in_area(s, *fd >= 0, answer.address, answer.size))
        r = rt_server_gone(s);
    *address = answer.address;
    *size = answer.size;
    *device = rt_device_by_index(s, answer.device);
    r = end(s, r);
    if (r || *fd >= 0 || *device >= 0)
        return r;
    (void)rt_request_object_unmap(s, *address);
    return CUDA_ERROR_INVALID_DEVICE;
}
