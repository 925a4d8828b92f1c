/*
 * What a driver answers, written down: each case makes calls and prints one line for each, the call
 * as it stands in the source and its result, and the values that came with it. The lines that
 * NVIDIA's driver printed are kept in tests/expected; compare.py runs the cases elsewhere and
 * compares. A line that begins with "~" is about the machine (its memory, its registers), and only
 * has to be there.
 */
#ifndef GMUX_TESTS_API_ANSWERS_H
#define GMUX_TESTS_API_ANSWERS_H

#include <cuda.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

struct answers_case {
    const char *name;
    void (*run)(void);
    bool bare; /* without cuInit and a current context */
};

/* One list in each file. */
extern const struct answers_case answers_device[], answers_context[], answers_module[],
    answers_function[], answers_memory[], answers_host[], answers_pointer[], answers_copy[],
    answers_managed[], answers_pool[], answers_virtual[], answers_ipc[], answers_stream[],
    answers_event[], answers_launch[], answers_fault[], answers_graph[], answers_node[],
    answers_misc[];

CUresult answers_call(const char *text, CUresult result);
void answers_number(const char *text, long long value, bool machine);
void answers_text(const char *label, const char *text);

#define CALL(call)     answers_call(#call, (call))
#define NUM(value)     answers_number(#value, (long long)(value), false)
#define MACHINE(value) answers_number(#value, (long long)(value), true)
#define TEXT(value)    answers_text(#value, (value))
#define CASE(function)                                                                             \
    {                                                                                              \
#function, function, false                                                                 \
    }
#define BARE(function)                                                                             \
    {                                                                                              \
#function, function, true                                                                  \
    }
#define END                                                                                        \
    {                                                                                              \
        NULL, NULL, false                                                                          \
    }
#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

/* answers.ptx, loaded once, in the context that is current then. */
extern const char answers_ptx[];
CUmodule answers_image(void);
CUfunction answers_function_of(const char *name);
/* A word of the device's memory; -1 if it cannot be read. */
long long answers_word(CUdeviceptr at);
/* Starts fill(out, n, value): out[i] = value + i. */
CUresult answers_fill(CUstream stream, CUdeviceptr out, unsigned n, unsigned value);

#endif
