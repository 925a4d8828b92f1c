/* The compiler client without a compiler that works, or with one that lies. */
#include "device/soft/loader/compiler.h"

#include <errno.h>

#include "device/soft/loader/cache.h"
#include "device/soft/loader/key.h"
#include "files.h"

static const struct soft_job job = { .text = ".version 8.5\n", .text_size = 13, .entry = "k" };

Test(compiler, missing_helper)
{
    struct soft_compiler *c;
    struct soft_compiler_config config = { .helper = "/nonexistent/gmux-jit", .cache_dir = "" };
    cr_assert_eq(soft_compiler_create(&c, &config), 0);
    cr_assert_null(soft_compiler_lookup(c, &job));
    cr_assert_eq(soft_compiler_submit(c, &job, NULL, NULL), -ENOENT);
    soft_compiler_destroy(c);
}

Test(compiler, helper_that_does_not_work)
{
    struct soft_compiler *c;
    struct soft_compiler_config config = { .helper = "/bin/false", .cache_dir = "" };
    bool unsupported;
    char why[256];
    cr_assert_eq(soft_compiler_create(&c, &config), 0);
    cr_assert_null(soft_compiler_compile(c, &job, &unsupported, why, sizeof(why)));
    cr_assert_not(unsupported);
    cr_assert_null(soft_compiler_compile(c, &job, &unsupported, why, sizeof(why)));
    cr_assert_str_eq(why, "no compiler");
    soft_compiler_destroy(c);
}

/* An object in the cache is used without any helper process. */
Test(compiler, cached_object_needs_no_helper)
{
    char directory[64];
    struct soft_compiler *c;
    struct loader_cache *cache;
    struct loader_helper_id nobody = { 0, 0 };
    size_t size, key_size;
    make_directory(directory);
    char *object = read_named("LOADER_SAMPLE", &size);
    struct loader_packer packer;
    loader_packer_init(&packer);
    void *key = loader_key_create(&packer, &nobody, job.uid, job.text, job.text_size, job.entry,
                                  &job.options, &key_size);
    loader_packer_finish(&packer);
    cr_assert_eq(loader_cache_open(&cache, directory, 1 << 20, 0), 0);
    cr_assert_eq(loader_cache_put(cache, key, key_size, object, size), 0);
    loader_cache_close(cache);

    struct soft_compiler_config config = { .helper = "/nonexistent/gmux-jit",
                                           .cache_dir = directory };
    cr_assert_eq(soft_compiler_create(&c, &config), 0);
    struct soft_code *code = soft_compiler_lookup(c, &job);
    cr_assert_not_null(code);
    cr_assert_eq(code->save_bytes, 320);
    struct soft_block b = { .ctaid = { 7 } };
    cr_assert_eq(code->run_block(code, &b), SOFT_DONE);
    code->destroy(code);

    struct soft_job other = job;
    other.options.ntid[0] = other.options.ntid[1] = other.options.ntid[2] = 1;
    cr_assert_null(soft_compiler_lookup(c, &other));
    other = job;
    other.entry = "l";
    cr_assert_null(soft_compiler_lookup(c, &other));
    other = job; /* of another user: what made it was nobody whom he has to believe */
    other.uid = job.uid + 1;
    cr_assert_null(soft_compiler_lookup(c, &other));
    soft_compiler_destroy(c);
    remove_directory(directory);
    free(object);
    free(key);
}

/* By the reason of a refusal the liar says which job of its process it is; or that it is the answer
 * to a job that had not come yet. */
static void expect(struct soft_compiler *c, const void *owner, const char *answer)
{
    struct soft_job j = job;
    bool unsupported;
    char why[256] = "";
    j.owner = owner;
    cr_assert_null(soft_compiler_compile(c, &j, &unsupported, why, sizeof(why)));
    cr_assert_str_eq(why, answer);
}

/* gmux-jit, once a hostile text has taken it over, answers what others have yet to ask. Nobody but
 * who has sent that text hears it. */
Test(compiler, process_that_was_taken_over)
{
    static const char one, other;
    struct soft_compiler *c;
    struct soft_compiler_config config = { .helper = getenv("LOADER_LIAR"), .cache_dir = "" };
    cr_assert_not_null(config.helper);
    cr_assert_eq(soft_compiler_create(&c, &config), 0);
    expect(c, &one, "job 1");
    expect(c, &one, "forged");
    expect(c, &other, "job 1");
    expect(c, &one, "job 1");
    soft_compiler_cancel(c, &one); /* it has gone, and another client is where it was */
    expect(c, &one, "job 1");
    soft_compiler_destroy(c);
}

/* Each kernel of a large module has a key with the module's text, which is packed there. */
Test(compiler, keys_are_small)
{
    enum { SIZE = 1 << 20 };
    static const char line[] = "    add.s32 %r1, %r2, %r3;\n";
    struct loader_helper_id nobody = { 0, 0 };
    struct loader_packer packer;
    char *text = malloc(SIZE);
    cr_assert_not_null(text);
    for (size_t k = 0; k < SIZE; k++)
        text[k] = line[k % (sizeof(line) - 1)];
    loader_packer_init(&packer);
    size_t size[3];
    char *key[3];
    for (int k = 0; k < 3; k++) { /* the third text is the first one again */
        text[SIZE / 2] = k == 1 ? 'x' : 'y';
        key[k] = loader_key_create(&packer, &nobody, 0, text, SIZE, "k", &job.options, &size[k]);
        cr_assert_not_null(key[k]);
        cr_assert_lt(size[k], SIZE / 10);
    }
    cr_assert(size[0] != size[1] || memcmp(key[0], key[1], size[0]) != 0);
    cr_assert(size[0] == size[2] && memcmp(key[0], key[2], size[0]) == 0);
    for (int k = 0; k < 3; k++)
        free(key[k]);
    loader_packer_finish(&packer);
    free(text);
}
