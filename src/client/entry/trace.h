/*
 * Prints calls. The generated table rt_api_trace (client/gen/trace.c) calls the table below it, and
 * then writes one line per call to standard error: name, arguments as they are after the call,
 * result and duration:
 *
 *     gmux 4242 cuMemAlloc_v2(*dptr=0x400000000000, bytesize=4096) = CUDA_SUCCESS <1.2us>
 *
 * `*name` is what an output parameter points to; it is printed if the call succeeded.
 */
#ifndef GMUX_CLIENT_ENTRY_TRACE_H
#define GMUX_CLIENT_ENTRY_TRACE_H

#include "client/entry/dispatch.h"

/* The table that printed calls go to. */
extern _Atomic(const struct rt_api *) rt_trace_under;

struct rt_trace_line {
    uint64_t start_ns;
    uint32_t used;
    bool any; /* an argument was written */
    char text[1024];
};

struct rt_trace_name {
    int64_t value;
    const char *name;
};

/* Called before the call is made: notes the time. */
void rt_trace_begin(struct rt_trace_line *l, const char *function);
void rt_trace_int(struct rt_trace_line *l, const char *name, int64_t value);
void rt_trace_uint(struct rt_trace_line *l, const char *name, uint64_t value);
void rt_trace_hex(struct rt_trace_line *l, const char *name, uint64_t value);
void rt_trace_float(struct rt_trace_line *l, const char *name, double value);
/* Appends a string argument, quoted, and cut if it is long. NULL is accepted. */
void rt_trace_str(struct rt_trace_line *l, const char *name, const char *value);
/* Appends a buffer of `size` bytes, which may lack a NUL, like rt_trace_str(). */
void rt_trace_text(struct rt_trace_line *l, const char *name, const char *value, int64_t size);
void rt_trace_enum(struct rt_trace_line *l, const char *name, int64_t value,
                   const struct rt_trace_name *names, size_t count);
/* Appends an argument whose value is not shown. */
void rt_trace_struct(struct rt_trace_line *l, const char *name);
/* Prints the line, errno untouched. */
void rt_trace_end(struct rt_trace_line *l, CUresult result);

#endif
