/*
 * CUDA_VISIBLE_DEVICES and CUDA_DEVICE_ORDER: the devices of the session that the program sees, and
 * their order. The driver library interprets these variables, and this library does so by the rules
 * of NVIDIA's.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/uuid.h"
#include "client/session/attach.h"
#include "client/session/session.h"

void rt_device_uuid_text(const uint8_t uuid[16], char out[RT_UUID_TEXT])
{
    gm_uuid_text(out + sprintf(out, "GPU-"), uuid);
}

/* Finds the device that the first entry of a list names, by its number or by the beginning of its
 * UUID. Returns `count` if there is no such device, or more than one. */
static unsigned device_named(const char *entry, const struct rt_device *devices, unsigned count)
{
    char uuid[RT_UUID_TEXT], *end;
    size_t n = strcspn(entry, ",");
    unsigned found = count;
    long ordinal = strtol(entry, &end, 10);
    if (end != entry && (*end == ',' || *end == '\0'))
        return ordinal >= 0 && ordinal < (long)count ? (unsigned)ordinal : count;
    for (unsigned i = 0; n >= 5 && i < count; i++) {
        rt_device_uuid_text(devices[i].uuid, uuid);
        if (strncasecmp(entry, uuid, GM_MIN(n, sizeof(uuid))) != 0)
            continue;
        if (found != count)
            return count;
        found = i;
    }
    return found;
}

static int by_bus(const void *a, const void *b)
{
    const struct rt_device *x = a, *y = b;
    const uint32_t of_x[] = { x->pci_domain, x->pci_bus, x->pci_device, x->index };
    const uint32_t of_y[] = { y->pci_domain, y->pci_bus, y->pci_device, y->index };
    for (unsigned i = 0; i < GM_ARRAY_LEN(of_x); i++)
        if (of_x[i] != of_y[i])
            return of_x[i] < of_y[i] ? -1 : 1;
    return 0;
}

/* Sorts the devices. With any other value they keep the order that the server has from its driver,
 * which usually has the fastest device first. */
static void put_in_order(struct rt_device *devices, unsigned count)
{
    const char *order = secure_getenv("CUDA_DEVICE_ORDER");
    if (count && order && strcmp(order, "PCI_BUS_ID") == 0)
        qsort(devices, count, sizeof(*devices), by_bus);
}

/* Puts the devices into the list's order. The list ends at an entry that names no device. If a
 * device is named twice no device is left, as with NVIDIA's library. */
unsigned rt_device_visible(struct rt_device *devices, unsigned count)
{
    const char *list = secure_getenv("CUDA_VISIBLE_DEVICES");
    unsigned order[RT_DEVICES], visible = 0, i;
    uint32_t seen = 0;
    put_in_order(devices, count);
    struct rt_device *all = list && count ? malloc(count * sizeof(*all)) : NULL;
    if (!all)
        return list ? 0 : count;
    for (; *list && (i = device_named(list, devices, count)) < count;
         list += strcspn(list, ","), list += *list == ',') {
        if (seen >> i & 1) {
            visible = 0;
            break;
        }
        seen |= 1u << i;
        order[visible++] = i;
    }
    memcpy(all, devices, count * sizeof(*all));
    for (i = 0; i < visible; i++)
        devices[i] = all[order[i]];
    free(all);
    return visible;
}

int rt_device_by_index(const struct rt_session *s, uint32_t index)
{
    for (unsigned i = 0; i < s->device_count; i++)
        if (s->devices[i].index == index)
            return (int)i;
    return -1;
}
