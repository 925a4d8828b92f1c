/*
 * Runs the C loops of nbody_loops.c on all cores and prints, for each, its name and billions of
 * interactions per second (best of the rounds: what the machine can do).
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "nbody_loops.h"

#define THREADS_MAX 256
#define BLOCK       256

struct job {
    nbody_loop *loop;
    const struct nbody_loop_data *data;
    int *next;
};

static void *work(void *arg)
{
    const struct job *j = arg;
    for (;;) {
        int begin = __atomic_fetch_add(j->next, BLOCK, __ATOMIC_RELAXED);
        if (begin >= j->data->n)
            return NULL;
        j->loop(j->data, begin, begin + BLOCK);
    }
}

static double seconds(void)
{
    struct timespec ts;
    clock_gettime(CLOCK_MONOTONIC, &ts);
    return (double)ts.tv_sec + 1e-9 * (double)ts.tv_nsec;
}

static double run(nbody_loop *loop, const struct nbody_loop_data *d, int threads)
{
    pthread_t ids[THREADS_MAX];
    int next = 0;
    struct job j = { loop, d, &next };
    double t0 = seconds();
    for (int t = 1; t < threads; t++)
        if (pthread_create(&ids[t], NULL, work, &j) != 0)
            exit(1);
    work(&j);
    for (int t = 1; t < threads; t++)
        pthread_join(ids[t], NULL);
    return (double)d->n * d->n / (seconds() - t0) * 1e-9;
}

int main(int argc, char **argv)
{
    static const struct {
        const char *name;
        nbody_loop *loop;
    } loops[] = { { "over_j", nbody_loop_over_j_f32 },
                  { "over_i_16", nbody_loop_16_f32 },
                  { "over_i_32", nbody_loop_32_f32 },
                  { "over_i_64", nbody_loop_64_f32 } };
    int n = argc > 1 ? atoi(argv[1]) / BLOCK * BLOCK : 16384;
    int rounds = argc > 2 ? atoi(argv[2]) : 5;
    int threads = argc > 3 ? atoi(argv[3]) : (int)sysconf(_SC_NPROCESSORS_ONLN);
    struct nbody_loop_data d = { .n = n, .softening2 = 0.01f };
    float **arrays[] = { &d.x, &d.y, &d.z, &d.m, &d.ax, &d.ay, &d.az };

    if (n < BLOCK || rounds < 1 || threads < 1 || threads > THREADS_MAX)
        return 2;
    srand(1);
    for (size_t a = 0; a < 7; a++) {
        *arrays[a] = aligned_alloc(64, (size_t)n * sizeof(float));
        if (!*arrays[a])
            return 1;
        for (int i = 0; i < n; i++)
            (*arrays[a])[i] = (float)rand() / (float)RAND_MAX;
    }
    for (size_t l = 0; l < sizeof(loops) / sizeof(loops[0]); l++) {
        double best = 0;
        for (int r = 0; r < rounds; r++) {
            double rate = run(loops[l].loop, &d, threads);
            best = rate > best ? rate : best;
        }
        printf("%s %.3f\n", loops[l].name, best);
    }
    for (size_t a = 0; a < 7; a++)
        free(*arrays[a]);
    return 0;
}
