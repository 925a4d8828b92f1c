/*
 * The executor's side of gmux-jit: starts the process, sends a job, receives the answer, ends the
 * process. Each helper is used by one thread.
 */
#ifndef GMUX_SOFT_LOADER_HELPER_H
#define GMUX_SOFT_LOADER_HELPER_H

#include <sys/types.h>

#include "device/soft/loader/job.h"

struct loader_helper {
    pid_t pid;  /* -1: not running */
    int socket; /* -1: not running */
    uint32_t serial;
};

/* Finds gmux-jit: `configured`, else GMUX_JIT, else beside the running program, else in the library
 * directory. Writes an absolute path into `path`; -ENOENT if there is none. */
GM_MUST_CHECK int loader_helper_find(const char *configured, char *path, size_t size);

void loader_helper_init(struct loader_helper *h);

/* Starts the process. 0 or -errno. */
GM_MUST_CHECK int loader_helper_start(struct loader_helper *h, const char *path);

/* Kills the process if it runs. True if it had ended by itself before, with status 0. */
bool loader_helper_stop(struct loader_helper *h);

/* Waits for a packet of the process until the deadline, or until `cancel` is readable. 0, with the
 * answer and its descriptor (or -1); -ETIMEDOUT; -ECANCELED; -EPIPE: the process died; -EBADMSG;
 * other -errno. */
GM_MUST_CHECK int loader_helper_receive(struct loader_helper *h, uint64_t deadline_ns, int cancel,
                                        struct soft_job_answer *answer, int *fd);

/* Processor time that the process has used. */
uint64_t loader_helper_processor_ns(const struct loader_helper *h);

/* Sends a job, and sets the serial number of its request. 0 or -errno. */
GM_MUST_CHECK int loader_helper_send(struct loader_helper *h, const char *text, size_t text_size,
                                     const char *entry, const struct soft_job_options *options);

#endif
