/*
 * Runs that a client hands over again and again become graphs of the driver: one call takes the
 * place of one per operation, and the GPU goes from one kernel to the next by itself.
 *
 * A run that comes for the second time is learnt: its operations go to a stream that captures. If
 * anything fails then, or a graph cannot contain an operation, the run stays plain from then on, so
 * that an operation's error is found and reported in the usual place. A graph names functions,
 * addresses, arrays and a green context. When one of these may have gone, the graph is made anew.
 * That costs as much as many plain runs, so it is put off for longer each time.
 */
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

#include "base/clock.h"
#include "device/cuda/capacity.h"
#include "device/cuda/intake.h"
#include "device/cuda/lookahead.h"
#include "device/cuda/op.h"
#include "device/cuda/precedence.h"
#include "device/cuda/run.h"
#include "device/cuda/stream.h"

#define RUNS_MAX       512u
#define RUNS_BYTES_MAX (16u << 20)
#define SEEN           1024u
#define STAYS_PLAIN    UINT32_MAX
#define OWN_NS         (5 * GM_NS_PER_MS)
#define AGAIN_NS       GM_NS_PER_S

struct cuda_run {
    struct gm_list link; /* client->runs.list, the last one launched first */
    uint64_t hash;
    uint32_t size;
    uint64_t place;         /* number of the one that its kernels run in */
    struct cuda_exec graph; /* none: the run is plain */
    uint32_t learnt;        /* how often */
    /* without a graph: how often it comes until it is learnt again; or STAYS_PLAIN */
    uint32_t plain;
    uint32_t modules; /* the client's counts of changes when it was learnt; `memory` matters only */
    uint32_t memory;  /* if names_memory */
    bool names_memory;
    uint8_t bytes[];
};

static void forget(struct dev_client *c, struct cuda_run *run)
{
    gm_list_remove(&run->link);
    c->runs.count--;
    c->runs.bytes -= run->size;
    cuda_capacity_graph_destroy(c, &run->graph);
    free(run);
}

void cuda_runs_finish(struct dev_client *c)
{
    gm_list_for_each_safe (run, &c->runs.list, struct cuda_run, link)
        forget(c, run);
    free(c->runs.seen);
}

void cuda_runs_leave(struct dev_client *c, uint64_t place)
{
    gm_list_for_each_safe (run, &c->runs.list, struct cuda_run, link)
        if (run->place == place)
            forget(c, run);
}

static bool is_stale(const struct dev_client *c, const struct cuda_run *run)
{
    return cuda_capacity_graph_is_stale(&run->graph) ||
           run->modules != atomic_load_explicit(&c->runs.modules, memory_order_acquire) ||
           (run->names_memory &&
            run->memory != atomic_load_explicit(&c->runs.memory, memory_order_acquire));
}

static struct cuda_run *find(struct dev_queue *q, const struct dev_run *run, uint64_t hash)
{
    gm_list_for_each (known, &q->client->runs.list, struct cuda_run, link)
        if (known->hash == hash && known->size == run->size && known->place == q->place->number &&
            memcmp(known->bytes, run->records, run->size) == 0)
            return known;
    return NULL;
}

/* The hash came before. Two runs with hashes in the same slot make each other look new. */
static bool was_seen(struct cuda_runs *r, uint64_t hash)
{
    if (!r->seen && !(r->seen = calloc(SEEN, sizeof(*r->seen))))
        return false;
    uint64_t *at = &r->seen[hash % SEEN];
    bool again = *at == hash;
    *at = hash;
    return again;
}

static void make_room(struct dev_client *c, uint32_t size)
{
    while (!gm_list_empty(&c->runs.list) &&
           (c->runs.count >= RUNS_MAX || c->runs.bytes + size > RUNS_BYTES_MAX))
        forget(c, gm_list_entry(c->runs.list.prev, struct cuda_run, link));
}

/* `graph` has its room already, which the run takes over. */
static enum dev_run_verdict learn(struct dev_queue *q, const struct dev_run *run, uint64_t hash,
                                  uint32_t before, struct cuda_exec *graph)
{
    struct dev_client *c = q->client;
    const struct cuda_driver *api = &c->dev->api;
    make_room(c, run->size);
    struct cuda_run *new = malloc(sizeof(*new) + run->size);
    if (!new) {
        cuda_capacity_graph_destroy(c, graph);
        return DEV_RUN_PLAIN;
    }
    *new =
        (struct cuda_run) { .hash = hash,
                            .size = run->size,
                            .place = q->place->number,
                            .graph = *graph,
                            .learnt = before + 1,
                            .modules = atomic_load_explicit(&c->runs.modules, memory_order_acquire),
                            .memory = atomic_load_explicit(&c->runs.memory, memory_order_acquire) };
    memcpy(new->bytes, run->records, run->size);
    struct cuda_learning learning = { .run = new };
    CUresult r = cuda_stream_like(q, &learning.into);
    if (r == CUDA_SUCCESS && (r = api->cuStreamBeginCapture_v2(
                                  learning.into, CU_STREAM_CAPTURE_MODE_RELAXED)) != CUDA_SUCCESS)
        cuda_capacity_stream_destroy(q->gpu, q->place, learning.into);
    if (r != CUDA_SUCCESS) {
        cuda_capacity_graph_destroy(c, &new->graph);
        free(new);
        return DEV_RUN_PLAIN;
    }
    q->learning = learning;
    return DEV_RUN_LEARN;
}

