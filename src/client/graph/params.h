/*
 * What a node of a graph does. Everything that the program's parameters point to is copied, checked
 * and, if it becomes a record, turned into that record at once. So an error is reported by the call
 * that caused it.
 */
#ifndef GMUX_CLIENT_GRAPH_PARAMS_H
#define GMUX_CLIENT_GRAPH_PARAMS_H

#include "client/graph/condition.h"
#include "client/memory/copy.h"
#include "client/module/launch.h"
#include "client/stream/memop.h"

struct rt_graph;

struct rt_kernel {
    CUfunction func; /* as the program gave it: one of these two is set */
    CUkernel kern;
    CUcontext ctx;
    struct wire_rec_launch *record; /* owned */
    void **values;                  /* point into the record; the array is owned */
    uint32_t values_count;
    CUlaunchAttribute *attributes; /* owned; those that change the launch are also in the record */
    uint32_t attributes_count;
};

struct rt_memops {
    CUDA_BATCH_MEM_OP_NODE_PARAMS described; /* its array is owned */
    struct rt_memop *ops;                    /* owned */
    unsigned count;
};

/* The device that the kernel runs on; -1: its context is gone. */
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
            /* for copies with an array: the record; head.size 0: there is none */
            struct wire_rec_copy_array array;
        } copy;
        struct {
            CUDA_MEMSET_NODE_PARAMS described;
            CUcontext ctx;
            struct wire_rec_fill record;
            /* Its address is no memory yet: cuDNN captures such nodes and replaces them. */
            bool nowhere;
        } fill;
        CUDA_HOST_NODE_PARAMS host;
        struct rt_graph *child; /* owned */
        CUevent event;
        struct rt_memops memops;
        struct rt_conditional conditional;
        struct {
            CUDA_MEM_ALLOC_NODE_PARAMS described; /* of a free node only dptr */
            struct rt_graph_memory *memory;       /* a reference */
        } memory;
    };
};

/* Each of these fills in *p, or fails and leaves nothing to be finished. CUresult. */
int rt_params_kernel(struct rt_params *p, const CUDA_KERNEL_NODE_PARAMS *from);
/* From a prepared launch, with its attributes. `function`: the program's handle. */
int rt_params_launch(struct rt_params *p, const void *function, const struct rt_launch *l,
                     const CUlaunchAttribute *attributes, unsigned count);
int rt_params_copy(struct rt_params *p, const CUDA_MEMCPY3D *from, CUcontext ctx);
int rt_params_fill(struct rt_params *p, const CUDA_MEMSET_NODE_PARAMS *from, CUcontext ctx);
int rt_params_host(struct rt_params *p, const CUDA_HOST_NODE_PARAMS *from);
int rt_params_memops(struct rt_params *p, const CUDA_BATCH_MEM_OP_NODE_PARAMS *from);
/* CU_GRAPH_NODE_TYPE_EVENT_RECORD or _WAIT_EVENT. */
int rt_params_event(struct rt_params *p, CUgraphNodeType type, CUevent event);
/* CU_GRAPH_NODE_TYPE_MEM_ALLOC. Graph lock held. Allocates memory, or uses what was freed before a
 * node of `g` with these dependencies; p->memory.described.dptr is the address. */
int rt_params_alloc(struct rt_params *p, const CUDA_MEM_ALLOC_NODE_PARAMS *from,
                    const struct rt_graph *g, const CUgraphNode *dependencies, size_t count);
/* CU_GRAPH_NODE_TYPE_MEM_FREE, of memory that an allocation node allocated. Graph lock held. */
int rt_params_free(struct rt_params *p, CUdeviceptr address);
/* any.c. The node gets a copy of `child`. Graph lock held. */
int rt_params_child(struct rt_params *p, const struct rt_graph *child);
/* any.c. Any kind, in the form of cuGraphAddNode, for a node of `g`; NULL: of an existing node,
 * whose kind is none with graphs inside. Graph lock held. */
int rt_params_generic(struct rt_params *p, struct rt_graph *g, const CUgraphNodeParams *from);

/* graph.c. Copies parameters. Graph lock held if a graph may be part of them. */
int rt_params_clone(struct rt_params *p, const struct rt_params *from);
/* Frees what the parameters own. Graph lock held if a graph or memory may be part of them. */
void rt_params_finish(struct rt_params *p);

/* For rt_params_clone() and rt_params_finish(). The first argument is already a copy of `from`,
 * member by member; clone copies what it points to. `from` may point to the program's arrays.
 * CUresult. */
int rt_kernel_clone(struct rt_kernel *k, const struct rt_kernel *from);
void rt_kernel_finish(struct rt_kernel *k);
int rt_memops_clone(struct rt_memops *m, const struct rt_memops *from);
void rt_memops_finish(struct rt_memops *m);

/* Describes the parameters as the program gave them, or would have. Pointers point into `p`. */
void rt_params_kernel_describe(const struct rt_params *p, CUDA_KERNEL_NODE_PARAMS *out);

/* Sets an attribute. CUresult; CUDA_ERROR_INVALID_VALUE: kernel nodes do not have it. */
int rt_kernel_attribute_set(struct rt_kernel *k, CUlaunchAttributeID id,
                            const CUlaunchAttributeValue *value);
int rt_kernel_attribute_get(const struct rt_kernel *k, CUlaunchAttributeID id,
                            CUlaunchAttributeValue *value);
/* Replaces the attributes of `k` by those of `from`. */
int rt_kernel_attributes_copy(struct rt_kernel *k, const struct rt_kernel *from);

#endif
