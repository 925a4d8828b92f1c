/*
 * How this process runs. It is decided once, at cuInit:
 *
 *   session    a daemon listens in the pipe directory, and its server serves us
 *   genuine    there is no daemon, but NVIDIA's driver is installed: every call goes straight to it
 *   private    neither: we start a server with the software device, which lives as long as we
 *
 * The state belongs to the process. A child made by fork begins in RT_FORKED if its parent was
 * attached: CUDA does not survive a fork, and the parent's session must not be disturbed. A child
 * that was made while another thread was attaching begins detached.
 */
#ifndef GMUX_CLIENT_SESSION_ATTACH_H
#define GMUX_CLIENT_SESSION_ATTACH_H

#include <stdint.h>

#include "base/attr.h"

enum rt_state {
    RT_DETACHED, /* before a successful cuInit */
    RT_SESSION,  /* rt_session exists */
    RT_GENUINE,  /* the dispatch table is the genuine library's */
    RT_FORKED,
};

extern _Atomic int rt_state;

/* cuInit. CUresult; may be called again, also after a failure. Any thread. */
int rt_attach(unsigned flags);

/*
 * For a program that turns out to have a runtime older than 12.0 (older.h): leaves the session for
 * the genuine driver. CUDA_ERROR_NOT_SUPPORTED: the session was used before, or something else of
 * the program needs it (`used`). Any thread.
 */
int rt_attach_leave(bool used);

/* Before cuInit: the version that the program would get, without attaching. CUresult. */
int rt_attach_driver_version(int *version);

/* CUDA_SUCCESS if a session stands; CUDA_ERROR_NOT_INITIALIZED if not. */
int rt_ready(void);

/* --- the three ways; attach.c calls them ------------------------------------------------------ */

/* Puts the devices into the order of CUDA_DEVICE_ORDER and CUDA_VISIBLE_DEVICES. Returns how many
 * the latter leaves. */
struct rt_device;
/* "GPU-01234567-89ab-..", as in CUDA_VISIBLE_DEVICES. */
#define RT_UUID_TEXT 48
void rt_device_uuid_text(const uint8_t uuid[16], char out[RT_UUID_TEXT]);
unsigned rt_device_visible(struct rt_device *devices, unsigned count);

/* Sends the packet that begins every session, to a daemon or to a private server. 0 or -errno. */
int rt_say_hello(int fd, bool has_daemon);

/* Starts a private server. Our end of a socket pair; or -errno, with the reason in `why`. */
int rt_private_start(char *why, size_t why_size);

#endif
