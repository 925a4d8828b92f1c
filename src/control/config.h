/*
 * The configuration file, in TOML: options of gmux-control under their names, and what users and
 * groups may have. It is read as a whole before any of it is applied; a mistake is named with file,
 * line and key. What the command line or the environment says goes before it.
 *
 *   default-share = 50 multiuser-server = true [users.alice] share = 30 [groups.alice.train] memory
 *   = "8G"
 */
#ifndef GMUX_CONTROL_CONFIG_H
#define GMUX_CONTROL_CONFIG_H

#include "base/toml.h"

#define CTL_SETTINGS_MAX 64

struct ctl_config {
    char **commands; /* that it comes to for users and groups */
    unsigned count;
    const char *variables[CTL_SETTINGS_MAX]; /* that it has set in the environment */
    unsigned variables_count;
};

/* Options become environment variables where those are not set. 0, or -1 with one line in `why`. */
GM_MUST_CHECK int ctl_config_read(struct ctl_config *c, const char *path, char *why,
                                  unsigned why_size);
/* Calls `each` for every value of a file that is root's or one's own. 0, or -1 with one line in
 * `why`: a mistake with file, line and key. */
GM_MUST_CHECK int ctl_config_file(const char *path, gm_toml_fn *each, void *arg, char *why,
                                  unsigned why_size);
/* One more command. NULL, or why not. */
GM_MUST_CHECK const char *ctl_config_add(struct ctl_config *c, const char *command);
/* As above, without any effect. */
GM_MUST_CHECK int ctl_config_check(const char *path, char *why, unsigned why_size);
/* Before it is read again: the environment is without what it has set. */
void ctl_config_forget(const struct ctl_config *c);
void ctl_config_finish(struct ctl_config *c);

#endif
