/*
 * Reads, merges and prints limits. Of two limits the lower one counts.
 */
#include "control/policy.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/parse.h"

static const char *set_share(struct ctl_wish *w, const char *value)
{
    if (!*value)
        w->share_pct = 0;
    else if (!gm_parse_share(value, &w->share_pct))
        return "share is a percentage above 0, up to 100";
    return NULL;
}

static const char *set_memory(struct ctl_wish *w, const char *value)
{
    uint64_t bytes;
    if (*value && (strlen(value) > CTL_SIZE_WORD_MAX || !gm_parse_size(value, &bytes)))
        return "memory is a number with M or G";
    snprintf(w->memory, sizeof(w->memory), "%s%s", *value ? "*=" : "", value);
    return NULL;
}

static const char *set_priority(struct ctl_wish *w, const char *value)
{
    static const char *const names[] = { "normal", "low" };
    if (!*value) {
        w->priority = -1;
        return NULL;
    }
    for (int i = 0; i < 2; i++)
        if (strcmp(value, names[i]) == 0 || (value[0] == '0' + i && !value[1])) {
            w->priority = i;
            return NULL;
        }
    return "priority is normal or low";
}

static const char *set_guarantee(struct ctl_wish *w, const char *value)
{
    if (!*value)
        w->guarantee_pct = 0;
    else if (!gm_parse_share(value, &w->guarantee_pct))
        return "guarantee is a percentage above 0, up to 100";
    return NULL;
}

bool ctl_group_is_name(const char *s)
{
    static const char digits[] = "0123456789";
    size_t n = strspn(s, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-");
    return n > 0 && n <= CTL_GROUP_MAX && !s[n] && s[0] != '-' && s[strspn(s, digits)];
}

static const char *set_group(struct ctl_wish *w, const char *value)
{
    if (*value && !ctl_group_is_name(value))
        return "group is a name of letters, digits, '.', '_' and '-', not only digits";
    snprintf(w->group, sizeof(w->group), "%s", value);
    return NULL;
}

const char *ctl_wish_words(enum ctl_wish_of of)
{
    return of == CTL_OF_CLIENT
               ? "limits of a program are share=, guarantee=, memory=, priority= and group="
           : of == CTL_OF_USER ? "limits of a user are share=, memory= and priority="
                               : "limits of a group are share=, guarantee= and memory=";
}

const char *ctl_wish_set(struct ctl_wish *w, enum ctl_wish_of of, const char *word)
{
    static const struct {
        const char *name;
        unsigned of;
        const char *(*set)(struct ctl_wish *w, const char *value);
    } limits[] = {
        { "share=", CTL_OF_CLIENT | CTL_OF_USER | CTL_OF_GROUP, set_share },
        { "memory=", CTL_OF_CLIENT | CTL_OF_USER | CTL_OF_GROUP, set_memory },
        { "guarantee=", CTL_OF_CLIENT | CTL_OF_GROUP, set_guarantee },
        { "priority=", CTL_OF_CLIENT | CTL_OF_USER, set_priority },
        { "group=", CTL_OF_CLIENT, set_group },
    };
    for (size_t i = 0; i < GM_ARRAY_LEN(limits); i++) {
        size_t n = strlen(limits[i].name);
        if ((limits[i].of & of) && strncmp(word, limits[i].name, n) == 0)
            return limits[i].set(w, word + n);
    }
    return ctl_wish_words(of);
}

struct ctl_wish ctl_wish_lower(const struct ctl_wish *a, const struct ctl_wish *b)
{
    struct ctl_wish w = *a;
    if (b->share_pct > 0 && (w.share_pct <= 0 || b->share_pct < w.share_pct))
        w.share_pct = b->share_pct;
    w.priority = GM_MAX(a->priority, b->priority);
    return w;
}

void ctl_limits_from_environment(struct ctl_limits *l)
{
    *l = (struct ctl_limits) { .share_pct = 100 };
    const char *s = getenv("CUDA_MPS_ACTIVE_THREAD_PERCENTAGE");
    if (s)
        ctl_limits_set_share(l, s);
    s = getenv("CUDA_MPS_CLIENT_PRIORITY");
    if (s)
        ctl_limits_set_priority(l, s);
    s = getenv("CUDA_MPS_PINNED_DEVICE_MEM_LIMIT");
    if (s)
        ctl_limits_set_memory_list(l, s);
}

bool ctl_limits_set_share(struct ctl_limits *l, const char *word)
{
    return gm_parse_percentage(word, &l->share_pct);
}

bool ctl_limits_set_priority(struct ctl_limits *l, const char *word)
{
    uint64_t value;
    if (!gm_parse_u64(word, 1, &value))
        return false;
    l->priority = (int)value;
    return true;
}

/* Whether the word can name a device in a list that uses ',' and '='. */
static bool is_device_word(const char *s)
{
    size_t n = strlen(s);
    return n > 0 && n <= CTL_DEVICE_WORD_MAX && strcspn(s, ",= ") == n;
}

static struct ctl_memory_limit *find_memory(struct ctl_limits *l, const char *device)
{
    for (unsigned i = 0; i < l->memory_count; i++)
        if (strcmp(l->memory[i].device, device) == 0)
            return &l->memory[i];
    return NULL;
}

bool ctl_limits_set_memory(struct ctl_limits *l, const char *device, const char *value)
{
    uint64_t bytes;
    if (!is_device_word(device) || strlen(value) > CTL_SIZE_WORD_MAX ||
        !gm_parse_size(value, &bytes))
        return false;

    struct ctl_memory_limit *old = find_memory(l, device);
    if (old) {
        size_t behind = (size_t)(l->memory + l->memory_count - (old + 1));
        memmove(old, old + 1, behind * sizeof(*old));
        l->memory_count--;
    }
    if (l->memory_count == CTL_MEMORY_LIMITS_MAX)
        return false;
    struct ctl_memory_limit *m = &l->memory[l->memory_count++];
    strcpy(m->device, device);
    strcpy(m->value, value);
    return true;
}

void ctl_limits_set_memory_list(struct ctl_limits *l, const char *list)
{
    while (*list) {
        char entry[CTL_DEVICE_WORD_MAX + CTL_SIZE_WORD_MAX + 2];
        size_t n = strcspn(list, ",");
        if (n < sizeof(entry)) {
            memcpy(entry, list, n);
            entry[n] = '\0';
            char *eq = strchr(entry, '=');
            if (eq) {
                *eq = '\0';
                ctl_limits_set_memory(l, entry, eq + 1);
            }
        }
        list += n;
        if (*list == ',')
            list++;
    }
}

const char *ctl_limits_memory(const struct ctl_limits *l, const char *device)
{
    for (unsigned i = 0; i < l->memory_count; i++)
        if (strcmp(l->memory[i].device, device) == 0)
            return l->memory[i].value;
    return NULL;
}

void ctl_limits_memory_text(const struct ctl_limits *l, char out[CTL_MEMORY_TEXT_MAX + 1])
{
    char *p = out;
    *p = '\0';
    for (unsigned i = 0; i < l->memory_count; i++) {
        if (i)
            p = stpcpy(p, ",");
        p = stpcpy(stpcpy(stpcpy(p, l->memory[i].device), "="), l->memory[i].value);
    }
}
