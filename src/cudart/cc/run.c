/*
 * Runs the programs that gmux-cc consists of.
 */
#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cudart/cc/cc.h"

int cc_try(const struct cc_options *o, struct cc_list *l, const char *messages)
{
    l->at[l->count] = NULL;
    if (o->verbose) {
        for (size_t i = 0; i < l->count; i++)
            (void)fprintf(stderr, "%s%s", i ? " " : "#$ ", l->at[i]);
        (void)fputc('\n', stderr);
    }
    if (o->dry)
        return 0;
    pid_t pid;
    int status;
    char *argv[CC_MAX + 1];
    memcpy(argv, l->at, sizeof(argv));
    posix_spawn_file_actions_t actions;
    int r = posix_spawn_file_actions_init(&actions);
    if (!r && messages)
        r = posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, messages,
                                             O_WRONLY | O_CREAT | O_TRUNC, 0600);
    if (!r)
        r = posix_spawn(&pid, argv[0], &actions, NULL, argv, environ);
    if (r)
        cc_fail("%s: %s", argv[0], strerror(r));
    (void)posix_spawn_file_actions_destroy(&actions);
    while (waitpid(pid, &status, 0) < 0)
        if (errno != EINTR)
            cc_fail("%s: %s", argv[0], strerror(errno));
    return !WIFEXITED(status) ? 1 : WEXITSTATUS(status);
}

void cc_run(const struct cc_options *o, struct cc_list *l)
{
    int status = cc_try(o, l, NULL);
    if (status)
        exit(status);
}
