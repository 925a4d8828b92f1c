/*
 * The daemon that this user's commands and programs talk to: the one in CUDA_MPS_PIPE_DIRECTORY if
 * that is set, else the machine's (/tmp/nvidia-mps) if one is there that is believed, else one of
 * the user's own, in $XDG_RUNTIME_DIR/gmux or /tmp/gmux-UID.
 */
#ifndef GMUX_CLI_PLACE_H
#define GMUX_CLI_PLACE_H

#include <limits.h>

#include "base/attr.h"

/* What -EPERM from cli_place_connect() means; of the place. */
#define CLI_NOT_BELIEVED                                                                           \
    "the daemon in %s is another user's, who is not believed (GMUX_DAEMON_USER)"

/* Connects, and sets CUDA_MPS_PIPE_DIRECTORY for what this process does next. Descriptor, or
 * -errno; then the variable names the place where one would be started. */
GM_MUST_CHECK int cli_place_connect(void);
/* Like cli_place_connect(), with one line on standard error if there is no daemon. Descriptor or
 * -1. */
GM_MUST_CHECK int cli_place_require(void);
/* Starts a daemon in the place that cli_place_connect() has set, with its logs there, and connects
 * to it, or to one that somebody else has started there in the meantime. Descriptor, or -1 after a
 * line on standard error. */
GM_MUST_CHECK int cli_place_start(void);

/* Asks one command. The answer, which the caller frees; NULL after a line on standard error. */
char *cli_ask(int fd, const char *fmt, ...) GM_PRINTF(2, 3);

/* A file beside this program, or NULL; the caller frees. `names` end with NULL. */
char *cli_find_beside(const char *const *names);

#endif
