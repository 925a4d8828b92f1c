/* The object cache: what comes back is what was put in under the same key, and nothing else ever.
 */
#include "device/soft/loader/cache.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/stat.h>

#include "files.h"

static char directory[64];

static struct loader_cache *open_cache(uint64_t bytes)
{
    struct loader_cache *c = NULL;
    cr_assert_eq(loader_cache_open(&c, directory, bytes, 0), 0);
    return c;
}

static void path_of(const char *key, char *path, size_t size)
{
    char name[LOADER_CACHE_NAME_SIZE];
    loader_cache_name(key, strlen(key), name);
    snprintf(path, size, "%s/%s", directory, name);
}

static bool holds(struct loader_cache *c, const char *key, const char *object)
{
    void *bytes = NULL;
    size_t size;
    if (loader_cache_get(c, key, strlen(key), &bytes, &size) < 0)
        return false;
    bool same = size == strlen(object) && memcmp(bytes, object, size) == 0;
    cr_assert(same, "another object came back");
    free(bytes);
    return true;
}

static int put(struct loader_cache *c, const char *key, const char *object)
{
    return loader_cache_put(c, key, strlen(key), object, strlen(object));
}

static uint64_t size_of_all(void)
{
    uint64_t total = 0;
    DIR *d = opendir(directory);
    for (struct dirent *e; (e = readdir(d));) {
        struct stat st;
        if (fstatat(dirfd(d), e->d_name, &st, 0) == 0 && S_ISREG(st.st_mode))
            total += (uint64_t)st.st_size;
    }
    closedir(d);
    return total;
}

static void setup(void)
{
    make_directory(directory);
}

static void teardown(void)
{
    remove_directory(directory);
}

TestSuite(cache, .init = setup, .fini = teardown);

Test(cache, put_and_get)
{
    struct loader_cache *c = open_cache(1 << 20);
    cr_assert_not(holds(c, "key", "code"));
    cr_assert_eq(put(c, "key", "code"), 0);
    cr_assert(holds(c, "key", "code"));
    cr_assert_not(holds(c, "kez", "code"));
    cr_assert_eq(put(c, "key", "newer code"), 0);
    loader_cache_close(c);
    c = open_cache(1 << 20);
    cr_assert(holds(c, "key", "newer code"));
    loader_cache_remove(c, "key", 3);
    cr_assert_not(holds(c, "key", "newer code"));
    loader_cache_close(c);
}

/* As if the hashes of two keys were equal: the file under a key's name is another key's. */
Test(cache, collision_is_a_miss)
{
    char from[128], to[128];
    struct loader_cache *c = open_cache(1 << 20);
    cr_assert_eq(put(c, "key of one", "code of one"), 0);
    path_of("key of one", from, sizeof(from));
    path_of("key of two", to, sizeof(to));
    cr_assert_eq(rename(from, to), 0);
    cr_assert_not(holds(c, "key of two", "code of two"));
    path_of("a longer key of three", from, sizeof(from));
    cr_assert_eq(rename(to, from), 0);
    cr_assert_not(holds(c, "a longer key of three", "code of three"));
    loader_cache_close(c);
}

Test(cache, damage_is_a_miss)
{
    char path[128], content[256];
    struct loader_cache *c = open_cache(1 << 20);
    path_of("key", path, sizeof(path));
    cr_assert_eq(put(c, "key", "some code"), 0);
    int fd = open(path, O_RDONLY);
    ssize_t size = read(fd, content, sizeof(content));
    close(fd);
    cr_assert_gt(size, 12);
    for (ssize_t i = 0; i < 2 * size; i++) {
        /* First half: byte i flipped; second half: cut at i. */
        size_t length = (size_t)(i < size ? size : i - size);
        fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
        if (i < size)
            content[i] = (char)(content[i] ^ 0x40);
        cr_assert_eq(write(fd, content, length), (ssize_t)length);
        if (i < size)
            content[i] = (char)(content[i] ^ 0x40);
        close(fd);
        cr_assert_not(holds(c, "key", "some code"), "byte %zd", i);
    }
    cr_assert_eq(put(c, "key", "some code"), 0);
    cr_assert(holds(c, "key", "some code"));
    loader_cache_close(c);
}

