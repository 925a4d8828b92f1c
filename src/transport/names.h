/*
 * The functions that a client has found by name, in session memory: an executor that takes over has
 * to find them again before the first record that names one by its number. Entries are only added.
 * The client writes what it likes, and harms itself: the reader copies each entry out and checks
 * it.
 */
#ifndef GMUX_TRANSPORT_NAMES_H
#define GMUX_TRANSPORT_NAMES_H

#include "transport/session.h"

#define TP_NAME_MAX 4096u

struct tp_name {
    uint32_t module;
    uint32_t index;
    char text[TP_NAME_MAX + 1];
};

/* Client, one thread at a time. False if it does not fit any more. */
bool tp_names_add(struct tp_session *s, uint32_t module, uint32_t index, const char *text);

/* The entry at *at, which starts as 0 and moves on. False at the end, or at an entry that is none.
 */
bool tp_names_next(const struct tp_session *s, uint32_t *at, struct tp_name *out);

#endif
