/*
 * The threads of the compiler. Each has a gmux-jit process of its own and takes jobs from the
 * queue. No thread holds the lock while its process compiles.
 */
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
#include "device/soft/loader/code.h"
#include "device/soft/loader/helper.h"
#include "device/soft/loader/key.h"
#include "device/soft/loader/queue.h"
#include "device/soft/loader/refusal.h"
#include "transport/memfd.h"

#define CACHE_BYTES_DEFAULT (256ull << 20)
#define TIMEOUT_MS_DEFAULT  30000u
#define IDLE_MS_DEFAULT     10000u
#define HELLO_TIMEOUT_NS    (10 * GM_NS_PER_S)
/* a job that takes longer than this is slow, and is put off if others wait */
#define QUICK_NS  GM_NS_PER_S
#define LINGER_NS (2 * GM_NS_PER_S) /* the longest that a job goes on without its program */
/* a process is killed after so many times its limit of processor time */
#define SILENT_TIMES 10u
#define LOOK_NS      (100 * GM_NS_PER_MS) /* between two looks at how long a job has taken */

static struct gm_log_topic topic = GM_LOG_TOPIC("compiler");

/* A thread, and the process that it waits for. */
struct builder {
    struct soft_compiler *compiler;
    bool slow;
    int cancel;             /* eventfd, readable when the job is to end */
    bool running;           /* the thread was started; the compiler's lock */
    bool dropped;           /* the job is to end; the compiler's lock */
    struct loader_job *job; /* the job that is being compiled; the compiler's lock */
    uint64_t began_ns;      /* when that began; the compiler's lock */
    /* the owner whose text the process has read, or this builder: nobody's; the compiler's lock */
    const void *served;
    pthread_t thread;
    struct loader_helper helper; /* used by the thread only */
};

struct soft_compiler {
    char path[PATH_MAX]; /* of gmux-jit; empty: there is none */
    /* gmux-jit as an open file: the process may become a user that cannot reach the path */
    char program[32];
    int program_fd;
    struct loader_helper_id helper_id;
    struct loader_cache *cache; /* NULL: none */
    struct loader_packer packer;
    uint32_t timeout_ms;
    uint32_t idle_ms;
    struct builder builders[2]; /* for quick and for slow jobs */
    pthread_mutex_t put_lock;   /* held by the thread that writes into the cache */

    pthread_mutex_t lock; /* protects the fields below */
    pthread_cond_t work;  /* there are jobs, or the compiler is being destroyed */
    pthread_cond_t over;  /* a builder has finished a job */
    struct loader_queue queue;
    bool stopping;
    bool broken; /* gmux-jit does not start: do not try again */
};

static int start_builder(struct builder *b);

/* Says why there is no cache: as a warning to those who name its directory. Many users have none.
 */
static void say_why_no_cache(int r)
{
    const char *wanted = secure_getenv("GMUX_CACHE_DIR");
    const char *why =
        r == -EPERM ? "it has to be the user's, and no one else's (mode 700)" : strerror(-r);
    if (wanted && *wanted)
        gm_warn(&topic, "GMUX_CACHE_DIR=%s: %s: compiled kernels are not kept", wanted, why);
    else
        gm_info(&topic, "compiled kernels are not kept: %s", why);
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
    for (int i = 0; i < 2; i++) {
        struct builder *b = &c->builders[i];
        b->compiler = c;
        b->served = b;
        b->slow = i == 1;
        loader_helper_init(&b->helper);
        b->cancel = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    }
    if (c->builders[0].cancel < 0 || c->builders[1].cancel < 0) {
        r = -errno;
        gm_close(c->builders[0].cancel);
        gm_close(c->builders[1].cancel);
        free(c);
        return r;
    }
    pthread_condattr_t attributes;
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_cond_init(&c->work, &attributes);
    pthread_cond_init(&c->over, &attributes);
    pthread_condattr_destroy(&attributes);
    pthread_mutex_init(&c->lock, NULL);
    pthread_mutex_init(&c->put_lock, NULL);
    loader_packer_init(&c->packer);
    loader_queue_init(&c->queue);
    c->timeout_ms = config->timeout_ms ? config->timeout_ms : TIMEOUT_MS_DEFAULT;
    c->idle_ms = config->idle_ms ? config->idle_ms : IDLE_MS_DEFAULT;

    r = loader_helper_find(config->helper, c->path, sizeof(c->path));
    c->program_fd = r == 0 ? open(c->path, O_PATH | O_CLOEXEC) : -1;
    snprintf(c->program, sizeof(c->program), "/proc/self/fd/%d", c->program_fd);
    if (r == 0 && stat(c->path, &st) == 0) {
        c->helper_id.size = (uint64_t)st.st_size;
        c->helper_id.changed_ns =
            (uint64_t)st.st_mtim.tv_sec * GM_NS_PER_S + (uint64_t)st.st_mtim.tv_nsec;
    } else {
        c->path[0] = 0;
        c->broken = true;
        gm_warn(&topic, "no gmux-jit on this machine: interpreter only");
    }
    r = loader_cache_open(&c->cache, config->cache_dir,
                          config->cache_bytes ? config->cache_bytes : CACHE_BYTES_DEFAULT,
                          config->owner);
    if (r < 0) {
        c->cache = NULL;
        say_why_no_cache(r);
    }
    *out = c;
    return 0;
}

