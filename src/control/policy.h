/*
 * What a server's clients may use: a share of the multiprocessors, device memory, a priority. The
 * daemon has one set as defaults, which is copied into each server that starts; each server's set
 * can be changed afterwards. A client's environment can only lower what its server allows.
 *
 * Memory limits are kept as they were given, by device identifier (ordinal or UUID), because
 * NVIDIA's commands return them so: identifiers are not checked, and an entry is found under
 * exactly the word under which it was stored.
 */
#ifndef GMUX_CONTROL_POLICY_H
#define GMUX_CONTROL_POLICY_H

#include "base/attr.h"

#define CTL_MEMORY_LIMITS_MAX 32
#define CTL_DEVICE_WORD_MAX   63
#define CTL_SIZE_WORD_MAX     23
#define CTL_GROUP_MAX         64
/* Fits link_setup.memory_limits: every entry with its '=' and ','. */
#define CTL_MEMORY_TEXT_MAX (CTL_MEMORY_LIMITS_MAX * (CTL_DEVICE_WORD_MAX + CTL_SIZE_WORD_MAX + 2))
_Static_assert(CTL_MEMORY_TEXT_MAX <= 4096, "longer than the message allows");

struct ctl_memory_limit {
    char device[CTL_DEVICE_WORD_MAX + 1];
    char value[CTL_SIZE_WORD_MAX + 1];
};

struct ctl_limits {
    double share_pct;
    int priority; /* 0: normal, 1: below normal */
    unsigned memory_count;
    /* in the order they were set: the last one counts */
    struct ctl_memory_limit memory[CTL_MEMORY_LIMITS_MAX];
};

/* What a client asks for, what a command set instead, or what its user or group may have. It can
 * only lower its server's limits. Nothing: 0, -1, "". */
struct ctl_wish {
    double share_pct;
    int priority;
    char memory[513]; /* "dev=size,dev=size"; "*": every device */
    double guarantee_pct;
    char group[CTL_GROUP_MAX + 1];
};

/* To whom such limits belong. */
enum ctl_wish_of { CTL_OF_CLIENT = 1, CTL_OF_USER = 2, CTL_OF_GROUP = 4 };

/* Sets the limit in a word like share=33, memory=2G (of each device) or priority=low; an empty
 * value removes the limit. NULL, or why not. */
GM_MUST_CHECK const char *ctl_wish_set(struct ctl_wish *w, enum ctl_wish_of of, const char *word);
/* The words that are allowed, as a list for messages. */
const char *ctl_wish_words(enum ctl_wish_of of);
/* Whether the word can name a group: letters, digits, '.', '_' and '-', but not only digits, which
 * would be a process. */
bool ctl_group_is_name(const char *s);
/* The lower share and priority of the two. */
struct ctl_wish ctl_wish_lower(const struct ctl_wish *a, const struct ctl_wish *b);

/* Sets no limits, and then those of CUDA_MPS_ACTIVE_THREAD_PERCENTAGE, CUDA_MPS_CLIENT_PRIORITY and
 * CUDA_MPS_PINNED_DEVICE_MEM_LIMIT; values that are wrong are ignored. */
void ctl_limits_from_environment(struct ctl_limits *l);

/* False, and nothing changed, if the word is no percentage (0 < p <= 100). */
bool ctl_limits_set_share(struct ctl_limits *l, const char *word);
/* False: the word is not 0 or 1. */
bool ctl_limits_set_priority(struct ctl_limits *l, const char *word);
/* False: the value is no size (2G, 800M), or there are too many entries. */
bool ctl_limits_set_memory(struct ctl_limits *l, const char *device, const char *value);
/* "dev=size,dev=size"; wrong entries are left out. */
void ctl_limits_set_memory_list(struct ctl_limits *l, const char *list);
/* The value as it was given, or NULL. */
const char *ctl_limits_memory(const struct ctl_limits *l, const char *device);
/* All entries as "dev=size,dev=size". */
void ctl_limits_memory_text(const struct ctl_limits *l, char out[CTL_MEMORY_TEXT_MAX + 1]);

#endif
