/*
 * Commands of MPS' protocol 3: a module, a verb, up to three words, and options (--key=value,
 * key=value or --flag, anywhere behind the verb). The daemon knows them with --protocol 3, beside
 * those of command.h.
 */
#ifndef GMUX_CONTROL_MODULE_H
#define GMUX_CONTROL_MODULE_H

#include "control/command.h"

struct ctl_module_command {
    const char *module;
    const char *verb;      /* "": the whole module */
    const char *arguments; /* as help shows them */
    unsigned words;        /* that stand behind the verb, exactly */
    const char *options;   /* names with a blank behind each; "key=" takes a value, "key" none */
    unsigned flags;        /* enum ctl_command_flags */
    void (*exec)(struct ctl_request *r); /* NULL: not served; `help` says why */
    const char *help;
};

/* Ends with a row whose module is NULL. */
extern const struct ctl_module_command ctl_module_commands[];

/* Whether a command begins with that word. */
bool ctl_module_is(const char *word);
void ctl_module_run(struct ctl_request *r, bool may_change);

/* The rows' functions. */
void ctl_v3_server_create(struct ctl_request *r);
void ctl_v3_server_delete(struct ctl_request *r);
void ctl_v3_server_list(struct ctl_request *r);
void ctl_v3_server_set(struct ctl_request *r);
void ctl_v3_server_get(struct ctl_request *r);
void ctl_v3_client_list(struct ctl_request *r);
void ctl_v3_client_get(struct ctl_request *r);
void ctl_v3_client_terminate(struct ctl_request *r);
void ctl_v3_device_list(struct ctl_request *r);
void ctl_v3_partition_create(struct ctl_request *r);
void ctl_v3_partition_delete(struct ctl_request *r);
void ctl_v3_partition_list(struct ctl_request *r);

#endif
