/* Which devices a program sees, and in which order: CUDA_DEVICE_ORDER and CUDA_VISIBLE_DEVICES. */
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "client/session/attach.h"
#include "client/session/session.h"

/* As a driver gives them, the fastest first: not in the order of the buses. */
static struct rt_device devices[4];

static void make_devices(void)
{
    static const uint32_t places[4][3] = { { 1, 2, 0 }, { 0, 9, 1 }, { 0, 9, 0 }, { 0, 10, 0 } };
    memset(devices, 0, sizeof(devices));
    for (uint32_t i = 0; i < 4; i++) {
        devices[i].index = i;
        devices[i].pci_domain = places[i][0];
        devices[i].pci_bus = places[i][1];
        devices[i].pci_device = places[i][2];
        memset(devices[i].uuid, (int)(i + 1), sizeof(devices[i].uuid));
    }
}

/* `expected`: the server's numbers of the devices that are seen. */
static void expect(const char *order, const char *visible, const char *expected)
{
    char seen[8] = "";
    unsetenv("CUDA_DEVICE_ORDER");
    unsetenv("CUDA_VISIBLE_DEVICES");
    if (order)
        setenv("CUDA_DEVICE_ORDER", order, 1);
    if (visible)
        setenv("CUDA_VISIBLE_DEVICES", visible, 1);
    make_devices();
    unsigned n = rt_device_visible(devices, 4);
    cr_assert_leq(n, 4);
    for (unsigned i = 0; i < n; i++)
        seen[i] = (char)('0' + devices[i].index);
    cr_assert_str_eq(seen, expected, "order %s, visible %s", order ? order : "-",
                     visible ? visible : "-");
}

Test(visible, order_of_the_buses)
{
    expect(NULL, NULL, "0123");
    expect("FASTEST_FIRST", NULL, "0123");
    expect("PCI_BUS_ID", NULL, "2130");
}

/* Numbers in CUDA_VISIBLE_DEVICES are those of the order. */
Test(visible, both)
{
    expect(NULL, "3,0", "30");
    expect("PCI_BUS_ID", "3,0", "02");
    expect("PCI_BUS_ID", "1,1", "");
    expect("PCI_BUS_ID", "2,7,0", "3");
    expect("PCI_BUS_ID", "", "");
    expect("PCI_BUS_ID", "GPU-01010101,0", "02");
}

/* As any word that is none of the two. */
Test(visible, what_is_no_order)
{
    static const char *const bad[] = { "", "pci_bus_id", "PCI_BUS_ID ", "1", "-1", "\xff\xfe" };
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
        expect(bad[i], NULL, "0123");
}

Test(visible, no_devices)
{
    setenv("CUDA_DEVICE_ORDER", "PCI_BUS_ID", 1);
    unsetenv("CUDA_VISIBLE_DEVICES");
    cr_assert_eq(rt_device_visible(devices, 0), 0);
}
