/*
 * The table of the commands of UIs, and what all commands have in common: how a line is received,
 * and who may give which command.
 */
#include "control/command.h"

#include <stdlib.h>
#include <string.h>

#include "control/conn.h"
#include "control/log.h"
#include "control/module.h"
#include "control/state.h"

const struct ctl_command ctl_commands[] = {
    { "version", "",
      "Prints the version of the daemon, which may be an older one than the program that asks", 0,
      ctl_cmd_version },
    { "get_server_list", "", "Prints the process id of each server", 0, ctl_cmd_get_server_list },
    { "get_server_status", "SERVER", "Prints INITIALIZING or ACTIVE", 0,
      ctl_cmd_get_server_status },
    { "start_server", "-uid USER", "Starts a server for a user", CTL_CHANGES,
      ctl_cmd_start_server },
    { "shutdown_server", "SERVER [-f]", "Ends a server once its clients have left; with -f at once",
      CTL_CHANGES, ctl_cmd_shutdown_server },
    { "get_client_list", "SERVER", "Prints the process id of each client of a server", 0,
      ctl_cmd_get_client_list },
    { "clients", "SERVER",
      "Prints each client: pid, uid, device, state, share, priority, bytes used, limit, command, "
      "group, guarantee, "
      "with tabs",
      0, ctl_cmd_clients },
    { "pending", "",
      "Prints each program that waits for a server: pid, uid, seconds, why, command, group, with "
      "tabs",
      0, ctl_cmd_pending },
    { "groups", "",
      "Prints each group of programs: name, uid, programs, share, guarantee, memory, with tabs", 0,
      ctl_cmd_groups },
    { "limit_client", "SERVER CLIENT LIMIT=VALUE...",
      "Sets share=, guarantee=, memory=, priority= or group= of a client in place of what its "
      "environment says; "
      "prints 0 or why not",
      CTL_OWN, ctl_cmd_limit_client },
    { "limit_user", "USER LIMIT=VALUE...",
      "Sets what each client of a user may have; prints 0 or why not", CTL_CHANGES | CTL_KEPT,
      ctl_cmd_limit_user },
    { "limit_group", "[USER/]GROUP LIMIT=VALUE...",
      "Sets what the programs of a group have together: share=, guarantee= or memory=; prints 0 or "
      "why not",
      CTL_OWN | CTL_KEPT, ctl_cmd_limit_group },
    { "sm_partition", "add DEVICE CHUNKS | rm DEVICE PARTITION",
      "With --static-partitioning: makes a partition of so many chunks of a device and prints its "
      "name for CUDA_MPS_SM_PARTITION, or ends one that no program is in",
      CTL_CHANGES | CTL_KEPT, ctl_cmd_sm_partition },
    { "lspart", "", "With --static-partitioning: prints devices, and their partitions", 0,
      ctl_cmd_lspart },
    { "get_device_client_list", "[SERVER]",
      "Prints devices and who uses them, as process id and context", 0,
      ctl_cmd_get_device_client_list },
    { "ps", "[-p SERVER]", "Prints a table of clients", 0, ctl_cmd_ps },
    { "terminate_client", "SERVER CLIENT",
      "Takes the device away from a client; prints 0 or a CUDA error", CTL_OWN,
      ctl_cmd_terminate_client },
    { "device_query", "[SERVER] [--csv]", "Prints the devices that servers offer", 0,
      ctl_cmd_device_query },
    { "restart", "",
      "Starts the daemon anew from its program file, under its servers and their programs",
      CTL_CHANGES, ctl_cmd_restart },
    { "quit", "[-t SECONDS]",
      "Ends servers and daemon once all clients have left; with -t by force after that time",
      CTL_CHANGES, ctl_cmd_quit },
    { "get_default_active_thread_percentage", "", "Prints the share for servers to come", 0,
      ctl_cmd_get_default_share },
    { "set_default_active_thread_percentage", "PERCENTAGE",
      "Sets and prints the share for servers to come", CTL_CHANGES | CTL_KEPT,
      ctl_cmd_set_default_share },
    { "get_active_thread_percentage", "SERVER",
      "Prints the share that each client of a server may use", 0, ctl_cmd_get_share },
    { "set_active_thread_percentage", "SERVER PERCENTAGE",
      "Sets and prints the share of each client", CTL_CHANGES, ctl_cmd_set_share },
    { "get_default_device_pinned_mem_limit", "DEVICE",
      "Prints the device memory limit for servers to come", 0, ctl_cmd_get_default_memory },
    { "set_default_device_pinned_mem_limit", "DEVICE SIZE", "Sets the limit for servers to come",
      CTL_CHANGES | CTL_KEPT, ctl_cmd_set_default_memory },
    { "get_device_pinned_mem_limit", "SERVER DEVICE",
      "Prints the device memory limit of each client of a server", 0, ctl_cmd_get_memory },
    { "set_device_pinned_mem_limit", "SERVER DEVICE SIZE",
      "Sets the limit of each client of a server", CTL_CHANGES, ctl_cmd_set_memory },
    { "get_default_client_priority", "",
      "Prints the priority for servers to come: 0 (normal) or 1 (below normal)", 0,
      ctl_cmd_get_default_priority },
    { "set_default_client_priority", "PRIORITY", "Sets the priority for servers to come",
      CTL_CHANGES | CTL_KEPT, ctl_cmd_set_default_priority },
    { NULL, NULL, NULL, 0, NULL },
};

const struct ctl_command *ctl_command_find(const char *name)
{
    for (const struct ctl_command *c = ctl_commands; c->name; c++)
        if (strcmp(c->name, name) == 0)
            return c;
    return NULL;
}

static void exec_command(struct ctl_request *r, const struct ctl_command *command)
{
    struct ctl_daemon *d = r->daemon;
    command->exec(r);
    if (command->flags & CTL_KEPT)
        ctl_state_save(d);
}

bool ctl_command_run(struct ctl_daemon *d, struct ctl_conn *c, bool may_change, const char *line)
{
    struct ctl_request *r = calloc(1, sizeof(*r));
    if (!r || !ctl_words_parse(&r->words, line)) {
        free(r);
        return false;
    }
    gm_list_init(&r->link);
    r->daemon = d;
    r->conn = c;
    if (c)
        c->request = r;
    const char *name = ctl_words_at(&r->words, 0);
    const struct ctl_command *command = ctl_command_find(name);
    if (!command && d->options.modules && ctl_module_is(name))
        ctl_module_run(r, may_change);
    else if (!command)
        ctl_reply(r, "Unknown command \"%s\"\n", name);
    else if ((command->flags & CTL_CHANGES) && !may_change)
        ctl_request_refuse(r);
    else
        exec_command(r, command);
    if (!r->kept)
        ctl_request_finish(r);
    return true;
}

bool ctl_command_again(struct ctl_daemon *d, const char *line)
{
    char name[64];
    size_t n = strcspn(line, " ");
    if (n >= sizeof(name))
        return false;
    memcpy(name, line, n);
    name[n] = '\0';
    if (d->options.modules && ctl_module_is(name))
        return ctl_command_run(d, NULL, true, line);
    const struct ctl_command *c = ctl_command_find(name);
    return c && (c->flags & CTL_KEPT) && ctl_command_run(d, NULL, true, line);
}

void ctl_command_received(struct ctl_conn *c, const char *line)
{
    ctl_log_ui(c, "Cmd:%s", line);
    if (!ctl_command_run(c->daemon, c, c->trusted, line))
        ctl_conn_drop(c, "command that cannot be kept");
}
