/*
 * A client and a control daemon that say whatever a test wants them to say: raw messages on the
 * sockets, raw records in the ring. For tests of what server and executor do with peers that are
 * hostile, or that die.
 *
 * Functions that cannot fail in a healthy system end the test with a message.
 */
#ifndef GMUX_TESTS_RAW_H
#define GMUX_TESTS_RAW_H

#include <sys/types.h>

#include "transport/ring.h"
#include "transport/session.h"
#include "transport/sock.h"

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define RAW_SANITIZED true
#else
#define RAW_SANITIZED false
#endif

/* A gmux-server whose control daemon the test is. */
struct raw_server {
    pid_t pid;
    int link;
    struct tp_packet *packet;
    char log[65536]; /* its link_log lines since the start, or the last ones */
    size_t log_size;
    unsigned connected; /* processes, from link_client_state */
    unsigned faults;
};

struct raw_client {
    int fd;
    struct tp_packet *packet;
    uint64_t serial;
    struct tp_session shared;
    struct tp_ring ring;
    int fds[3];
    uint64_t window_base;
    uint32_t server_pid;
    uint64_t window_size;
    uint8_t *device; /* the areas, mapped at the window */
    uint8_t *host;
    uint64_t seq[TP_STREAMS];
};

#define RAW_CHECK(cond)                                                                            \
    do {                                                                                           \
        if (!(cond))                                                                               \
            raw_die(__FILE__, __LINE__, #cond);                                                    \
    } while (0)
GM_NORETURN void raw_die(const char *file, int line, const char *what);

/* Starts the server of the build tree and waits until it is ready. */
void raw_server_start(struct raw_server *s, const char *device);
/* As with -M. */
void raw_server_start_multiuser(struct raw_server *s, const char *device);
/* Reads what the server has said so far, or waits up to `ms` for the next message. True if there
 * was one. */
bool raw_server_read(struct raw_server *s, int ms);
/* Reads until the log holds `text`; false after 20 s. */
bool raw_server_says(struct raw_server *s, const char *text);
/* Waits until all clients have gone and the executor has forgotten them. */
void raw_server_drain(struct raw_server *s);
/* Waits until exactly `sessions` are left. */
void raw_server_settle(struct raw_server *s, unsigned sessions);
/* As `terminate_client` does. */
void raw_server_terminate(struct raw_server *s, uint32_t pid);
void raw_server_forget_log(struct raw_server *s);
/* Orderly shutdown; checks that it ends by itself with status 0. */
void raw_server_stop(struct raw_server *s);
/* The end of a test: all clients have gone, nothing is charged any more, and the server stops. */
void raw_server_finish(struct raw_server *s);
/* Hands a fresh connection to the server as a client of `pid`; returns the client's end. */
int raw_server_connect(struct raw_server *s, uint32_t pid);
int raw_server_connect_as(struct raw_server *s, uint32_t pid, uint32_t uid);
/* A question to the server's books: everything charged, all quantities summed; and open
 * descriptors. */
uint64_t raw_server_charged(struct raw_server *s);
pid_t raw_server_executor(struct raw_server *s);
/* 0 if only root may see what the process has. */
unsigned raw_descriptors(pid_t pid);
/* Waits until a process has no more descriptors than that: some are on their way to being closed.
 */
void raw_expect_descriptors(pid_t pid, unsigned count);
/* Ended, whether or not anybody has waited for it. */
bool raw_process_is_gone(pid_t pid);
/* Resident bytes of a process that it shares with nobody; 0 if only root may see them. */
uint64_t raw_private_bytes(pid_t pid);

/* Takes the offered session: maps window and ring, says that it is ready. */
void raw_client_open(struct raw_client *c, int fd);
/* Only the first half: waits for the offer and leaves it at that. */
void raw_client_wait_offer(struct raw_client *c, int fd);
/* The next packet; false if the server has hung up instead. */
bool raw_client_receive(struct raw_client *c);
/* Lets everything go. Unsent things stay unsent. */
void raw_client_close(struct raw_client *c);
/* Sends and waits for the answer with this serial; its packet is in c->packet. */
void raw_client_ask(struct raw_client *c, const struct wire_enc *e, const int *fds,
                    unsigned fds_count);
/* Asks with a message of this name and these fields, of at most so many bytes. */
#define RAW_ASK_BYTES 512
#define RAW_ASK(c, name, ...)                                                                      \
    do {                                                                                           \
        uint8_t buffer_[RAW_ASK_BYTES];                                                            \
        struct wire_enc e_;                                                                        \
        wire_enc_init(&e_, buffer_, sizeof(buffer_));                                              \
        wire_pack_##name(&e_, ++(c)->serial, &(struct wire_##name) { __VA_ARGS__ });               \
        raw_client_ask(c, &e_, NULL, 0);                                                           \
    } while (0)
/* What that packet says, which is a status. */
int raw_status(struct raw_client *c);
uint64_t raw_alloc(struct raw_client *c, uint64_t size, uint32_t kind, int *result);
int raw_free(struct raw_client *c, uint64_t address);
uint64_t raw_memory_free(struct raw_client *c);
/* Loads PTX text; the module's number, 0 if that failed. */
uint32_t raw_load(struct raw_client *c, const char *ptx, int *result);
int raw_unload(struct raw_client *c, uint32_t module);
/* Only asks for that. */
void raw_send_load(struct raw_client *c, const char *ptx);

/* Appends a record to a stream; fills in op, size, stream and the next sequence number, which is
 * returned. */
uint64_t raw_post(struct raw_client *c, uint32_t stream, unsigned op, void *record, size_t size,
                  const void *tail, size_t tail_size);
uint64_t raw_fill(struct raw_client *c, uint32_t stream, uint64_t dst, uint32_t value,
                  uint64_t elements);
/* Launches a module's first kernel, without parameters, in one block of one thread. */
uint64_t raw_launch(struct raw_client *c, uint32_t stream, uint32_t module);
/* Waits until the stream has completed `seq`: 0, or the sticky error, -ETIMEDOUT after 20 s. */
int raw_wait(struct raw_client *c, uint32_t stream, uint64_t seq);
/* Fills 4 KiB at `memory` on stream 0 with a value that was not there before, waits, and checks
 * every word. */
void raw_work_and_check(struct raw_client *c, uint64_t memory);

/* A neighbour of the clients that misbehave: its results stay right. */
extern struct raw_client raw_neighbour;
void raw_neighbour_open(struct raw_server *s, uint32_t pid);
void raw_neighbour_check(void);

/* Random numbers of 24 bits, the same in each run. */
uint32_t raw_random(uint32_t *state);
int raw_error(const struct raw_client *c);

/* Has servers that start from now on find this program as their executor, in a directory that is
 * made: a template for mkdtemp(). */
void raw_stand_in_begin(char *directory);
/* Removes the directory, which has nothing else in it. */
void raw_stand_in_end(const char *directory);

/* A connection whose last close() waits for ten minutes: nobody receives what was sent over it. */
int raw_lingering(void);

#endif
