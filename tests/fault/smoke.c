/* One client, one life: session, memory, ring, end. Everything given back. */
#include <stdio.h>
#include <unistd.h>

#include "raw.h"

int main(void)
{
    static struct raw_server s;
    static struct raw_client c;
    int result;

    raw_server_start(&s, "null");
    raw_client_open(&c, raw_server_connect(&s, (uint32_t)getpid()));
    uint64_t a = raw_alloc(&c, 4 << 20, WIRE_MEMORY_KIND_DEVICE, &result);
    RAW_CHECK(result == 0 && a == c.window_base + (2 << 20)); /* behind a slab */
    uint64_t small = raw_alloc(&c, 100, WIRE_MEMORY_KIND_DEVICE, &result);
    RAW_CHECK(result == 0 && small != a && small % 512 == 0);
    for (unsigned i = 0; i < 10000; i++)
        RAW_CHECK(raw_fill(&c, i % 3, a, i, 16) != 0);
    for (uint32_t i = 0; i < 3; i++)
        RAW_CHECK(raw_wait(&c, i, c.seq[i]) == 0);
    RAW_CHECK(raw_free(&c, small) == 0);
    RAW_CHECK(raw_free(&c, small) == 1);
    RAW_CHECK(raw_free(&c, a) == 0);
    raw_client_close(&c);
    raw_server_drain(&s);
    RAW_CHECK(raw_server_charged(&s) == 0);
    fputs(s.log, stdout);
    raw_server_stop(&s);
    return 0;
}
