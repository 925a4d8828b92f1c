/*
 * NVRTC's functions on clang: a program's text, its headers and options go to gmux-cc in a folder
 * of their own, PTX and what the compiler said come back.
 *
 * A program is its caller's: two threads do not use one at the same time, as with NVIDIA's.
 */
#ifndef GMUX_CUDART_NVRTC_H
#define GMUX_CUDART_NVRTC_H

#include <stdbool.h>
#include <stddef.h>

struct rtc_header {
    char *name, *text;
};

/* What one asks the mangled name of: `gmux::add<float>`, `&table`. */
struct rtc_name {
    char *expression;
    char *lowered; /* NULL before a compilation */
};

struct _nvrtcProgram {
    char *source, *name;
    struct rtc_header *headers;
    size_t headers_count;
    struct rtc_name *names;
    size_t names_count;
    char *log; /* of the last compilation, "" before; never NULL */
    char *ptx; /* NULL before one succeeded */
    bool compiled;
    bool real_architecture; /* -arch=sm_90 */
};

struct rtc_arguments {
    const char **at; /* for gmux-cc; what it points to is the caller's of rtc_translate */
    size_t count;
    bool default_device; /* functions without attributes are for kernels */
    bool real_architecture;
};

/* NVRTC's options as gmux-cc has them, in `a`, whose `at` is freed by the caller. 0; -ENOMEM; or
 * -EINVAL, with the option that is none in `*wrong`. */
int rtc_translate(struct rtc_arguments *a, const char *const *options, size_t count,
                  const char **wrong);

/* Compiles: sets log, ptx and the lowered names. 0 if there is PTX, 1 if there is none and the log
 * says why; -errno. */
int rtc_compile(struct _nvrtcProgram *p, const struct rtc_arguments *a);

/* Takes the definitions that were added for the names' sake out of `ptx` and sets what they were
 * the names of. */
void rtc_take_names(struct _nvrtcProgram *p, char *ptx);
/* What the `i`th of these is called. `text` has room for 32. */
void rtc_name_symbol(char *text, size_t i);

#endif