/* Makes the job's key. NULL: there is no cache or no memory. */
static void *make_key(struct soft_compiler *c, const struct soft_job *job, size_t *size)
{
    if (!c->cache)
        return NULL;
    return loader_key_create(&c->packer, &c->helper_id, job->uid, job->text, job->text_size,
                             job->entry, &job->options, size);
}

/* Looks for the code in the cache. *refused: the cache says that none can be made, and `why`
 * why. */
static struct soft_code *cached(struct soft_compiler *c, const void *key, size_t key_size,
                                const struct soft_job_options *options, bool *refused, char *why,
                                size_t why_size)
{
    GM_AUTO_FREE void *object = NULL;
    size_t size;
    *refused = false;
    if (loader_cache_get(c->cache, key, key_size, &object, &size) < 0)
        return NULL;
    *refused = loader_is_refusal(object, size, why, why_size);
    if (*refused)
        return NULL;
    struct soft_code *code = loader_code_create(object, size, options, why, why_size);
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
    bool refused;
    char why[SOFT_JOB_REASON_MAX];
    return key ? cached(c, key, size, &job->options, &refused, why, sizeof(why)) : NULL;
}

/* Notes that this machine has no compiler, and logs it. */
static void set_broken(struct soft_compiler *c, const char *what)
{
    pthread_mutex_lock(&c->lock);
    bool first = !c->broken;
    c->broken = true;
    pthread_mutex_unlock(&c->lock);
    if (first)
        gm_warn(&topic, "%s: %s: interpreter only", c->path, what);
}

/* Starts the process if it does not run, for jobs of that owner. 0 or -errno. */
static int ensure_helper(struct builder *b, const void *owner)
{
    struct soft_compiler *c = b->compiler;
    struct soft_job_answer hello;
    int fd = -1;
    pthread_mutex_lock(&c->lock);
    bool others = b->served != owner;
    b->served = owner;
    pthread_mutex_unlock(&c->lock);
    if (others)
        loader_helper_stop(&b->helper);
    if (b->helper.pid >= 0)
        return 0;
    if (!c->path[0])
        return -ENOENT;
    int r = c->program_fd >= 0 ? loader_helper_start(&b->helper, c->program) : -ENOENT;
    if (r < 0)
        r = loader_helper_start(&b->helper, c->path); /* /proc is missing */
    if (r == 0)
        r = loader_helper_receive(&b->helper, gm_now_ns() + HELLO_TIMEOUT_NS, b->cancel, &hello,
                                  &fd);
    gm_close(fd);
    if (r == 0) {
        gm_debug(&topic, "gmux-jit started: %s", hello.reason);
        return 0;
    }
    loader_helper_stop(&b->helper);
    if (r != -ECANCELED)
        set_broken(c, r == -EPIPE ? "does not start" : strerror(-r));
    return r;
}

/* Waits for the answer to a job that began at `begin`, when the process had used `used` ns of
 * processor time. Returns what loader_helper_receive() does, and -EAGAIN: the job is slow and
 * another owner waits; -ETIME: it has used up its processor time; -ETIMEDOUT: it has not, but has
 * been silent for too long. */
