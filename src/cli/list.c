/*
 * gmux ls: the daemon's `clients` and `pending` in one table, for people.
 */
#include <pwd.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/parse.h"
#include "cli/command.h"
#include "cli/place.h"
#include "cli/table.h"

enum { FORMAT = 1, GROUPS };

const struct gm_option cli_list_options[] = {
    { .id = FORMAT,
      .letter = 'f',
      .name = "format",
      .argument = "FORMAT",
      .values = "table csv",
      .help = "table or csv; with \",noheader\" no first line" },
    { .id = GROUPS,
      .letter = 'g',
      .name = "groups",
      .help = "Groups, and what is set for them, instead of programs" },
    { .name = NULL },
};

static const char *const headings[] = { "CLIENT", "USER",  "SERVER",    "DEVICE",
                                        "STATE",  "SHARE", "PRIORITY",  "MEMORY",
                                        "LIMIT",  "GROUP", "GUARANTEE", "COMMAND" };
static const char *const group_headings[] = { "GROUP", "USER",      "CLIENTS",
                                              "SHARE", "GUARANTEE", "LIMIT" };

/* The fields of the daemon's lines, in order. */
enum {
    PID,
    UID,
    UUID,
    STATE,
    SHARE,
    PRIORITY,
    USED,
    LIMIT,
    COMMAND,
    GROUP,
    GUARANTEE,
    CLIENT_FIELDS
};
enum { P_PID, P_UID, P_SECONDS, P_WHY, P_COMMAND, P_GROUP, PENDING_FIELDS };
enum { G_NAME, G_UID, G_CLIENTS, G_SHARE, G_GUARANTEE, G_LIMIT, GROUP_FIELDS };

/* Adds a user's name. Rows of one user follow each other, and looking a name up reads files. */
static void add_user(struct cli_table *t, const char *uid)
{
    static char last_uid[24], name[64];
    uint64_t number;
    if (strcmp(uid, last_uid) != 0) {
        const struct passwd *pw =
            gm_parse_u64(uid, UINT32_MAX, &number) ? getpwuid((uid_t)number) : NULL;
        snprintf(name, sizeof(name), "%s", pw ? pw->pw_name : uid);
        snprintf(last_uid, sizeof(last_uid), "%s", uid);
    }
    cli_table_add(t, name);
}

/* Adds a number of bytes: rounded for people, exact for programs. */
static void add_bytes(struct cli_table *t, const char *text, enum cli_format format)
{
    static const char units[] = "BKMGT";
    uint64_t bytes;
    unsigned unit = 0;
    if (format == CLI_CSV || !gm_parse_u64(text, UINT64_MAX, &bytes)) {
        cli_table_add(t, text);
        return;
    }
    double value = (double)bytes;
    while (value >= 1024 && unit + 2 < sizeof(units)) {
        value /= 1024;
        unit++;
    }
    cli_table_addf(t, unit && value < 10 ? "%.1f%c" : "%.0f%c", value, units[unit]);
}

static void add_client(struct cli_table *t, char **f, const char *server, enum cli_format format)
{
    cli_table_add(t, f[PID]);
    add_user(t, f[UID]);
    cli_table_add(t, server);
    cli_table_addf(t, format == CLI_CSV ? "%s" : "%.12s",
                   f[UUID]); /* "GPU-" and eight digits are enough to tell devices apart */
    cli_table_add(t, f[STATE]);
    cli_table_add(t, f[SHARE]);
    cli_table_add(t, f[PRIORITY]);
    add_bytes(t, f[USED], format);
    add_bytes(t, f[LIMIT], format);
    cli_table_add(t, f[GROUP]);
    cli_table_add(t, f[GUARANTEE]);
    cli_table_add(t, f[COMMAND]);
}

