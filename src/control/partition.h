/*
 * Static partitions of devices: disjoint sets of whole groups of multiprocessors (NVIDIA calls a
 * group a chunk), each for the programs that name it in CUDA_MPS_SM_PARTITION. If there is a
 * partition, or with the option -S, a program without one gets no context. The server decides what
 * a partition is on a device (server/partition.h).
 *
 * Only a server knows how a device can be divided, since the daemon opens none. A command that
 * needs to know starts a server and waits.
 */
#ifndef GMUX_CONTROL_PARTITION_H
#define GMUX_CONTROL_PARTITION_H

#include "control/server.h"

#define CTL_PARTITION_NAME_MAX 64
#define CTL_PARTITION_ID_MAX   32

struct ctl_partition {
    struct gm_list link; /* daemon's partitions */
    char uuid[41];       /* of the device */
    char id[CTL_PARTITION_ID_MAX + 1];
    char name[CTL_PARTITION_NAME_MAX + 1]; /* in protocol 3; "": it has none */
    /* only programs of this server may use it; "": those of any server */
    char server[65];
    struct ctl_parts parts; /* of the device */
    uint64_t groups;        /* one bit for each group that it has */
};

/* Whether programs need a partition. */
bool ctl_partitions_hold(const struct ctl_daemon *d);
/* The device of that number, UUID, or unambiguous beginning of a UUID; NULL: there is none. */
struct ctl_device *ctl_partition_device(struct ctl_daemon *d, const char *uuid);
/* Finds the partition "UUID/ID", whose UUID may be shortened; NULL: there is none. */
struct ctl_partition *ctl_partition_find(const struct ctl_daemon *d, const char *word);
/* Makes a partition of the lowest groups that are free. NULL: there are too few, or no memory. */
struct ctl_partition *ctl_partition_add(struct ctl_daemon *d, const struct ctl_device *device,
                                        uint32_t count);
/* Makes a partition as an earlier daemon had it. */
struct ctl_partition *ctl_partition_restore(struct ctl_daemon *d, const char *uuid,
                                            const struct ctl_parts *parts, uint64_t groups);
void ctl_partition_remove(struct ctl_partition *p);
/* How many programs are in the partition. */
unsigned ctl_partition_clients(const struct ctl_daemon *d, const struct ctl_partition *p);
uint32_t ctl_partition_groups(const struct ctl_partition *p);
/* How many groups of a device belong to partitions. */
uint32_t ctl_partition_used(const struct ctl_daemon *d, const char *uuid);
/* Tells a server the partition of its next client; does nothing if programs need none. */
void ctl_partition_tell(struct ctl_server *s, struct ctl_client *c, const char *word);

/* A server is ready: asks it how its devices can be divided, if that is needed. */
void ctl_partition_ask(struct ctl_server *s);

void ctl_partitions_free(struct ctl_daemon *d);

#endif
