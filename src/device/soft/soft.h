/*
 * The software device's own view of the objects behind device.h.
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

/* Lets so much through at a time, in the order in which it came. charge.c */
struct soft_gate {
    pthread_mutex_t lock;
    pthread_cond_t moved;
    uint64_t used, most;
    uint64_t next, serving; /* tickets */
};

/* What the clients of one user have together. charge.c */
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
    struct soft_compiler *compiler; /* NULL: interpreter only */
    bool compiles_first;            /* launches wait for the compiler */
    bool checks; /* clients may be checked: who started this process asked for it */
    pthread_mutex_t code_lock;
    uint64_t code_bytes, code_max; /* charge.c; code_lock */
    struct gm_list users;          /* code_lock */
    struct soft_gate
        parses[2]; /* of small texts, and of large ones, which may wait for each other for long */
};

struct dev_client {
    struct dev *dev;
    struct soft_user *user;
    struct dev_window window;
    struct dev_work work;
    struct soft_account account;
    struct soft_helpers helpers;
    struct soft_check *check; /* NULL: nobody asked for it. Set before there is a module */
    _Atomic uint32_t
        stack_limit; /* bytes per thread for functions that call themselves: CU_LIMIT_STACK_SIZE */
    pthread_mutex_t print_lock;
    struct tp_output output; /* print_lock to move texts there from the print buffer */
    pthread_mutex_t modules_lock;
    struct gm_list modules; /* modules_lock */
    uint64_t code_bytes;    /* dev->code_lock */
};

/* One thread at a time, but for `refs`: one for the client's list, one for each launch that has not
 * ended. */
struct dev_module {
    struct gm_list link; /* client->modules */
    struct dev_client *client;
    _Atomic uint32_t refs;
    uint64_t code_bytes; /* charged for it; dev->code_lock */
    uint32_t kernel_count;
    struct soft_kernel *kernels;
    uint64_t
        *globals; /* address of each symbol, by ir symbol index; fixed when the module is placed */
    uint64_t globals_address; /* 0: not placed */
    uint64_t globals_size;
    uint64_t globals_align;
    bool has_workspaces;
    uint64_t workspaces; /* address of those of cooperative launches, behind the variables */
    _Atomic uint64_t workspaces_used; /* bit by bit */
    char *names;                      /* what the kernels' names point into */
    char *text;                       /* the PTX, for the compiler */
    size_t text_size;
    void *info;           /* encoded wire_module_info */
    struct ir_module *ir; /* until the module is placed */
};

#define SOFT_WORKSPACES      64u /* cooperative launches of one module at once */
#define SOFT_WORKSPACE_BYTES 64u

/* The one symbol of gmux-dev-soft.so. */
GM_EXPORT extern const struct dev_ops gmux_device;

#endif
