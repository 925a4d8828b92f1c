/*
 * A fallback context of a GPU, for clients that somebody's long kernel keeps from loading theirs.
 *
 * A load waits until nothing runs in its context (admit.h), and all clients share the primary
 * context: beside a kernel that does not end, no program could begin. So a client whose load has
 * waited for some time goes to a fallback context, which is made for the first one that needs it.
 * The hardware gives the GPU to both contexts in turn, as it does with two processes. That is
 * slower than running side by side, but nobody waits for somebody else's kernel.
 *
 * It is expensive: while one context has the GPU, nothing of the other one runs, even if the first
 * has a single block. So clients come back soon, at a safe point of the primary context. Such a
 * safe point waits for longer operations than others do. While it is waited for, clients in the
 * fallback context hand over nothing either, so that what they have in flight is done by then. What
 * they have loaded is loaded in the primary context then, so that they need not go again. These
 * safe points take at most a sixteenth of the time, and there is none while an operation takes more
 * than half a second.
 *
 * Memory, its addresses, libraries and completion words belong to the process and are the same in
 * both contexts. What belongs to a context stays behind: streams are made anew, and kernels are
 * looked up again. So a client goes only when nothing of it runs or waits to run. It stays where it
 * is while it has something that cannot be made again: its own green contexts (which belong to the
 * primary context), arrays and textures, variables in the driver's memory, attributes of kernels.
 * Its share of the multiprocessors, which is a green context as well, has no effect while it is
 * away. docs/measurements.md has what was measured.
 *
 * A kernel that does not end can also block its context for everybody: it has a block on every
 * multiprocessor, somebody's next kernel needs more shared memory than the multiprocessors are set
 * to have, and all later kernels wait behind that one (docs/measurements.md). What is in flight
 * then cannot be helped. But clients that have nothing in flight, and those that begin, go to the
 * fallback context.
 *
 * All on the client's thread, unless a comment says otherwise.
 */
#ifndef GMUX_DEVICE_CUDA_FALLBACK_H
#define GMUX_DEVICE_CUDA_FALLBACK_H

#include "base/clock.h"
#include "device/cuda/state.h"

/* The pause between two attempts to have clients back; it grows while nobody comes back. */
#define CUDA_AWAY_NS (250 * GM_NS_PER_MS)
/* A context is blocked if several clients have something in flight there and nothing has ended for
 * so long. */
#define CUDA_BLOCKED_NS (5 * GM_NS_PER_S)
/* How long such an attempt waits for what clients have in flight, once the primary context is idle.
 */
#define CUDA_WELCOME_NS (50 * GM_NS_PER_MS)

/* The client begins to use a GPU, whose context is current. Gives it a place there, or in the
 * fallback context if the green context for its share would have to wait. An order's thread. */
CUresult cuda_fallback_seat(struct dev_client *c, struct cuda_gpu *g);
/* True if the client has something that no other executor could make again, or if that is not known
 * just now. Any thread, with dev->lock held. */
bool cuda_would_lose(struct dev_client *c);
/* The client is about to begin something: if it has nothing in flight in a primary context that is
 * blocked, it goes to the fallback context, if it can go. */
void cuda_fallback_flee(struct dev_client *c);
/* While clients are called back to a primary context: waits until what this one has in the fallback
 * context is done, and takes it there, if it can go. */
void cuda_fallback_return(struct dev_client *c);
/* The client asks for something that it cannot have made again (above). If it is in the fallback
 * context, it waits until it can go back, but not for longer than dev->stays_ns, and not where the
 * primary context has an operation of more than CUDA_RETURNS_NS. Else it would stay there, and
 * everybody else would have half of the GPU. */
void cuda_fallback_await(struct dev_client *c, uint32_t device);
/* The client waits in vain for a safe point of the context that it is in: takes it to the GPU's
 * other one, if it can go. */
void cuda_fallback_move(struct dev_client *c, struct cuda_gpu *from);

#endif
