/*
 * gmux-cc compiles CUDA C++ with clang, without a toolkit of NVIDIA's. It takes nvcc's options. It
 * runs clang once per GPU architecture for the kernels' PTX, and once for the host's code with that
 * PTX in it, and links with our runtime library.
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
/* Prints what is wrong on one line, and ends the program with status 1. */
_Noreturn void cc_fail(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* Formats into memory that lives as long as the program. */
char *cc_format(const char *format, ...) __attribute__((format(printf, 1, 2)));

enum cc_stage { CC_LINK, CC_DEVICE_LINK, CC_COMPILE, CC_PTX, CC_PREPROCESS };

/* What the command line asks for. */
struct cc_options {
    enum cc_stage stage;
    const char *output;
    /* sources, objects and inputs of the linker, in the order of the command line */
    struct cc_list inputs;
    struct cc_list both;   /* options for each compilation */
    struct cc_list device; /* options for compiling kernels only */
    struct cc_list host;   /* options for compiling the host's code only */
    struct cc_list link;   /* options for linking, which come before the inputs */
    unsigned archs[16];    /* as numbers, such as 90 */
    size_t archs_count;
    unsigned cudart;  /* major version of the runtime library */
    bool all_cuda;    /* -x cu: every source is CUDA */
    bool relocatable; /* kernels may use functions and variables of other sources */
    bool verbose, dry;
    unsigned depth; /* how deep options files are nested */
};

/* place.c: where the parts of gmux-cc lie, installed or in a build tree. */
extern struct cc_place {
    const char *clang, *resources, *include, *include_cuda, *bitcode, *libraries, *driver, *ir;
    char scratch[64];
} cc_place;
/* cudart: the runtime's major version. */
void cc_find_places(unsigned cudart);
/* The path that clang prints in answer to that question. */
const char *cc_clang_place(const char *question);
/* The path of an intermediate file, which is removed when the program ends. */
const char *cc_scratch(const char *name);

/* run.c. Runs a program; its exit status, or 1. What it writes to standard error goes to the file
 * `messages`, if that is not NULL. */
int cc_try(const struct cc_options *o, struct cc_list *l, const char *messages);
/* If its status is not 0, gmux-cc ends with that status. */
void cc_run(const struct cc_options *o, struct cc_list *l);

/* spelling.c. Where the spaces in front of `at` begin, and whether a character may be in a name. */
const char *cc_before_spaces(const char *text, const char *at);
bool cc_in_word(char c);
/* Changes a preprocessed text to what clang accepts, as far as NVIDIA's compiler accepts more;
 * false: clang would read it as it read the source. */
bool cc_respell(const char *path);
/* Adds what clang's messages, in a file, say that a text lacks, and other compilers need not have;
 * whether there was anything. */
bool cc_fix(const char *path, const char *messages);
/* Gives declarations in a text the attributes of their definitions, or these those, where clang's
 * messages, in a file, say that they differ; whether there was one. */
bool cc_declare(const char *path, const char *messages);
/* Whether the messages of a source have such. */
bool cc_declares(const char *messages);
/* Takes the numbers for cc_fix out of the messages. */
void cc_drop_ranges(char *messages);
/* Reads clang's messages without the colours that they have for a terminal; the caller frees them.
 * NULL: they cannot be read. */
char *cc_read_messages(const char *path);

/* Reads the whole file, with a zero behind it, into memory that the caller frees; NULL: it cannot
 * be read. */
char *cc_read(const char *path, size_t *size);
/* Writes C source that registers the relocatable device code of the objects and archives among
 * `inputs`. False: everything is registered already. */
bool cc_write_registrations(const struct cc_list *inputs, const char *path);
/* link.c. Makes the program, or what -dlink asks for: an object that registers relocatable device
 * code, even if there is none. */
void cc_link_program(struct cc_options *o, struct cc_list *objects);
void cc_link_device_code(const struct cc_options *o, const struct cc_list *objects);
/* Removes from PTX what clang has put there for the host's sake. */
void cc_drop_kept(const char *path, bool relocatable);
/* Warns of C++ functions that kernels call and PTX has no body of, as NVIDIA's assembler does. */
void cc_report_undefined(const char *path);
/* Whether the file contains `word`. */
bool cc_mentions(const char *path, const char *word);
/* Whether one of the files that the dependencies in `path` (in make's format) list contains
 * `word`. */
bool cc_any_mentions(const char *path, const char *word);

void cc_parse(struct cc_options *o, char **argv);

#endif