static void add_pending(struct cli_table *t, char **f)
{
    cli_table_add(t, f[P_PID]);
    add_user(t, f[P_UID]);
    cli_table_add(t, "-");
    cli_table_add(t, "-");
    cli_table_addf(t, "waits %ss: %s", f[P_SECONDS], f[P_WHY]);
    for (int i = 0; i < 4; i++)
        cli_table_add(t, "-");
    cli_table_add(t, f[P_GROUP]);
    cli_table_add(t, "-");
    cli_table_add(t, f[P_COMMAND]);
}

/* Lists the clients of one server. Returns false when the daemon does not answer. */
static bool list_server(int fd, struct cli_table *t, const char *server, enum cli_format format)
{
    char *f[CLIENT_FIELDS];
    GM_AUTO_FREE char *text = cli_ask(fd, "clients %s", server);
    char *rest = text;
    char *line;
    while ((line = strsep(&rest, "\n")))
        if (cli_fields(line, f, CLIENT_FIELDS) == CLIENT_FIELDS)
            add_client(t, f, server, format);
        else if (*line)
            fprintf(stderr, "gmux ls: %s\n", line);
    return text != NULL;
}

static int read_format(const char *text, enum cli_format *format, bool *first_line)
{
    const char *comma = strchr(text, ',');
    size_t n = comma ? (size_t)(comma - text) : strlen(text);
    *first_line = !comma;
    if (n == 3 && memcmp(text, "csv", n) == 0)
        *format = CLI_CSV;
    else if (n == 5 && memcmp(text, "table", n) == 0)
        *format = CLI_TABLE;
    else
        n = 0;
    return n == 0 || (comma && strcmp(comma, ",noheader") != 0)
               ? cli_fail("format is table or csv, with \",noheader\" or without, not \"%s\"", text)
               : 0;
}

static int list_groups(int fd, enum cli_format format, bool first_line)
{
    struct cli_table t = { .headings = group_headings, .columns = GM_ARRAY_LEN(group_headings) };
    GM_AUTO_FREE char *text = cli_ask(fd, "groups");
    char *f[GROUP_FIELDS], *line, *rest = text;
    if (!text)
        return 1;
    while ((line = strsep(&rest, "\n"))) {
        if (cli_fields(line, f, GROUP_FIELDS) != GROUP_FIELDS)
            continue;
        cli_table_add(&t, f[G_NAME]);
        add_user(&t, f[G_UID]);
        for (int i = G_CLIENTS; i < GROUP_FIELDS; i++)
            cli_table_add(&t, f[i]);
    }
    cli_table_print(&t, format, first_line);
    return 0;
}

int cli_list(const struct cli_command *c, int argc, char **argv)
{
    struct gm_options walk;
    enum cli_format format = CLI_TABLE;
    bool first_line = true, groups = false;
    char *f[PENDING_FIELDS], *line;
    int id;
    cli_options_init(c, &walk, argc, argv);
    while ((id = cli_options_next(&walk)) > 0) {
        if (id == GROUPS)
            groups = true;
        else if (read_format(walk.argument, &format, &first_line) != 0)
            return 1;
    }
    if (id < 0 || cli_options_end(&walk) != 0)
        return 1;
    GM_AUTO_FD int fd = cli_place_require();
    if (fd < 0)
        return 1;
    if (groups)
        return list_groups(fd, format, first_line);
    struct cli_table t = { .headings = headings, .columns = GM_ARRAY_LEN(headings) };
    GM_AUTO_FREE char *servers = cli_ask(fd, "get_server_list");
    char *rest = servers;
    while ((line = strsep(&rest, "\n")))
        if (*line && !list_server(fd, &t, line, format))
            return 1;
    GM_AUTO_FREE char *pending = servers ? cli_ask(fd, "pending") : NULL;
    rest = pending;
    while ((line = strsep(&rest, "\n")))
        if (cli_fields(line, f, PENDING_FIELDS) == PENDING_FIELDS)
            add_pending(&t, f);
    if (!pending)
        return 1;
    cli_table_print(&t, format, first_line);
    return 0;
}
