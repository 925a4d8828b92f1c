#include "device/soft/loader/compiler.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/list.h"
#include "base/log.h"
#include "device/soft/loader/cache.h"
#include "device/soft/loader/helper.h"
#include "device/soft/loader/key.h"
#include "device/soft/loader/object.h"
#include "transport/memfd.h"

#define CACHE_BYTES_DEFAULT (256ull << 20)
#define TIMEOUT_MS_DEFAULT  30000u
#define IDLE_MS_DEFAULT     10000u
#define HELLO_TIMEOUT_NS    (10 * GM_NS_PER_S)

static struct gm_log_topic topic = GM_LOG_TOPIC("compiler");

/* A submitted job with everything it needs copied behind it. */
struct queued {
    struct gm_list link;
    soft_compiler_done *done; /* NULL: only starts the helper */
    void *arg;
    struct soft_job job;
};

struct soft_compiler {
    char path[PATH_MAX]; /* of gmux-jit; empty: there is none */
    char program[32];    /* the same, open: the process may become a user that does not reach the path */
    int program_fd;
    struct loader_helper_id helper_id;
    struct loader_cache *cache; /* NULL: none */
    uint32_t timeout_ms;
    uint32_t idle_ms;
    int cancel; /* eventfd: readable once `stopping` is set */

    pthread_mutex_t lock; /* the fields below */
    pthread_cond_t work;
    struct gm_list queue;
    bool stopping;
    bool running; /* the thread was started */
    bool broken;  /* gmux-jit does not start: do not try again */
    pthread_t thread;

    struct loader_helper helper; /* the thread's */
};

/* Code from an object. */
struct compiled {
    struct soft_code code;
    struct loader_object *object;
};

static void compiled_destroy(struct soft_code *code)
{
    struct compiled *c = GM_CONTAINER_OF(code, struct compiled, code);
    loader_object_unload(c->object);
    free(c);
}

static bool info_fits(const struct soft_object_info *info, const struct soft_job_options *options)
{
    return info->magic == SOFT_JOB_MAGIC && info->abi == SOFT_ABI_VERSION &&
           memcmp(info->ntid, options->ntid, sizeof(info->ntid)) == 0 && info->save_bytes <= (16u << 20) &&
           info->local_bytes <= (16u << 20);
}

static struct soft_code *code_from_object(const void *bytes, size_t size, const struct soft_job_options *options,
                                          char *why, size_t why_size)
{
    struct compiled *c = calloc(1, sizeof(*c));
    if (!c || loader_object_load(bytes, size, &c->object, why, why_size) < 0) {
        free(c);
        return NULL;
    }
    const struct soft_object_info *info = loader_object_data(c->object, SOFT_INFO_SYMBOL, sizeof(*info));
    void *run = loader_object_function(c->object, SOFT_ENTRY_SYMBOL);
    if (!run || !info || !info_fits(info, options)) {
        snprintf(why, why_size, "object without proper entry point and description");
        compiled_destroy(&c->code);
        return NULL;
    }
    memcpy(&c->code.run_block, &run, sizeof(run));
    c->code.destroy = compiled_destroy;
    c->code.save_bytes = info->save_bytes;
    c->code.local_bytes = info->local_bytes;
    c->code.tier = "compiled";
    return &c->code;
}

