/*
 * gmux-executor: started by gmux-server; not meant to be started by hand.
 */
#include <errno.h>
#include <getopt.h>
#include <malloc.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/log.h"
#include "base/oom.h"
#include "base/parse.h"
#include "base/result.h"
#include "executor/executor.h"
#include "transport/memfd.h"

/* It is restored after its death; the server and the daemon are not, and are as small as can be. */
#define OOM_OFFER 10

static struct gm_log_topic topic = GM_LOG_TOPIC("executor");

static int usage(void)
{
    fprintf(stderr, "usage: gmux-executor --server FD --device NAME\n"
                    "Started by gmux-server.\n");
    return 2;
}

static unsigned processors(void)
{
    cpu_set_t set;
    return sched_getaffinity(0, sizeof(set), &set) == 0 ? (unsigned)CPU_COUNT(&set) : 1;
}

static int refuse(int server, int result, const char *reason)
{
    uint8_t packet[1024];
    struct wire_enc e;
    const struct wire_engine_ready m = { .result = result, .reason = reason };
    wire_enc_init(&e, packet, sizeof(packet));
    wire_pack_engine_ready(&e, 0, &m);
    if (tp_send(server, &e, NULL, 0) < 0)
        gm_error(&topic, "%s", reason);
    return 1;
}

static int serve(struct exe_engine *e, const char *device)
{
    char why[256] = "";
    struct dev_events events = { .client_fault = exe_engine_device_fault,
                                 .client_gone = exe_order_client_gone,
                                 .arg = e };
    const char *what;

    e->ops = dev_find(device, why, sizeof(why));
    if (!e->ops)
        return refuse(e->server, GM_CUDA_NO_DEVICE, why);
    if (e->ops->contained)
        events.user = exe_confine_user();
    int result = e->ops->open(&e->dev, &events);
    if (result != 0) {
        snprintf(why, sizeof(why), "device %s does not open: error %d", device, result);
        return refuse(e->server, result, why);
    }
    int r = exe_confine(e->ops, events.user, &what);
    if (r < 0) {
        snprintf(why, sizeof(why), "the executor cannot be confined: %s: %s", what, strerror(-r));
        return refuse(e->server, GM_CUDA_OPERATING_SYSTEM, why);
    }
    e->devices = e->ops->count(e->dev);
    e->info = e->ops->info(e->dev, 0);
    unsigned cpus = processors();
    /* If the devices compute elsewhere, all processors may spin. */
    e->spin_limit = e->info->runs_elsewhere ? cpus : cpus / 2;
    int status = exe_engine_run(e);
    /* No orderly teardown: the device's threads may be inside of a driver, and the kernel frees
     * everything faster. */
    _exit(status);
}

/* How many descriptors this process may have. */
static unsigned descriptors(void)
{
    struct rlimit l;
    return getrlimit(RLIMIT_NOFILE, &l) < 0 ? 256 : (unsigned)GM_MIN(l.rlim_cur, (rlim_t)1 << 20);
}

int main(int argc, char **argv)
{
    static const struct option options[] = {
        { "server", required_argument, NULL, 's' },
        { "device", required_argument, NULL, 'd' },
        { "version", no_argument, NULL, 'v' },
        { 0 },
    };
    struct exe_engine e = { .server = -1 };
    const char *device = NULL;
    uint64_t fd;
    int c;

    gm_log_init("gmux-executor", GM_LOG_WARN);
    while ((c = getopt_long(argc, argv, "v", options, NULL)) != -1) {
        switch (c) {
        case 's':
            if (!gm_parse_u64(optarg, INT32_MAX, &fd))
                return usage();
            e.server = (int)fd;
            break;
        case 'd':
            device = optarg;
            break;
        case 'v':
            puts("gmux-executor " GMUX_VERSION);
            return 0;
        default:
            return usage();
        }
    }
    if (e.server < 0 || !device || optind != argc)
        return usage();

    /* An executor never outlives its server. The socket says so, too, but only if the main thread
     * is reading it. */
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    gm_oom_offer(OOM_OFFER);
    signal(SIGPIPE, SIG_IGN);
    tp_files_of_any_size();
    /* Short pauses are to be short, in all threads: some of them look at words that programs wait
     * for. */
    prctl(PR_SET_TIMERSLACK, 1);
    /* An arena for each thread would cost 130 KiB for each idle client. */
    mallopt(M_ARENA_MAX, 4);

    e.failures = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (e.failures < 0) {
        gm_error(&topic, "eventfd: %s", strerror(errno));
        return 1;
    }
    pthread_mutex_init(&e.clients_lock, NULL);
    gm_list_init(&e.clients);
    exe_jobs_init(&e.jobs);
    e.descriptors_max = descriptors() / 2;
    return serve(&e, device);
}
