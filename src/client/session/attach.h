/*
 * How this process runs, decided once, at cuInit:
 *
 *   session    a daemon listens in the pipe directory: its server is ours
 *   genuine    no daemon, but NVIDIA's driver is installed: every call goes straight to it
 *   private    neither: a server of our own, on the soft device, that lives as long as this process
 *
 * The state is the process's. A child made by fork starts in RT_FORKED if its parent was attached:
 * CUDA does not survive a fork, and the parent's session must not feel one. One made while another
 * thread was attaching starts detached.
 */
#ifndef GMUX_CLIENT_SESSION_ATTACH_H
#define GMUX_CLIENT_SESSION_ATTACH_H

#include <stdint.h>

#include "base/attr.h"

enum rt_state {
    RT_DETACHED, /* before a successful cuInit */
    RT_SESSION,  /* rt_session stands */
    RT_GENUINE,  /* the dispatch table is the genuine library's */
    RT_FORKED,
};

extern _Atomic int rt_state;

/* cuInit. CUresult; may be called again, also after a failure. Any thread. */
int rt_attach(unsigned flags);

/*
 * For a program that turns out to have a runtime older than 12.0 (older.h): out of the session and
 * onto the genuine driver. CUDA_ERROR_NOT_SUPPORTED if something was asked of the session before,
 * or something else of the program's lives by it (`used`). Any thread.
 */
int rt_attach_leave(bool used);

/* Before cuInit: the version that cuInit would lead to, without attaching. CUresult. */
int rt_attach_driver_version(int *version);

/* CUDA_SUCCESS if a session stands; CUDA_ERROR_NOT_INITIALIZED if not. */
int rt_ready(void);

/* --- the three ways; attach.c calls them ------------------------------------------------------ */

/* Puts the devices in the order that CUDA_DEVICE_ORDER and CUDA_VISIBLE_DEVICES say; how many the
 * second leaves. */
struct rt_device;
/* "GPU-01234567-89ab-..", as in CUDA_VISIBLE_DEVICES. */
#define RT_UUID_TEXT 48
void rt_device_uuid_text(const uint8_t uuid[16], char out[RT_UUID_TEXT]);
unsigned rt_device_visible(struct rt_device *devices, unsigned count);

/* The packet that starts every session, with a daemon or a private server. 0 or -errno. */
int rt_say_hello(int fd, bool has_daemon);

/* Starts a private server: its end of a socket pair, or -errno with the reason in `why`. */
int rt_private_start(char *why, size_t why_size);

#endif
