/*
 * gmux run: starts a program with our library in its path and limits in its environment. It starts
 * a daemon if none runs.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/parse.h"
#include "cli/command.h"
#include "cli/place.h"
#include "cli/program.h"
#include "control/place.h"
#include "control/policy.h"

enum { SHARE = 1, GUARANTEE, MEMORY, PRIORITY, DEVICE, GROUP, PARTITION, REQUIRE };

/* For each option, which texts it accepts, and what it sets in the program's environment. */
static bool good_share(const char *text)
{
    double share;
    return gm_parse_share(text, &share);
}

static bool good_size(const char *text)
{
    uint64_t bytes;
    return gm_parse_size(text, &bytes);
}

static bool good_priority(const char *text)
{
    return strcmp(text, "normal") == 0 || strcmp(text, "low") == 0;
}

static bool good_device(const char *text)
{
    return *text != '\0';
}

const struct gm_option cli_run_options[] = {
    { .id = SHARE,
      .letter = 's',
      .name = "share",
      .argument = "PERCENTAGE",
      .help = "Part of the multiprocessors that it may use, at most" },
    { .id = GUARANTEE,
      .letter = 'g',
      .name = "guarantee",
      .argument = "PERCENTAGE",
      .help = "Part of the device that it has whenever it has work, at least" },
    { .id = MEMORY,
      .letter = 'm',
      .name = "memory",
      .argument = "SIZE",
      .help = "Memory of each device, as 800M or 2G" },
    { .id = PRIORITY,
      .letter = 'p',
      .name = "priority",
      .argument = "normal|low",
      .values = "normal low",
      .help = "Who goes first" },
    { .id = DEVICE,
      .letter = 'd',
      .name = "device",
      .argument = "DEVICE",
      .help = "The devices that it sees, as CUDA_VISIBLE_DEVICES has them" },
    { .id = GROUP,
      .name = "group",
      .argument = "NAME",
      .help = "The group whose share, guarantee and memory it has with others (gmux set NAME ..)" },
    { .id = PARTITION,
      .name = "partition",
      .argument = "UUID/NAME",
      .help = "The static partition that it lives in (gmux-control lspart)" },
    { .id = REQUIRE, .name = "require", .help = "Refuse to run without the daemon" },
    { .name = NULL },
};

static bool good_partition(const char *text)
{
    return strchr(text, '/') && strlen(text) <= 128;
}

static const struct {
    bool (*good)(const char *text);
    const char *what; /* what a good text is, for the error message */
    const char *variable;
    const char *before; /* stands before the text in the variable */
} settings[] = {
    [SHARE] = { good_share, "a percentage above 0, up to 100", "CUDA_MPS_ACTIVE_THREAD_PERCENTAGE",
                "" },
    [GUARANTEE] = { good_share, "a percentage above 0, up to 100", "GMUX_GUARANTEE", "" },
    [GROUP] = { ctl_group_is_name, "a name of letters, digits, '.', '_' and '-', not only digits",
                "GMUX_GROUP", "" },
    [PARTITION] = { good_partition, "UUID/NAME, as sm_partition add has printed it",
                    "CUDA_MPS_SM_PARTITION", "" },
    [MEMORY] = { good_size, "a number with M or G", "CUDA_MPS_PINNED_DEVICE_MEM_LIMIT", "*=" },
    [PRIORITY] = { good_priority, "normal or low", "CUDA_MPS_CLIENT_PRIORITY", "" },
    [DEVICE] = { good_device, "an ordinal or a UUID, or some with commas", "CUDA_VISIBLE_DEVICES",
                 "" },
};

static int apply(int id, const char *option, const char *text)
{
    char value[256];
    if (id == REQUIRE)
        return setenv("GMUX_REQUIRE", "1", 1);
    if (!settings[id].good(text) || strlen(text) > 200)
        return cli_fail("%.*s is %s, not \"%s\"", (int)strcspn(option, "="), option,
                        settings[id].what, text);
    if (id == PRIORITY)
        text = strcmp(text, "low") == 0 ? "1" : "0";
    int n = (int)strcspn(text, id == SHARE ? "%" : "");
    snprintf(value, sizeof(value), "%s%.*s", settings[id].before, n, text);
    return setenv(settings[id].variable, value, 1);
}

/* Puts our library in front of all others. */
static int set_library_path(void)
{
    GM_AUTO_FREE char *folder = cli_library_folder();
    GM_AUTO_FREE char *path = NULL;
    const char *old = getenv("LD_LIBRARY_PATH");
    if (!folder)
        return cli_fail("our libcuda.so.1 is not installed where gmux is");
    if (asprintf(&path, "%s%s%s", folder, old && *old ? ":" : "", old ? old : "") < 0)
        return cli_fail("out of memory");
    return setenv("LD_LIBRARY_PATH", path, 1);
}

static int find_daemon(void)
{
    GM_AUTO_FD int fd = cli_place_connect();
    if (fd >= 0)
        return 0;
    if (fd == -EPERM)
        return cli_fail(CLI_NOT_BELIEVED, ctl_place_pipe_directory());
    fd = cli_place_start();
    return fd < 0;
}

/* Says why the program will not be shared, and goes on: it may start another program that is. */
static void say_obstacles(const char *name)
{
    static struct cli_program p;
    char text[PATH_MAX + 128];
    if (cli_program_read(&p, name, false) < 0)
        return; /* execvp() will report it */
    for (unsigned i = 0; i < CLI_OBSTACLES; i++)
        if (cli_program_obstacle(&p, i, text, sizeof(text)))
            cli_fail("%s does not share the device: %s", name, text);
}

int cli_run(const struct cli_command *c, int argc, char **argv)
{
    struct gm_options walk;
    int id;
    cli_options_init(c, &walk, argc, argv);
    while ((id = cli_options_next(&walk)) > 0)
        if (apply(id, walk.word, walk.argument) != 0)
            return 1;
    if (id < 0)
        return 1;
    if (walk.index >= argc)
        return cli_fail("which program?");
    if (set_library_path() != 0 || find_daemon() != 0)
        return 1;
    say_obstacles(argv[walk.index]);
    execvp(argv[walk.index], argv + walk.index);
    int error = errno;
    cli_fail("%s: %s", argv[walk.index], strerror(error));
    return error == ENOENT ? 127 : 126; /* as shells do */
}
