/*
 * Gives files to a fuzz target, each alone: main() for builds without libFuzzer. With it the
 * corpora are ordinary tests, run by any compiler, and a crash that a fuzzer found is looked at in
 * a debugger:
 *
 *   fuzz_wire_replay FILE-OR-FOLDER...
 *
 * Status 1 if there was nothing to give: a corpus that went missing is not a success.
 */
#include <dirent.h>
#include <limits.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static size_t given;

static void give_file(const char *path)
{
    FILE *f = fopen(path, "rb");
    struct stat st;
    if (!f || fstat(fileno(f), &st) != 0) {
        perror(path);
        exit(1);
    }
    /* Exactly as large as the input, so that a sanitizer sees a byte read behind it. */
    size_t size = (size_t)st.st_size;
    uint8_t *data = malloc(size ? size : 1);
    if (!data || fread(data, 1, size, f) != size) {
        perror(path);
        exit(1);
    }
    fclose(f);
    (void)LLVMFuzzerTestOneInput(data, size);
    free(data);
    given++;
}

static void give(const char *path)
{
    DIR *d = opendir(path);
    if (!d) {
        give_file(path);
        return;
    }
    for (struct dirent *e = readdir(d); e; e = readdir(d)) {
        char inner[PATH_MAX];
        if (e->d_name[0] == '.')
            continue;
        (void)snprintf(inner, sizeof(inner), "%s/%s", path, e->d_name);
        give(inner);
    }
    closedir(d);
}

int main(int argc, char **argv)
{
    for (int i = 1; i < argc; i++)
        give(argv[i]);
    printf("%zu inputs\n", given);
    return given ? 0 : 1;
}