static int await_answer(struct builder *b, const struct soft_job *job, uint64_t begin,
                        uint64_t used, struct soft_job_answer *answer, int *fd)
{
    struct soft_compiler *c = b->compiler;
    const uint64_t most = c->timeout_ms * GM_NS_PER_MS, end = begin + SILENT_TIMES * most;
    uint64_t until = begin + QUICK_NS;
    for (;;) {
        uint64_t left = most - GM_MIN(most, loader_helper_processor_ns(&b->helper) - used),
                 now = gm_now_ns();
        until = b->slow ? now + left : GM_MIN(until, now + left);
        int r = loader_helper_receive(&b->helper, GM_MIN(until, end), b->cancel, answer, fd);
        if (r != -ETIMEDOUT || gm_now_ns() >= end)
            return r;
        if (left == 0)
            return -ETIME;
        pthread_mutex_lock(&c->lock);
        bool others = !b->slow && loader_queue_others_wait(&c->queue, job->owner);
        pthread_mutex_unlock(&c->lock);
        if (others && until >= begin + QUICK_NS)
            return -EAGAIN;
        until = GM_MAX(begin + QUICK_NS, gm_now_ns() + LOOK_NS);
    }
}

/* Stores in the cache that the job cannot be compiled, so that no process tries again. */
static void remember(struct soft_compiler *c, const void *key, size_t key_size, const char *why)
{
    struct loader_refusal r = { .mark = LOADER_REFUSAL_MARK };
    if (!key)
        return;
    snprintf(r.reason, sizeof(r.reason), "%s", why);
    pthread_mutex_lock(&c->put_lock);
    /* if it fails, another process tries the compile again */
    (void)!loader_cache_put(c->cache, key, key_size, &r, sizeof(r));
    pthread_mutex_unlock(&c->put_lock);
}

/* Maps the answer's object and loads it. */
static struct soft_code *take_object(struct soft_compiler *c, const struct soft_job *job, int fd,
                                     uint64_t size, const void *key, size_t key_size, char *why,
                                     size_t why_size)
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
    struct soft_code *code = loader_code_create(bytes, size, &job->options, why, why_size);
    if (code && key) {
        pthread_mutex_lock(&c->put_lock);
        int r = loader_cache_put(c->cache, key, key_size, bytes, size);
        pthread_mutex_unlock(&c->put_lock);
        if (r < 0)
            gm_info(&topic, "object not cached: %s", strerror(-r));
    }
    munmap(bytes, size);
    return code;
}

static void say_why(const struct soft_compiler *c, int r, char *why, size_t why_size)
{
    if (r == -EPIPE)
        snprintf(why, why_size, "gmux-jit crashed");
    else if (r == -ETIME)
        snprintf(why, why_size, "compiling took more than %u ms of processor time", c->timeout_ms);
    else if (r == -ETIMEDOUT)
        snprintf(why, why_size, "gmux-jit was silent for %u ms", SILENT_TIMES * c->timeout_ms);
    else
        snprintf(why, why_size, "%s", r == -ECANCELED ? "cancelled" : strerror(-r));
}

/* Compiles a job. *put_off: it has to begin again in the slow builder. */
static struct soft_code *compile(struct builder *b, const struct soft_job *job, bool *put_off,
                                 bool *unsupported, char *why, size_t why_size)
{
    struct soft_compiler *c = b->compiler;
    size_t key_size = 0;
    GM_AUTO_FREE void *key = make_key(c, job, &key_size);
    GM_AUTO_FD int fd = -1;
    struct soft_job_answer answer;
    uint64_t begin = gm_now_ns();
    struct soft_code *code;

    /* Another process may have been faster. */
    if (key && ((code = cached(c, key, key_size, &job->options, unsupported, why, why_size)) ||
                *unsupported))
        return code;
    int r;
    bool again = false;
    do {
        r = ensure_helper(b, job->owner);
        uint64_t used = r == 0 ? loader_helper_processor_ns(&b->helper) : 0;
        if (r == 0)
            r = loader_helper_send(&b->helper, job->text, job->text_size, job->entry,
                                   &job->options);
        if (r == 0)
            r = await_answer(b, job, begin, used, &answer, &fd);
        /* A process that left between two jobs, for whatever reason, did not fail on this one. */
        again = r < 0 && loader_helper_stop(&b->helper) && r == -EPIPE && !again;
    } while (again);
    if (r < 0) {
        *put_off = r == -EAGAIN;
        say_why(c, r, why, why_size);
        if (r == -ETIME)
            remember(c, key, key_size, why);
        return NULL;
    }
    if (answer.status != SOFT_JOB_OK) {
        *unsupported = answer.status == SOFT_JOB_UNSUPPORTED;
        snprintf(why, why_size, "%s", answer.reason);
        if (*unsupported)
            remember(c, key, key_size, why);
        return NULL;
    }
    code = take_object(c, job, fd, answer.object_size, key, key_size, why, why_size);
    if (code)
        gm_debug(&topic, "%s compiled in %.1f ms", job->entry, (double)(gm_now_ns() - begin) / 1e6);
    return code;
}

