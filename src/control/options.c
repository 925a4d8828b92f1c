/*
 * The table of the daemon's options, with a check for each value.
 */
#include "control/options.h"

#include <string.h>

#include "base/log.h"
#include "base/parse.h"
#include "control/policy.h"

bool ctl_is_classic_name(const char *argv0)
{
    const char *slash = strrchr(argv0, '/');
    return strncmp(slash ? slash + 1 : argv0, "nvidia-", 7) == 0;
}

static const char *check_share(const char *text)
{
    double share;
    return gm_parse_percentage(text, &share) ? NULL : "it is a percentage above 0, up to 100";
}

static const char *check_priority(const char *text)
{
    uint64_t value;
    return gm_parse_u64(text, 1, &value) ? NULL : "it is 0 (normal) or 1 (below normal)";
}

static const char *check_memory(const char *text)
{
    struct ctl_limits l = { .memory_count = 0 };
    char again[CTL_MEMORY_TEXT_MAX + 1];
    ctl_limits_set_memory_list(&l, text);
    ctl_limits_memory_text(&l, again);
    return *text && strcmp(again, text) == 0 ? NULL : "it is DEVICE=SIZE, or several with commas";
}

static const char *check_log(const char *text)
{
    return gm_log_is_spec(text)
               ? NULL
               : "it is error, warn, info or debug, or PART=LEVEL, or several with commas";
}

static const char *check_device(const char *text)
{
    return strcmp(text, "cuda") == 0 || strcmp(text, "soft") == 0 || strcmp(text, "null") == 0
               ? NULL
               : "it is cuda, soft or null";
}

const char *ctl_protocol_check(const char *text)
{
    return strcmp(text, "2") == 0 || strcmp(text, "3") == 0 ? NULL : "it is 2 or 3";
}

