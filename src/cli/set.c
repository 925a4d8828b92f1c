/*
 * gmux set and gmux stop: change a process, a user, a group, or the daemon.
 */
#include <ctype.h>
#include <pwd.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/parse.h"
#include "cli/command.h"
#include "cli/place.h"
#include "control/ui.h"
#include "cli/table.h"

enum { NOW = 1 };

const struct gm_option cli_stop_options[] = {
    { .id = NOW, .name = "now", .help = "End the daemon although programs still use the device" },
    { .name = NULL },
};

/* Returns 0 if the daemon's answer is `good`. Otherwise prints it on standard error. */
static int judge(char *answer, const char *good)
{
    if (!answer)
        return 1;
    size_t n = strlen(answer);
    while (n && answer[n - 1] == '\n')
        answer[--n] = '\0';
    const char *last = strrchr(answer, '\n');
    int status = strcmp(last ? last + 1 : answer, good) == 0 ? 0 : cli_fail("%s", answer);
    free(answer);
    return status;
}

/* Finds the server that has this client. Returns NULL after it has printed a line on standard
 * error. The caller frees. */
static char *server_of(int fd, const char *client)
{
    GM_AUTO_FREE char *servers = cli_ask(fd, "get_server_list");
    char *rest = servers;
    char *server;
    while ((server = strsep(&rest, "\n"))) {
        GM_AUTO_FREE char *clients = *server ? cli_ask(fd, "get_client_list %s", server) : NULL;
        char *rest_of_clients = clients;
        char *word;
        while ((word = strsep(&rest_of_clients, "\n")))
            if (strcmp(word, client) == 0)
                return strdup(server);
    }
    if (servers)
        cli_fail("there is no client %s", client);
    return NULL;
}

/* Whether the target is a client, which a process id names. */
static bool is_client(const char *target)
{
    uint64_t number;
    return gm_parse_u64(target, UINT32_MAX, &number);
}

/* Whether this user has a group of that name. */
static bool is_group(int fd, const char *name)
{
    GM_AUTO_FREE char *groups = cli_ask(fd, "groups");
    char *f[2], *line, *rest = groups;
    char uid[24];
    snprintf(uid, sizeof(uid), "%u", (unsigned)geteuid());
    while ((line = strsep(&rest, "\n"))) {
        if (cli_fields(line, f, 2) == 2 && strcmp(f[0], name) == 0 && strcmp(f[1], uid) == 0)
            return true;
    }
    return false;
}

/* Finds the daemon's command for a target that is no client: user:1000, group:train, alice/train,
 * or the name of a user or else of a group. Returns NULL after it has printed a line on standard
 * error. */
static const char *command_for(int fd, const char **target)
{
    const char *name = *target;
    if (strncmp(name, "user:", 5) == 0 || strncmp(name, "group:", 6) == 0)
        *target = strchr(name, ':') + 1;
    if (strncmp(name, "user:", 5) == 0)
        return "limit_user";
    if (strncmp(name, "group:", 6) == 0 || strchr(name, '/'))
        return "limit_group";
    if (getpwnam(name))
        return "limit_user";
    if (is_group(fd, name))
        return "limit_group";
    cli_fail("\"%s\" is neither a user nor a group with programs; group:%s would be a new one",
             name, name);
    return NULL;
}

int cli_set(const struct cli_command *c, int argc, char **argv)
{
    struct gm_options walk;
    cli_options_init(c, &walk, argc, argv);
    if (cli_options_next(&walk) != GM_OPTIONS_END)
        return 1;
    if (argc - walk.index < 2)
        return cli_fail("usage: gmux %s %s", c->name, c->arguments);
    const char *target = argv[walk.index];
    for (int i = walk.index; i < argc; i++)
        for (const char *p = argv[i]; *p; p++)
            if (isspace((unsigned char)*p) || iscntrl((unsigned char)*p))
                return cli_fail("\"%s\" is no word", argv[i]);
    GM_AUTO_FD int fd = cli_place_require();
    if (fd < 0)
        return 1;
    char limits[1024] = "";
    for (int i = walk.index + 1; i < argc; i++) {
        size_t n = strlen(limits);
        if ((size_t)snprintf(limits + n, sizeof(limits) - n, " %s", argv[i]) >= sizeof(limits) - n)
            return cli_fail("too many limits");
    }
    if (!is_client(target)) {
        const char *command = command_for(fd, &target);
        return command ? judge(cli_ask(fd, "%s %.256s%s", command, target, limits), "0") : 1;
    }
    GM_AUTO_FREE char *server = server_of(fd, target);
    return server ? judge(cli_ask(fd, "limit_client %s %s%s", server, target, limits), "0") : 1;
}

int cli_stop(const struct cli_command *c, int argc, char **argv)
{
    struct gm_options walk;
    bool now = false;
    int id;
    cli_options_init(c, &walk, argc, argv);
    while ((id = cli_options_next(&walk)) > 0)
        now = true;
    if (id < 0)
        return 1;
    const char *client = walk.index < argc ? argv[walk.index] : NULL;
    if (client && (!is_client(client) || walk.index + 1 < argc || now))
        return cli_fail("usage: gmux %s %s", c->name, c->arguments);
    GM_AUTO_FD int fd = cli_place_require();
    if (fd < 0)
        return 1;
    if (client) {
        GM_AUTO_FREE char *server = server_of(fd, client);
        return server ? judge(cli_ask(fd, "terminate_client %s %s", server, client), "0") : 1;
    }
    ctl_ui_patience(fd, false); /* the daemon waits for programs to end */
    return judge(cli_ask(fd, now ? "quit -t 0" : "quit"), "");
}
