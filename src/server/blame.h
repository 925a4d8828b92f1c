/*
 * Images over which executors died: they were being loaded. One that ended an executor for memory,
 * or two executors without having been loaded in between, is not given to another one, whichever
 * program of the same user sends it. The last few are remembered, for as long as the server lives.
 * Event loop only.
 */
#ifndef GMUX_SERVER_BLAME_H
#define GMUX_SERVER_BLAME_H

#include <stddef.h>

#include "base/attr.h"

#define SRV_BLAMED_MAX 64u

struct srv_blamed {
    unsigned deaths; /* 0: none */
    uint64_t last;   /* of them */
    uint32_t uid;
    uint64_t size;
    uint64_t digest[2];
};

struct srv_blame {
    struct srv_blamed images[SRV_BLAMED_MAX];
    unsigned next;
};

/* Zeroed: knows none. `fd`: a sealed memfd. `death`: a number for each; `weight`: for how many it
 * counts. */
void srv_blame(struct srv_blame *b, uint32_t uid, int fd, uint64_t death, unsigned weight);
/* It has been loaded. */
void srv_acquit(struct srv_blame *b, uint32_t uid, int fd);
/* It is not to be loaded. */
bool srv_is_blamed(struct srv_blame *b, uint32_t uid, int fd);

/* How often the system has killed some process because memory was short; GMUX_VMSTAT: of another
 * file, for tests. */
uint64_t srv_oom_kills(void);

#endif
