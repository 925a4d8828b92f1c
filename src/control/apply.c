/*
 * Applies NVIDIA's configuration file. The file is read with the TOML reader that reads our own
 * (config.c). A table says which keys there are, and each key becomes the command that an
 * administrator would have typed for it.
 */
#include "control/apply.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/parse.h"
#include "control/space.h"

#define SERVERS_MAX    64
#define PARTITIONS_MAX 256
#define NAMESPACES_MAX 256

struct server {
    char name[CTL_SERVER_NAME_MAX + 1];
    bool has_uid;
    uid_t uid;
    char devices[256];
    char limits[512]; /* words of `server set` */
};

struct namespace
{
    unsigned server;
    char name[CTL_SERVER_NAME_MAX + 1];
    char limits[512]; /* words of `namespace set` */
};

struct partition {
    unsigned server;
    char device[16], number[16]; /* the table that is being read */
    char name[CTL_SERVER_NAME_MAX + 1];
    uint64_t chunks;
};

struct device {
    unsigned server;
    char number[16];
    char uuid[41];
};

struct reading {
    bool has_version;
    struct server servers[SERVERS_MAX];
    struct device devices[PARTITIONS_MAX];
    struct partition partitions[PARTITIONS_MAX];
    struct namespace spaces[NAMESPACES_MAX];
    unsigned servers_count, devices_count, partitions_count, spaces_count;
    bool memacct_off, audit_log;
};

static bool is_true(const struct gm_toml_item *item)
{
    return item->type == GM_TOML_BOOLEAN && strcmp(item->text, "true") == 0;
}

static const char *find_server(struct reading *r, const char *name, unsigned *out)
{
    unsigned i = 0;
    while (i < r->servers_count && strcmp(r->servers[i].name, name) != 0)
        i++;
    *out = i;
    if (i < r->servers_count)
        return NULL;
    if (!ctl_name_is_good(name))
        return "a server's name has lowercase letters, digits and '_', up to 64, and does not "
               "begin "
               "with control";
    if (i == SERVERS_MAX)
        return "there are too many servers";
    strcpy(r->servers[i].name, name);
    r->servers_count++;
    return NULL;
}

static const char *add_limit(char limits[512], const char *field, const char *value)
{
    size_t n = strlen(limits);
    int more = snprintf(limits + n, 512 - n, " %s=%s", field, value);
    return more < 0 || (size_t)more >= 512 - n ? "it is too long" : NULL;
}

static const char *read_limit(char limits[512], const char *key, const struct gm_toml_item *item)
{
    double share;
    uint64_t number;
    if (strcmp(key, "active_thread_percentage") == 0)
        return gm_parse_percentage(item->text, &share)
                   ? add_limit(limits, "active-thread-percentage", item->text)
                   : "it is a percentage above 0, up to 100";
    if (strcmp(key, "pinned_memory_limit") == 0)
        return gm_parse_size(item->text, &number)
                   ? add_limit(limits, "pinned-memory-limit", item->text)
                   : "it is a number with G, M or K";
    if (strcmp(key, "client_priority") == 0)
        return gm_parse_u64(item->text, 1, &number)
                   ? add_limit(limits, "client-priority", item->text)
                   : "it is 0 or 1";
    return "there is no such key";
}

static const char *read_space(struct reading *r, unsigned server, const struct gm_toml_item *item)
{
    const char *name = item->path[3];
    unsigned i = 0;
    while (i < r->spaces_count &&
           (r->spaces[i].server != server || strcmp(r->spaces[i].name, name) != 0))
        i++;
    if (i == NAMESPACES_MAX)
        return "there are too many namespaces";
    if (i == r->spaces_count) {
        if (!ctl_name_is_good(name))
            return "a namespace's name has lowercase letters, digits and '_', up to 64, and does "
                   "not begin with control";
        r->spaces[i].server = server;
        strcpy(r->spaces[i].name, name);
        r->spaces_count++;
    }
    return read_limit(r->spaces[i].limits, item->path[4], item);
}