/* Takes over the job, runs it and finishes it. Called with the lock held, which it releases
 * meanwhile. */
static void run_job(struct builder *b, struct loader_job *j)
{
    struct soft_compiler *c = b->compiler;
    char why[SOFT_JOB_REASON_MAX] = "cancelled";
    bool unsupported = false, put_off = false;
    uint64_t begin = gm_now_ns(), nothing;

    b->job = j;
    b->began_ns = begin;
    b->dropped = c->stopping;
    pthread_mutex_unlock(&c->lock);
    struct soft_code *code =
        b->dropped ? NULL : compile(b, &j->job, &put_off, &unsupported, why, sizeof(why));
    pthread_mutex_lock(&c->lock);
    loader_queue_charge(&c->queue, j->job.owner, gm_now_ns() - begin);
    bool dropped = b->dropped || c->stopping;
    j->slow |= put_off;
    if (put_off && !dropped && start_builder(&c->builders[1]) == 0 &&
        loader_queue_put(&c->queue, j) == 0) {
        pthread_cond_broadcast(&c->work);
        j = NULL; /* the other builder's, as soon as the lock is released */
    } else {
        pthread_mutex_unlock(&c->lock);
        if (!code && !dropped)
            gm_info(&topic, "%s stays interpreted: %s", j->job.entry, why);
        j->done(j->arg, code, unsupported, code ? "" : dropped ? "cancelled" : why);
        pthread_mutex_lock(&c->lock);
    }
    b->job = NULL;
    free(j); /* end_job() looks at it until now */
    if (b->dropped && !c->stopping)
        (void)!read(b->cancel, &nothing, sizeof(nothing));
    pthread_cond_broadcast(&c->over);
}

/* Waits for the next job. NULL: the compiler is being destroyed. Ends an idle process meanwhile.
 * Called with the lock held. */
static struct loader_job *next_job(struct builder *b)
{
    struct soft_compiler *c = b->compiler;
    struct loader_job *j;
    uint64_t idle_until = gm_now_ns() + c->idle_ms * GM_NS_PER_MS;
    struct timespec ts = { (time_t)(idle_until / GM_NS_PER_S), (long)(idle_until % GM_NS_PER_S) };

    while (!(j = loader_queue_take(&c->queue, b->slow)) && !c->stopping) {
        if (b->helper.pid < 0) {
            pthread_cond_wait(&c->work, &c->lock);
        } else if (pthread_cond_timedwait(&c->work, &c->lock, &ts) == ETIMEDOUT) {
            pthread_mutex_unlock(&c->lock);
            loader_helper_stop(&b->helper);
            pthread_mutex_lock(&c->lock);
        }
    }
    return j;
}

static void *builder_main(void *arg)
{
    struct builder *b = arg;
    struct loader_job *j;
    pthread_setname_np(pthread_self(), "gmux-compiler");
    pthread_mutex_lock(&b->compiler->lock);
    while ((j = next_job(b)))
        run_job(b, j);
    pthread_mutex_unlock(&b->compiler->lock);
    loader_helper_stop(&b->helper);
    return NULL;
}

/* Starts the builder's thread. Called with the lock held. 0 or -errno. */
static int start_builder(struct builder *b)
{
    sigset_t all, before;
    if (b->running)
        return 0;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int r = pthread_create(&b->thread, NULL, builder_main, b);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    b->running = r == 0;
    return -r;
}

