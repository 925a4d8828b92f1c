/*
 * Every served function of the driver API called with arguments that are wrong: the calls are
 * generated from protocol/cuda.api, what they are given is wrong.c's.
 */
#ifndef GMUX_TESTS_API_WRONG_H
#define GMUX_TESTS_API_WRONG_H

#include <cuda.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* In which way. Where pointers are good they point to zeros, a page of them. */
enum wrong {
    WRONG_NOTHING,      /* all is zero */
    WRONG_HANDLES,      /* handles that nobody gave out, zeros */
    WRONG_HANDLES_HUGE, /* the same, pointers NULL, numbers as large as they get */
    WRONG_HUGE,         /* handles and pointers NULL, numbers as large as they get */
    WRONG_LITTLE,       /* nothing but handles is missing; numbers are 1 */
    WRONG_COUNT,
};

void *wrong_pointer(unsigned what);
void *wrong_handle(unsigned what);
uint64_t wrong_number(unsigned what);
uint64_t wrong_address(unsigned what);
void wrong_callback(void);

struct wrong_function {
    const char *name;
    CUresult (*call)(void *function, unsigned what);
    bool handles; /* it takes some */
};
extern const struct wrong_function wrong_functions[];
extern const size_t wrong_functions_count;

#endif
