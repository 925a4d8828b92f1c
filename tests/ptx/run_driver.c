/*
 * Runs PTX cases through the CUDA driver API of whatever libcuda.so.1 the loader finds: a genuine
 * one, which makes this the check of the cases themselves, or this project's. Prints TAP.
 *
 * A fault leaves a process without a usable device for good, so cases run in child processes: one
 * goes on until a case ends with a fault, then the next one takes over.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "driver.h"
#include "paths.h"

static bool record;

static bool run(struct ptx_case *c, enum ptx_fault *fault, char *why, size_t why_size)
{
    struct driver_launch l = { .text = c->text,
                               .kernel = c->kernel,
                               .grid = c->grid,
                               .block = c->block,
                               .shared = c->shared,
                               .arg_count = c->arg_count };
    ptx_case_reset(c);
    for (size_t k = 0; k < c->arg_count; k++)
        l.args[k] = (struct driver_arg) { c->args[k].data, c->args[k].bytes, c->args[k].is_value };
    if (!driver_run(&l, fault, why, why_size))
        return false;
    if (*fault == PTX_FAULT_ASSERT)
        for (size_t k = 0; k < c->arg_count; k++) /* lost with the context */
            c->args[k].is_checked = false;
    return true;
}

/* For make_probes.py: what the last argument holds, in hexadecimal, after the name of the case. */
static void print_outputs(const struct ptx_case *c, const char *name)
{
    const struct ptx_arg *a = &c->args[c->arg_count - 1];
    size_t size = ptx_type_size[a->type];
    printf("record %.*s", (int)strcspn(name, "."), name);
    for (size_t k = 0; k < a->count; k++) {
        uint64_t v = 0;
        memcpy(&v, a->data + k * size, size);
        printf(" %llx", (unsigned long long)v);
    }
    printf("\n");
}

/* What parent and children share. */
struct progress {
    size_t next; /* case to run */
    int failed;
    bool no_device;
};

/* False if the device is spoilt. */
static bool run_file(const char *path, unsigned number, struct progress *p)
{
    char why[512] = "";
    const char *name = strrchr(path, '/') ? strrchr(path, '/') + 1 : path;
    struct ptx_case *c = ptx_case_load(path, why, sizeof(why));
    enum ptx_fault fault = PTX_FAULT_NONE;
    bool skip = c && c->only_soft, ok = c != NULL;
    if (c && !skip) {
        ok = run(c, &fault, why, sizeof(why));
        c->print[0] = c->printed[0] = 0; /* goes to standard output there */
        if (ok && record && fault == PTX_FAULT_NONE)
            print_outputs(c, name);
        ok = ok && ptx_case_check(c, fault, why, sizeof(why));
    }
    printf("%sok %u - %s%s\n", ok ? "" : "not ", number, name,
           skip ? " # SKIP only on the software device" : "");
    if (!ok)
        printf("# %s\n", why);
    fflush(stdout);
    ptx_case_destroy(c);
    p->failed += !ok;
    return fault == PTX_FAULT_NONE;
}

/* Seconds for a case, with its compilation. */
#define CASE_S 20u

static void child(const struct ptx_paths *paths, struct progress *p)
{
    if (!driver_open()) {
        p->no_device = true;
        return;
    }
    bool good = true;
    while (good && p->next < paths->count) {
        size_t k = p->next++; /* counted before it runs: a child that dies takes its case with it */
        alarm(CASE_S);        /* a kernel that does not end is its case's failure, too */
        good = run_file(paths->at[k], (unsigned)k + 1, p);
    }
}

int main(int argc, char **argv)
{
    struct ptx_paths paths = { 0 };
    struct progress *p =
        mmap(NULL, sizeof(*p), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    record = argc > 1 && strcmp(argv[1], "--record") == 0;
    for (int k = 1 + record; k < argc; k++)
        ptx_paths_add(&paths, argv[k]);
    if (paths.count == 0 || p == MAP_FAILED) {
        fprintf(stderr, "usage: run_driver [--record] CASE.ptx|DIRECTORY ...\n");
        return 2;
    }
    printf("1..%zu\n", paths.count);
    fflush(stdout);
    while (p->next < paths.count && !p->no_device) {
        size_t first = p->next;
        int status = 0;
        pid_t pid = fork();
        if (pid == 0) {
            child(&paths, p);
            fflush(stdout);
            _exit(0);
        }
        if (pid < 0 || waitpid(pid, &status, 0) != pid || (status != 0 && p->next == first))
            return 1;
        if (status != 0) {
            printf("not ok %zu - %s\n# its process died\n", p->next, paths.at[p->next - 1]);
            fflush(stdout); /* the next child has what is in the buffer, too */
            p->failed++;
        }
    }
    if (p->no_device)
        printf("Bail out! no device\n");
    ptx_paths_finish(&paths);
    return p->failed != 0 || p->no_device;
}