Test(cache, directory_of_others_is_not_used)
{
    struct loader_cache *c = NULL;
    cr_assert_eq(chmod(directory, 0755), 0);
    cr_assert_eq(loader_cache_open(&c, directory, 1 << 20, 0), -EPERM);
    cr_assert_eq(chmod(directory, 0770), 0);
    cr_assert_eq(loader_cache_open(&c, directory, 1 << 20, 0), -EPERM);
    cr_assert_eq(chmod(directory, 0700), 0);
    char link[128];
    snprintf(link, sizeof(link), "%s/link", directory);
    cr_assert_eq(symlink(directory, link), 0);
    cr_assert_lt(loader_cache_open(&c, link, 1 << 20, 0), 0);
    cr_assert_eq(loader_cache_open(&c, "", 1 << 20, 0), -ENOENT);
    if (geteuid() == 0) {
        cr_assert_eq(chown(directory, 1, 1), 0);
        cr_assert_eq(loader_cache_open(&c, directory, 1 << 20, 0), -EPERM);
        cr_assert_eq(chown(directory, 0, 0), 0);
    }
}

Test(cache, makes_its_directory)
{
    char deep[128];
    struct stat st;
    struct loader_cache *c = NULL;
    snprintf(deep, sizeof(deep), "%s/a/b/gmux", directory);
    cr_assert_eq(loader_cache_open(&c, deep, 1 << 20, 0), 0);
    loader_cache_close(c);
    cr_assert_eq(stat(deep, &st), 0);
    cr_assert_eq(st.st_mode & 0777, 0700);
}

Test(cache, makes_no_home)
{
    char home[128], path[192];
    struct stat st;
    struct loader_cache *c = NULL;
    snprintf(home, sizeof(home), "%s/home", directory);
    snprintf(path, sizeof(path), "%s/.cache/gmux", home);
    unsetenv("GMUX_CACHE_DIR");
    unsetenv("XDG_CACHE_HOME");
    setenv("HOME", home, 1);
    cr_assert_eq(loader_cache_open(&c, NULL, 1 << 20, 0), -ENOENT);
    cr_assert_lt(stat(home, &st), 0);
    cr_assert_eq(mkdir(home, 0700), 0);
    cr_assert_eq(loader_cache_open(&c, NULL, 1 << 20, 0), 0);
    loader_cache_close(c);
    cr_assert_eq(stat(path, &st), 0);
}

Test(cache, stays_below_its_limit)
{
    enum { LIMIT = 64 << 10, PIECE = 4 << 10 };
    struct loader_cache *c = open_cache(LIMIT);
    char *object = malloc(PIECE);
    memset(object, 'x', PIECE);
    cr_assert_eq(loader_cache_put(c, "big", 3, object, LIMIT), -E2BIG);
    for (int i = 0; i < 100; i++) {
        char key[16];
        int n = snprintf(key, sizeof(key), "key %d", i);
        cr_assert_eq(loader_cache_put(c, key, (size_t)n, object, PIECE), 0);
    }
    loader_cache_close(c);
    free(object);
    cr_assert_leq(size_of_all(), LIMIT);
    cr_assert_gt(size_of_all(), LIMIT / 4);
}

#define WRITERS 4
#define EACH    200

static void *writes(void *cache)
{
    static atomic_uint writers;
    unsigned writer = atomic_fetch_add(&writers, 1);
    char key[32], object[512] = { 0 };
    memset(object, 'a' + (char)writer, sizeof(object) - 1);
    for (unsigned i = 0; i < EACH; i++) {
        snprintf(key, sizeof(key), "writer %u, %u", writer, i);
        cr_assert_eq(put(cache, key, object), 0);
        holds(cache, key, object); /* or it was removed for others */
    }
    return NULL;
}

/* Both of the compiler's threads write. */
Test(cache, several_threads)
{
    enum { MOST = 64 << 10 };
    struct loader_cache *c = open_cache(MOST);
    pthread_t threads[WRITERS];
    for (unsigned i = 0; i < WRITERS; i++)
        cr_assert_eq(pthread_create(&threads[i], NULL, writes, c), 0);
    for (unsigned i = 0; i < WRITERS; i++)
        pthread_join(threads[i], NULL);
    cr_assert_leq(size_of_all(), MOST);
    loader_cache_close(c);
}

/* Files that are no regular files are neither read nor waited for. */
Test(cache, strange_files)
{
    char path[128];
    struct loader_cache *c = open_cache(1 << 20);
    path_of("key", path, sizeof(path));
    cr_assert_eq(mkfifo(path, 0600), 0);
    cr_assert_not(holds(c, "key", "code"));
    cr_assert_eq(put(c, "key", "code"), 0);
    cr_assert(holds(c, "key", "code"));
    cr_assert_eq(unlink(path), 0);
    cr_assert_eq(symlink("/dev/zero", path), 0);
    cr_assert_not(holds(c, "key", "code"));
    loader_cache_close(c);
}
