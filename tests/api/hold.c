/* A futex, which waits for a word of any kind of thread. */
#include "hold.h"

#include <linux/futex.h>
#include <stdatomic.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define HOLD_S 20

void hold_wait_for(_Atomic int *word, int want, int seconds)
{
    const time_t end = time(NULL) + seconds;
    const struct timespec second = { .tv_sec = 1 };
    int value;
    while ((value = atomic_load(word)) != want && time(NULL) < end)
        syscall(SYS_futex, word, FUTEX_WAIT_PRIVATE, value, &second, NULL, 0);
}

void hold_wait(_Atomic int *word, int want)
{
    hold_wait_for(word, want, HOLD_S);
}

void hold_set(_Atomic int *word, int value)
{
    atomic_store(word, value);
    syscall(SYS_futex, word, FUTEX_WAKE_PRIVATE, 64, NULL, NULL, 0);
}
