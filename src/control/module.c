/*
 * The table of the commands of protocol 3, and what they have in common: the words that each of
 * them knows, and help.
 */
#include "control/module.h"

#include <string.h>

#define FORMAT "[--format=table|csv[,noheader]]"

const struct ctl_module_command ctl_module_commands[] = {
    { "server", "create", "[NAME] [--uid=UID] [--allowed-devices=DEVICE,..]", 1,
      "uid= allowed-devices= locality-domains= ", CTL_CHANGES | CTL_FEWER, ctl_v3_server_create,
      "Makes a server of a user's, which is called uid_UID or as it is said, and starts it" },
    { "server", "delete", "NAME [--force]", 1, "force ", CTL_CHANGES, ctl_v3_server_delete,
      "Ends a server that has no clients; with --force in any case" },
    { "server", "list", "[NAME] " FORMAT, 1, "format= ", CTL_FEWER, ctl_v3_server_list,
      "Prints the servers, or one" },
    { "server", "set", "NAME FIELD=VALUE...", 1,
      "active-thread-percentage= pinned-memory-limit= client-priority= locality-domains= uid= ",
      CTL_CHANGES, ctl_v3_server_set,
      "Sets active-thread-percentage, pinned-memory-limit or client-priority of its namespace "
      "default" },
    { "server", "get", "NAME FIELD", 2, "", 0, ctl_v3_server_get,
      "Prints a column of the list, or what server set has set" },
    { "client", "list", "[--server=NAME] [--all] " FORMAT, 0, "server= all format= ", 0,
      ctl_v3_client_list, "Prints the clients that use a device; with --all the others, too" },
    { "client", "get", "PID FIELD", 2, "", 0, ctl_v3_client_get,
      "Prints pid, server, device, pci-id, linux-ns, maws-ns or cmd of a client" },
    { "client", "terminate", "PID", 1, "", CTL_OWN, ctl_v3_client_terminate,
      "Takes the device away from a client; prints 0 or a CUDA error" },
    { "device", "list", "[--server=SERVER] " FORMAT, 0, "server= format= ", 0, ctl_v3_device_list,
      "Prints the devices of each server" },
    { "namespace", "create", "NAME --server=SERVER", 1, "server= ", CTL_CHANGES,
      ctl_v3_space_create, "Makes a namespace, for programs that connect in its directory" },
    { "namespace", "delete", "NAME --server=SERVER [--force]", 1, "server= force ", CTL_CHANGES,
      ctl_v3_space_delete,
      "Ends a namespace that has no clients; with --force its clients go on in default" },
    { "namespace", "list", "[NAME] [--server=SERVER] " FORMAT, 1, "server= format= ", CTL_FEWER,
      ctl_v3_space_list, "Prints namespaces, their limits and directories" },
    { "namespace", "set", "NAME --server=SERVER FIELD=VALUE...", 1,
      "server= active-thread-percentage= pinned-memory-limit= client-priority= ", CTL_CHANGES,
      ctl_v3_space_set,
      "Sets active-thread-percentage (in place of a client's own), pinned-memory-limit (the lower "
      "one counts) or client-priority (of clients that have none)" },
    { "namespace", "get", "NAME SERVER FIELD", 3, "", 0, ctl_v3_space_get,
      "Prints a column of the list" },
    { "sm-partition", "create", "NAME --server=SERVER --device=DEVICE --chunks=NUMBER", 1,
      "server= device= chunks= include-remainder= ", CTL_CHANGES, ctl_v3_partition_create,
      "Makes a partition of so many chunks of a device, for programs of a user" },
    { "sm-partition", "delete", "NAME [--server=SERVER] [--device=DEVICE]", 1, "server= device= ",
      CTL_CHANGES, ctl_v3_partition_delete, "Ends a partition that no program is in" },
    { "sm-partition", "list", "[--server=SERVER] [--device=DEVICE] [--all] " FORMAT, 0,
      "server= device= all format= ", 0, ctl_v3_partition_list,
      "Prints the partitions; with --all what of devices is in none, too" },
    { "feature", "enable", "memacct", 1, "", CTL_CHANGES, ctl_v3_feature_enable,
      "Has limits of control groups hold for clients to come; says where this machine has none" },
    { "feature", "disable", "memacct", 1, "", CTL_CHANGES, ctl_v3_feature_disable,
      "Has them hold no more" },
    { "feature", "describe", "[FEATURE] " FORMAT, 1, "format= ", CTL_FEWER, ctl_v3_feature_describe,
      "Prints the features" },
    { "memacct", "set", "audit_log=true|false", 0, "audit_log= ", CTL_CHANGES, ctl_v3_memacct_set,
      "With true each limit of a control group that holds for a client is logged" },
    { "memacct", "describe", FORMAT, 0, "format= ", 0, ctl_v3_memacct_describe,
      "Prints that, and what limits of control groups are read from here" },
    { "context-share", "", "", 0, "", 0, NULL, "contexts are not shared between programs" },
    { .module = NULL },
};

