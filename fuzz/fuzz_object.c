/*
 * Objects of machine code, as gmux-jit may make them once it is a hostile program's: refused, or
 * loaded so that what they export lies inside of their own memory. Nothing of them is run.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "device/soft/loader/job.h"
#include "device/soft/loader/object.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* All of it can be read. */
static void look(const uint8_t *p, size_t size)
{
    static volatile uint8_t seen;
    for (size_t i = 0; i < size; i++)
        seen = (uint8_t)(seen ^ p[i]);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct loader_object *o = NULL;
    char why[128] = "";
    int r = loader_object_load(data, size, &o, why, sizeof(why));
    if ((r == 0) != (o != NULL) || (r != 0 && (why[0] == 0 || !memchr(why, 0, sizeof(why)))))
        abort();
    if (r != 0)
        return 0;
    const void *info = loader_object_data(o, SOFT_INFO_SYMBOL, sizeof(struct soft_object_info));
    if (info)
        look(info, sizeof(struct soft_object_info));
    const uint8_t *run = loader_object_function(o, SOFT_ENTRY_SYMBOL);
    if (run)
        look(run, 1);
    loader_object_unload(o);
    return 0;
}
