/*
 * Questions of clients that only the driver can answer: each kind with the function that answers
 * it, which stands in the file of its subject. The client's thread. CUresult each.
 */
#ifndef GMUX_DEVICE_CUDA_CALL_H
#define GMUX_DEVICE_CUDA_CALL_H

#include "device/cuda/state.h"

/* Calls about a module. */
#define CUDA_MODULE_CALLS(X)                                                                       \
    X(FUNCTION_FIND, cuda_function_find)                                                           \
    X(FUNCTION_NAMES, cuda_function_names)                                                         \
    X(VARIABLE_FIND, cuda_variable_find)                                                           \
    X(ATTRIBUTE_GET, cuda_attribute_get)                                                           \
    X(ATTRIBUTE_SET, cuda_attribute_set)                                                           \
    X(CLUSTERS, cuda_clusters)                                                                     \
    X(BLOCKS, cuda_blocks)

/* All other calls. */
#define CUDA_CLIENT_CALLS(X)                                                                       \
    X(ARRAY_CREATE, cuda_array_create)                                                             \
    X(ARRAY_DESTROY, cuda_array_destroy)                                                           \
    X(OBJECT_CREATE, cuda_object_create)                                                           \
    X(OBJECT_DESTROY, cuda_object_destroy)                                                         \
    X(LIMIT_RAISE, cuda_limit_raise)                                                               \
    X(LINK_BEGIN, cuda_link_begin)                                                                 \
    X(LINK_INPUT, cuda_link_input)                                                                 \
    X(LINK_DATA, cuda_link_data)                                                                   \
    X(LINK_COMPLETE, cuda_link_complete)                                                           \
    X(LINK_READ, cuda_link_read)                                                                   \
    X(LINK_END, cuda_link_end)                                                                     \
    X(TENSOR_MAP, cuda_tensor_map)                                                                 \
    X(SPLIT, cuda_split)                                                                           \
    X(MEMORY_LEFT, cuda_memory_left)

#define X(kind, name) int name(struct dev_module *m, struct wire_dec *args, struct wire_enc *reply);
CUDA_MODULE_CALLS(X)
#undef X
#define X(kind, name) int name(struct dev_client *c, struct wire_dec *args, struct wire_enc *reply);
CUDA_CLIENT_CALLS(X)
#undef X

int cuda_call(struct dev_client *c, const struct dev_call *call);

#endif
