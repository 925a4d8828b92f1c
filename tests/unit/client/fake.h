/*
 * A server for the client library's unit tests: a thread of the same process that listens in a
 * private pipe directory and does to the client whatever the test wants. It makes no windows of its
 * own: it offers what the test says.
 */
#ifndef GMUX_TESTS_UNIT_CLIENT_FAKE_H
#define GMUX_TESTS_UNIT_CLIENT_FAKE_H

#include <pthread.h>

#include "transport/session.h"
#include "transport/sock.h"

#ifdef __SANITIZE_THREAD__ /* which leaves a program few addresses */
#define FAKE_WINDOW 0x560000000000ull
#else
#define FAKE_WINDOW 0x300000000000ull
#endif
#define FAKE_HALF (64ull << 20)

struct fake {
    /* Called in the server's thread with the connection after the hello; returns when it is done
     * with it. */
    void (*serve)(struct fake *f, int fd);
    void *arg;

    char directory[64];
    int listener;
    pthread_t thread;
    struct wire_hello hello; /* strings point into `packet` until the next one */
    char command[1024];
    struct tp_packet packet;
    struct tp_session session; /* of the last offer */
    struct tp_ring ring;       /* its consumer end */
    uint64_t next_address;
    int connections;
    /* Answers a question, in the device's thread; CUresult. NULL: there is none. */
    int (*call)(const struct wire_rec_call *r, struct wire_dec *args, struct wire_enc *reply);
    uint64_t features; /* of the offer */
    bool by_name;      /* functions and variables of modules are not listed: `call` finds them */
    unsigned modules;  /* how many were loaded; the first is 7 */
    uint32_t unloaded; /* the last of them that was unloaded */
    struct wire_memory_info_is info; /* what is left; zeroed: 1 MiB of 1 GiB */
};

/* Listens, points the environment at it, and serves one connection after another. */
void fake_start(struct fake *f, void (*serve)(struct fake *f, int fd), void *arg);

void fake_send(int fd, const struct wire_enc *e, const int *fds, unsigned fds_count);
/* Sends a session_open for a window at `base`; `cut`: only so many bytes of the packet (0: all). */
void fake_offer(struct fake *f, int fd, uint64_t base, size_t cut);
/* Answers everything a well-behaved client asks, until it goes: allocations from a counter, loads
 * of modules with the function "k" (two words of parameters) and the variable "v". Ends early after
 * `requests` answers if not 0. */
void fake_answer(struct fake *f, int fd, unsigned requests);
/* Offer, then answer: what most tests want. */
void fake_serve_well(struct fake *f, int fd);

/* Starts a device: a thread that takes records out of the ring and completes them one after the
 * other, and stands at gates until they open and answers questions. For a client that has been
 * served well. */
void fake_device_start(struct fake *f);

#endif
