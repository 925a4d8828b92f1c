/*
 * Builds the key of a job: everything that code generation depends on, as bytes.
 */
#include "device/soft/loader/key.h"

#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#if defined(__x86_64__)
#include <cpuid.h>
#endif

#include "device/soft/exec/code.h"

/* No padding: the struct is compared as bytes. */
struct key_head {
    char magic[8];
    char version[32]; /* of gmux */
    uint32_t abi;
    uint32_t uid;
    uint32_t cpu[14];
    struct soft_job_options options;
    struct loader_helper_id helper;
    uint64_t entry_size;
    uint64_t text_size;
};
_Static_assert(sizeof(struct key_head) == 8 + 32 + 64 + sizeof(struct soft_job_options) + 32,
               "padding in key_head");

/* What distinguishes CPU models for a compiler: model and features, but no serial or core
 * numbers. */
static void cpu_identity(uint32_t out[14])
{
#if defined(__x86_64__)
    uint32_t a, b, c, d;
    if (__get_cpuid(0, &a, &b, &c, &d)) {
        out[0] = b;
        out[1] = c;
        out[2] = d;
    }
    if (__get_cpuid(1, &a, &b, &c, &d)) {
        out[3] = a;
        out[4] = c;
        out[5] = d;
    }
    if (__get_cpuid_count(7, 0, &a, &b, &c, &d)) {
        out[6] = b;
        out[7] = c;
        out[8] = d;
    }
    if (__get_cpuid_count(7, 1, &a, &b, &c, &d))
        out[9] = a;
    if (__get_cpuid(0x80000001u, &a, &b, &c, &d)) {
        out[10] = c;
        out[11] = d;
    }
    if (out[4] & bit_OSXSAVE) {
        uint32_t low, high;
        __asm__("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
        out[12] = low;
    }
#else
    unsigned long caps = getauxval(AT_HWCAP), more = getauxval(AT_HWCAP2);
    memcpy(out, &caps, sizeof(caps));
    memcpy(out + 2, &more, sizeof(more));
#endif
}

void *loader_key_create(const struct loader_helper_id *helper, uint32_t uid, const char *text,
                        size_t text_size, const char *entry, const struct soft_job_options *options,
                        size_t *key_size)
{
    struct key_head h;
    size_t entry_size = strlen(entry);

    memset(&h, 0, sizeof(h));
    memcpy(h.magic, "gmuxkey2", sizeof(h.magic));
    strncpy(h.version, GMUX_VERSION, sizeof(h.version) - 1);
    h.abi = SOFT_ABI_VERSION;
    h.uid = uid;
    cpu_identity(h.cpu);
    h.options = *options;
    h.helper = *helper;
    h.entry_size = entry_size;
    h.text_size = text_size;

    size_t total = sizeof(h) + entry_size + text_size;
    char *key = malloc(total);
    if (!key)
        return NULL;
    memcpy(key, &h, sizeof(h));
    memcpy(key + sizeof(h), entry, entry_size);
    memcpy(key + sizeof(h) + entry_size, text, text_size);
    *key_size = total;
    return key;
}
