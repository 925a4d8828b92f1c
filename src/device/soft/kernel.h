/*
 * A kernel of a loaded module: what launches are checked against, and its executable forms. Every
 * kernel starts in the interpreter. At its first launch with some block size a compiled form for
 * that size is looked up in the cache or ordered; once it is there, workers take it up between two
 * grants.
 */
#ifndef GMUX_SOFT_KERNEL_H
#define GMUX_SOFT_KERNEL_H

#include <semaphore.h>

#include "device/soft/exec/code.h"
#include "device/soft/soft.h"

/* compiled forms kept per kernel; further block sizes share the one for any size */
#define SOFT_VARIANTS 4

/* A compiled form, for one block size or for any (all 0). */
struct soft_variant {
    struct soft_kernel *kernel;
    uint32_t ntid[3];
    _Atomic uint32_t launches;        /* after the first one */
    _Atomic(struct soft_code *) code; /* NULL: not there (yet) */
    /* NULL, or posted when the compiler has answered (GMUX_SOFT_JIT=wait) */
    sem_t *settled;
};

struct soft_kernel {
    struct dev_module *module;
    const char *name; /* points into dev_module.names */
    uint32_t param_bytes;
    unsigned thread_dims; /* ir_thread_dims() */
    bool may_wait;        /* its blocks may wait for each other */
    bool uses_workspace;  /* a hidden parameter at workspace_at holds the workspace's address */
    uint32_t workspace_at;
    bool launches;    /* it may launch kernels itself */
    uint64_t address; /* by which kernels of the module name it; 0: none does */
    uint32_t max_threads;
    uint32_t shared_static;  /* bytes */
    uint32_t shared_dynamic; /* offset of the dynamic part */
    uint32_t local_bytes;    /* per thread */
    /* needs local memory for its stack as well, as much as the client's limit says */
    bool uses_stack;
    uint32_t registers;            /* per thread, estimated for a GPU */
    uint32_t reqntid[3];           /* 0: any */
    struct soft_code *interpreter; /* NULL: `lacks` says why the kernel cannot be launched */
    char *lacks;
    _Atomic uint32_t variant_count;
    struct soft_variant variants[SOFT_VARIANTS];
    _Atomic uint32_t block_ns; /* how long a block of the last launch took */
};

/* The compiled form for that block size, ordered if it is new. NULL: there will be none, only the
 * interpreter. Any thread. */
struct soft_variant *soft_kernel_variant(struct soft_kernel *k, const uint32_t ntid[3]);

/* The fastest code that there is now. Any thread. */
static inline const struct soft_code *soft_kernel_code(const struct soft_kernel *k,
                                                       const struct soft_variant *v)
{
    const struct soft_code *code = v ? atomic_load_explicit(&v->code, memory_order_acquire) : NULL;
    return code ? code : k->interpreter;
}

/* Frees a form of a kernel. NULL is accepted. */
static inline void soft_code_destroy(struct soft_code *code)
{
    if (code && code->destroy)
        code->destroy(code);
}

/* object.c. Creates a module object with room for `kernels`, in its client's list, with one
 * reference. NULL: no memory. */
struct dev_module *soft_module_create(struct dev_client *c, uint32_t kernels);
void soft_module_ref(struct dev_module *m);
void soft_module_unref(struct dev_module *m);

/* charge.c; all of these on any thread. soft_user_get() counts one more client of the user,
 * soft_user_put() one less. NULL: no memory. */
struct soft_user *soft_user_get(struct dev *d, uint32_t uid);
void soft_user_put(struct dev *d, struct soft_user *u);
/* Charges the module with that many more bytes. False: its client or its user may not have so
 * many. */
GM_MUST_CHECK bool soft_charge(struct dev_module *m, uint64_t bytes);
void soft_give_back(struct dev_module *m, uint64_t bytes);
/* Limits the memory that texts take while they are parsed, before anything can be charged.
 * soft_parse_begin() waits until there is room for a text of that size, and returns the gate and
 * the bytes that soft_parse_end() gives back. `most`: bytes that all texts in a gate may take
 * together. */
void soft_gate_init(struct soft_gate *g, uint64_t most);
void soft_gate_finish(struct soft_gate *g);
struct soft_gate *soft_parse_begin(struct dev *d, const char *text, size_t size, uint64_t *bytes);
void soft_parse_end(struct soft_gate *g, uint64_t bytes);

/* module.c: the module part of struct dev_ops. */
int soft_module_load(struct dev_client *c, uint32_t device, const void *image, size_t size,
                     uint32_t kind, struct dev_module **out, struct dev_module_info *info);
int soft_module_place(struct dev_module *m, uint64_t globals_address, bool initialise);
void soft_module_unload(struct dev_module *m);

#endif
