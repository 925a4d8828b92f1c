/*
 * Turns a compiled object into the code that the device runs: its entry point, and what its
 * description says.
 */
#include "device/soft/loader/code.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/attr.h"
#include "device/soft/loader/object.h"

struct compiled {
    struct soft_code code;
    struct loader_object *object;
};

static void compiled_destroy(struct soft_code *code)
{
    struct compiled *c = GM_CONTAINER_OF(code, struct compiled, code);
    loader_object_unload(c->object);
    free(c);
}

static bool info_fits(const struct soft_object_info *info, const struct soft_job_options *options)
{
    return info->magic == SOFT_JOB_MAGIC && info->abi == SOFT_ABI_VERSION &&
           memcmp(info->ntid, options->ntid, sizeof(info->ntid)) == 0 &&
           info->save_bytes <= (16u << 20) && info->local_bytes <= (16u << 20);
}

struct soft_code *loader_code_create(const void *bytes, size_t size,
                                     const struct soft_job_options *options, char *why,
                                     size_t why_size)
{
    struct compiled *c = calloc(1, sizeof(*c));
    if (!c || loader_object_load(bytes, size, &c->object, why, why_size) < 0) {
        free(c);
        return NULL;
    }
    const struct soft_object_info *info =
        loader_object_data(c->object, SOFT_INFO_SYMBOL, sizeof(*info));
    void *run = loader_object_function(c->object, SOFT_ENTRY_SYMBOL);
    if (!run || !info || !info_fits(info, options)) {
        snprintf(why, why_size, "object without proper entry point and description");
        compiled_destroy(&c->code);
        return NULL;
    }
    memcpy(&c->code.run_block, &run, sizeof(run));
    c->code.destroy = compiled_destroy;
    c->code.save_bytes = info->save_bytes;
    c->code.local_bytes = info->local_bytes;
    c->code.row = info->row;
    c->code.tier = "compiled";
    c->code.bytes = loader_object_size(c->object) + sizeof(*c);
    return &c->code;
}
