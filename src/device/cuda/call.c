/*
 * Questions of a client that the driver answers; each in the file of its subject.
 */
#include "device/cuda/state.h"

typedef int module_call(struct dev_module *m, struct wire_dec *args, struct wire_enc *reply);

static module_call *const module_calls[] = {
    [WIRE_CALL_FUNCTION_FIND] = cuda_function_find,
    [WIRE_CALL_FUNCTION_NAMES] = cuda_function_names,
    [WIRE_CALL_VARIABLE_FIND] = cuda_variable_find,
    [WIRE_CALL_ATTRIBUTE_GET] = cuda_attribute_get,
    [WIRE_CALL_ATTRIBUTE_SET] = cuda_attribute_set,
    [WIRE_CALL_CLUSTERS] = cuda_clusters,
    [WIRE_CALL_BLOCKS] = cuda_blocks,
};

typedef int client_call(struct dev_client *c, struct wire_dec *args, struct wire_enc *reply);

static client_call *const client_calls[] = {
    [WIRE_CALL_ARRAY_CREATE] = cuda_array_create,
    [WIRE_CALL_ARRAY_DESTROY] = cuda_array_destroy,
    [WIRE_CALL_OBJECT_CREATE] = cuda_object_create,
    [WIRE_CALL_OBJECT_DESTROY] = cuda_object_destroy,
    [WIRE_CALL_LIMIT_RAISE] = cuda_limit_raise,
    [WIRE_CALL_LINK_BEGIN] = cuda_link_begin,
    [WIRE_CALL_LINK_INPUT] = cuda_link_input,
    [WIRE_CALL_LINK_DATA] = cuda_link_data,
    [WIRE_CALL_LINK_COMPLETE] = cuda_link_complete,
    [WIRE_CALL_LINK_READ] = cuda_link_read,
    [WIRE_CALL_LINK_END] = cuda_link_end,
    [WIRE_CALL_TENSOR_MAP] = cuda_tensor_map,
    [WIRE_CALL_SPLIT] = cuda_split,
    [WIRE_CALL_MEMORY_LEFT] = cuda_memory_left,
};

void cuda_die_if_lost(struct cuda_gpu *g)
{
    CUresult r = g->dev->api.cuStreamQuery(g->print_stream);
    if (cuda_is_fatal(r))
        cuda_die(g->dev, r);
}

int cuda_call(struct dev_client *c, const struct dev_call *call)
{
    int r = GM_CUDA_NOT_SUPPORTED;
    cuda_flush(c); /* it came before the question, which may take long; and others are to see what
                      runs (admit.h) */
    c->asked = cuda_home(c, call->module ? call->module->gpu->index : call->device);
    cuda_enter(c->asked);
    if (call->function < GM_ARRAY_LEN(module_calls) && module_calls[call->function])
        r = call->module ? module_calls[call->function](call->module, call->args, call->reply)
                         : GM_CUDA_INVALID_HANDLE;
    else if (call->function < GM_ARRAY_LEN(client_calls) && client_calls[call->function])
        r = client_calls[call->function](c, call->args, call->reply);
    if (r != GM_CUDA_SUCCESS)
        cuda_die_if_lost(c->asked);
    return r;
}
