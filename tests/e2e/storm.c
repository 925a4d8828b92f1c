/*
 * Preloaded into a program: a signal every 50 us of whatever it does, with a handler that does
 * nothing, and no call that is interrupted begins again by itself.
 */
#include <signal.h>
#include <sys/time.h>

#define EVERY_US 50

static void nothing(int number)
{
    (void)number;
}

__attribute__((constructor)) static void begin(void)
{
    const struct sigaction a = { .sa_handler = nothing };
    const struct itimerval every = { { 0, EVERY_US }, { 0, EVERY_US } };
    sigaction(SIGALRM, &a, NULL);
    setitimer(ITIMER_REAL, &every, NULL);
}
