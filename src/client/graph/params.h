/*
 * What a node of a graph does. Everything the program's parameters point to is copied, checked and,
 * where it becomes a record, made into that record at once, so that an error is the call's that
 * brought it.
 */
#ifndef GMUX_CLIENT_GRAPH_PARAMS_H
#define GMUX_CLIENT_GRAPH_PARAMS_H

#include "client/graph/condition.h"
#include "client/memory/copy.h"
#include "client/module/launch.h"
#include "client/stream/memop.h"

struct rt_graph;

struct rt_kernel {
    CUfunction func; /* as the program said it: one of these two */
    CUkernel kern;
    CUcontext ctx;
    struct wire_rec_launch *record; /* owned */
    void **values;                  /* owned; into the record */
    uint32_t values_count;
    CUlaunchAttribute *attributes; /* owned; those that matter stand in the record, too */
    uint32_t attributes_count;
};

struct rt_memops {
    CUDA_BATCH_MEM_OP_NODE_PARAMS described; /* its array is owned */
    struct rt_memop *ops;                    /* owned */
    unsigned count;
};

/* The device that it runs on; -1: its context is gone. */
int rt_kernel_device(const struct rt_kernel *k);

struct rt_params {
    CUgraphNodeType type;
    union {
        struct rt_kernel kernel;
        struct {
            CUDA_MEMCPY3D described;
            CUcontext ctx;
            struct rt_box box;
            struct rt_copy_plan plan;
            /* with an array: the record, whatever becomes of that; head.size 0: none */
            struct wire_rec_copy_array array;
        } copy;
        struct {
            CUDA_MEMSET_NODE_PARAMS described;
            CUcontext ctx;
            struct wire_rec_fill record;
            bool nowhere; /* its address is no memory yet: cuDNN captures with such, and replaces
                             them */
        } fill;
        CUDA_HOST_NODE_PARAMS host;
        struct rt_graph *child; /* owned */
        CUevent event;
        struct rt_memops memops;
        struct rt_conditional conditional;
        struct {
            CUDA_MEM_ALLOC_NODE_PARAMS described; /* a free node's: dptr only */
            struct rt_graph_memory *memory;       /* a reference */
        } memory;
    };
};

/* Each fills in *p, or fails and leaves nothing to finish. CUresult. */
int rt_params_kernel(struct rt_params *p, const CUDA_KERNEL_NODE_PARAMS *from);
/* From a launch that was prepared, with its attributes; `function` is the program's handle. */
int rt_params_launch(struct rt_params *p, const void *function, const struct rt_launch *l,
                     const CUlaunchAttribute *attributes, unsigned count);
int rt_params_copy(struct rt_params *p, const CUDA_MEMCPY3D *from, CUcontext ctx);
int rt_params_fill(struct rt_params *p, const CUDA_MEMSET_NODE_PARAMS *from, CUcontext ctx);
int rt_params_host(struct rt_params *p, const CUDA_HOST_NODE_PARAMS *from);
int rt_params_memops(struct rt_params *p, const CUDA_BATCH_MEM_OP_NODE_PARAMS *from);
/* CU_GRAPH_NODE_TYPE_EVENT_RECORD or _WAIT_EVENT. */
int rt_params_event(struct rt_params *p, CUgraphNodeType type, CUevent event);
/* Graph lock. CU_GRAPH_NODE_TYPE_MEM_ALLOC: allocates, or takes what was freed before a node of `g`
 * with these dependencies; p->memory.described.dptr is the address. */
int rt_params_alloc(struct rt_params *p, const CUDA_MEM_ALLOC_NODE_PARAMS *from,
                    const struct rt_graph *g, const CUgraphNode *dependencies, size_t count);
/* Graph lock. CU_GRAPH_NODE_TYPE_MEM_FREE, of memory that such a node allocated. */
int rt_params_free(struct rt_params *p, CUdeviceptr address);
/* Graph lock (any.c). A copy of `child` becomes the node's. */
int rt_params_child(struct rt_params *p, const struct rt_graph *child);
/* Graph lock (any.c). With empty bodies. */
int rt_params_conditional(struct rt_params *p, const CUDA_CONDITIONAL_NODE_PARAMS *from);
/* Any kind, as cuGraphAddNode has them. Graph lock. */
int rt_params_generic(struct rt_params *p, const CUgraphNodeParams *from);

/* Graph lock if there may be a graph in it (graph.c). */
int rt_params_clone(struct rt_params *p, const struct rt_params *from);
/* Graph lock if there may be a graph or memory in it. */
void rt_params_finish(struct rt_params *p);

/* For these two. The first argument is a copy of `from`, member by member; `from` may point to the
 * program's arrays. CUresult. */
int rt_kernel_clone(struct rt_kernel *k, const struct rt_kernel *from);
void rt_kernel_finish(struct rt_kernel *k);
int rt_memops_clone(struct rt_memops *m, const struct rt_memops *from);
void rt_memops_finish(struct rt_memops *m);

/* What the program gave, or would have given. Pointers go into `p`. */
void rt_params_kernel_describe(const struct rt_params *p, CUDA_KERNEL_NODE_PARAMS *out);

/* CUresult; CUDA_ERROR_INVALID_VALUE for one that is not a kernel node's. */
int rt_kernel_attribute_set(struct rt_kernel *k, CUlaunchAttributeID id,
                            const CUlaunchAttributeValue *value);
int rt_kernel_attribute_get(const struct rt_kernel *k, CUlaunchAttributeID id,
                            CUlaunchAttributeValue *value);
/* Replaces k's attributes. */
int rt_kernel_attributes_copy(struct rt_kernel *k, const struct rt_kernel *from);

#endif
