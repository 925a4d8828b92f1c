/*
 * What tests with the slow device (slow.c) share: a server, a client that is to notice nothing of
 * whatever takes long for another, and the FIFO by which that is let go.
 */
#ifndef GMUX_TESTS_FRAME_H
#define GMUX_TESTS_FRAME_H

#include "raw.h"

#define HEAD ".version 7.0\n.target sm_70\n.address_size 64\n"
#define FAST HEAD ".visible .entry fast()\n{\nret;\n}\n" /* a module that does not take long */

/* Made by frame_begin(). */
extern struct raw_server server;
extern struct raw_client neighbour;

/* The test fails after so many seconds: a neighbour that waits would wait until the executor is
 * replaced. */
void frame_begin(unsigned seconds);
/* All is well, and the server has ended. */
void frame_end(void);

/* Returns when the device has begun with something slow. What it returns lets that go, as its being
 * closed does. */
int slow_begins(void);
/* Returns like slow_begins(), when the device has begun with what follows SLOW_DESTROY. */
int slow_ends_begin(void);
void let_go(int go);
/* Lets two go, when they begin; what it returns is to be closed after that. */
int let_two_go(void);

/* Everything that takes a word with the executor. */
void goes_on(struct raw_client *c);
bool has_answer(const struct raw_client *c);

#endif
