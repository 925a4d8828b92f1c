/*
 * A kernel of a loaded module: what launches are checked against, and the executable forms there
 * are of it. It starts in the interpreter; a compiled form for the block size in use is looked up
 * at the first launch and otherwise ordered, and taken up between two grants once it is there.
 */
#ifndef GMUX_SOFT_KERNEL_H
#define GMUX_SOFT_KERNEL_H

#include <semaphore.h>

#include "device/soft/exec/code.h"
#include "device/soft/soft.h"

#define SOFT_VARIANTS                                                                              \
    4 /* compiled forms kept per kernel; further block sizes get the one for any size */

/* Compiled for one block size, or for any (all 0). */
struct soft_variant {
    struct soft_kernel *kernel;
    uint32_t ntid[3];
    _Atomic uint32_t launches;        /* after the first one */
    _Atomic(struct soft_code *) code; /* NULL: not there (yet) */
    sem_t *settled;                   /* NULL, or posted when the compiler has answered */
};

struct soft_kernel {
    struct dev_module *module;
    const char *name; /* in the module's names */
    uint32_t param_bytes;
    bool may_wait;       /* for other blocks */
    bool uses_workspace; /* a hidden parameter follows, its address, at workspace_at */
    uint32_t workspace_at;
    uint32_t max_threads;
    uint32_t shared_static;        /* bytes */
    uint32_t shared_dynamic;       /* offset of the dynamic part */
    uint32_t local_bytes;          /* per thread */
    bool uses_stack;               /* and as much as the client's limit says */
    uint32_t registers;            /* that a thread would have on a GPU */
    uint32_t reqntid[3];           /* 0: any */
    struct soft_code *interpreter; /* NULL: `lacks` says why the kernel cannot be launched */
    char *lacks;
    uint32_t variant_count;
    struct soft_variant variants[SOFT_VARIANTS];
    _Atomic uint32_t block_ns; /* what a block of the last launch took */
};

/* The compiled form to use for that block size, ordered if it is new; NULL: interpreter only.
 * Client's thread. */
struct soft_variant *soft_kernel_variant(struct soft_kernel *k, const uint32_t ntid[3]);

/* The best code there is now. Any thread. */
static inline const struct soft_code *soft_kernel_code(const struct soft_kernel *k,
                                                       const struct soft_variant *v)
{
    const struct soft_code *code = v ? atomic_load_explicit(&v->code, memory_order_acquire) : NULL;
    return code ? code : k->interpreter;
}

/* NULL is accepted. */
static inline void soft_code_destroy(struct soft_code *code)
{
    if (code && code->destroy)
        code->destroy(code);
}

/* object.c. A module object with room for `kernels`, linked into its client, with one reference.
 * NULL: no memory. */
struct dev_module *soft_module_create(struct dev_client *c, uint32_t kernels);
void soft_module_ref(struct dev_module *m);
void soft_module_unref(struct dev_module *m);

/* charge.c. The user with that id, with one more client; NULL: no memory. And with one less. Any
 * thread, as the following. */
struct soft_user *soft_user_get(struct dev *d, uint32_t uid);
void soft_user_put(struct dev *d, struct soft_user *u);
/* A module takes that much more memory of this process; false: more than its client, or its user,
 * may have. */
GM_MUST_CHECK bool soft_charge(struct dev_module *m, uint64_t bytes);
void soft_give_back(struct dev_module *m, uint64_t bytes);
/* What parsing takes before anything can be charged, for a text of that size: waits until there is
 * room for it. `most`: what all clients' modules may take. The gate and the amount are for
 * soft_parse_end(). */
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
