/*
 * Static partitions: sets of whole groups of a device's multiprocessors, which the daemon keeps
 * (control/partition.h). A client with a partition runs there, and has contexts on that device
 * only. A client that needs a partition and has none gets no contexts.
 *
 * Where the device has guarantees, the clients of a partition are a group that has that part of the
 * device, no more and no less. Elsewhere the partition is part 1 of the client's multiprocessors
 * (struct tp_part), which is written into session memory before the client gets it. Its streams run
 * in it as those of a program's own green contexts do.
 */
#ifndef GMUX_SERVER_PARTITION_H
#define GMUX_SERVER_PARTITION_H

#include "transport/sock.h"

struct srv_server;
struct srv_session;

struct srv_partition {
    uint32_t pid; /* the client; 0: it may run anywhere */
    char name[129];
    uint32_t device; /* a number above all devices: it has none */
    uint64_t groups;
};

/* Tells the daemon how devices can be partitioned. */
void srv_partition_describe(struct srv_server *s);
/* The daemon announces the partition of the client that comes next. */
void srv_partition_announce(struct srv_server *s, struct tp_packet *p);
void srv_partition_take(struct srv_session *c);
/* Writes the partition into session memory, which no client has yet. */
void srv_partition_write(struct srv_session *c);
/* Whether the client may have contexts there. A CUresult. */
int srv_partition_admits(const struct srv_session *c, uint32_t device);
/* How many multiprocessors its partition has on that device; 0: it has none there, or may run
 * anywhere. */
uint32_t srv_partition_size(const struct srv_session *c, uint32_t device);
/* The partition's part of its device, in percent; 0: the client has no partition. */
double srv_partition_share(const struct srv_session *c);
/* The number of the group that the partition's clients are for the device; 0: the client has no
 * partition. */
uint32_t srv_partition_group(const struct srv_session *c);

#endif
