/*
 * A gmux-jit that has been taken over: it refuses each job, and at the same time the one that is to
 * come next.
 */
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

#include "device/soft/loader/job.h"

static void say(uint32_t serial, const char *reason)
{
    struct soft_job_answer a = { .magic = SOFT_JOB_MAGIC,
                                 .serial = serial,
                                 .status = SOFT_JOB_UNSUPPORTED };
    strcpy(a.reason, reason);
    (void)!send(SOFT_JOB_SOCKET, &a, sizeof(a), MSG_NOSIGNAL);
}

int main(void)
{
    static struct soft_job_request request;
    struct soft_job_answer hello = { .magic = SOFT_JOB_MAGIC };
    char reason[32];
    (void)!send(SOFT_JOB_SOCKET, &hello, sizeof(hello), MSG_NOSIGNAL);
    /* The text that comes with it stays unread. */
    for (unsigned n = 1; recv(SOFT_JOB_SOCKET, &request, sizeof(request), 0) == sizeof(request);
         n++) {
        snprintf(reason, sizeof(reason), "job %u", n);
        say(request.serial, reason);
        say(request.serial + 1, "forged");
    }
    return 0;
}
