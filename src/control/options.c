#include "control/options.h"

#include <string.h>

bool ctl_is_classic_name(const char *argv0)
{
    const char *slash = strrchr(argv0, '/');
    return strncmp(slash ? slash + 1 : argv0, "nvidia-", 7) == 0;
}

const struct gm_option ctl_options_table[] = {
    { .id = CTL_OPTION_DAEMON,
      .letter = 'd',
      .name = "daemon",
      .help = "Start the daemon in the background",
      .text = "Returns when the daemon can be connected to, or with status 1 and one line that says why it cannot." },
    { .id = CTL_OPTION_FOREGROUND,
      .letter = 'f',
      .name = "foreground",
      .alias = "forground", /* NVIDIA's spelling */
      .help = "Start the daemon in the foreground",
      .text = "Log lines go to standard output as well." },
    { .id = CTL_OPTION_MULTIUSER,
      .letter = 'M',
      .name = "multiuser-server",
      .help = "Let all users share one server",
      .text =
          "Their kernels run beside each other in one context of a GPU, where the contexts of several servers take "
          "turns. What that gives up is said below. The server runs as the daemon's user, which has to be root to "
          "serve others, or as *--server-user*. Without this option each user has a server, and users do not wait "
          "for each other." },
    { .id = CTL_OPTION_SERVER_USER,
      .name = "server-user",
      .argument = "USER",
      .help = "With -M: run the server as this user, by name or number, instead of as root",
      .text =
          "Best one that nobody logs in as: whoever can trace the server's processes has the data of all clients. "
          "It must be able to open the device." },
    { .id = CTL_OPTION_EXCLUSIVE_USER,
      .name = "exclusive-user",
      .help = "Serve one user at a time, as NVIDIA MPS does",
      .text = "Clients of other users wait until the first user's have left and that server has ended." },
    { .id = CTL_OPTION_CLASSIC_LIMITS,
      .name = "classic-limits",
      .help = "Have changed limits apply to new clients only, as NVIDIA MPS does",
      .text = "Without this option *set_active_thread_percentage* and *set_device_pinned_mem_limit* also apply to "
              "clients that run." },
    { .id = CTL_OPTION_READY_DEVICES,
      .letter = 'q',
      .name = "ready-devices",
      .help = "Accepted for compatibility; the daemon itself never opens a device" },
    { .id = CTL_OPTION_VERSION, .letter = 'v', .name = "version", .help = "Print versions and exit" },
    { .id = CTL_OPTION_HELP, .letter = 'h', .name = "help", .help = "Print this help and exit" },
    { .id = CTL_OPTION_DUMP_OPTIONS,
      .name = "dump-options",
      .help = "Print the options as source of the manual page",
      .hidden = true },
    { .id = CTL_OPTION_DUMP_COMMANDS,
      .name = "dump-commands",
      .help = "Print the commands as source of the manual page",
      .hidden = true },
    { .id = CTL_OPTION_RESTARTED,
      .name = "restarted",
      .argument = "FD,FD,FD,SERVERS",
      .help = "What the command restart passes to the new program",
      .hidden = true },
    { 0 },
};
