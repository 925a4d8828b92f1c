/*
 * Static partitions of devices: sets of whole groups of multiprocessors (chunks, as NVIDIA calls
 * them), disjoint, each for the programs that name it in CUDA_MPS_SM_PARTITION. Where there are
 * any, or the option -S says so, a program without one gets no context. What a partition is on a
 * device is the server's (server/partition.h).
 *
 * How a device can be divided is for a server to say: the daemon opens none. A command that needs
 * to know starts one and waits.
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
    char server[65];                       /* only for programs of this server; "": of any */
    struct ctl_parts parts;                /* of the device */
    uint64_t groups;                       /* bit for each that it has */
};

/* Programs need one. */
bool ctl_partitions_hold(const struct ctl_daemon *d);
/* The device that a number, a UUID, or a beginning of one that no other has, names; NULL. */
struct ctl_device *ctl_partition_device(struct ctl_daemon *d, const char *uuid);
/* "UUID/ID", of which the UUID may be cut short; NULL. */
struct ctl_partition *ctl_partition_find(const struct ctl_daemon *d, const char *word);
/* Of the lowest groups that are free. NULL: there are too few, or no memory. */
struct ctl_partition *ctl_partition_add(struct ctl_daemon *d, const struct ctl_device *device,
                                        uint32_t count);
/* As an earlier daemon had it. */
struct ctl_partition *ctl_partition_restore(struct ctl_daemon *d, const char *uuid,
                                            const struct ctl_parts *parts, uint64_t groups);
void ctl_partition_remove(struct ctl_partition *p);
/* Programs that are in it. */
unsigned ctl_partition_clients(const struct ctl_daemon *d, const struct ctl_partition *p);
uint32_t ctl_partition_groups(const struct ctl_partition *p);
/* What partitions have of a device: groups. */
uint32_t ctl_partition_used(const struct ctl_daemon *d, const char *uuid);
/* Tells a server what its next client has; nothing where programs need none. */
void ctl_partition_tell(struct ctl_server *s, struct ctl_client *c, const char *word);

/* A server is ready: it may be asked how its devices can be divided. */
void ctl_partition_ask(struct ctl_server *s);

void ctl_partitions_free(struct ctl_daemon *d);

#endif
