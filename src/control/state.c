/*
 * Saves what was set, as the commands that set it, and runs those commands when a daemon begins.
 * Saving writes a new file, which then takes the old one's name.
 */
#include "control/state.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "control/group.h"
#include "control/log.h"
#include "control/partition.h"
#include "control/request.h"
#include "control/space.h"
#include "control/users.h"

#define FILE_NAME      "control_state"
#define NEW_NAME       FILE_NAME ".new"
#define SIZE_MAX_BYTES (4 << 20)

/* --- to a file -------------------------------------------------------------------------------- */

static void put_limits(struct ctl_text *t, const struct ctl_wish *w)
{
    const char *size = strchr(w->memory, '=');
    if (w->share_pct > 0)
        ctl_text_add(t, " share=%.9g", w->share_pct);
    if (w->guarantee_pct > 0)
        ctl_text_add(t, " guarantee=%.9g", w->guarantee_pct);
    if (size)
        ctl_text_add(t, " memory%s", size);
    if (w->priority >= 0)
        ctl_text_add(t, " priority=%d", w->priority);
    ctl_text_add(t, "\n");
}

static bool has_limits(const struct ctl_wish *w)
{
    return w->share_pct > 0 || w->guarantee_pct > 0 || *w->memory || w->priority >= 0;
}

static void put_space(struct ctl_text *t, const struct ctl_space *s)
{
    static const char *const fields[] = { "active-thread-percentage", "pinned-memory-limit",
                                          "client-priority" };
    char value[sizeof(s->limits.memory)];
    if (s != ctl_space_default(s->server))
        ctl_text_add(t, "namespace create %s --server=%s\n", s->name, s->server->name);
    if (!ctl_space_limits(s))
        return;
    ctl_text_add(t, "namespace set %s --server=%s", s->name, s->server->name);
    for (size_t i = 0; i < GM_ARRAY_LEN(fields); i++)
        if (strcmp(ctl_space_get(s, fields[i], value, sizeof(value)), "-") != 0)
            ctl_text_add(t, " %s=%s", fields[i], value);
    ctl_text_add(t, "\n");
}

static void put_named(struct ctl_text *t, const struct ctl_named *n)
{
    ctl_text_add(t, "server create %s --uid=%u", n->name, (unsigned)n->uid);
    ctl_text_add(t, *n->allowed ? " --allowed-devices=%s\n" : "\n", n->allowed);
    gm_list_for_each (s, &n->spaces, struct ctl_space, link)
        put_space(t, s);
}

static void put_all(struct ctl_text *t, const struct ctl_daemon *d)
{
    const struct ctl_limits *l = &d->limits;
    ctl_text_add(t, "set_default_active_thread_percentage %.9g\n", l->share_pct);
    ctl_text_add(t, "set_default_client_priority %d\n", l->priority);
    for (unsigned i = 0; i < l->memory_count; i++)
        ctl_text_add(t, "set_default_device_pinned_mem_limit %s %s\n", l->memory[i].device,
                     l->memory[i].value);
    if (!d->memacct)
        ctl_text_add(t, "feature disable memacct\n");
    if (d->memacct_audit)
        ctl_text_add(t, "memacct set audit_log=true\n");
    gm_list_for_each (n, &d->names, struct ctl_named, link)
        put_named(t, n);
    gm_list_for_each (p, &d->partitions, struct ctl_partition, link) {
        ctl_text_add(t, "sm_partition keep %s %u %u %u %llx", p->uuid, p->parts.multiprocessors,
                     p->parts.step, p->parts.groups, (unsigned long long)p->groups);
        ctl_text_add(t, *p->name ? " %s %s\n" : "\n", p->name, p->server);
    }
    gm_list_for_each (u, &d->users, struct ctl_user, link)
        if (has_limits(&u->limits)) {
            ctl_text_add(t, "limit_user %u", (unsigned)u->uid);
            put_limits(t, &u->limits);
        }
    gm_list_for_each (g, &d->groups, struct ctl_group, link)
        if (has_limits(&g->limits)) {
            ctl_text_add(t, "limit_group %u/%s", (unsigned)g->uid, g->name);
            put_limits(t, &g->limits);
        }
}

static int write_new(const struct ctl_daemon *d, const struct ctl_text *t)
{
    unlinkat(d->pipe_fd, NEW_NAME, 0); /* left by a daemon that was killed here */
    GM_AUTO_FD int fd =
        openat(d->pipe_fd, NEW_NAME, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (fd < 0)
        return -errno;
    for (size_t done = 0; done < t->size;) {
        ssize_t n = write(fd, t->data + done, t->size - done);
        if (n < 0 && errno != EINTR)
            return -errno;
        done += n > 0 ? (size_t)n : 0;
    }
    return renameat(d->pipe_fd, NEW_NAME, d->pipe_fd, FILE_NAME) < 0 ? -errno : 0;
}

void ctl_state_save(struct ctl_daemon *d)
{
    struct ctl_text t = { 0 };
    if (d->loading)
        return;
    put_all(&t, d);
    int r = write_new(d, &t);
    if (r < 0)
        ctl_log(d, "Cannot keep what is set for the next daemon: %s/" FILE_NAME ": %s",
                d->pipe_directory, strerror(-r));
    ctl_text_finish(&t);
}

void ctl_state_remove(struct ctl_daemon *d)
{
    unlinkat(d->pipe_fd, FILE_NAME, 0);
}

/* --- from a file ------------------------------------------------------------------------------ */

/* Opens the file. It only counts if the daemon's own user wrote it. */
static FILE *open_state(struct ctl_daemon *d)
{
    struct stat st;
    GM_AUTO_FD int fd =
        openat(d->pipe_fd, FILE_NAME, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    if (fd < 0 && errno == ENOENT)
        return NULL;
    if (fd < 0 || fstat(fd, &st) < 0 || !S_ISREG(st.st_mode) || st.st_uid != d->uid ||
        st.st_nlink != 1 || (st.st_mode & 022) || st.st_size > SIZE_MAX_BYTES) {
        ctl_log(d, "%s/" FILE_NAME " is not an earlier daemon's: it is ignored", d->pipe_directory);
        return NULL;
    }
    FILE *in = fdopen(fd, "r");
    if (in)
        fd = -1;
    return in;
}

void ctl_state_load(struct ctl_daemon *d, ctl_state_run *run)
{
    FILE *in = open_state(d);
    char line[CTL_LINE_MAX + 2];
    if (!in)
        return;
    d->loading = d->restoring = true;
    d->limits.memory_count = 0; /* the file contains all limits */
    while (fgets(line, sizeof(line), in)) {
        line[strcspn(line, "\n")] = '\0';
        ctl_log(d, "From an earlier daemon: %s", line);
        if (!run(d, line))
            ctl_log(d, "That is no line of " FILE_NAME ": it is ignored");
    }
    fclose(in);
    d->loading = d->restoring = false;
}
