/*
 * NVRTC's interface on top of clang. A program's text, its headers and its options go to gmux-cc in
 * a folder of their own; PTX and the compiler's messages come back.
 *
 * As with NVIDIA's library, two threads must not use one program at the same time.
 */
#ifndef GMUX_CUDART_NVRTC_H
#define GMUX_CUDART_NVRTC_H

#include <stdbool.h>
#include <stddef.h>

struct rtc_header {
    char *name, *text;
};

/* A name expression, such as `gmux::add<float>` or `&table`. */
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
    char *log; /* messages of the last compilation; "" before it; never NULL */
    char *ptx; /* NULL until a compilation succeeds */
    int (*callback)(void *payload, void *unused); /* NULL, or asked before a compilation */
    void *payload;
    bool compiled;
    bool real_architecture; /* -arch named a real architecture, such as sm_90 */
};

struct rtc_arguments {
    const char **at; /* arguments for gmux-cc; the strings belong to the caller of rtc_translate */
    size_t count;
    char *macros;        /* lines that define and undefine macros for the program's text */
    bool default_device; /* functions without attributes are device functions */
    bool real_architecture;
};

/* Translates NVRTC's options to gmux-cc's, in `a`; the caller frees a->at and a->macros. 0;
 * -ENOMEM; or -EINVAL, with the unknown option in `*wrong`. */
int rtc_translate(struct rtc_arguments *a, const char *const *options, size_t count,
                  const char **wrong);

/* Compiles: sets log, ptx and the lowered names. 0: there is PTX; 1: there is none, and the log
 * says why; -errno. */
int rtc_compile(struct _nvrtcProgram *p, const struct rtc_arguments *a);

/* Removes the variables that were added for name expressions from `ptx`, and sets the lowered
 * names. */
void rtc_take_names(struct _nvrtcProgram *p, char *ptx);
/* The name of the variable for name expression `i`. `text` has room for 32 bytes. */
void rtc_name_symbol(char *text, size_t i);

#endif
