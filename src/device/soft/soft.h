/*
 * The structs of the software device behind the opaque ones of device.h.
 */
#ifndef GMUX_SOFT_SOFT_H
#define GMUX_SOFT_SOFT_H

#include "device/queue.h"
#include "device/soft/exec/helpers.h"
#include "device/soft/exec/sched.h"
#include "device/window.h"
#include "transport/output.h"

struct soft_check;
struct soft_compiler;
struct soft_kernel;

/* Lets parsers through in the order in which they came, as long as their memory together is within
 * a bound. charge.c */
struct soft_gate {
    pthread_mutex_t lock;
    pthread_cond_t moved;
    uint64_t used, most;
    uint64_t next, serving; /* tickets */
};

/* What the clients of one user take together. charge.c */
struct soft_user {
    struct gm_list link; /* dev->users */
    uint32_t uid;
    uint32_t clients;    /* dev->code_lock */
    uint64_t code_bytes; /* dev->code_lock */
};

struct dev {
    uint32_t count;
    struct dev_info info[DEV_DEVICES];
    struct dev_events events;
    struct soft_sched *sched;
    struct soft_compiler *compiler; /* NULL: there is only the interpreter */
    bool compiles_first;            /* launches wait for the compiler (GMUX_SOFT_JIT=wait) */
    bool checks; /* clients may ask for the checker: the environment of this process allows it */
    pthread_mutex_t code_lock;
    uint64_t code_bytes, code_max; /* charge.c; code_lock */
    struct gm_list users;          /* code_lock */
    /* One for small texts and one for large ones, which may wait for each other for a long
     * time. */
    struct soft_gate parses[2];
};

struct dev_client {
    struct dev *dev;
    struct soft_user *user;
    struct dev_window window;
    struct dev_work work;
    struct soft_account account;
    struct soft_helpers helpers;
    struct soft_worker *guest; /* the client's thread; made by its first launch */
    /* A short launch that the client's thread is going to run, or NULL; work.lock. */
    struct dev_op *held;
    /* How many launches have come since it is held, with itself; the client's thread. */
    uint32_t held_behind;
    /* NULL: the client did not ask to be checked. Set before the client has a module */
    struct soft_check *check;
    /* Bytes per thread for functions that call themselves: CU_LIMIT_STACK_SIZE. */
    _Atomic uint32_t stack_limit;
    pthread_mutex_t print_lock;
    struct tp_output output; /* texts taken out of the print buffer; print_lock */
    pthread_mutex_t modules_lock;
    struct gm_list modules; /* modules_lock */
    uint64_t code_bytes;    /* dev->code_lock */
    _Atomic uint64_t grids; /* how many have been launched */
};

/* Used by one thread at a time, except for `refs`: the client's list has one reference, and so has
 * each launch that has not ended. */
struct dev_module {
    struct gm_list link; /* client->modules */
    struct dev_client *client;
    _Atomic uint32_t refs;
    uint64_t code_bytes; /* charged for the module; dev->code_lock */
    uint32_t kernel_count;
    struct soft_kernel *kernels;
    /* Address of each symbol, by ir symbol index; fixed when the module is placed. */
    uint64_t *globals;
    uint64_t globals_address; /* 0: not placed */
    uint64_t globals_size;
    uint64_t globals_align;
    bool has_workspaces;
    /* address of the workspaces of cooperative launches, which follow the variables */
    uint64_t workspaces;
    _Atomic uint64_t workspaces_used; /* one bit for each workspace */
    char *names;                      /* the kernels' names point into it */
    char *text;                       /* the PTX, for the compiler */
    size_t text_size;
    void *info;           /* encoded wire_module_info */
    struct ir_module *ir; /* until the module is placed */
};

#define SOFT_WORKSPACES      64u /* how many cooperative launches of one module may run at once */
#define SOFT_WORKSPACE_BYTES 64u

/* The one symbol of gmux-dev-soft.so. */
GM_EXPORT extern const struct dev_ops gmux_device;

#endif
