/*
 * Descriptors that somebody else made. Their maker decides what close() does: a connection may
 * linger, a file system, which the maker may have written, is told of a file's end, and a socket
 * takes along what was passed through it and not received. No loop that serves others may wait for
 * that, nor for fstat(): a descriptor is looked into once it is known to be memory.
 */
#ifndef GMUX_TRANSPORT_FOREIGN_H
#define GMUX_TRANSPORT_FOREIGN_H

#include <stdbool.h>

#include "transport/sock.h"

/* What hangs may be woken by this signal, which the process uses for nothing else: for programs of
 * ours. Before the first thread. */
void tp_foreign_init(int signal);
/* A file that lives in memory, ours or somebody else's: nothing done to it waits for anybody. */
bool tp_is_memory(int fd);
/* Closes it without waiting, some time from now; what is known not to wait, at once. Returns -1.
 * Any thread. */
int tp_close_foreign(int fd);
/* As tp_packet_finish(), for packets of somebody who is not trusted. */
void tp_packet_discard(struct tp_packet *p);
/* Ends the connection at once and closes the socket, likewise. Returns -1. */
int tp_hang_up(int fd);

#endif
