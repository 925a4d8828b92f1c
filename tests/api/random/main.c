/*
 * Runs random programs, each in a process of its own.
 *
 *     random-calls [--from=SEED] [--count=N] [--print] [--dead]
 *
 * Without --print each program runs twice, and it is wrong if one of them crashes, takes too long,
 * or prints something else than the other one. --print writes what each program printed, for a
 * comparison with another driver's; then a crash is part of the output. With --dead a handle is
 * now and then that of something destroyed, which NVIDIA's library follows.
 */
#include <getopt.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "random.h"

#define SECONDS 60 /* for a program */
#define TEXT    (1u << 20)

static const struct random_subject *const subjects[] = {
    &random_contexts, &random_streams,  &random_events,   &random_memory,
    &random_copies,   &random_modules,  &random_launches, &random_graph_subject,
    &random_captures, &random_pools,    &random_virtual,  &random_libraries,
    &random_arrays,   &random_textures, &random_batches,  &random_misc,
};

bool random_dead;

/* A program is mostly about a few subjects, a set of bits. */
static const struct random_subject *pick_subject(unsigned liked)
{
    unsigned first = random_below((unsigned)COUNT(subjects));
    if (random_below(4) == 0)
        return subjects[first];
    while (!(liked & 1u << first))
        first = (first + 1) % (unsigned)COUNT(subjects);
    return subjects[first];
}

static const struct random_generator *pick_generator(const struct random_subject *s)
{
    unsigned sum = 0, n = 0, k = 0;
    for (size_t i = 0; i < s->count; i++)
        sum += s->generators[i].weight;
    for (n = random_below(sum); n >= s->generators[k].weight; k++)
        n -= s->generators[k].weight;
    return &s->generators[k];
}

/* A program that has lost its context mostly finds one again. */
static void call(unsigned liked)
{
    if (random_current() < 0 && random_chance(3))
        random_context_again();
    else
        pick_generator(pick_subject(liked))->make();
}

static void run(uint64_t seed)
{
    random_seed(seed, 0);
    unsigned calls = 30 + random_below(170), liked = 1u << random_below((unsigned)COUNT(subjects));
    liked |= 1u << random_below((unsigned)COUNT(subjects));
    liked |= 1u << random_below((unsigned)COUNT(subjects));
    bool bare = random_chance(50), fault = random_chance(8), module = random_below(4);
    if (!bare) {
        random_say("cuInit(0)");
        random_done(cuInit(0));
        random_context_begin();
        random_memory_begin();
        if (module)
            random_module_begin();
        for (size_t i = 0; i < COUNT(subjects); i++)
            if (liked & 1u << i && subjects[i]->begin)
                subjects[i]->begin();
    }
    for (unsigned n = 1; n <= calls; n++) {
        if (fault && n + 8 == calls)
            random_fault();
        random_seed(seed, n);
        call(liked);
    }
    random_look();
    random_end_line();
}

/* Appends what a program prints to `text`, and how it ended if that is no good end. False if not.
 */
static bool run_child(uint64_t seed, char *text, size_t size)
{
    int ends[2], status;
    size_t n = 0;
    fflush(stdout);
    if (pipe(ends))
        abort();
    pid_t pid = fork();
    if (pid == 0) {
        dup2(ends[1], STDOUT_FILENO);
        close(ends[0]);
        close(ends[1]);
        alarm(SECONDS);
        run(seed);
        exit(0);
    }
    close(ends[1]);
    for (ssize_t k; (k = read(ends[0], text + n, size - n - 64)) > 0;)
        n += (size_t)k;
    close(ends[0]);
    waitpid(pid, &status, 0);
    text[n] = 0;
    if (status == 0)
        return true;
    snprintf(text + n, 64, "%s\n",
             !WIFSIGNALED(status)          ? "has left"
             : WTERMSIG(status) == SIGALRM ? "hangs"
                                           : strsignal(WTERMSIG(status)));
    return false;
}

static bool check(uint64_t seed)
{
    static char first[TEXT], second[TEXT];
    bool good = run_child(seed, first, sizeof(first));
    if (good && run_child(seed, second, sizeof(second)) && strcmp(first, second) == 0)
        return true;
    size_t line = 0, i = 0;
    for (; good && first[i] && first[i] == second[i]; i++)
        if (first[i] == '\n')
            line = i + 1;
    printf("# seed %llu: %s\n# %.200s\n# %.200s\n", (unsigned long long)seed,
           good ? "two runs differ" : "ends badly",
           good ? first + line : first + (strlen(first) > 200 ? strlen(first) - 200 : 0),
           good ? second + line : "");
    return false;
}

int main(int argc, char **argv)
{
    static const struct option options[] = {
        { "from", required_argument, NULL, 'f' },
        { "count", required_argument, NULL, 'c' },
        { "print", no_argument, NULL, 'p' },
        { "dead", no_argument, NULL, 'd' },
        { NULL, 0, NULL, 0 },
    };
    static char text[TEXT];
    unsigned long long from = 1, count = 20, failed = 0;
    bool print = false;
    for (int o; (o = getopt_long(argc, argv, "f:c:pd", options, NULL)) != -1;) {
        if (o == 'f')
            from = strtoull(optarg, NULL, 0);
        else if (o == 'c')
            count = strtoull(optarg, NULL, 0);
        else if (o == 'p')
            print = true;
        else if (o == 'd')
            random_dead = true;
        else
            return 2;
    }
    for (unsigned long long seed = from; seed < from + count; seed++) {
        if (!print) {
            failed += !check(seed);
            continue;
        }
        run_child(seed, text, sizeof(text));
        printf("== %llu\n%s", seed, text);
    }
    if (!print)
        printf("1..1\n%sok 1 - %llu random programs of calls: %llu wrong\n", failed ? "not " : "",
               count, failed);
    return failed != 0;
}
