/*
 * Compiled code for kernels: from the cache on disk at once, or from gmux-jit later.
 *
 * A kernel starts in the interpreter while its code is compiled; the block scheduler changes to the
 * compiled form when the callback brings it. gmux-jit is a helper process. It is started with the
 * first job that the cache cannot answer, and kept while jobs come. If it is missing, crashes or
 * hangs, kernels stay in the interpreter, which computes the same results; the log says so once.
 *
 * gmux-jit reads hostile text. So a process works for one owner only, and its code is cached for
 * one user only: an attacker who takes over a process gains no influence on anybody else's code.
 *
 * Jobs belong to owners, and owners take turns (queue.h). A job that has run for over a second
 * while another owner waits is put off: it begins again in a second process, where slow jobs wait
 * only for each other.
 *
 * The cache also remembers what cannot be compiled, or takes too long.
 *
 * Any thread may call these functions, except create and destroy. None is called from inside a
 * running block.
 */
#ifndef GMUX_SOFT_LOADER_COMPILER_H
#define GMUX_SOFT_LOADER_COMPILER_H

#include "device/soft/exec/code.h"
#include "device/soft/loader/job.h"

struct soft_compiler;

struct soft_compiler_config {
    /* Path of gmux-jit; NULL: GMUX_JIT, else beside the running program, else GMUX_LIBEXECDIR. */
    const char *helper;
    /* NULL: GMUX_CACHE_DIR, $XDG_CACHE_HOME/gmux or ~/.cache/gmux; "": no cache. */
    const char *cache_dir;
    /* The user whose cache it is, if the process is root now and will be that user later; 0: the
     * process's own. */
    uint32_t owner;
    uint64_t cache_bytes; /* the cache is kept below this; 0: 256 MiB */
    uint32_t timeout_ms;  /* longest compile, in processor time; 0: 30 s */
    uint32_t idle_ms;     /* gmux-jit ends after that long without a job; 0: 10 s */
};

/* What to compile. Text and entry must live until the job is done, or until a function returns that
 * queues no job. */
struct soft_job {
    /* Whose job it is: for turns, for gmux-jit's processes and for soft_compiler_cancel(). Only
     * compared. */
    const void *owner;
    /* The user whose text it is: cached code is used only for the same user's jobs. */
    uint32_t uid;
    const char *text; /* the module's PTX; no terminator needed */
    size_t text_size;
    const char *entry;
    struct soft_job_options options; /* all 0: any block size, this CPU */
    /* How often the kernel has been launched so far; must live until the job is done. NULL: not
     * known. */
    const _Atomic uint32_t *launches;
};

/* Called once per submitted job, on a thread of the compiler or on the one that cancels. `code`
 * then belongs to the callee; or it is NULL and `reason` is one line. `unsupported`: the kernel
 * stays interpreted for ever, which is no failure. Must not destroy the compiler. */
typedef void soft_compiler_done(void *arg, struct soft_code *code, bool unsupported,
                                const char *reason);

/* Creates a compiler. This is cheap: no process and no thread is started yet. `config` may be NULL.
 * 0 or -errno. */
GM_MUST_CHECK int soft_compiler_create(struct soft_compiler **out,
                                       const struct soft_compiler_config *config);

/* Stops compiles in progress. Before it returns, jobs that are not done get their callback with
 * NULL ("cancelled"). Code that was handed out stays valid. NULL is accepted. */
void soft_compiler_destroy(struct soft_compiler *c);

/* Takes code from the cache on disk, ready to run, or NULL. About 0.1 ms. */
struct soft_code *soft_compiler_lookup(struct soft_compiler *c, const struct soft_job *job);

/* Queues the job. 0; or -errno, and then there is no callback: -ENOMEM, -E2BIG, -ENOENT (this
 * machine has no compiler). */
GM_MUST_CHECK int soft_compiler_submit(struct soft_compiler *c, const struct soft_job *job,
                                       soft_compiler_done *done, void *arg);

/* Ends the owner's jobs that have not begun. */
void soft_compiler_drop(struct soft_compiler *c, const void *owner);
/* Ends all jobs of an owner who submits no more; each has had its callback when this returns. Waits
 * for a job that is being compiled, for two seconds at most, so that its code gets into the
 * cache. */
void soft_compiler_cancel(struct soft_compiler *c, const void *owner);

/* Submits a job and waits for it; for tools and tests. NULL, with the reason in `why`. */
struct soft_code *soft_compiler_compile(struct soft_compiler *c, const struct soft_job *job,
                                        bool *unsupported, char *why, size_t why_size);

#endif
