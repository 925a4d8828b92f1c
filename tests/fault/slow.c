/*
 * A device that takes its time: the null device, some of whose functions wait until the test lets
 * them go. The file named by GMUX_SLOW is a FIFO: who opens it for writing learns so that one of
 * them has begun, and a byte, or its end, lets it go.
 *
 * All questions wait but SLOW_STOP, after which taking the client's work off the device does, and
 * SLOW_DESTROY, after which the client is gone later, with all such that there are then, and with a
 * FIFO of its own (GMUX_SLOW_END); modules that have an entry "slow" when they are loaded, the last
 * one with an entry "misplaced" when it is placed; of memory what is mapped in one piece of
 * SLOW_BYTES.
 *
 * A module with an entry "bomb" ends the executor as the system does where memory is short; one
 * with an entry "crash" as a mistake does; one with an entry "mine" does the former while the file
 * named by GMUX_MINE is there.
 *
 * It also has something to refuse: memory that is mapped to be read only.
 */
#include "slow.h"

#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/attr.h"
#include "base/result.h"
#include "device/device.h"

GM_EXPORT extern struct dev_ops gmux_device;
struct dev_ops gmux_device;

static struct dev_client *_Atomic stops_slowly;
static struct dev_client *_Atomic destroyed_slowly;
static struct dev_module *_Atomic placed_slowly;
static struct dev_client *_Atomic places_slowly, *_Atomic placing;

static int wait_for_test(const char *fifo)
{
    const char *path = getenv(fifo);
    char go;
    int fd = path ? open(path, O_RDONLY | O_CLOEXEC) : -1;
    ssize_t n = fd >= 0 ? read(fd, &go, 1) : -1;
    close(fd);
    return n < 0 ? GM_CUDA_UNKNOWN : 0;
}

static const struct dev_info *info(struct dev *d, uint32_t device)
{
    static struct dev_info small[DEV_DEVICES];
    small[device] = *dev_null_ops.info(d, device);
    small[device].memory_total = SLOW_MEMORY;
    small[device].leaves_later = true;
    return &small[device];
}

static int call(struct dev_client *c, const struct dev_call *question)
{
    if (question->function == SLOW_STOP)
        stops_slowly = c;
    else if (question->function == SLOW_DESTROY)
        destroyed_slowly = c;
    else
        return wait_for_test("GMUX_SLOW");
    return 0;
}

static void client_stop(struct dev_client *c)
{
    if (c == stops_slowly) {
        (void)wait_for_test("GMUX_SLOW");
        stops_slowly = NULL;
    }
    if (c == placing) /* its memory is being written to */
        abort();
    dev_null_ops.client_stop(c);
}

/* --- clients that leave later ----------------------------------------------------------------- */

#define CLIENTS 64u

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct {
    struct dev_client *client; /* NULL: a free place */
    struct tp_session *session;
    bool leaves; /* when the test lets it go */
} clients[CLIENTS];
static unsigned leaving;
static struct dev_events told;

static int client_create(struct dev *d, const struct dev_client_config *config,
                         struct dev_client **out)
{
    int r = dev_null_ops.client_create(d, config, out);
    pthread_mutex_lock(&lock);
    for (unsigned i = 0; r == 0; i++)
        if (!clients[i].client) {
            clients[i].client = *out;
            clients[i].session = config->session;
            break;
        }
    pthread_mutex_unlock(&lock);
    return r;
}

/* The lock is held. */
static void end(unsigned i)
{
    dev_null_ops.client_destroy(clients[i].client);
    told.client_gone(told.arg, clients[i].session);
    leaving -= clients[i].leaves;
    clients[i].client = NULL;
    clients[i].leaves = false;
}

