/*
 * Orders: what the server has the executor do, from the packet to the answer. The main thread
 * carries out what is done at once. What may take long (a driver that compiles a module, pins
 * gigabytes, waits for the kernel of a client that is gone) is done beside it, by a worker, so that
 * nobody but its own client waits for it.
 *
 * Orders of one client that touch the same thing are carried out in the order in which they came;
 * others need not wait for each other. What each kind touches is said in work.c. An order that has
 * to wait, or that is done beside the main thread, is announced to the server with engine_later,
 * which goes by that when it judges whether the executor still lives.
 */
#ifndef GMUX_EXECUTOR_ORDER_H
#define GMUX_EXECUTOR_ORDER_H

#include "executor/executor.h"

/* What orders touch of a client. */
#define EXE_MEMORY  1u  /* its ranges of the window, and who may touch them */
#define EXE_DEVICES 2u  /* which it uses, and what it has of their multiprocessors */
#define EXE_THREAD  4u  /* that reads its ring, and its work */
#define EXE_MODULES 8u  /* those of `modules` */
#define EXE_ARRAYS  16u /* how much memory they may take */
#define EXE_VALUES  32u /* what modules write into its memory; several at a time `need` it */
#define EXE_PINNED  64u /* host memory that is not used any more, and is the last to hear of it */
#define EXE_ALL     127u

struct exe_order {
    struct gm_list link;       /* client->orders, oldest first; main thread */
    struct gm_list job;        /* engine->jobs: to be done, or done */
    struct exe_client *client; /* NULL: there is none of that number */
    uint64_t serial;
    uint32_t type; /* of the message; 0: the client has failed, its work goes off the device */
    const struct exe_order_kind *kind;
    struct wire_dec body;
    int fds[TP_FDS_MAX]; /* the packet's, or owned by an order that is kept */
    unsigned fds_count;

    uint32_t touches; /* EXE_MEMORY and the like, as bits */
    uint32_t needs;   /* as earlier orders have made it; later ones may change it meanwhile, but for
                         VALUES */
    uint32_t module;  /* 0: all, if it touches any */
    uint64_t modules; /* a bit for each, which others may have, too */
    bool beside;      /* may take long */
    bool working;     /* a worker has it */
    bool leaves;      /* it is carried out when the device says that the client is gone */
    bool again;       /* it could not be carried out when it was tried: the device was answering the
                         client */

    /* The answer. */
    int result;
    struct dev_module_info info; /* of a load; with a descriptor of what the client is to know */
    int info_fd;
    uint8_t bytes[] GM_ALIGNED(8); /* the body of one that is kept */
};

/* --- order.c; main thread. 0 or -errno, which ends the executor ------------------------------- */

/* Carries out an order of a client, or sees to it that this will be done. `o` is the caller's,
 * filled as far as `fds_count`, else zero; it has no descriptors any more if they were taken. */
int exe_order_take(struct exe_engine *e, struct exe_order *o);
/* A client has failed: its work goes off the device. */
void exe_order_stop(struct exe_engine *e, struct exe_client *c);
/* After the main thread was woken: answers what workers are done with, and begins what waited for
 * it. */
int exe_orders_go_on(struct exe_engine *e);
/* So many are kept that descriptors for more may not be had: none should be read. */
bool exe_orders_are_many(const struct exe_engine *e);

/* --- work.c ----------------------------------------------------------------------------------- */

/* The orders of that type; NULL: there are none. */
const struct exe_order_kind *exe_order_kind(uint32_t type);
/* Fills in what it touches. Main thread. */
void exe_order_plan(struct exe_order *o);
/* Carries it out; the answer is in it, but for `again`. Main thread, or a worker. */
void exe_order_work(struct exe_engine *e, struct exe_order *o);

/* --- answer.c; main thread. 0 or -errno ------------------------------------------------------- */

/* Sends the answer. */
int exe_order_answer(struct exe_engine *e, struct exe_order *o);
/* Sends a result, the answer to all orders but loads. */
int exe_order_done(struct exe_engine *e, uint64_t serial, int result);

#endif
