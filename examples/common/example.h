/*
 * What the examples share: errors end the program with the driver's own words, a kernel's PTX is
 * part of the program, and every example prints what it checked. Plain driver API: nothing in here
 * knows gmux.
 */
#ifndef GMUX_EXAMPLES_EXAMPLE_H
#define GMUX_EXAMPLES_EXAMPLE_H

#include <cuda.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Ends the program with status 1 unless `r` is CUDA_SUCCESS. */
#define EX_CHECK(r) ex_check((r), #r, __FILE__, __LINE__)
void ex_check(CUresult r, const char *call, const char *file, int line);

struct ex_device {
    CUdevice device;
    CUcontext context;
    CUmodule module;
};

/* The program's PTX, NUL-terminated; the build puts it in (scripts/embed.py). */
extern const char ex_ptx[];

/* Opens device `ordinal`, makes a context current and loads `ptx`. */
struct ex_device ex_open(int ordinal, const char *ptx);
CUfunction ex_function(const struct ex_device *d, const char *name);
void ex_close(struct ex_device *d);

double ex_seconds(void);

/* With EX_GATE in the environment: prints "ready" and waits for a line on standard input, so that a
 * script can have several programs begin their timed part together. Without it: nothing. */
void ex_gate(void);

/* "-name=value": true and *value set if `arg` is that option; the number must be in [min, max] or
 * the program ends.
 */
bool ex_option(const char *arg, const char *name, long min, long max, long *value);
/* "-name". */
bool ex_flag(const char *arg, const char *name);

/* Reproducible numbers in [0, 1). */
float ex_random(uint32_t *state);

#endif
