/*
 * Reads limits from texts: CUDA_MPS_PINNED_DEVICE_MEM_LIMIT, and shares.
 */
#include <stdio.h>
#include <string.h>

#include "base/parse.h"
#include "base/uuid.h"
#include "server/server.h"

void srv_uuid_text(char out[SRV_UUID_TEXT], const uint8_t u[16])
{
    gm_uuid_text(out + sprintf(out, "GPU-"), u);
}

static bool names_device(const char *key, unsigned ordinal, const uint8_t uuid[16])
{
    char text[SRV_UUID_TEXT];
    uint64_t number;
    if (strcmp(key, "*") == 0)
        return true;
    if (gm_parse_u64(key, UINT32_MAX, &number))
        return number == ordinal;
    srv_uuid_text(text, uuid);
    return strcmp(key, text) == 0;
}

uint64_t srv_limits_memory(const char *text, unsigned ordinal, const uint8_t uuid[16])
{
    uint64_t limit = UINT64_MAX; /* the last entry for a device counts */
    while (text && *text) {
        char entry[128];
        size_t n = strcspn(text, ",");
        if (n < sizeof(entry)) {
            memcpy(entry, text, n);
            entry[n] = '\0';
            char *value = strchr(entry, '=');
            uint64_t bytes;
            if (value) {
                *value++ = '\0';
                if (names_device(entry, ordinal, uuid) && gm_parse_size(value, &bytes))
                    limit = bytes;
            }
        }
        text += n + (text[n] == ',');
    }
    return limit;
}

uint32_t srv_limits_multiprocessors(const struct wire_device *d, double share_pct)
{
    uint32_t step = d->multiprocessors_step;
    if (step == 0 || share_pct >= 100)
        return d->multiprocessors;
    /* Shares come from decimal texts: 33 % of 100 must not become 32.999... */
    uint32_t n = (uint32_t)((double)d->multiprocessors * share_pct / 100.0 + 1e-9);
    uint32_t steps = GM_MIN(n, d->multiprocessors_shared) / step;
    return GM_MAX(steps, 1u) * step;
}

void srv_server_limit_memory(struct srv_server *s)
{
    for (uint32_t d = 0; d < TP_DEVICES; d++)
        s->limits.memory[d] = d < s->devices_count ? srv_limits_memory(s->limits.memory_text, d,
                                                                       s->devices[d].uuid.data)
                                                   : UINT64_MAX;
}