int soft_compiler_create(struct soft_compiler **out, const struct soft_compiler_config *config)
{
    static const struct soft_compiler_config none;
    struct stat st;
    int r;

    if (!config)
        config = &none;
    struct soft_compiler *c = calloc(1, sizeof(*c));
    if (!c)
        return -ENOMEM;
    c->cancel = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (c->cancel < 0) {
        r = -errno;
        free(c);
        return r;
    }
    pthread_condattr_t attributes;
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_cond_init(&c->work, &attributes);
    pthread_condattr_destroy(&attributes);
    pthread_mutex_init(&c->lock, NULL);
    gm_list_init(&c->queue);
    loader_helper_init(&c->helper);
    c->timeout_ms = config->timeout_ms ? config->timeout_ms : TIMEOUT_MS_DEFAULT;
    c->idle_ms = config->idle_ms ? config->idle_ms : IDLE_MS_DEFAULT;

    r = loader_helper_find(config->helper, c->path, sizeof(c->path));
    c->program_fd = r == 0 ? open(c->path, O_PATH | O_CLOEXEC) : -1;
    snprintf(c->program, sizeof(c->program), "/proc/self/fd/%d", c->program_fd);
    if (r == 0 && stat(c->path, &st) == 0) {
        c->helper_id.size = (uint64_t)st.st_size;
        c->helper_id.changed_ns = (uint64_t)st.st_mtim.tv_sec * GM_NS_PER_S + (uint64_t)st.st_mtim.tv_nsec;
    } else {
        c->path[0] = 0;
        c->broken = true;
        gm_warn(&topic, "no gmux-jit on this machine: interpreter only");
    }
    r = loader_cache_open(&c->cache, config->cache_dir,
                          config->cache_bytes ? config->cache_bytes : CACHE_BYTES_DEFAULT, config->owner);
    if (r < 0) {
        c->cache = NULL;
        gm_info(&topic, "no object cache: %s", strerror(-r));
    }
    *out = c;
    return 0;
}

/* The key of a job; NULL when there is no cache or no memory. */
static void *make_key(struct soft_compiler *c, const struct soft_job *job, size_t *size)
{
    if (!c->cache)
        return NULL;
    return loader_key_create(&c->helper_id, job->text, job->text_size, job->entry, &job->options, size);
}

static struct soft_code *cached(struct soft_compiler *c, const void *key, size_t key_size,
                                const struct soft_job_options *options)
{
    GM_AUTO_FREE void *object = NULL;
    size_t size;
    char why[256];
    if (loader_cache_get(c->cache, key, key_size, &object, &size) < 0)
        return NULL;
    struct soft_code *code = code_from_object(object, size, options, why, sizeof(why));
    if (!code) {
        gm_warn(&topic, "cached object dropped: %s", why);
        loader_cache_remove(c->cache, key, key_size);
    }
    return code;
}

struct soft_code *soft_compiler_lookup(struct soft_compiler *c, const struct soft_job *job)
{
    size_t size;
    GM_AUTO_FREE void *key = make_key(c, job, &size);
    return key ? cached(c, key, size, &job->options) : NULL;
}

/* Marks the machine as one without a compiler, and says so. */
static void set_broken(struct soft_compiler *c, const char *what)
{
    pthread_mutex_lock(&c->lock);
    bool first = !c->broken;
    c->broken = true;
    pthread_mutex_unlock(&c->lock);
    if (first)
        gm_warn(&topic, "%s: %s: interpreter only", c->path, what);
}

/* The helper, started if it is not running. 0 or -errno. */
static int ensure_helper(struct soft_compiler *c)
{
    struct soft_job_answer hello;
    int fd = -1;
    if (c->helper.pid >= 0)
        return 0;
    if (!c->path[0])
        return -ENOENT;
    int r = c->program_fd >= 0 ? loader_helper_start(&c->helper, c->program) : -ENOENT;
    if (r < 0)
        r = loader_helper_start(&c->helper, c->path); /* without /proc */
    if (r == 0)
        r = loader_helper_receive(&c->helper, gm_now_ns() + HELLO_TIMEOUT_NS, c->cancel, &hello, &fd);
    gm_close(fd);
    if (r == 0) {
        gm_debug(&topic, "gmux-jit started: %s", hello.reason);
        return 0;
    }
    loader_helper_stop(&c->helper);
    if (r != -ECANCELED)
        set_broken(c, r == -EPIPE ? "does not start" : strerror(-r));
    return r;
}

/* Maps the answer's object and loads it. */
static struct soft_code *take_object(struct soft_compiler *c, const struct soft_job *job, int fd, uint64_t size,
                                     const void *key, size_t key_size, char *why, size_t why_size)
{
    if (fd < 0 || size == 0 || size > SOFT_JOB_OBJECT_MAX || tp_memfd_check(fd, size, true) < 0) {
        snprintf(why, why_size, "gmux-jit sent no proper object");
        return NULL;
    }
    void *bytes = tp_memfd_map(fd, size, false);
    if (!bytes) {
        snprintf(why, why_size, "%s", strerror(errno));
        return NULL;
    }
    struct soft_code *code = code_from_object(bytes, size, &job->options, why, why_size);
    if (code && key) {
        int r = loader_cache_put(c->cache, key, key_size, bytes, size);
        if (r < 0)
            gm_info(&topic, "object not cached: %s", strerror(-r));
    }
    munmap(bytes, size);
    return code;
}