static const char *read_feature(struct reading *r, const struct gm_toml_item *item)
{
    const char *key = item->path[2];
    const bool memacct = strcmp(item->path[1], "memacct") == 0;
    const bool share = strcmp(item->path[1], "context-share") == 0;
    if (!memacct && !share)
        return "there is no such feature";
    if (share && strcmp(key, "default_socket") == 0)
        return NULL; /* the percentage of contexts that are not shared */
    if (strcmp(key, "enabled") != 0 && !(memacct && strcmp(key, "audit_log") == 0))
        return "there is no such key";
    if (item->type != GM_TOML_BOOLEAN)
        return "it is true or false";
    if (share)
        return is_true(item) ? "contexts are not shared between programs" : NULL;
    *(*key == 'a' ? &r->audit_log : &r->memacct_off) = is_true(item) == (*key == 'a');
    return NULL;
}

static const char *read_server(struct server *s, const char *key, const struct gm_toml_item *item)
{
    uint64_t number;
    if (strcmp(key, "uid") == 0) {
        if (!gm_parse_u64(item->text, CTL_UID_MAX, &number))
            return "it is a user's number";
        if (geteuid() != 0 && number != geteuid())
            return "only root can start a server for another user";
        s->has_uid = true;
        s->uid = (uid_t)number;
        return NULL;
    }
    if (strcmp(key, "allowed_devices") == 0) {
        if (strlen(item->text) >= sizeof(s->devices) || !*item->text || strpbrk(item->text, " \t"))
            return "it is numbers or UUIDs of devices, with commas";
        strcpy(s->devices, item->text);
        return NULL;
    }
    if (strcmp(key, "locality_domains") == 0)
        return item->type != GM_TOML_BOOLEAN ? "it is true or false"
               : is_true(item)               ? "devices are not divided"
                                             : NULL;
    return read_limit(s->limits, key, item);
}

static const char *read_device(struct reading *r, unsigned server, const struct gm_toml_item *item)
{
    const char *number = item->path[3];
    if (strcmp(item->path[4], "uuid") != 0)
        return "there is no such key";
    if (r->devices_count == PARTITIONS_MAX)
        return "there are too many devices";
    if (strlen(item->text) > 40 || strncmp(item->text, "GPU-", 4) != 0 ||
        strpbrk(item->text, " \t"))
        return "it is a device's UUID";
    struct device *d = &r->devices[r->devices_count++];
    d->server = server;
    snprintf(d->number, sizeof(d->number), "%.15s", number);
    snprintf(d->uuid, sizeof(d->uuid), "%s", item->text);
    return NULL;
}

static struct partition *find_partition(struct reading *r, unsigned server, const char *device,
                                        const char *number)
{
    for (unsigned i = 0; i < r->partitions_count; i++) {
        struct partition *p = &r->partitions[i];
        if (p->server == server && strcmp(p->device, device) == 0 && strcmp(p->number, number) == 0)
            return p;
    }
    if (r->partitions_count == PARTITIONS_MAX)
        return NULL;
    struct partition *p = &r->partitions[r->partitions_count++];
    p->server = server;
    snprintf(p->device, sizeof(p->device), "%.15s", device);
    snprintf(p->number, sizeof(p->number), "%.15s", number);
    return p;
}

static const char *read_partition(struct reading *r, unsigned server,
                                  const struct gm_toml_item *item)
{
    const char *key = item->path[6];
    struct partition *p = find_partition(r, server, item->path[3], item->path[5]);
    if (!p)
        return "there are too many partitions";
    if (strcmp(key, "name") == 0) {
        if (!ctl_name_is_good(item->text))
            return "a name has lowercase letters, digits and '_', up to 64";
        strcpy(p->name, item->text);
        return NULL;
    }
    if (strcmp(key, "chunks") == 0)
        return gm_parse_u64(item->text, UINT32_MAX, &p->chunks) && p->chunks
                   ? NULL
                   : "it is a number above 0";
    if (strcmp(key, "include_remainder") == 0)
        return is_true(item) ? "what is left over of a device is in no chunk" : NULL;
    return "there is no such key";
}

