/*
 * Options of gmux-control: the table is shared by the parser, --help and the manual page.
 */
#ifndef GMUX_CONTROL_OPTIONS_H
#define GMUX_CONTROL_OPTIONS_H

#include "base/opttab.h"

enum {
    CTL_OPTION_DAEMON = 1,
    CTL_OPTION_FOREGROUND,
    CTL_OPTION_MULTIUSER,
    CTL_OPTION_SERVER_USER,
    CTL_OPTION_EXCLUSIVE_USER,
    CTL_OPTION_CLASSIC_LIMITS,
    CTL_OPTION_PARTITIONS,
    CTL_OPTION_READY_DEVICES,
    CTL_OPTION_QUIT,
    CTL_OPTION_CONFIG,
    CTL_OPTION_CHECK,
    CTL_OPTION_PIPE_DIRECTORY,
    CTL_OPTION_LOG_DIRECTORY,
    CTL_OPTION_DEFAULT_SHARE,
    CTL_OPTION_DEFAULT_MEMORY,
    CTL_OPTION_DEFAULT_PRIORITY,
    CTL_OPTION_DEVICE,
    CTL_OPTION_LOG,
    CTL_OPTION_PROTOCOL,
    CTL_OPTION_APPLY,
    CTL_OPTION_VERSION,
    CTL_OPTION_HELP,
    CTL_OPTION_DUMP_OPTIONS,
    CTL_OPTION_DUMP_COMMANDS,
    CTL_OPTION_DUMP_MODULES,
};

extern const struct gm_option ctl_options_table[];

/* Checks the number of MPS' protocol. NULL, or what is wrong with it. */
const char *ctl_protocol_check(const char *text);

/* Whether the program was started under the name of NVIDIA's, whose scripts know what it
 * answers. */
bool ctl_is_classic_name(const char *argv0);

#endif
