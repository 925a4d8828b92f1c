/*
 * The configuration file, in TOML: options of gmux-control under their names, and what users and
 * groups may have. It is read as a whole before any of it is applied; an error is reported with
 * file, line and key. The command line and the environment override it.
 *     default-share = 50
 *     multiuser-server = true
 *     [users.alice]
 *     share = 30
 *     [groups.alice.train]
 *     memory = "8G"
 */
#ifndef GMUX_CONTROL_CONFIG_H
#define GMUX_CONTROL_CONFIG_H

#include "base/toml.h"

#define CTL_SETTINGS_MAX 64

struct ctl_config {
    char **commands; /* the commands that limits of users and groups were turned into */
    unsigned count;
    const char *variables[CTL_SETTINGS_MAX]; /* the environment variables that it has set */
    unsigned variables_count;
};

/* Reads a file. Options become environment variables, unless those are set already. 0, or -1 with
 * one line in `why`. */
GM_MUST_CHECK int ctl_config_read(struct ctl_config *c, const char *path, char *why,
                                  unsigned why_size);
/* Calls `each` for every value of a file that belongs to root or to the own user. 0, or -1 with one
 * line in `why`: an error with file, line and key. */
GM_MUST_CHECK int ctl_config_file(const char *path, gm_toml_fn *each, void *arg, char *why,
                                  unsigned why_size);
/* Adds a command. NULL, or the reason why not. */
GM_MUST_CHECK const char *ctl_config_add(struct ctl_config *c, const char *command);
/* Reads a file like ctl_config_read(), without any effect. */
GM_MUST_CHECK int ctl_config_check(const char *path, char *why, unsigned why_size);
/* Called before the file is read again: removes the variables that it has set from the
 * environment. */
void ctl_config_forget(const struct ctl_config *c);
void ctl_config_finish(struct ctl_config *c);

#endif