int soft_compiler_submit(struct soft_compiler *c, const struct soft_job *job,
                         soft_compiler_done *done, void *arg)
{
    if (strlen(job->entry) >= SOFT_JOB_NAME_MAX || job->text_size > SOFT_JOB_TEXT_MAX)
        return -E2BIG;
    struct loader_job *j = calloc(1, sizeof(*j));
    if (!j)
        return -ENOMEM;
    gm_list_init(&j->link);
    j->job = *job;
    j->done = done;
    j->arg = arg;
    pthread_mutex_lock(&c->lock);
    int r = c->broken ? -ENOENT : c->stopping ? -ECANCELED : start_builder(&c->builders[0]);
    if (r == 0)
        r = loader_queue_put(&c->queue, j);
    if (r == 0)
        pthread_cond_broadcast(&c->work);
    pthread_mutex_unlock(&c->lock);
    if (r < 0)
        free(j);
    return r;
}

void soft_compiler_drop(struct soft_compiler *c, const void *owner)
{
    struct gm_list dropped;
    gm_list_init(&dropped);
    pthread_mutex_lock(&c->lock);
    loader_queue_drop(&c->queue, owner, &dropped);
    pthread_mutex_unlock(&c->lock);
    gm_list_for_each_safe (j, &dropped, struct loader_job, link) {
        j->done(j->arg, NULL, false, "cancelled");
        free(j);
    }
}

/* Ends the owner's job in that builder. Called with the lock held. A job that nobody has put off
 * may finish, so that the next run finds the code in the cache: a program that is over before its
 * kernels are compiled would otherwise run interpreted each time. */
static void end_job(struct builder *b, const void *owner)
{
    struct soft_compiler *c = b->compiler;
    const struct loader_job *job = b->job;
    uint64_t until = gm_now_ns() + LINGER_NS;
    const struct timespec ts = { (time_t)(until / GM_NS_PER_S), (long)(until % GM_NS_PER_S) };
    if (!job || job->job.owner != owner)
        return;
    while (b->job == job && !b->slow && gm_now_ns() < until)
        pthread_cond_timedwait(&c->over, &c->lock, &ts);
    if (b->job != job)
        return;
    if (!b->dropped)
        eventfd_write(b->cancel, 1);
    b->dropped = true;
    while (b->job == job)
        pthread_cond_wait(&c->over, &c->lock);
}

void soft_compiler_cancel(struct soft_compiler *c, const void *owner)
{
    /* The quick builder goes first: its job may move to the slow builder, or to that builder's
     * queue. */
    for (size_t i = 0; i < GM_ARRAY_LEN(c->builders); i++) {
        soft_compiler_drop(c, owner);
        pthread_mutex_lock(&c->lock);
        end_job(&c->builders[i], owner);
        if (c->builders[i].served == owner) /* a later owner may have the same address */
            c->builders[i].served = &c->builders[i];
        pthread_mutex_unlock(&c->lock);
    }
    soft_compiler_drop(c, owner);
}

void soft_compiler_destroy(struct soft_compiler *c)
{
    if (!c)
        return;
    pthread_mutex_lock(&c->lock);
    c->stopping = true;
    pthread_cond_broadcast(&c->work);
    pthread_mutex_unlock(&c->lock);
    for (size_t i = 0; i < GM_ARRAY_LEN(c->builders); i++)
        eventfd_write(c->builders[i].cancel, 1);
    for (size_t i = 0; i < GM_ARRAY_LEN(c->builders); i++)
        if (c->builders[i].running)
            pthread_join(c->builders[i].thread, NULL);
    loader_queue_finish(&c->queue);
    loader_cache_close(c->cache);
    for (size_t i = 0; i < GM_ARRAY_LEN(c->builders); i++)
        gm_close(c->builders[i].cancel);
    gm_close(c->program_fd);
    pthread_cond_destroy(&c->work);
    pthread_cond_destroy(&c->over);
    pthread_mutex_destroy(&c->lock);
    pthread_mutex_destroy(&c->put_lock);
    loader_packer_finish(&c->packer);
    free(c);
}

/* What soft_compiler_compile() waits for. */
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

struct soft_code *soft_compiler_compile(struct soft_compiler *c, const struct soft_job *job,
                                        bool *unsupported, char *why, size_t why_size)
{
    struct waiter w = {
        PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, false, NULL, false, ""
    };
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