const struct gm_option ctl_options_table[] = {
    { .id = CTL_OPTION_DAEMON,
      .letter = 'd',
      .name = "daemon",
      .help = "Start the daemon in the background",
      .text = "Returns when the daemon can be connected to, or with status 1 and one line that "
              "says why it cannot." },
    { .id = CTL_OPTION_FOREGROUND,
      .letter = 'f',
      .name = "foreground",
      .alias = "forground", /* NVIDIA's spelling */
      .help = "Start the daemon in the foreground",
      .text = "Log lines go to standard output as well." },
    { .id = CTL_OPTION_MULTIUSER,
      .letter = 'M',
      .name = "multiuser-server",
      .variable = "GMUX_MULTIUSER_SERVER",
      .help = "Let all users share one server",
      .text = "Their kernels run beside each other in one context of a GPU, where the contexts of "
              "several servers take "
              "turns. What that gives up is said below. The server runs as the daemon's user, "
              "which has to be root to "
              "serve others, or as *--server-user*. Without this option each user has a server, "
              "and users do not wait "
              "for each other." },
    { .id = CTL_OPTION_MULTIUSER,
      .letter = 'm',
      .name = "multiuser", /* the name in protocol 3 */
      .variable = "GMUX_MULTIUSER_SERVER",
      .help = "As -M",
      .hidden = true },
    { .id = CTL_OPTION_SERVER_USER,
      .name = "server-user",
      .variable = "GMUX_SERVER_USER",
      .argument = "USER",
      .help = "With -M: run the server as this user, by name or number, instead of as root",
      .text = "Best one that nobody logs in as: who can trace the server's processes has the "
              "data of all clients. "
              "It must be able to open the device." },
    { .id = CTL_OPTION_EXCLUSIVE_USER,
      .name = "exclusive-user",
      .variable = "GMUX_EXCLUSIVE_USER",
      .help = "Serve one user at a time, as NVIDIA MPS does",
      .text = "Clients of other users wait until the first user's have left and that server has "
              "ended." },
    { .id = CTL_OPTION_CLASSIC_LIMITS,
      .name = "classic-limits",
      .variable = "GMUX_CLASSIC_LIMITS",
      .help = "Have changed limits apply to new clients only, as NVIDIA MPS does",
      .text = "Without this option *set_active_thread_percentage* and "
              "*set_device_pinned_mem_limit* also apply to "
              "clients that run." },
    { .id = CTL_OPTION_PARTITIONS,
      .letter = 'S',
      .name = "static-partitioning",
      .variable = "GMUX_STATIC_PARTITIONING",
      .help = "Give programs a static partition of a device, or nothing",
      .text = "See *PARTITIONS*. Percentages of multiprocessors do not count then." },
    { .id = CTL_OPTION_PROTOCOL,
      .letter = 'p',
      .name = "protocol",
      .variable = "CUDA_MPS_PROTOCOL_VERSION",
      .argument = "2|3",
      .check = ctl_protocol_check,
      .help = "With 3: know the commands of MPS' protocol 3, too",
      .text = "See *PROTOCOL 3*. The variable, if it is set, counts more than the option." },
    { .id = CTL_OPTION_APPLY,
      .letter = 'a',
      .name = "apply",
      .variable = "GMUX_APPLY",
      .is_path = true,
      .argument = "FILE",
      .help = "With --protocol 3: begin with the servers and partitions that a file describes" },
    { .id = CTL_OPTION_PIPE_DIRECTORY,
      .name = "pipe-directory",
      .variable = "CUDA_MPS_PIPE_DIRECTORY",
      .is_path = true,
      .argument = "DIRECTORY",
      .help = "Where programs and commands find the daemon" },
    { .id = CTL_OPTION_LOG_DIRECTORY,
      .name = "log-directory",
      .variable = "CUDA_MPS_LOG_DIRECTORY",
      .is_path = true,
      .argument = "DIRECTORY",
      .help = "Where control.log and server.log are written" },
    { .id = CTL_OPTION_DEFAULT_SHARE,
      .name = "default-share",
      .variable = "CUDA_MPS_ACTIVE_THREAD_PERCENTAGE",
      .argument = "PERCENTAGE",
      .check = check_share,
      .help = "The share that each program may use at most" },
    { .id = CTL_OPTION_DEFAULT_MEMORY,
      .name = "default-memory",
      .variable = "CUDA_MPS_PINNED_DEVICE_MEM_LIMIT",
      .argument = "DEVICE=SIZE,..",
      .check = check_memory,
      .help = "The memory of devices that each program may have" },
    { .id = CTL_OPTION_DEFAULT_PRIORITY,
      .name = "default-priority",
      .variable = "CUDA_MPS_CLIENT_PRIORITY",
      .argument = "0|1",
      .check = check_priority,
      .help = "The priority of programs: 0 (normal) or 1 (below normal)" },
    { .id = CTL_OPTION_DEVICE,
      .name = "device",
      .variable = "GMUX_DEVICE",
      .argument = "cuda|soft|null",
      .check = check_device,
      .help = "What servers offer" },
    { .id = CTL_OPTION_LOG,
      .name = "log",
      .variable = "GMUX_LOG",
      .argument = "LEVEL,..",
      .check = check_log,
      .help = "What our own code says on standard error, besides the logs",
      .text = "error, warn, info or debug, and such a level for one part of it: warn,link=debug. "
              "Servers have it, too." },
    { .id = CTL_OPTION_CONFIG,
      .name = "config",
      .variable = "GMUX_CONFIG",
      .is_path = true,
      .argument = "FILE",
      .help = "Read options, and limits of users and groups, from a file",
      .text = "See *CONFIGURATION FILE*." },
    { .id = CTL_OPTION_CHECK,
      .name = "check",
      .help = "Say what is wrong with the configuration, and exit" },
    { .id = CTL_OPTION_READY_DEVICES,
      .letter = 'q',
      .name = "ready-devices",
      .help = "Accepted for compatibility; the daemon itself never opens a device",
      .text = "In protocol 3 it is *--quit*, where no daemon is to be started." },
    { .id = CTL_OPTION_QUIT,
      .name = "quit",
      .help = "End the daemon and its servers, as the command quit does" },
    { .id = CTL_OPTION_VERSION,
      .letter = 'v',
      .name = "version",
      .help = "Print versions and exit" },
    { .id = CTL_OPTION_HELP, .letter = 'h', .name = "help", .help = "Print this help and exit" },
    { .id = CTL_OPTION_DUMP_OPTIONS,
      .name = "dump-options",
      .help = "Print the options as source of the manual page",
      .hidden = true },
    { .id = CTL_OPTION_DUMP_COMMANDS,
      .name = "dump-commands",
      .help = "Print the commands as source of the manual page",
      .hidden = true },
    { .id = CTL_OPTION_DUMP_MODULES,
      .name = "dump-modules",
      .help = "Print the commands of protocol 3 as source of the manual page",
      .hidden = true },
    { 0 },
};
