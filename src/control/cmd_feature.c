/*
 * The commands for the features of protocol 3. There is one: memacct, which limits device memory by
 * control groups (cgroup.h). The feature context-share is accepted as a word and does nothing,
 * because programs do not share contexts here.
 */
#include <string.h>

#include "control/cgroup.h"
#include "control/listing.h"
#include "control/module.h"
#include "control/state.h"
#include "device/cgroup.h"

/* Whether the first word names the feature memacct. If it does not, replies that there is no such
 * feature. */
static bool is_memacct(struct ctl_request *r)
{
    const char *name = ctl_words_plain(&r->words, 0);
    if (strcmp(name, "memacct") == 0)
        return true;
    if (strcmp(name, "context-share") == 0)
        ctl_reply(r, "context-share: contexts are not shared between programs\n");
    else
        ctl_reply(r, "Feature %s not found\n", name);
    return false;
}

/* Tells the user who turns the accounting on that this machine has none. */
static void warn(struct ctl_request *r)
{
    if (!dev_cgroup_has_device_memory(CTL_CGROUP_ROOT))
        ctl_reply(r,
                  "memacct: this kernel has no dmem controller (Linux 6.14): there are limits on "
                  "the software device only\n");
}

void ctl_v3_feature_enable(struct ctl_request *r)
{
    if (!is_memacct(r))
        return;
    r->daemon->memacct = true;
    ctl_state_save(r->daemon);
    warn(r);
}

void ctl_v3_feature_disable(struct ctl_request *r)
{
    if (!is_memacct(r))
        return;
    r->daemon->memacct = false;
    ctl_state_save(r->daemon);
}

static void feature_rows(struct ctl_listing *l)
{
    const struct ctl_request *r = l->request;
    const char *name = ctl_words_plain(&r->words, 0);
    const char *rows[][4] = {
        { "memacct", r->daemon->memacct ? "enabled (default)" : "disabled", "memacct", "-" },
        { "context-share", "disabled (default)", "context-share", "-" },
    };
    for (size_t i = 0; i < GM_ARRAY_LEN(rows); i++)
        if (!*name || strcmp(name, rows[i][0]) == 0)
            ctl_listing_row(l, rows[i]);
}

void ctl_v3_feature_describe(struct ctl_request *r)
{
    static const char *const names[] = { "FEATURE", "STATE", "MODULE", "COVERS" };
    const char *name = ctl_words_plain(&r->words, 0);
    if (!*name || strcmp(name, "context-share") == 0 || is_memacct(r))
        ctl_listing(r, names, GM_ARRAY_LEN(names), feature_rows);
}

void ctl_v3_memacct_set(struct ctl_request *r)
{
    const char *value = ctl_words_option(&r->words, "audit_log");
    const bool yes = value && strcmp(value, "true") == 0;
    if (!yes && (!value || strcmp(value, "false") != 0)) {
        ctl_reply(r, "memacct set: audit_log=true or audit_log=false is needed\n");
        return;
    }
    r->daemon->memacct_audit = yes;
    ctl_state_save(r->daemon);
}

static void memacct_rows(struct ctl_listing *l)
{
    const struct ctl_daemon *d = l->request->daemon;
    const char *rows[][2] = {
        { "audit_log", d->memacct_audit ? "true" : "false (default)" },
        { "software device", "memory.max" },
        { "GPU", dev_cgroup_has_device_memory(CTL_CGROUP_ROOT)
                     ? "dmem.max"
                     : "no dmem controller (Linux 6.14)" },
    };
    for (size_t i = 0; i < GM_ARRAY_LEN(rows); i++)
        ctl_listing_row(l, rows[i]);
}

void ctl_v3_memacct_describe(struct ctl_request *r)
{
    static const char *const names[] = { "KEY", "VALUE" };
    ctl_listing(r, names, GM_ARRAY_LEN(names), memacct_rows);
}
