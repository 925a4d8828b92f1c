/*
 * Static partitions: sets of whole groups of a device's multiprocessors, which the daemon keeps
 * (control/partition.h). A client that has one runs there and has contexts on that device only; one
 * that is to have one and has none gets no contexts.
 *
 * Where the device gives guarantees, the clients of a partition are a group which has that part of
 * it, no more and no less. Elsewhere the partition is part 1 of the client's multiprocessors
 * (struct tp_part), which is in its session memory before the client is: its streams run in it, as
 * those of a program's own green contexts do.
 */
#ifndef GMUX_SERVER_PARTITION_H
#define GMUX_SERVER_PARTITION_H

#include "transport/sock.h"

struct srv_server;
struct srv_session;

struct srv_partition {
    uint32_t pid; /* of the client; 0: it may run anywhere */
    char name[129];
    uint32_t device; /* above all numbers: none */
    uint64_t groups;
};

/* Says how devices can be partitioned. */
void srv_partition_describe(struct srv_server *s);
/* Of the client that comes next. */
void srv_partition_announce(struct srv_server *s, struct tp_packet *p);
void srv_partition_take(struct srv_session *c);
/* In session memory, which no client has yet. */
void srv_partition_write(struct srv_session *c);
/* A CUresult: the client may have contexts there. */
int srv_partition_admits(const struct srv_session *c, uint32_t device);
/* The multiprocessors of its partition; 0: it has none there, or may run anywhere. */
uint32_t srv_partition_size(const struct srv_session *c, uint32_t device);
/* As above, of the device in which it has one, in percent; 0 as above. */
double srv_partition_share(const struct srv_session *c);
/* The device's name for its clients as a group; 0 as above. */
uint32_t srv_partition_group(const struct srv_session *c);

#endif
