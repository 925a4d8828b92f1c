/*
 * Other processes for tests: started before cuInit, each with a context of its own, doing what they
 * are told over a socket.
 */
#ifndef GMUX_TESTS_API_PEER_H
#define GMUX_TESTS_API_PEER_H

#include <sys/types.h>

#include "tap.h"

enum peer_op {
    PEER_ALLOC,      /* size -> pointer */
    PEER_FREE,       /* pointer */
    PEER_SET,        /* pointer, size, value: memset of bytes */
    PEER_GET,        /* pointer -> value: one byte */
    PEER_GET_HANDLE, /* pointer -> memory */
    PEER_OPEN,       /* memory -> pointer */
    PEER_CLOSE,      /* pointer */
    PEER_EVENT,      /* -> event: a new one's handle */
    PEER_EVENT_OPEN, /* event */
    PEER_RECORD,     /* behind what the stream holds */
    PEER_EVENT_END,  /* destroys it */
    PEER_HOLD,       /* stops the stream at a host function */
    PEER_LET_GO,     /* lets it go on */
    PEER_EVENT_QUERY,
    PEER_EVENT_WAIT,   /* on the host */
    PEER_STREAM_WAIT,  /* in the stream */
    PEER_SYNC,         /* the stream */
    PEER_QUERY,        /* the stream */
    PEER_IMPORT,       /* descriptor, size -> pointer: mapped with access */
    PEER_MAP_ACCESS,   /* flags in value -> pointer: memory of its own with that access */
    PEER_POOL_IMPORT,  /* descriptor: a pool */
    PEER_POOL_POINTER, /* pointer_data -> pointer: imported into that pool */
    PEER_POOL_ACCESS,  /* value: a device -> value: CUmemAccess_flags that it has */
    PEER_POOL_LET,     /* value: a device, which gets access */
    PEER_FREE_ASYNC,   /* pointer: in the stream */
    PEER_POOL_END,     /* destroys the pool */
    PEER_POKE,         /* pointer: a kernel stores there; the result of waiting for it */
    PEER_DEEP,         /* pointer: a kernel that needs much local memory stores there */
    PEER_AWAIT,      /* pointer: a kernel in the stream, which ends when the word there is not 0 */
    PEER_VALUE_WAIT, /* pointer, value: in the stream, until the word there is that */
    PEER_EXIT,
};

struct peer_message {
    enum peer_op op;
    CUresult result;
    CUdeviceptr pointer;
    size_t size;
    unsigned value;
    CUipcMemHandle memory;
    CUipcEventHandle event;
    CUmemPoolPtrExportData pointer_data;
};

struct peer {
    pid_t pid;
    int socket;
};

/* Before cuInit. */
void peer_start(struct peer *p);
/* As another user, which takes root; 0: as we are. */
void peer_start_as(struct peer *p, unsigned uid);
/* Has it done: m->result and what else it brings. `fd`: goes along; -1: none. */
void peer_ask_fd(struct peer *p, struct peer_message *m, int fd);
void peer_ask(struct peer *p, struct peer_message *m);
/* Asks, and returns what the answer brings. */
struct peer_message peer_answer(struct peer *p, struct peer_message m);
#define ASK(peer, ...) peer_answer(&(peer), (struct peer_message) { __VA_ARGS__ })
#define ASK_OK(peer, ...)                                                                          \
    tap_check_result(__FILE__, __LINE__, #__VA_ARGS__, ASK(peer, __VA_ARGS__).result, CUDA_SUCCESS)
/* The byte that it reads there; the test fails if it cannot. */
unsigned peer_byte(struct peer *p, CUdeviceptr pointer);
/* Kills it and waits until it is gone. */
void peer_kill(struct peer *p);
/* Has it exit, with whatever it has under way, and waits for that. */
void peer_exit(struct peer *p);
/* Waits for one that was told to exit. */
void peer_wait(struct peer *p);

#endif