/* The lock keeps the client's modules, and their functions, until the driver has been told. False:
 * the driver did not take it. */
static bool launch(struct dev_queue *q, struct cuda_run *run, const struct dev_run *what)
{
    struct dev_client *c = q->client;
    pthread_mutex_lock(&c->modules_lock);
    CUresult r =
        is_stale(c, run) ? CUDA_ERROR_NOT_FOUND : cuda_capacity_graph_launch(q, &run->graph);
    pthread_mutex_unlock(&c->modules_lock);
    if (r != CUDA_SUCCESS) {
        if (cuda_is_fatal(r))
            cuda_die(c->dev, r);
        return false;
    }
    gm_list_remove(&run->link);
    gm_list_prepend(&c->runs.list, &run->link);
    cuda_intake_run(q, what->seq + what->count - 1, what->count);
    return true;
}

/* Takes room for a graph. If there is none, the client now and then waits a little for its own
 * work, since room can be made only while nothing of it runs. */
static bool take_room(struct dev_queue *q, const struct dev_run *run, struct cuda_exec *graph)
{
    struct cuda_runs *r = &q->client->runs;
    const uint64_t now = gm_now_ns();
    const bool waits = now - r->waited > AGAIN_NS;
    if (cuda_capacity_take_graph(q, run->count, waits ? now + OWN_NS : 0, graph))
        return true;
    if (waits)
        r->waited = gm_now_ns();
    return false;
}

enum dev_run_verdict cuda_run_begin(struct dev_queue *q, const struct dev_run *run)
{
    struct dev_client *c = q->client;
    cuda_hands_on(c);
    cuda_enter(q->gpu);
    if (!cuda_intake_is_open(q) || !cuda_may_have(q, run->count) || cuda_has_precedence(q))
        return DEV_RUN_PLAIN; /* the kernels of a graph have no precedence */
    uint64_t hash = XXH3_64bits(run->records, run->size);
    struct cuda_run *known = find(q, run, hash);
    struct cuda_exec graph;
    if (!known)
        return was_seen(&c->runs, hash) && take_room(q, run, &graph)
                   ? learn(q, run, hash, 0, &graph)
                   : DEV_RUN_PLAIN;
    if (known->graph.handle && !is_stale(c, known))
        return launch(q, known, run) ? DEV_RUN_DONE : DEV_RUN_PLAIN;
    if (known->graph.handle) {
        cuda_capacity_graph_destroy(c, &known->graph);
        known->plain = 1u << GM_MIN(known->learnt, 16u);
    }
    if (known->plain == STAYS_PLAIN || --known->plain)
        return DEV_RUN_PLAIN;
    if (!take_room(q, run, &graph)) {
        known->plain = 1;
        return DEV_RUN_PLAIN;
    }
    uint32_t before = known->learnt;
    forget(c, known);
    return learn(q, run, hash, before, &graph);
}

bool cuda_run_end(struct dev_queue *q, const struct dev_run *what)
{
    struct dev_client *c = q->client;
    const struct cuda_driver *api = &c->dev->api;
    const struct cuda_learning learnt = q->learning;
    struct cuda_run *run = learnt.run;
    CUgraph graph = NULL;
    q->learning = (struct cuda_learning) { 0 };
    run->names_memory = learnt.names_memory;
    CUresult r = api->cuStreamEndCapture(learnt.into, &graph);
    cuda_capacity_stream_destroy(q->gpu, q->place, learnt.into);
    if (r == CUDA_SUCCESS && !learnt.failed)
        r = cuda_capacity_graph(&run->graph, graph);
    if (!run->graph.handle) {
        cuda_capacity_graph_destroy(c, &run->graph);
        run->plain = STAYS_PLAIN;
    }
    if (graph)
        (void)api->cuGraphDestroy(graph);
    if (r != CUDA_SUCCESS && cuda_is_fatal(r))
        cuda_die(c->dev, r);
    gm_list_prepend(&c->runs.list, &run->link);
    c->runs.count++;
    c->runs.bytes += run->size;
    return run->graph.handle && launch(q, run, what);
}
