/*
 * The UI: sends commands to the running daemon and prints what it answers.
 */
#ifndef GMUX_CONTROL_UI_H
#define GMUX_CONTROL_UI_H

#include <stdio.h>

#include "base/attr.h"

/* The words are one command; none: commands are read from standard input, a line each, until its
 * end. The exit status of the process: 0 if talking to the daemon worked, whatever it said. */
int ctl_ui_run(int count, char **words);

/* Connects to the daemon of the pipe directory (ctl_place_pipe_directory), through the socket that
 * strangers cannot fill up where we may. Descriptor, or -errno. */
GM_MUST_CHECK int ctl_ui_connect(void);
/* How long answers may take: as long as they like, or 15 s, or GMUX_ANSWER_TIMEOUT. */
void ctl_ui_patience(int fd, bool bounded);
/* Sends one command and writes its answer to `out`. False when the connection is broken, or the
 * daemon is silent for longer than that. */
GM_MUST_CHECK bool ctl_ui_ask(int fd, const char *line, FILE *out);

#endif