/* One thread for all of them. */
static void *end_all(void *arg)
{
    (void)arg;
    pthread_setname_np(pthread_self(), "leave"); /* or it is one more worker */
    (void)wait_for_test("GMUX_SLOW_END");
    pthread_mutex_lock(&lock);
    for (unsigned i = 0; i < CLIENTS; i++)
        if (clients[i].leaves)
            end(i);
    pthread_mutex_unlock(&lock);
    return NULL;
}

static void client_destroy(struct dev_client *c)
{
    pthread_t thread;
    unsigned i = 0;
    pthread_mutex_lock(&lock);
    while (clients[i].client != c)
        i++;
    clients[i].leaves = c == destroyed_slowly;
    if (clients[i].leaves)
        destroyed_slowly = NULL; /* another one may be where it was */
    if (!clients[i].leaves)
        end(i);
    else if (leaving++ == 0 && pthread_create(&thread, NULL, end_all, NULL) != 0)
        abort();
    pthread_mutex_unlock(&lock);
}

static int open_device(struct dev **out, const struct dev_events *events)
{
    told = *events;
    return dev_null_ops.open(out, events);
}

static int memory_map(struct dev_client *c, uint64_t address, uint64_t size)
{
    int r = size == SLOW_BYTES ? wait_for_test("GMUX_SLOW") : 0;
    return r ? r : dev_null_ops.memory_map(c, address, size);
}

static int memory_attach(struct dev_client *c, uint64_t address, uint64_t size, int fd,
                         uint64_t offset, uint32_t device, uint32_t access)
{
    if (DEV_ACCESS(access, 0) == WIRE_MEMORY_ACCESS_READ)
        return GM_CUDA_NOT_SUPPORTED;
    return dev_null_ops.memory_attach(c, address, size, fd, offset, device, access);
}

/* The system counts those that it kills; the test's server reads this file instead. */
static void die_for_memory(void)
{
    const char *path = getenv("GMUX_VMSTAT");
    unsigned kills = 0;
    FILE *f = path ? fopen(path, "r+") : NULL;
    if (f) {
        if (fscanf(f, "oom_kill %u", &kills) != 1)
            kills = 0;
        rewind(f);
        fprintf(f, "oom_kill %010u\n", kills + 1);
        fclose(f);
    }
    kill(getpid(), SIGKILL);
}

static int module_load(struct dev_client *c, uint32_t device, const void *image, size_t size,
                       uint32_t kind, struct dev_module **out, struct dev_module_info *info)
{
    if (memmem(image, size, ".entry slow(", 12))
        (void)wait_for_test("GMUX_SLOW");
    const char *mine = getenv("GMUX_MINE");
    if (memmem(image, size, ".entry bomb(", 12) ||
        (memmem(image, size, ".entry mine(", 12) && mine && access(mine, F_OK) == 0))
        die_for_memory();
    if (memmem(image, size, ".entry crash(", 13))
        abort();
    int r = dev_null_ops.module_load(c, device, image, size, kind, out, info);
    if (r == 0 && memmem(image, size, ".entry misplaced(", 17)) {
        places_slowly = c;
        placed_slowly = *out;
    }
    return r;
}

static int module_place(struct dev_module *m, uint64_t globals_address, bool initialise)
{
    if (m == placed_slowly) {
        placed_slowly = NULL;
        placing = places_slowly;
        (void)wait_for_test("GMUX_SLOW");
        placing = NULL;
    }
    return dev_null_ops.module_place(m, globals_address, initialise);
}

static __attribute__((constructor)) void fill(void)
{
    gmux_device = dev_null_ops;
    gmux_device.contained = false; /* it opens pipes by name */
    gmux_device.name = "slow";
    gmux_device.open = open_device;
    gmux_device.info = info;
    gmux_device.call = call;
    gmux_device.client_create = client_create;
    gmux_device.client_stop = client_stop;
    gmux_device.client_destroy = client_destroy;
    gmux_device.memory_map = memory_map;
    gmux_device.memory_attach = memory_attach;
    gmux_device.module_load = module_load;
    gmux_device.module_place = module_place;
}
