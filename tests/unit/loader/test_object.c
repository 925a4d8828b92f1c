/* The object loader: a good object runs; damaged ones are refused or harmless, never a crash. */
#include "device/soft/loader/object.h"

#include <elf.h>
#include <errno.h>
#include <sys/mman.h>

#include "device/soft/exec/code.h"
#include "device/soft/loader/job.h"
#include "files.h"

typedef enum soft_outcome run_block(const struct soft_code *code, struct soft_block *b);

static run_block *entry_of(const struct loader_object *o)
{
    run_block *run;
    void *p = loader_object_function(o, SOFT_ENTRY_SYMBOL);
    memcpy(&run, &p, sizeof(run));
    return run;
}

Test(object, good_object_runs)
{
    size_t size;
    char why[256] = "";
    struct loader_object *o;
    char *bytes = read_named("LOADER_SAMPLE", &size);
    cr_assert_eq(loader_object_load(bytes, size, &o, why, sizeof(why)), 0, "%s", why);
    const struct soft_object_info *info = loader_object_data(o, SOFT_INFO_SYMBOL, sizeof(*info));
    cr_assert_not_null(info);
    cr_assert_eq(info->save_bytes, 320);
    struct soft_block b = { .ctaid = { 7 } };
    cr_assert_not_null(entry_of(o));
    cr_assert_eq(entry_of(o)(NULL, &b), SOFT_DONE);
    cr_assert_eq(b.fault_address, 6 + 14);
    cr_assert_null(loader_object_function(o, "mix"));
    cr_assert_null(loader_object_data(o, SOFT_INFO_SYMBOL, sizeof(*info) + 1));
    cr_assert_null(loader_object_function(o, SOFT_INFO_SYMBOL));
    loader_object_unload(o);
    free(bytes);
}

/* Code is not writable, constants are neither writable nor executable. */
Test(object, memory_is_not_writable)
{
    size_t size;
    char why[256], line[512];
    struct loader_object *o;
    char *bytes = read_named("LOADER_SAMPLE", &size);
    cr_assert_eq(loader_object_load(bytes, size, &o, why, sizeof(why)), 0);
    void *code = loader_object_function(o, SOFT_ENTRY_SYMBOL);
    const void *data = loader_object_data(o, SOFT_INFO_SYMBOL, 8);
    FILE *f = fopen("/proc/self/maps", "r");
    cr_assert_not_null(f);
    int seen = 0;
    while (fgets(line, sizeof(line), f)) {
        unsigned long low, high;
        char rights[8];
        cr_assert_eq(sscanf(line, "%lx-%lx %7s", &low, &high, rights), 3);
        if ((unsigned long)code >= low && (unsigned long)code < high) {
            seen++;
            cr_assert_str_eq(rights, "r-xp", "%s", line);
        }
        if ((unsigned long)data >= low && (unsigned long)data < high) {
            seen++;
            cr_assert_str_eq(rights, "r--p", "%s", line);
        }
    }
    fclose(f);
    cr_assert_eq(seen, 2);
    loader_object_unload(o);
    free(bytes);
}

Test(object, external_symbol_is_refused)
{
    size_t size;
    char why[256] = "";
    struct loader_object *o;
    char *bytes = read_named("LOADER_EXTERNAL", &size);
    cr_assert_eq(loader_object_load(bytes, size, &o, why, sizeof(why)), -EBADMSG);
    cr_assert_not_null(strstr(why, "somewhere_else"), "%s", why);
    free(bytes);
}

/* The copy ends at the end of its buffer, so that sanitizers see a byte read too far. */
static int load_copy(const char *bytes, size_t size)
{
    char why[256] = "";
    struct loader_object *o = NULL;
    char *copy = malloc(size ? size : 1);
    cr_assert_not_null(copy);
    memcpy(copy, bytes, size);
    int r = loader_object_load(copy, size, &o, why, sizeof(why));
    free(copy);
    if (r == 0)
        loader_object_unload(o);
    else
        cr_assert(why[0] != 0 && strchr(why, '\n') == NULL);
    return r;
}

Test(object, truncated_at_every_byte)
{
    size_t size;
    char *bytes = read_named("LOADER_SAMPLE", &size);
    for (size_t n = 0; n < size; n++)
        cr_assert_lt(load_copy(bytes, n), 0, "cut at %zu of %zu", n, size);
    free(bytes);
}

Test(object, every_byte_flipped)
{
    static const unsigned char masks[] = { 0x01, 0x10, 0x80, 0xff };
    size_t size;
    char *bytes = read_named("LOADER_SAMPLE", &size);
    for (size_t n = 0; n < size; n++) {
        for (size_t k = 0; k < GM_ARRAY_LEN(masks); k++) {
            bytes[n] = (char)(bytes[n] ^ masks[k]);
            load_copy(bytes, size);
            bytes[n] = (char)(bytes[n] ^ masks[k]);
        }
    }
    cr_assert_eq(load_copy(bytes, size), 0);
    free(bytes);
}

/* Section headers with extreme values, each field of each section in turn. */
Test(object, extreme_section_fields)
{
    static const uint64_t values[] = { 0,          1,         0x7fffffff,     0x80000000,
                                       0xffffffff, INT64_MAX, UINT64_MAX - 7, UINT64_MAX };
    size_t size;
    char *bytes = read_named("LOADER_SAMPLE", &size);
    Elf64_Ehdr h;
    memcpy(&h, bytes, sizeof(h));
    for (unsigned i = 0; i < h.e_shnum; i++) {
        for (size_t field = 0; field < sizeof(Elf64_Shdr); field += 8) {
            for (size_t k = 0; k < GM_ARRAY_LEN(values); k++) {
                char kept[8];
                char *where = bytes + h.e_shoff + i * sizeof(Elf64_Shdr) + field;
                memcpy(kept, where, 8);
                memcpy(where, &values[k], 8);
                load_copy(bytes, size);
                memcpy(where, kept, 8);
            }
        }
    }
    free(bytes);
}

Test(object, random_bytes)
{
    char junk[512];
    srand(7);
    for (int round = 0; round < 2000; round++) {
        for (size_t i = 0; i < sizeof(junk); i++)
            junk[i] = (char)rand();
        memcpy(junk, ELFMAG, SELFMAG);
        cr_assert_lt(load_copy(junk, sizeof(junk)), 0);
    }
}
