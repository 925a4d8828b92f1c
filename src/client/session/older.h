/*
 * Runtimes older than 12.0. They load their modules through a private table that only the genuine
 * library can provide (docs/adr/0017-older-runtimes.md), so programs that use one run on the
 * genuine driver. A session that was made for such a program is left.
 */
#ifndef GMUX_CLIENT_OLDER_H
#define GMUX_CLIENT_OLDER_H

#include "base/attr.h"

/* Whether such a runtime is among the libraries that are loaded now. One that is linked into the
 * program cannot be seen. */
bool rt_older_loaded(void);

enum rt_older { RT_OLDER_LEFT, RT_OLDER_TOO_LATE, RT_OLDER_REFUSED };

/* Tells the person who started the program what has happened. It is the one line that is printed
 * without being asked for, since somebody who relies on a limit would not notice otherwise. Printed
 * once. */
void rt_older_say(enum rt_older what);

#endif
