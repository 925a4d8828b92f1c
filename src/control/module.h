/*
 * Commands of MPS' protocol 3: a module, a verb, up to three words, and options (--key=value,
 * key=value or --flag, anywhere behind the verb). With --protocol 3 the daemon knows them in
 * addition to those of command.h.
 */
#ifndef GMUX_CONTROL_MODULE_H
#define GMUX_CONTROL_MODULE_H

#include "control/command.h"

struct ctl_named;
struct ctl_space;

struct ctl_module_command {
    const char *module;
    const char *verb;      /* "": the whole module */
    const char *arguments; /* as help shows them */
    unsigned words;        /* how many plain words follow the verb, exactly */
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

/* Shared by commands about servers and namespaces (cmd_space.c). The process of a server that takes
 * clients, or that is about to end; NULL: there is none. */
struct ctl_server *ctl_v3_process(const struct ctl_daemon *d, const struct ctl_named *n);
/* The status of such a process, as lists print it. */
const char *ctl_v3_status(const struct ctl_server *s);
/* Sets the limits that the options give: all of them, or none, and then replies with the reason. */
void ctl_v3_space_change(struct ctl_request *r, const char *command, struct ctl_space *s);

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
void ctl_v3_space_create(struct ctl_request *r);
void ctl_v3_space_delete(struct ctl_request *r);
void ctl_v3_space_list(struct ctl_request *r);
void ctl_v3_space_set(struct ctl_request *r);
void ctl_v3_space_get(struct ctl_request *r);
void ctl_v3_feature_enable(struct ctl_request *r);
void ctl_v3_feature_disable(struct ctl_request *r);
void ctl_v3_feature_describe(struct ctl_request *r);
void ctl_v3_memacct_set(struct ctl_request *r);
void ctl_v3_memacct_describe(struct ctl_request *r);
void ctl_v3_partition_create(struct ctl_request *r);
void ctl_v3_partition_delete(struct ctl_request *r);
void ctl_v3_partition_list(struct ctl_request *r);

#endif
