/*
 * A fallback context of a GPU, for clients that somebody's long kernel keeps from loading theirs.
 *
 * A load waits until nothing runs in its context (admit.h), and the primary context is everybody's:
 * beside a kernel that does not end nobody could begin. So a client whose load has waited for some
 * time goes to a fallback context, made for the first one that needs it. There the hardware gives
 * both contexts the GPU in turn, as it does with two processes: slower than beside each other, but
 * nobody waits for somebody else's kernel.
 *
 * That is dear: half of the time the GPU has nothing but what runs in one of both contexts, which
 * may be one block. So clients come back soon, at a safe point of the primary context for which
 * longer operations are waited for; the fallback context has the GPU meanwhile. What they have
 * loaded is loaded there then, so that they need not go again. Such safe points take at most a
 * sixteenth of the time, and there is none while an operation takes half a second.
 *
 * Memory, its addresses, libraries and completion words are the process's, and the same in both
 * contexts. What belongs to a context is left behind: streams are made anew, kernels are found
 * again. So a client goes when nothing of it runs or waits to run, and stays where it is while it
 * has something there that cannot be made again: green contexts of its own (they are the primary
 * context's), arrays and textures, variables in the driver's memory, attributes of kernels. Its
 * share of the multiprocessors, a green context as well, does not hold there.
 * docs/adr/0013-calls-that-wait.md has what was measured.
 *
 * The client's thread, where nothing else is said.
 */
#ifndef GMUX_DEVICE_CUDA_FALLBACK_H
#define GMUX_DEVICE_CUDA_FALLBACK_H

#include "base/clock.h"
#include "device/cuda/state.h"

/* Between two attempts to have clients back; longer after attempts in vain. */
#define CUDA_AWAY_NS (250 * GM_NS_PER_MS)
/* How long such an attempt waits for what clients have in flight. */
#define CUDA_WELCOME_NS (50 * GM_NS_PER_MS)

/* The client begins to use a GPU, whose context is current: gives it a place there, or in the
 * fallback context if making its share's green context would have to wait. An order's thread. */
CUresult cuda_fallback_seat(struct dev_client *c, struct cuda_gpu *g);
/* True if the client has something that no other executor could make again, or if that cannot be
 * told just now. Any thread, with dev->lock. */
bool cuda_would_lose(struct dev_client *c);
/* Takes the client back to the primary contexts that have a safe point for that, if it can go. */
void cuda_fallback_return(struct dev_client *c);
/* The client waits in vain for a safe point of the context that it is in: takes it to the GPU's
 * other one, if it can go. */
void cuda_fallback_move(struct dev_client *c, struct cuda_gpu *from);

#endif
