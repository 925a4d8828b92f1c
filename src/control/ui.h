/*
 * The UI: sends commands to the running daemon and prints what it answers.
 */
#ifndef GMUX_CONTROL_UI_H
#define GMUX_CONTROL_UI_H

/* The words are one command; none: commands are read from standard input, a line each, until its end. The exit status
 * of the process: 0 if talking to the daemon worked, whatever it said. */
int ctl_ui_run(int count, char **words);

#endif
