/*
 * Reports that something is wrong, for all commands.
 */
#include <stdarg.h>
#include <stdio.h>

#include "cli/command.h"

static const char *command = "gmux";
static int failed = 1;

void cli_fail_as(const char *name, int status)
{
    command = name;
    failed = status;
}

int cli_fail(const char *fmt, ...)
{
    va_list ap;
    fprintf(stderr, "%s: ", command);
    va_start(ap, fmt);
    vfprintf(stderr, fmt, ap);
    va_end(ap);
    fputc('\n', stderr);
    return failed;
}