static struct soft_code *compile(struct soft_compiler *c, const struct soft_job *job, bool *unsupported, char *why,
                                 size_t why_size)
{
    size_t key_size = 0;
    GM_AUTO_FREE void *key = make_key(c, job, &key_size);
    GM_AUTO_FD int fd = -1;
    struct soft_job_answer answer;
    uint64_t begin = gm_now_ns();
    struct soft_code *code;

    /* Another process may have been faster. */
    if (key && (code = cached(c, key, key_size, &job->options)))
        return code;
    int r;
    bool again = false;
    do {
        r = ensure_helper(c);
        if (r == 0)
            r = loader_helper_send(&c->helper, job->text, job->text_size, job->entry, &job->options);
        if (r == 0)
            r = loader_helper_receive(&c->helper, begin + c->timeout_ms * GM_NS_PER_MS, c->cancel, &answer, &fd);
        /* One that left between two jobs, for whatever reason, did not fail on this one. */
        again = r < 0 && loader_helper_stop(&c->helper) && r == -EPIPE && !again;
    } while (again);
    if (r < 0) {
        if (r == -EPIPE)
            snprintf(why, why_size, "gmux-jit crashed");
        else if (r == -ETIMEDOUT)
            snprintf(why, why_size, "compiling took more than %u ms", c->timeout_ms);
        else
            snprintf(why, why_size, "%s", r == -ECANCELED ? "cancelled" : strerror(-r));
        return NULL;
    }
    if (answer.status != SOFT_JOB_OK) {
        *unsupported = answer.status == SOFT_JOB_UNSUPPORTED;
        snprintf(why, why_size, "%s", answer.reason);
        return NULL;
    }
    code = take_object(c, job, fd, answer.object_size, key, key_size, why, why_size);
    if (code)
        gm_debug(&topic, "%s compiled in %.1f ms", job->entry, (double)(gm_now_ns() - begin) / 1e6);
    return code;
}

static void run_job(struct soft_compiler *c, struct queued *q)
{
    char why[SOFT_JOB_REASON_MAX] = "cancelled";
    bool unsupported = false;
    struct soft_code *code = NULL;

    if (!q->done) {
        if (ensure_helper(c) < 0)
            loader_helper_stop(&c->helper);
    } else {
        pthread_mutex_lock(&c->lock);
        bool stopping = c->stopping;
        pthread_mutex_unlock(&c->lock);
        if (!stopping)
            code = compile(c, &q->job, &unsupported, why, sizeof(why));
        if (!code && !stopping)
            gm_info(&topic, "%s stays interpreted: %s", q->job.entry, why);
        q->done(q->arg, code, unsupported, code ? "" : why);
    }
    free(q);
}

/* The next job, or NULL: the compiler is being destroyed. Lets an idle helper go meanwhile. */
static struct queued *next_job(struct soft_compiler *c)
{
    struct queued *q = NULL;
    uint64_t idle_until = gm_now_ns() + c->idle_ms * GM_NS_PER_MS;
    struct timespec ts = { (time_t)(idle_until / GM_NS_PER_S), (long)(idle_until % GM_NS_PER_S) };

    pthread_mutex_lock(&c->lock);
    while (gm_list_empty(&c->queue) && !c->stopping) {
        if (c->helper.pid < 0) {
            pthread_cond_wait(&c->work, &c->lock);
        } else if (pthread_cond_timedwait(&c->work, &c->lock, &ts) == ETIMEDOUT) {
            pthread_mutex_unlock(&c->lock);
            loader_helper_stop(&c->helper);
            pthread_mutex_lock(&c->lock);
        }
    }
    if (!gm_list_empty(&c->queue)) {
        q = gm_list_entry(c->queue.next, struct queued, link);
        gm_list_remove(&q->link);
    }
    pthread_mutex_unlock(&c->lock);
    return q;
}

