/*
 * The commands of gmux.
 */
#include "cli/command.h"

const struct cli_command cli_commands[] = {
    { "run", "[OPTION]... [--] PROGRAM [ARGUMENT]...", "Run a program on the shared device",
      CLI_WORDS_PROGRAM, cli_run_options, cli_run },
    { "ls", "[OPTION]...", "Show the programs that share a device, and those that wait",
      CLI_WORDS_NONE, cli_list_options, cli_list },
    { "set", "CLIENT|USER|GROUP LIMIT=VALUE...",
      "Set share=, guarantee=, memory=, priority= and group= of processes, users and groups, at "
      "once",
      CLI_WORDS_LIMITS, NULL, cli_set },
    { "stop", "[OPTION] [CLIENT]", "Take the device away from a process, or end the daemon",
      CLI_WORDS_CLIENT, cli_stop_options, cli_stop },
    { "doctor", "[--] [PROGRAM]", "Say what a program would get here, and what is wrong",
      CLI_WORDS_PROGRAM, NULL, cli_doctor },
    { NULL, NULL, NULL, 0, NULL, NULL },
};
