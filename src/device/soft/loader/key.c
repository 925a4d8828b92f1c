/*
 * Builds the key of a job: everything that code generation depends on, as bytes.
 */
#include "device/soft/loader/key.h"

#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/random.h>
#include <zstd.h>
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

void loader_packer_init(struct loader_packer *p)
{
    memset(p, 0, sizeof(*p));
    pthread_mutex_init(&p->lock, NULL);
    if (getrandom(&p->seed, sizeof(p->seed), GRND_NONBLOCK) < 0)
        p->seed = (uint64_t)(uintptr_t)p;
}

void loader_packer_finish(struct loader_packer *p)
{
    pthread_mutex_destroy(&p->lock);
    free(p->packed);
}

/* Makes the text the one that is packed. False: no memory. The caller holds the lock. */
static bool pack(struct loader_packer *p, const char *text, size_t text_size)
{
    XXH128_hash_t hash = XXH3_128bits_withSeed(text, text_size, p->seed);
    if (p->packed && p->text_size == text_size && XXH128_isEqual(p->hash, hash))
        return true;
    size_t most = ZSTD_compressBound(text_size);
    char *packed = malloc(most);
    size_t size = packed ? ZSTD_compress(packed, most, text, text_size, 1) : 0;
    if (!packed || ZSTD_isError(size)) {
        free(packed);
        return false;
    }
    char *fit = realloc(packed, size);
    free(p->packed);
    p->packed = fit ? fit : packed;
    p->hash = hash;
    p->text_size = text_size;
    p->size = size;
    return true;
}

void *loader_key_create(struct loader_packer *p, const struct loader_helper_id *helper,
                        uint32_t uid, const char *text, size_t text_size, const char *entry,
                        const struct soft_job_options *options, size_t *key_size)
{
    struct key_head h;
    size_t entry_size = strlen(entry);
    char *key = NULL;

    memset(&h, 0, sizeof(h));
    memcpy(h.magic, "gmuxkey3", sizeof(h.magic));
    strncpy(h.version, GMUX_VERSION, sizeof(h.version) - 1);
    h.abi = SOFT_ABI_VERSION;
    h.uid = uid;
    cpu_identity(h.cpu);
    h.options = *options;
    h.helper = *helper;
    h.entry_size = entry_size;
    h.text_size = text_size;

    pthread_mutex_lock(&p->lock);
    if (pack(p, text, text_size))
        key = malloc(sizeof(h) + entry_size + p->size);
    if (key) {
        memcpy(key, &h, sizeof(h));
        memcpy(key + sizeof(h), entry, entry_size);
        memcpy(key + sizeof(h) + entry_size, p->packed, p->size);
        *key_size = sizeof(h) + entry_size + p->size;
    }
    pthread_mutex_unlock(&p->lock);
    return key;
}
