/*
 * Many clients, without the time that it takes to start programs: children of one process that call
 * cuInit.
 *
 * crowd together COUNT all at once; prints the milliseconds until the last one has its session, and
 * keeps them until
 *                           the input ends
 * crowd cycles COUNT ABREAST one after the other, so many beside each other, each of which leaves
 * after cuInit: every third
 *                           one is killed instead; prints how many had a session
 */
#include <cuda.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "example.h"

static pid_t children[4096];

static pid_t start(int gate, int report)
{
    pid_t pid = fork();
    char byte;
    if (pid != 0)
        return pid;
    if (gate >= 0 && read(gate, &byte, 1) < 0)
        _exit(3);
    byte = cuInit(0) == CUDA_SUCCESS ? 'y' : 'n';
    if (report >= 0 && write(report, &byte, 1) != 1)
        _exit(3);
    if (report >= 0)
        pause();
    _exit(byte != 'y');
}

static int together(unsigned count)
{
    int gate[2], report[2];
    unsigned good = 0, told = 0;
    char bytes[4096];
    if (pipe(gate) < 0 || pipe(report) < 0)
        return 1;
    for (unsigned i = 0; i < count; i++) {
        children[i] = start(gate[0], report[1]);
        if (children[i] < 0)
            return 1;
    }
    memset(bytes, 0, sizeof(bytes));
    double begin = ex_seconds();
    if (write(gate[1], bytes, count) != (ssize_t)count)
        return 1;
    while (told < count) {
        ssize_t n = read(report[0], bytes, sizeof(bytes));
        if (n <= 0)
            break;
        for (ssize_t i = 0; i < n; i++)
            good += bytes[i] == 'y';
        told += (unsigned)n;
    }
    printf("%.1f %u\n", 1e3 * (ex_seconds() - begin), good);
    fflush(stdout);
    while (getchar() != EOF)
        ;
    for (unsigned i = 0; i < count; i++)
        kill(children[i], SIGKILL);
    while (wait(NULL) > 0)
        ;
    return good != count;
}

/* One that is to be killed: as soon as it has its session. */
static int cycle_killed(void)
{
    int report[2];
    char byte = 'n';
    if (pipe(report) < 0)
        return 0;
    pid_t pid = start(-1, report[1]);
    close(report[1]);
    if (read(report[0], &byte, 1) != 1)
        byte = 'n';
    close(report[0]);
    kill(pid, SIGKILL);
    waitpid(pid, NULL, 0);
    return byte == 'y';
}

static int cycles(int count, int abreast)
{
    int good = 0, running = 0, status;
    for (int i = 0; i < count; i++) {
        if (i % 3 == 2) {
            good += cycle_killed();
            continue;
        }
        if (start(-1, -1) > 0)
            running++;
        if (running == abreast && wait(&status) > 0) {
            running--;
            good += status == 0;
        }
    }
    while (wait(&status) > 0)
        good += status == 0;
    printf("%d\n", good);
    return good != count;
}

int main(int argc, char **argv)
{
    int count = argc > 2 ? atoi(argv[2]) : 0;
    if (argc == 3 && strcmp(argv[1], "together") == 0 && count > 0 && count <= 4096)
        return together((unsigned)count);
    if (argc == 4 && strcmp(argv[1], "cycles") == 0 && count > 0 && atoi(argv[3]) > 0)
        return cycles(count, atoi(argv[3]));
    fprintf(stderr, "usage: %s together COUNT | cycles COUNT ABREAST\n", argv[0]);
    return 2;
}
