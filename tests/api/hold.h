/*
 * A word that one thread waits for and another one sets: the first sleeps until then. Nothing is
 * looked at again and again, and nothing but the system is needed.
 */
#ifndef GMUX_TESTS_API_HOLD_H
#define GMUX_TESTS_API_HOLD_H

/* Until *word is `want`, 20 seconds at most: a test has a few more. */
void hold_wait(_Atomic int *word, int want);
void hold_wait_for(_Atomic int *word, int want, int seconds);
void hold_set(_Atomic int *word, int value);

#endif
