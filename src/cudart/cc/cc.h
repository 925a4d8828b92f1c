/*
 * gmux-cc: compiles CUDA C++ with clang, and with no toolkit of NVIDIA's. It takes nvcc's options,
 * runs clang once per GPU architecture for the kernels' PTX and once for the host's code with these
 * in it, and links with our runtime library.
 */
#ifndef GMUX_CUDART_CC_H
#define GMUX_CUDART_CC_H

#include <stdbool.h>
#include <stddef.h>

#define CC_MAX 4096 /* arguments in any list */

struct cc_list {
    const char *at[CC_MAX + 1];
    size_t count;
};

void cc_add(struct cc_list *l, const char *text);
void cc_add_all(struct cc_list *l, const struct cc_list *other);
/* Says what is wrong on one line, and ends the program with status 1. */
_Noreturn void cc_fail(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* Memory that lives as long as the program. */
char *cc_format(const char *format, ...) __attribute__((format(printf, 1, 2)));

enum cc_stage { CC_LINK, CC_DEVICE_LINK, CC_COMPILE, CC_PTX, CC_PREPROCESS };

/* What the command line asks for. */
struct cc_options {
    enum cc_stage stage;
    const char *output;
    struct cc_list inputs; /* sources, objects, and what is for the linker, in order */
    struct cc_list both;   /* for each compilation */
    struct cc_list device; /* for the kernels only */
    struct cc_list host;   /* for the host's code only */
    struct cc_list link;   /* when linking, before the inputs */
    unsigned archs[16];    /* as numbers, such as 90 */
    size_t archs_count;
    unsigned cudart;  /* major version of the runtime library */
    bool all_cuda;    /* -x cu: every source */
    bool relocatable; /* kernels may use functions and variables of other sources */
    bool verbose, dry;
    unsigned depth; /* of options files within each other */
};

/* The whole file, with a zero behind it, in memory that the caller frees; NULL if it cannot be
 * read.
 */
char *cc_read(const char *path, size_t *size);
/* Writes C source that registers the relocatable device code of the objects and archives among
 * `inputs`; false if there is none that is not registered yet. */
bool cc_write_registrations(const struct cc_list *inputs, const char *path);
/* Leaves out of relocatable PTX what only keeps other sources' kernels alive. */
void cc_drop_kept(const char *path);
/* True if one of the files that the dependencies in `path` name, as make reads them, has `word` in
 * it. */
bool cc_any_mentions(const char *path, const char *word);

void cc_parse(struct cc_options *o, char **argv);

#endif