bool ctl_module_is(const char *word)
{
    for (const struct ctl_module_command *c = ctl_module_commands; c->module; c++)
        if (strcmp(c->module, word) == 0)
            return true;
    return false;
}

static const struct ctl_module_command *find(const char *module, const char *verb)
{
    for (const struct ctl_module_command *c = ctl_module_commands; c->module; c++)
        if (strcmp(c->module, module) == 0 && (!*c->verb || strcmp(c->verb, verb) == 0))
            return c;
    return NULL;
}

/* Whether the word is in the list. Each word of the list has a blank behind it. */
static bool is_listed(const char *list, const char *word, size_t size)
{
    for (size_t n; (n = strcspn(list, " ")) > 0; list += n + 1)
        if (n == size && strncmp(list, word, n) == 0)
            return true;
    return false;
}

/* Replies if the request has words that the command does not know, or too few or too many. */
static bool check(struct ctl_request *r, const struct ctl_module_command *c)
{
    for (unsigned w = 2; w < r->words.count; w++) {
        size_t n;
        const char *word = r->words.word[w];
        const char *name = ctl_option_name(word, &n);
        if (name && !is_listed(c->options, name, n)) {
            ctl_reply(r, "%s %s: unknown option %s\n", c->module, c->verb, word);
            return false;
        }
    }
    const unsigned count = ctl_words_plain_count(&r->words);
    if (c->flags & CTL_FEWER ? count > c->words : count != c->words) {
        ctl_reply(r, "Usage: %s %s %s\n", c->module, c->verb, c->arguments);
        return false;
    }
    return true;
}

static void help(struct ctl_request *r, const char *module, const struct ctl_module_command *only)
{
    for (const struct ctl_module_command *c = ctl_module_commands; c->module; c++)
        if (strcmp(c->module, module) == 0 && (!only || c == only))
            ctl_reply(r, "%s %s %s\n    %s\n", c->module, c->verb, c->arguments, c->help);
}

void ctl_module_run(struct ctl_request *r, bool may_change)
{
    const char *module = ctl_words_at(&r->words, 0), *verb = ctl_words_at(&r->words, 1);
    const struct ctl_module_command *c = find(module, verb);
    if (c && !c->exec)
        ctl_reply(r, "%s: %s\n", module, c->help);
    else if (c && r->words.count == 3 && strcmp(ctl_words_at(&r->words, 2), "help") == 0)
        help(r, module, c);
    else if (!c && (!*verb || strcmp(verb, "help") == 0))
        help(r, module, NULL);
    else if (!c)
        ctl_reply(r, "Unknown command \"%s %s\"\n", module, verb);
    else if ((c->flags & CTL_CHANGES) && !may_change)
        ctl_request_refuse(r);
    else if (check(r, c))
        c->exec(r);
}
