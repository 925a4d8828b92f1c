/*
 * Compiled code for kernels: from the cache on disk at once, or from gmux-jit later.
 *
 * A kernel starts in the interpreter while its code is made; the block scheduler takes up the
 * compiled form when the callback brings it. gmux-jit is a helper process, started with the first
 * job that the cache cannot answer and kept while jobs come. When it is missing, crashes or hangs,
 * kernels stay in the interpreter, which computes the same; the log says so once.
 *
 * gmux-jit reads hostile text. A process works for one owner only, and its code is cached for one
 * user only: who takes one over makes nobody else's code.
 *
 * Jobs are their owner's, and owners take turns (queue.h). A job that takes over a second while
 * another owner waits is put off: it begins again in a process beside the first, where the slow
 * ones of all wait for each other only.
 *
 * What cannot be compiled, or takes too long, is remembered in the cache as well.
 *
 * Any thread, except create and destroy. Nothing here is called from inside a running block.
 */
#ifndef GMUX_SOFT_LOADER_COMPILER_H
#define GMUX_SOFT_LOADER_COMPILER_H

#include "device/soft/exec/code.h"
#include "device/soft/loader/job.h"

struct soft_compiler;

struct soft_compiler_config {
    const char
        *helper; /* path of gmux-jit; NULL: GMUX_JIT, beside the running program, GMUX_LIBEXECDIR */
    const char
        *cache_dir; /* NULL: GMUX_CACHE_DIR, $XDG_CACHE_HOME/gmux, ~/.cache/gmux; "": no cache */
    uint32_t owner; /* whose the cache is, where the process is root now and will be somebody else;
                       0: its own */
    uint64_t cache_bytes; /* the cache is kept below this; 0: 256 MiB */
    uint32_t timeout_ms;  /* longest compile, in processor time; 0: 30 s */
    uint32_t idle_ms;     /* gmux-jit leaves after that long without a job; 0: 10 s */
};

/* What to compile. Text and entry need to live until the job is done, or for the call where there
 * is no job. */
struct soft_job {
    const void *owner; /* whose it is, for turns, gmux-jit's processes and soft_compiler_cancel();
                          never looked at */
    uint32_t uid; /* of the user whose text it is: code in the cache is for jobs of the same user */
    const char *text; /* the module's PTX; no terminator needed */
    size_t text_size;
    const char *entry;
    struct soft_job_options options;  /* all 0: any block size, this CPU */
    const _Atomic uint32_t *launches; /* so far; lives until the job is done. NULL: not known */
};

/* Called once per submitted job, on a thread of the compiler's or the one that cancels. Either
 * `code` (the callee's to destroy) or NULL and a one-line reason; `unsupported` tells "this kernel
 * stays interpreted" from a failure. Must not destroy the compiler. */
typedef void soft_compiler_done(void *arg, struct soft_code *code, bool unsupported,
                                const char *reason);

/* Cheap: no process and no thread is started yet. `config` may be NULL. 0 or -errno. */
GM_MUST_CHECK int soft_compiler_create(struct soft_compiler **out,
                                       const struct soft_compiler_config *config);

/* Stops a compile in progress; jobs not done yet get their callback with NULL ("cancelled") before
 * it returns. Code handed out stays valid. NULL is fine. */
void soft_compiler_destroy(struct soft_compiler *c);

/* Code from the cache on disk, ready to run, or NULL. About 0.1 ms. */
struct soft_code *soft_compiler_lookup(struct soft_compiler *c, const struct soft_job *job);

/* Queues the job. 0, or -errno: no callback then (-ENOMEM, -E2BIG, -ENOENT: there is no compiler on
 * this machine). */
GM_MUST_CHECK int soft_compiler_submit(struct soft_compiler *c, const struct soft_job *job,
                                       soft_compiler_done *done, void *arg);

/* Ends jobs of the owner that have not begun. */
void soft_compiler_drop(struct soft_compiler *c, const void *owner);
/* Ends all jobs of the owner, who submits no more: each has had its callback when this returns.
 * Waits for one that is being compiled, a second at most, for the cache's sake. */
void soft_compiler_cancel(struct soft_compiler *c, const void *owner);

/* Submits and waits: for tools and tests. NULL with the reason in `why`. */
struct soft_code *soft_compiler_compile(struct soft_compiler *c, const struct soft_job *job,
                                        bool *unsupported, char *why, size_t why_size);

#endif
