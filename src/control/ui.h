/*
 * The UI: sends commands to the running daemon and prints what it answers.
 */
#ifndef GMUX_CONTROL_UI_H
#define GMUX_CONTROL_UI_H

#include <stdio.h>

#include "base/attr.h"

/* The words are one command; without words, commands are read from standard input, one per line.
 * Returns the exit status of the process: 0 if the daemon could be talked to, whatever it
 * answered. */
int ctl_ui_run(int count, char **words);

/* Connects to the daemon of the pipe directory (ctl_place_pipe_directory); if we may, through the
 * socket that strangers cannot fill up. Descriptor, or -errno. */
GM_MUST_CHECK int ctl_ui_connect(void);
/* Sets how long answers may take: without limit, or (`bounded`) 15 s or GMUX_ANSWER_TIMEOUT. */
void ctl_ui_patience(int fd, bool bounded);
/* Sends one command and writes its answer to `out`. False: the connection is broken, or the daemon
 * has been silent for longer than that. */
GM_MUST_CHECK bool ctl_ui_ask(int fd, const char *line, FILE *out);

#endif
