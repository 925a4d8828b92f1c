/*
 * Commands of UIs: a table with one row per command (cmd_*.c have the functions), and a request for
 * each command that is received.
 */
#ifndef GMUX_CONTROL_COMMAND_H
#define GMUX_CONTROL_COMMAND_H

#include "control/request.h"

enum ctl_command_flags {
    CTL_CHANGES = 1, /* only for the daemon's user and root */
    CTL_OWN = 2,     /* for those two, and for each user where clients of that user are meant
                        (ctl_request_may) */
    CTL_FEWER = 8,   /* for protocol 3: the last word may be missing */
    CTL_KEPT = 4,    /* its effect outlives a daemon that is killed (state.h) */
};

struct ctl_command {
    const char *name;
    const char *arguments; /* for the manual page */
    const char *help;
    unsigned flags;
    void (*exec)(struct ctl_request *r);
};

/* Ends with a row whose name is NULL. */
extern const struct ctl_command ctl_commands[];

/* Finds a command; NULL: there is none of that name. */
const struct ctl_command *ctl_command_find(const char *name);

/* Executes a line for `c`, which gets the reply; NULL: nobody does. False: the line is too long, or
 * there is no memory. */
GM_MUST_CHECK bool ctl_command_run(struct ctl_daemon *d, struct ctl_conn *c, bool may_change,
                                   const char *line);
/* Runs a command that an earlier daemon has kept. False: it failed, or there is no such command. */
GM_MUST_CHECK bool ctl_command_again(struct ctl_daemon *d, const char *line);
/* Executes a line that came over a UI connection, and replies to it. */
void ctl_command_received(struct ctl_conn *c, const char *line);

/* A line of the answer to `clients`. */
ctl_usage_row ctl_cmd_clients_row;

/* Called by a hook: continues the requests that wait until it is known how devices can be
 * divided. */
void ctl_partition_known(struct ctl_daemon *d);
void ctl_partition_server_gone(struct ctl_daemon *d);

/* The rows' functions. */
void ctl_cmd_clients(struct ctl_request *r);
void ctl_cmd_pending(struct ctl_request *r);
void ctl_cmd_limit_client(struct ctl_request *r);
void ctl_cmd_limit_user(struct ctl_request *r);
void ctl_cmd_limit_group(struct ctl_request *r);
void ctl_cmd_groups(struct ctl_request *r);
void ctl_cmd_sm_partition(struct ctl_request *r);
void ctl_cmd_lspart(struct ctl_request *r);
void ctl_cmd_version(struct ctl_request *r);
void ctl_cmd_get_server_list(struct ctl_request *r);
void ctl_cmd_get_server_status(struct ctl_request *r);
void ctl_cmd_start_server(struct ctl_request *r);
void ctl_cmd_shutdown_server(struct ctl_request *r);
void ctl_cmd_get_client_list(struct ctl_request *r);
void ctl_cmd_get_device_client_list(struct ctl_request *r);
void ctl_cmd_ps(struct ctl_request *r);
void ctl_cmd_terminate_client(struct ctl_request *r);
void ctl_cmd_device_query(struct ctl_request *r);
void ctl_cmd_restart(struct ctl_request *r);
void ctl_cmd_quit(struct ctl_request *r);
void ctl_cmd_get_default_share(struct ctl_request *r);
void ctl_cmd_set_default_share(struct ctl_request *r);
void ctl_cmd_get_share(struct ctl_request *r);
void ctl_cmd_set_share(struct ctl_request *r);
void ctl_cmd_get_default_memory(struct ctl_request *r);
void ctl_cmd_set_default_memory(struct ctl_request *r);
void ctl_cmd_get_memory(struct ctl_request *r);
void ctl_cmd_set_memory(struct ctl_request *r);
void ctl_cmd_get_default_priority(struct ctl_request *r);
void ctl_cmd_set_default_priority(struct ctl_request *r);

#endif