static void *compiler_main(void *arg)
{
    struct soft_compiler *c = arg;
    struct queued *q;
    pthread_setname_np(pthread_self(), "gmux-compiler");
    while ((q = next_job(c)))
        run_job(c, q);
    loader_helper_stop(&c->helper);
    return NULL;
}

/* Under the lock. */
static int ensure_thread(struct soft_compiler *c)
{
    sigset_t all, before;
    if (c->running)
        return 0;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int r = pthread_create(&c->thread, NULL, compiler_main, c);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    c->running = r == 0;
    return -r;
}

static int enqueue(struct soft_compiler *c, struct queued *q)
{
    pthread_mutex_lock(&c->lock);
    int r = c->broken ? -ENOENT : c->stopping ? -ECANCELED : ensure_thread(c);
    if (r == 0) {
        gm_list_append(&c->queue, &q->link);
        pthread_cond_signal(&c->work);
    }
    pthread_mutex_unlock(&c->lock);
    if (r < 0)
        free(q);
    return r;
}

int soft_compiler_submit(struct soft_compiler *c, const struct soft_job *job, soft_compiler_done *done, void *arg)
{
    size_t entry_size = strlen(job->entry) + 1;
    if (entry_size > SOFT_JOB_NAME_MAX || job->text_size > SOFT_JOB_TEXT_MAX)
        return -E2BIG;
    struct queued *q = malloc(sizeof(*q) + entry_size + job->text_size);
    if (!q)
        return -ENOMEM;
    char *entry = (char *)(q + 1);
    char *text = entry + entry_size;
    memcpy(entry, job->entry, entry_size);
    memcpy(text, job->text, job->text_size);
    gm_list_init(&q->link);
    q->done = done;
    q->arg = arg;
    q->job = *job;
    q->job.entry = entry;
    q->job.text = text;
    return enqueue(c, q);
}

void soft_compiler_warm(struct soft_compiler *c)
{
    struct queued *q = calloc(1, sizeof(*q));
    if (!q)
        return;
    gm_list_init(&q->link);
    if (enqueue(c, q) < 0)
        return; /* said when it was found out */
}

void soft_compiler_destroy(struct soft_compiler *c)
{
    if (!c)
        return;
    pthread_mutex_lock(&c->lock);
    c->stopping = true;
    pthread_cond_signal(&c->work);
    bool running = c->running;
    pthread_mutex_unlock(&c->lock);
    eventfd_write(c->cancel, 1);
    if (running)
        pthread_join(c->thread, NULL);
    loader_cache_close(c->cache);
    gm_close(c->cancel);
    gm_close(c->program_fd);
    pthread_cond_destroy(&c->work);
    pthread_mutex_destroy(&c->lock);
    free(c);
}

/* For soft_compiler_compile. */
struct waiter {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    bool finished;
    struct soft_code *code;
    bool unsupported;
    char why[SOFT_JOB_REASON_MAX];
};

static void wake_waiter(void *arg, struct soft_code *code, bool unsupported, const char *reason)
{
    struct waiter *w = arg;
    pthread_mutex_lock(&w->lock);
    w->finished = true;
    w->code = code;
    w->unsupported = unsupported;
    snprintf(w->why, sizeof(w->why), "%s", reason);
    pthread_cond_signal(&w->changed);
    pthread_mutex_unlock(&w->lock);
}

struct soft_code *soft_compiler_compile(struct soft_compiler *c, const struct soft_job *job, bool *unsupported,
                                        char *why, size_t why_size)
{
    struct waiter w = { PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, false, NULL, false, "" };
    int r = soft_compiler_submit(c, job, wake_waiter, &w);
    if (r < 0) {
        *unsupported = false;
        snprintf(why, why_size, "%s", r == -ENOENT ? "no compiler" : strerror(-r));
        return NULL;
    }
    pthread_mutex_lock(&w.lock);
    while (!w.finished)
        pthread_cond_wait(&w.changed, &w.lock);
    pthread_mutex_unlock(&w.lock);
    *unsupported = w.unsupported;
    snprintf(why, why_size, "%s", w.why);
    return w.code;
}
