/*
 * What a client's kernels print, on its way from the executor to the client's standard output: a
 * ring of texts in session memory. The executor appends, before it lets the kernel's completion be
 * seen; the client's library takes them out when it has waited for something, as the genuine driver
 * does. What finds no room is lost and counted, and the next text that has room is preceded by a
 * note: who prints faster than it looks harms itself only.
 *
 * Neither side trusts the other: each keeps its own index in private memory, and an impossible
 * index of the other side means no room, or nothing there. Text is text: the client writes it out,
 * whatever it is.
 */
#ifndef GMUX_TRANSPORT_OUTPUT_H
#define GMUX_TRANSPORT_OUTPUT_H

#include <pthread.h>

#include "transport/session.h"

#define TP_OUTPUT_REPORT 3 /* in the place of a descriptor: for the checker's report */
/* longer ones come in parts; a reader has room for one on its stack */
#define TP_OUTPUT_TEXT_MAX 4096u

/* The executor's side; any thread. */
struct tp_output {
    pthread_mutex_t lock;
    struct tp_output_shared *shared;
    uint8_t *data;
    uint32_t written; /* free-running, as all indices here */
    uint64_t lost;    /* texts without a note yet */
};

/* Goes on where an earlier executor stopped. The session outlives it. */
void tp_output_init(struct tp_output *o, struct tp_session *s);
void tp_output_finish(struct tp_output *o);
/* Appends text for the client's descriptor `fd`, 1 or 2, or TP_OUTPUT_REPORT. False if it was lost.
 */
bool tp_output_write(struct tp_output *o, int fd, const char *text, size_t size);
/* So many were lost before they came here. */
void tp_output_lose(struct tp_output *o, uint64_t texts);

/* The client's side; one thread at a time. */
struct tp_input {
    struct tp_output_shared *shared;
    const uint8_t *data;
    uint32_t read;
};

void tp_input_init(struct tp_input *i, struct tp_session *s);
/* True if there is something to take out. One load. */
static inline bool tp_input_pending(const struct tp_input *i)
{
    return atomic_load_explicit(&i->shared->written, memory_order_relaxed) != i->read;
}
/* Copies the next text and frees its room: its size, with its descriptor in *fd; 0 when there is
 * none. What makes no sense is thrown away. */
size_t tp_input_take(struct tp_input *i, int *fd, char text[static TP_OUTPUT_TEXT_MAX]);

#endif
