/*
 * Whose context the calling thread's driver calls go to, and what a failed call means: an error of
 * the client's, or the end of the context, and so of the process.
 */
#include <pthread.h>
#include <time.h>
#include <unistd.h>

#include "base/log.h"
#include "device/cuda/complaint.h"

static struct gm_log_topic topic = GM_LOG_TOPIC("cuda");

static _Thread_local struct cuda_gpu *entered;

struct cuda_gpu *cuda_entered(void)
{
    return entered;
}

void cuda_enter(struct cuda_gpu *g)
{
    if (GM_LIKELY(entered == g))
        return;
    entered = g->dev->api.cuCtxSetCurrent(g->context) == CUDA_SUCCESS ? g : NULL;
}

bool cuda_is_fatal(CUresult r)
{
    switch ((int)r) {
    case CUDA_ERROR_ECC_UNCORRECTABLE:
    case CUDA_ERROR_NVLINK_UNCORRECTABLE:
    case CUDA_ERROR_CONTEXT_IS_DESTROYED:
    case GM_CUDA_ILLEGAL_ADDRESS:
    case GM_CUDA_LAUNCH_TIMEOUT:
    case GM_CUDA_ASSERT:
    case GM_CUDA_HARDWARE_STACK_ERROR:
    case GM_CUDA_ILLEGAL_INSTRUCTION:
    case GM_CUDA_MISALIGNED_ADDRESS:
    case CUDA_ERROR_INVALID_ADDRESS_SPACE:
    case GM_CUDA_INVALID_PC:
    case GM_CUDA_LAUNCH_FAILED:
    case GM_CUDA_UNKNOWN:
        return true;
    default:
        return false;
    }
}

/* Waits for a client that is just leaving; from now on others stay (cuda_output_leave). Not for
 * ever, since the driver may hang while somebody has the lock. */
static void let_clients_go(struct dev *d)
{
    struct timespec until;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec++;
    if (pthread_mutex_timedlock(&d->lock, &until) == 0)
        pthread_mutex_unlock(&d->lock);
}

/* Reports the error to all clients that had work in flight. The driver does not say whose kernel it
 * was; if only one client had any, it was that one's. */
static void blame(struct dev *d, CUresult r)
{
    unsigned busy = 0;
    gm_list_for_each (c, &d->clients, struct dev_client, link)
        busy += cuda_client_is_busy(c);
    const char *text =
        busy == 1 ? "a fault of this program's kernel ended the device's context"
                  : "a fault of this program's kernel, or of one that ran beside it, ended the "
                    "device's context";
    gm_list_for_each (c, &d->clients, struct dev_client, link)
        if (cuda_client_is_busy(c))
            d->events.client_fault(d->events.arg, c, (int)r, 0, text);
}

void cuda_die(struct dev *d, CUresult r)
{
    if (atomic_exchange(&d->dead, true))
        for (;;)
            pause(); /* another thread is at it, and ends the process */
    let_clients_go(d);
    gm_error(&topic, "the device's context ended with error %d", (int)r);
    cuda_complaint_deliver(d);
    blame(d, r);
    _exit(1);
}

bool cuda_check(struct dev_client *c, CUresult r, const char *what)
{
    if (GM_LIKELY(r == CUDA_SUCCESS))
        return true;
    if (cuda_is_fatal(r))
        cuda_die(c->dev, r);
    c->dev->events.client_fault(c->dev->events.arg, c, (int)r, 0, what);
    return false;
}

void cuda_wrong(struct dev_client *c, CUresult r, uint64_t address, const char *what)
{
    c->dev->events.client_fault(c->dev->events.arg, c, (int)r, address, what);
}

void cuda_die_if_lost(struct cuda_gpu *g)
{
    CUresult r = g->dev->api.cuStreamQuery(g->print_stream);
    if (cuda_is_fatal(r))
        cuda_die(g->dev, r);
}
