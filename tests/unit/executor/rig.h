/*
 * A client in the executor, without server: its thread reads a real ring and hands the records to a
 * device that the tests make.
 */
#ifndef GMUX_TESTS_UNIT_EXECUTOR_RIG_H
#define GMUX_TESTS_UNIT_EXECUTOR_RIG_H

#include "executor/executor.h"

struct rig {
    struct exe_engine engine;
    struct dev_ops ops; /* all do nothing, or as `backlog` says; tests replace them */
    struct dev_info info;
    struct exe_client *client;
    struct tp_session session; /* the program's view */
    struct tp_ring ring;
};

/* Queues of the device that does nothing. */
struct dev_queue {
    uint32_t stream;
    uint64_t done;   /* when it was made */
    uint32_t gone;   /* how often it was destroyed */
    uint32_t reused; /* how often its number was another stream's */
};

/* Set before: nothing. */
void rig_open(struct rig *r);
/* The device's queue of that number, made or not. */
struct dev_queue *rig_queue(uint32_t stream);
/* Takes a record of so many bytes as the client's thread does. CUresult */
int rig_take(struct rig *r, const void *record);
/* A question without arguments, in stream 0. */
int rig_call(struct rig *r, uint32_t function, uint32_t module, uint64_t number);
/* A record that has nothing but a head. */
int rig_take_simple(struct rig *r, uint32_t op, uint32_t stream, uint64_t seq);
void rig_close(struct rig *r);

#endif
