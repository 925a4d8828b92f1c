/*
 * Stands in for gmux-jit: answers properly until a job's entry names a misdeed. Linked like the
 * real one, sandboxed not.
 */
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "device/soft/loader/job.h"

static void answer(uint32_t serial, uint32_t status, uint64_t size, const char *reason)
{
    struct soft_job_answer a = {
        .magic = SOFT_JOB_MAGIC, .serial = serial, .status = status, .object_size = size
    };
    strncpy(a.reason, reason, sizeof(a.reason) - 1);
    if (send(SOFT_JOB_SOCKET, &a, sizeof(a), 0) < 0)
        exit(1);
}

int main(void)
{
    static struct soft_job_request r;
    unsigned counted = 0;
    answer(0, SOFT_JOB_OK, 0, "fake");
    while (recv(SOFT_JOB_SOCKET, &r, sizeof(r), 0) == (ssize_t)sizeof(r)) {
        if (strcmp(r.entry, "crash") == 0)
            abort();
        else if (strcmp(r.entry, "hang") == 0)
            for (;;)
                pause();
        else if (strcmp(r.entry, "spin") == 0)
            for (;;)
                ;
        else if (strcmp(r.entry, "late") == 0)
            usleep(900000), answer(r.serial, SOFT_JOB_UNSUPPORTED, 0,
                                   "late"); /* as if others had the processor */
        else if (strcmp(r.entry, "count") == 0)
            answer(r.serial, SOFT_JOB_UNSUPPORTED, 0, counted++ ? "asked again" : "asked once");
        else if (strcmp(r.entry, "leave") == 0)
            answer(r.serial, SOFT_JOB_UNSUPPORTED, 0, "leaves after this"), exit(0);
        else if (strcmp(r.entry, "junk") == 0)
            answer(r.serial ^ 77, 99, 0, "junk");
        else if (strcmp(r.entry, "nothing") == 0)
            answer(r.serial, SOFT_JOB_OK, 4096, "");
        else if (strcmp(r.entry, "short") == 0 && send(SOFT_JOB_SOCKET, "x", 1, 0) < 0)
            return 1;
        else if (strcmp(r.entry, "lines") == 0)
            answer(r.serial, SOFT_JOB_FAILED, 0, "two\nlines");
        else
            answer(r.serial, SOFT_JOB_UNSUPPORTED, 0, "good");
    }
    return 0;
}
