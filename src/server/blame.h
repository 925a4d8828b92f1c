/*
 * Images that were being loaded when executors died. An image that ended one executor for lack of
 * memory, or two executors without having been loaded in between, is not given to another executor,
 * whichever program of the same user sends it. The last few are remembered while the server lives.
 * Event loop only.
 */
#ifndef GMUX_SERVER_BLAME_H
#define GMUX_SERVER_BLAME_H

#include "base/attr.h"
#include "server/extent.h"

#define SRV_BLAMED_MAX 64u

struct srv_blamed {
    unsigned deaths; /* 0: none */
    uint64_t last;   /* number of the last death */
    uint32_t uid;
    uint64_t size;
    uint64_t digest[2];
};

struct srv_blame {
    struct srv_blamed images[SRV_BLAMED_MAX];
    unsigned next;
};

/* Counts a death against an image. Zeroed, `b` knows none. `death`: its number; `weight`: how many
 * deaths it counts as. */
void srv_blame(struct srv_blame *b, uint32_t uid, struct srv_extent image, uint64_t death,
               unsigned weight);
/* The image has been loaded: its deaths are forgotten. */
void srv_acquit(struct srv_blame *b, uint32_t uid, struct srv_extent image);
/* Whether the image must not be loaded. */
bool srv_is_blamed(struct srv_blame *b, uint32_t uid, struct srv_extent image);

/* How often the system has killed a process because memory was short. For tests GMUX_VMSTAT names
 * another file than /proc/vmstat. */
uint64_t srv_oom_kills(void);

#endif