static const char *on_item(void *arg, const struct gm_toml_item *item)
{
    struct reading *r = arg;
    unsigned server;
    if (item->depth == 1 && strcmp(item->path[0], "schema_version") == 0) {
        r->has_version = true;
        return strcmp(item->text, "1.0") == 0 ? NULL : "it is 1.0";
    }
    if (item->depth == 3 && strcmp(item->path[0], "features") == 0)
        return read_feature(r, item);
    if (item->depth < 3 || strcmp(item->path[0], "servers") != 0)
        return "there is no such key";
    const char *why = find_server(r, item->path[1], &server);
    if (why || item->depth == 3)
        return why ? why : read_server(&r->servers[server], item->path[2], item);
    if (item->depth == 5 && strcmp(item->path[2], "namespaces") == 0)
        return read_space(r, server, item);
    const bool device = strcmp(item->path[2], "devices") == 0;
    if (device && item->depth == 5)
        return read_device(r, server, item);
    if (device && item->depth == 7 && strcmp(item->path[4], "sm_partitions") == 0)
        return read_partition(r, server, item);
    return "there is no such key";
}

static const char *device_of(const struct reading *r, const struct partition *p)
{
    for (unsigned i = 0; i < r->devices_count; i++)
        if (r->devices[i].server == p->server && strcmp(r->devices[i].number, p->device) == 0)
            return r->devices[i].uuid;
    return NULL;
}

static const char *judge(const struct reading *r)
{
    if (!r->has_version)
        return "schema_version is missing";
    for (unsigned i = 0; i < r->partitions_count; i++) {
        const struct partition *p = &r->partitions[i];
        if (!*p->name || !p->chunks || !device_of(r, p))
            return "a partition's name or chunks, or its device's uuid, is missing";
    }
    return NULL;
}

static const char *add_all(struct ctl_config *c, const struct reading *r)
{
    char line[1024];
    const char *why = r->memacct_off ? ctl_config_add(c, "feature disable memacct") : NULL;
    if (!why && r->audit_log)
        why = ctl_config_add(c, "memacct set audit_log=true");
    for (unsigned i = 0; i < r->servers_count && !why; i++) {
        const struct server *s = &r->servers[i];
        int n = snprintf(line, sizeof(line), "server create %s", s->name);
        if (s->has_uid)
            n += snprintf(line + n, sizeof(line) - (size_t)n, " --uid=%u", (unsigned)s->uid);
        if (*s->devices)
            snprintf(line + n, sizeof(line) - (size_t)n, " --allowed-devices=%s", s->devices);
        why = ctl_config_add(c, line);
        snprintf(line, sizeof(line), "server set %s%s", s->name, s->limits);
        if (!why && *s->limits)
            why = ctl_config_add(c, line);
    }
    for (unsigned i = 0; i < r->spaces_count && !why; i++) {
        const struct namespace *s = &r->spaces[i];
        const char *server = r->servers[s->server].name;
        snprintf(line, sizeof(line), "namespace create %s --server=%s", s->name, server);
        if (strcmp(s->name, "default") != 0)
            why = ctl_config_add(c, line);
        snprintf(line, sizeof(line), "namespace set %s --server=%s%s", s->name, server, s->limits);
        if (!why && *s->limits)
            why = ctl_config_add(c, line);
    }
    for (unsigned i = 0; i < r->partitions_count && !why; i++) {
        const struct partition *p = &r->partitions[i];
        snprintf(line, sizeof(line), "sm-partition create %s --server=%s --device=%s --chunks=%u",
                 p->name, r->servers[p->server].name, device_of(r, p), (unsigned)p->chunks);
        why = ctl_config_add(c, line);
    }
    return why;
}

int ctl_apply_read(struct ctl_config *c, const char *path, char *why, unsigned why_size)
{
    struct reading *r = calloc(1, sizeof(*r));
    const char *problem = r ? NULL : "out of memory";
    int result = r ? ctl_config_file(path, on_item, r, why, why_size) : -1;
    if (r && result == 0)
        problem = judge(r);
    if (r && result == 0 && !problem)
        problem = add_all(c, r);
    if (problem)
        snprintf(why, why_size, "%s: %s", path, problem);
    free(r);
    return problem ? -1 : result;
}
