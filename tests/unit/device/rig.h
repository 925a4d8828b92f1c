/*
 * What a test of a device back end needs around it: the session memory that the server would make,
 * the two areas, an event sink, and short names for submitting. In one process: client and device
 * see the window at the same place.
 */
#ifndef TEST_UNIT_DEVICE_RIG_H
#define TEST_UNIT_DEVICE_RIG_H

#include <criterion/criterion.h>

#include "device/device.h"

#define RIG_WINDOW_SIZE (1ull << 30)
#define RIG_CLIENTS     104

/* Where windows lie; the thread sanitizer knows other places only. */
#if defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define RIG_WINDOWS 0x566000000000ull
#endif
#endif
#if !defined(RIG_WINDOWS) && defined(__SANITIZE_THREAD__)
#define RIG_WINDOWS 0x566000000000ull
#endif
#ifndef RIG_WINDOWS
#define RIG_WINDOWS 0x400000000000ull
#endif

struct rig_client {
    struct dev_client *_Atomic client; /* first; read by the event sink on any thread */
    struct tp_session session;
    int session_fd, device_fd, host_fd;
    uint64_t base;
    uint64_t seq[16]; /* last one issued, by stream */
    struct dev_queue *queue[16];
    _Atomic int fault;
    _Atomic uint64_t fault_address;
    char fault_text[256];
};

struct rig {
    const struct dev_ops *ops;
    struct dev_events events;
    struct dev *dev;
    uint32_t uid; /* of the clients that are added next */
    bool more;    /* what fake_launch() submits has others behind it */
    struct rig_client clients[RIG_CLIENTS];
};

/* Opens the device. All fail the test on error. */
void rig_open(struct rig *r, const struct dev_ops *ops);
/* Stops and destroys what is left. */
void rig_close(struct rig *r);
/* Client `i` with streams 0 .. queues-1 and the first `mapped` bytes of its device area. */
struct rig_client *rig_client_add(struct rig *r, int i, double share_pct, int priority, int queues,
                                  uint64_t mapped);
void rig_client_remove(struct rig *r, int i);

static inline void *rig_at(const struct rig_client *c, uint64_t offset)
{
    return (void *)(uintptr_t)(c->base + offset);
}
static inline uint64_t rig_completed(const struct rig_client *c, int stream)
{
    return atomic_load(&c->session.streams[stream].completed.value);
}
/* Waits until the stream has completed `seq` (0: all that was issued), at most 20 s. */
void rig_wait(struct rig_client *c, int stream, uint64_t seq);

/* Return the operation's sequence number. */
uint64_t rig_launch(struct rig *r, struct rig_client *c, int stream, const struct dev_launch *l);
uint64_t rig_copy(struct rig *r, struct rig_client *c, int stream, uint64_t dst, uint64_t src,
                  uint64_t size);
uint64_t rig_fill(struct rig *r, struct rig_client *c, int stream, uint64_t dst, uint64_t count,
                  uint32_t value, uint32_t element_size);
uint64_t rig_wait_op(struct rig *r, struct rig_client *c, int stream, int other, uint64_t seq);
uint64_t rig_gate(struct rig *r, struct rig_client *c, int stream);
uint64_t rig_stamp(struct rig *r, struct rig_client *c, int stream, uint32_t event);
void rig_open_gate(struct rig *r, struct rig_client *c, int stream, uint64_t seq);

#endif
