/*
 * Orders: what the server tells the executor to do, from the packet to the answer. The main thread
 * carries out orders that are done at once. An order that may take long is carried out by a worker,
 * so that only its own client waits for it: a driver may have to compile a module, pin gigabytes,
 * or wait for the kernel of a client that is gone.
 *
 * Orders of one client that touch the same thing are carried out in the order in which they came;
 * others do not wait for each other. work.c says what each kind touches. If an order has to wait,
 * or a worker carries it out, the server hears of that by engine_later; from this it knows whether
 * the executor still lives.
 */
#ifndef GMUX_EXECUTOR_ORDER_H
#define GMUX_EXECUTOR_ORDER_H

#include "executor/executor.h"

/* What orders touch of a client. */
#define EXE_MEMORY  1u  /* its ranges of the window, and who may touch them */
#define EXE_DEVICES 2u  /* which devices it uses, and how many of their multiprocessors */
#define EXE_THREAD  4u  /* the thread that reads its ring, and its work */
#define EXE_MODULES 8u  /* the modules in `modules` */
#define EXE_ARRAYS  16u /* how much memory its arrays may take */
/* values of variables in its memory; several orders at a time may need it */
#define EXE_VALUES 32u
#define EXE_PINNED 64u /* host memory that is to be unpinned */
#define EXE_ALL    127u

struct exe_order {
    struct gm_list link;       /* client->orders, oldest first; main thread */
    struct gm_list job;        /* engine->jobs: to be done, or done */
    struct exe_client *client; /* NULL: there is no client with that number */
    uint64_t serial;
    /* of the message; 0: the client has failed, and its work is taken off the device */
    uint32_t type;
    const struct exe_order_kind *kind;
    struct wire_dec body;
    int fds[TP_FDS_MAX]; /* they belong to the packet, or to an order that is kept */
    unsigned fds_count;

    uint32_t touches; /* bits: EXE_MEMORY and so on */
    uint32_t needs;  /* bits: what earlier orders must have finished, while later orders may already
                        change it, except EXE_VALUES */
    uint32_t module; /* which module, if it touches EXE_MODULES; 0: all */
    uint64_t modules; /* a bit for each module that it touches; several modules may share one */
    bool beside;      /* it may take long, so a worker carries it out */
    bool working;     /* a worker has it */
    bool leaves;      /* it is done when the device says that the client is gone */
    bool again;       /* it was tried while the device was answering the client, and has to be tried
                         again */

    /* The answer. */
    int result;
    struct dev_module_info info;   /* of a load */
    int info_fd;                   /* a memfd with the same, for the client */
    uint8_t bytes[] GM_ALIGNED(8); /* the body, if the order is kept */
};

/* --- order.c; main thread. 0 or -errno, which ends the executor ------------------------------- */

/* Carries out an order, or keeps a copy of it for later. The caller has filled `o` up to
 * `fds_count`; if the descriptors were taken, `o` has none any more. */
int exe_order_take(struct exe_engine *e, struct exe_order *o);
/* A client has failed: orders that its work is taken off the device. */
void exe_order_stop(struct exe_engine *e, struct exe_client *c);
/* Answers orders that workers have finished, and begins orders that have waited. */
int exe_orders_go_on(struct exe_engine *e);
/* The orders that are kept have so many descriptors that no more orders should be read. */
bool exe_orders_are_many(const struct exe_engine *e);

/* --- work.c ----------------------------------------------------------------------------------- */

/* The kind of orders of a type of message; NULL: the type is no order. */
const struct exe_order_kind *exe_order_kind(uint32_t type);
/* Fills in what the order touches. Main thread. */
void exe_order_plan(struct exe_order *o);
/* Carries the order out and fills in its answer, or sets `again`. Main thread, or a worker. */
void exe_order_work(struct exe_engine *e, struct exe_order *o);

/* --- answer.c; main thread. 0 or -errno ------------------------------------------------------- */

/* Sends the answer. */
int exe_order_answer(struct exe_engine *e, struct exe_order *o);
/* Sends a result, which is the answer to every order but a load. */
int exe_order_done(struct exe_engine *e, uint64_t serial, int result);

#endif
