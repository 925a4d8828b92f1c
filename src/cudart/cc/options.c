/*
 * Translates nvcc's options to clang's. Options that only direct ptxas mean nothing here and are
 * ignored. Options that would change a program's meaning, and are not implemented, are refused.
 */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "cudart/cc/cc.h"

void cc_fail(const char *format, ...)
{
    va_list args;
    va_start(args, format);
    (void)fputs("gmux-cc: ", stderr);
    (void)vfprintf(stderr, format, args);
    (void)fputc('\n', stderr);
    va_end(args);
    exit(1);
}

char *cc_format(const char *format, ...)
{
    char *text = NULL;
    va_list args;
    va_start(args, format);
    if (vasprintf(&text, format, args) < 0)
        abort();
    va_end(args);
    return text;
}

void cc_add(struct cc_list *l, const char *text)
{
    if (l->count == CC_MAX)
        cc_fail("more than %d arguments", CC_MAX);
    l->at[l->count++] = text;
}

void cc_add_all(struct cc_list *l, const struct cc_list *other)
{
    for (size_t i = 0; i < other->count; i++)
        cc_add(l, other->at[i]);
}

static void add_split(struct cc_list *l, const char *text)
{
    char *copy = cc_format("%s", text), *rest = copy;
    for (char *word; (word = strsep(&rest, ","));)
        if (*word)
            cc_add(l, word);
}

/* Adds an architecture given as sm_75, compute_90a or 75. clang 19 knows none above 90; newer GPUs
 * run its PTX. */
static void add_arch(struct cc_options *o, const char *text)
{
    if (strcmp(text, "native") == 0 || strncmp(text, "all", 3) == 0)
        return;
    const char *digits = text + strcspn(text, "0123456789");
    unsigned long n = strtoul(digits, NULL, 10);
    if (n < 20 || n > 999)
        cc_fail("%s is no architecture", text);
    unsigned sm = n < 50 ? 50 : n > 90 ? 90 : (unsigned)n;
    for (size_t i = 0; i < o->archs_count; i++)
        if (o->archs[i] == sm)
            return;
    if (o->archs_count == sizeof(o->archs) / sizeof(o->archs[0]))
        cc_fail("too many architectures");
    o->archs[o->archs_count++] = sm;
}

static void take_gencode(struct cc_options *o, const char *text)
{
    const char *arch = strstr(text, "arch=");
    if (!arch)
        cc_fail("-gencode %s: no arch= in it", text);
    add_arch(o, cc_format("%.*s", (int)strcspn(arch + 5, ","), arch + 5));
}

static void take_fast_math(struct cc_options *o)
{
    cc_add(&o->device, "-fgpu-approx-transcendentals");
    cc_add(&o->device, "-fgpu-flush-denormals-to-zero");
    cc_add(&o->device, "-mllvm");
    cc_add(&o->device, "-nvptx-prec-divf32=0");
    cc_add(&o->device, "-mllvm");
    cc_add(&o->device, "-nvptx-prec-sqrtf32=0");
}

enum what {
    OUTPUT,
    COMPILE,
    PTX,
    PREPROCESS,
    BOTH,      /* for both compilations, as clang has it */
    BOTH_ARG,  /* with its argument in the same word */
    BOTH_TWO,  /* with its argument in the next word */
    HOST_LIST, /* -Xcompiler */
    LINK_LIST, /* -Xlinker */
    LINK,
    LIB,
    LIBDIR,
    DEBUG,
    ARCH,
    GENCODE,
    FAST_MATH,
    FTZ,
    FMAD,
    PREC_DIV,
    PREC_SQRT,
    STREAM,
    LANGUAGE,
    RDC,
    RELOCATABLE,
    DEVICE_LINK,
    CUDART,
    VERBOSE,
    DRY,
    OPTIONS_FILE,
    NOTHING,     /* ignored: it means nothing here */
    NOTHING_ARG, /* ignored with its argument */
    REFUSED,
};

static const struct option {
    const char *name; /* without the dashes */
    enum what what;
    const char *clang;
} options[] = {
    { "o", OUTPUT, NULL },
    { "output-file", OUTPUT, NULL },
    { "c", COMPILE, NULL },
    { "compile", COMPILE, NULL },
    { "ptx", PTX, NULL },
    { "E", PREPROCESS, NULL },
    { "preprocess", PREPROCESS, NULL },
    { "I", BOTH_ARG, "-I" },
    { "include-path", BOTH_ARG, "-I" },
    { "D", BOTH_ARG, "-D" },
    { "define-macro", BOTH_ARG, "-D" },
    { "U", BOTH_ARG, "-U" },
    { "undefine-macro", BOTH_ARG, "-U" },
    { "O", BOTH_ARG, "-O" },
    { "optimize", BOTH_ARG, "-O" },
    { "std", BOTH_ARG, "-std=" },
    { "isystem", BOTH_TWO, "-isystem" },
    { "system-include", BOTH_TWO, "-isystem" },
    { "idirafter", BOTH_TWO, "-idirafter" },
    { "include", BOTH_TWO, "-include" },
    { "pre-include", BOTH_TWO, "-include" },
    { "MF", BOTH_TWO, "-MF" },
    { "MT", BOTH_TWO, "-MT" },
    { "MD", BOTH, "-MD" },
    { "MMD", BOTH, "-MMD" },
    { "MP", BOTH, "-MP" },
    { "M", PREPROCESS, "-M" },
    { "w", BOTH, "-w" },
    { "disable-warnings", BOTH, "-w" },
    { "Wall", BOTH, "-Wall" },
    { "Wextra", BOTH, "-Wextra" },
    { "Xcompiler", HOST_LIST, NULL },
    { "compiler-options", HOST_LIST, NULL },
    { "Xlinker", LINK_LIST, NULL },
    { "linker-options", LINK_LIST, NULL },
    { "shared", LINK, "-shared" },
    { "l", LIB, NULL },
    { "library", LIB, NULL },
    { "L", LIBDIR, NULL },
    { "library-path", LIBDIR, NULL },
    { "g", BOTH, "-g" },
    { "debug", BOTH, "-g" },
    { "G", DEBUG, NULL },
    { "device-debug", DEBUG, NULL },
    { "lineinfo", DEBUG, NULL },
    { "generate-line-info", DEBUG, NULL },
    { "arch", ARCH, NULL },
    { "gpu-architecture", ARCH, NULL },
    { "gencode", GENCODE, NULL },
    { "generate-code", GENCODE, NULL },
    { "code", NOTHING_ARG, NULL },
    { "gpu-code", NOTHING_ARG, NULL },
    { "use_fast_math", FAST_MATH, NULL },
    { "ftz", FTZ, NULL },
    { "fmad", FMAD, NULL },
    { "prec-div", PREC_DIV, NULL },
    { "prec-sqrt", PREC_SQRT, NULL },
    { "default-stream", STREAM, NULL },
    { "x", LANGUAGE, NULL },
    { "rdc", RDC, NULL },
    { "relocatable-device-code", RDC, NULL },
    { "dc", RELOCATABLE, NULL },
    { "device-c", RELOCATABLE, NULL },
    { "dlink", DEVICE_LINK, NULL },
    { "device-link", DEVICE_LINK, NULL },
    { "cubin", REFUSED, NULL },
    { "fatbin", REFUSED, NULL },
    { "lib", REFUSED, NULL },
    { "cudart", CUDART, NULL },
    { "v", VERBOSE, NULL },
    { "verbose", VERBOSE, NULL },
    { "dryrun", DRY, NULL },
    { "optf", OPTIONS_FILE, NULL },
    { "options-file", OPTIONS_FILE, NULL },
    { "extended-lambda", NOTHING, NULL },
    { "expt-extended-lambda", NOTHING, NULL },
    { "expt-relaxed-constexpr", NOTHING, NULL },
    { "m64", NOTHING, NULL },
    { "restrict", NOTHING, NULL },
    { "extra-device-vectorization", NOTHING, NULL },
    { "allow-unsupported-compiler", NOTHING, NULL },
    { "forward-unknown-to-host-compiler", NOTHING, NULL },
    { "display-error-number", NOTHING, NULL },
    { "keep", NOTHING, NULL },
    { "res-usage", NOTHING, NULL },
    { "ccbin", NOTHING_ARG, NULL },
    { "compiler-bindir", NOTHING_ARG, NULL },
    { "Xptxas", NOTHING_ARG, NULL },
    { "ptxas-options", NOTHING_ARG, NULL },
    { "Xcudafe", NOTHING_ARG, NULL },
    { "Xnvlink", NOTHING_ARG, NULL },
    { "Xarchive", NOTHING_ARG, NULL },
    { "maxrregcount", NOTHING_ARG, NULL },
    { "Werror", NOTHING_ARG, NULL },
    { "Wno-deprecated-gpu-targets", NOTHING, NULL },
    { "diag-suppress", NOTHING_ARG, NULL },
    { "t", NOTHING_ARG, NULL },
    { "threads", NOTHING_ARG, NULL },
    { "split-compile", NOTHING_ARG, NULL },
    { "objdir-as-tempdir", NOTHING, NULL },
    { "cuda-path", NOTHING_ARG, NULL },
};

static bool wants_argument(enum what w)
{
    return !(w == COMPILE || w == RELOCATABLE || w == DEVICE_LINK || w == PTX || w == PREPROCESS ||
             w == BOTH || w == LINK || w == DEBUG || w == FAST_MATH || w == VERBOSE || w == DRY ||
             w == NOTHING || w == REFUSED);
}

static bool is_true(const char *text)
{
    return strcmp(text, "true") == 0 || strcmp(text, "1") == 0;
}

/* Takes the next word out of `*at`; NULL at the end. Quotes and backslashes work as in a shell. */
static char *take_word(char **at)
{
    char *from = *at + strspn(*at, " \t\r\n"), *to = from, *word = from, quote = '\0';
    if (!*from)
        return NULL;
    for (; *from && (quote || !strchr(" \t\r\n", *from)); from++) {
        if (*from == quote)
            quote = '\0';
        else if (!quote && (*from == '"' || *from == '\''))
            quote = *from;
        else {
            if (*from == '\\' && quote != '\'' && from[1])
                from++;
            *to++ = *from;
        }
    }
    *at = *from ? from + 1 : from;
    *to = '\0';
    return word;
}

/* Handles the words of a file as if they stood on the command line. */
static void take_file(struct cc_options *o, const char *path)
{
    if (++o->depth > 8)
        cc_fail("%s: options files within options files", path);
    FILE *f = fopen(path, "re");
    struct stat st;
    if (!f || fstat(fileno(f), &st) < 0)
        cc_fail("%s: %s", path, strerror(errno));
    char *text = calloc(1, (size_t)st.st_size + 1), *words[CC_MAX + 1];
    if (!text || fread(text, 1, (size_t)st.st_size, f) != (size_t)st.st_size)
        cc_fail("%s: %s", path, strerror(errno));
    (void)fclose(f);
    size_t n = 0;
    while ((words[n] = take_word(&text)))
        if (++n == CC_MAX)
            cc_fail("%s: more than %d words", path, CC_MAX);
    cc_parse(o, words);
    o->depth--;
}

/* Handles options about the code of kernels. False: it is none of these. */
static bool use_for_device(struct cc_options *o, const struct option *p, const char *argument)
{
    switch (p->what) {
    case DEBUG:
        cc_add(&o->device, "-gline-tables-only");
        return true;
    case ARCH:
        add_arch(o, argument);
        return true;
    case GENCODE:
        take_gencode(o, argument);
        return true;
    case FAST_MATH:
        take_fast_math(o);
        return true;
    case FTZ:
        if (is_true(argument))
            cc_add(&o->device, "-fgpu-flush-denormals-to-zero");
        return true;
    case FMAD:
        cc_add(&o->device,
               is_true(argument) ? "-ffp-contract=fast-honor-pragmas" : "-ffp-contract=off");
        return true;
    case PREC_DIV:
    case PREC_SQRT:
        cc_add(&o->device, "-mllvm");
        cc_add(&o->device, cc_format("-nvptx-prec-%sf32=%d", p->what == PREC_DIV ? "div" : "sqrt",
                                     is_true(argument) ? (p->what == PREC_DIV ? 2 : 1) : 0));
        return true;
    default:
        return false;
    }
}

static void use(struct cc_options *o, const struct option *p, const char *argument)
{
    if (use_for_device(o, p, argument))
        return;
    switch (p->what) {
    case OUTPUT:
        o->output = argument;
        break;
    case COMPILE:
        o->stage = CC_COMPILE;
        break;
    case PTX:
        o->stage = CC_PTX;
        break;
    case PREPROCESS:
        o->stage = CC_PREPROCESS;
        cc_add(&o->host, p->clang ? p->clang : "-E");
        break;
    case BOTH:
        /* Dependencies are written with the host's code, which includes the same files. */
        cc_add(p->clang[1] == 'M' ? &o->host : &o->both, p->clang);
        break;
    case BOTH_ARG:
        cc_add(&o->both, cc_format("%s%s", p->clang, argument));
        break;
    case BOTH_TWO:
        cc_add(p->clang[1] == 'M' ? &o->host : &o->both, p->clang);
        cc_add(p->clang[1] == 'M' ? &o->host : &o->both, argument);
        break;
    case HOST_LIST:
        add_split(&o->host, argument);
        /* -fopenmp, -pthread: nvcc's linker gets them, too. */
        add_split(&o->link, argument);
        break;
    case LINK_LIST:
        cc_add(&o->inputs, cc_format("-Wl,%s", argument));
        break;
    case LINK:
        cc_add(&o->link, p->clang);
        break;
    case LIB:
        if (strncmp(argument, "cudart", 6) != 0 && strcmp(argument, "cudadevrt") != 0)
            cc_add(&o->inputs, cc_format("-l%s", argument));
        break;
    case LIBDIR:
        cc_add(&o->link, cc_format("-L%s", argument));
        break;
    case STREAM:
        if (strcmp(argument, "per-thread") == 0)
            cc_add(&o->both, "-fgpu-default-stream=per-thread");
        break;
    case LANGUAGE:
        o->all_cuda = strcmp(argument, "cu") == 0;
        break;
    case RDC:
        o->relocatable = is_true(argument);
        break;
    case RELOCATABLE:
        o->relocatable = true;
        o->stage = CC_COMPILE;
        break;
    case DEVICE_LINK:
        o->stage = CC_DEVICE_LINK;
        break;
    case CUDART:
        if (strcmp(argument, "13") == 0 || strcmp(argument, "12") == 0)
            o->cudart = (unsigned)strtoul(argument, NULL, 10);
        break;
    case VERBOSE:
        o->verbose = true;
        break;
    case DRY:
        o->verbose = o->dry = true;
        break;
    case OPTIONS_FILE:
        take_file(o, argument);
        break;
    case REFUSED:
        cc_fail("-%s is not served yet", p->name);
    default: /* nothing to do here */
        break;
    }
}

/* Finds the option that `word` (without its dashes) is, and the argument in the same word if there
 * is one. It is the whole name, a name before `=`, or, if the name has one letter, whatever
 * follows. */
static const struct option *find(const char *word, bool one_dash, const char **argument)
{
    size_t length = strcspn(word, "=");
    for (size_t i = 0; i < sizeof(options) / sizeof(options[0]); i++)
        if (strlen(options[i].name) == length && strncmp(options[i].name, word, length) == 0) {
            *argument = word[length] ? word + length + 1 : NULL;
            return &options[i];
        }
    if (one_dash && strchr("IDULlOoxt", word[0]))
        for (size_t i = 0; i < sizeof(options) / sizeof(options[0]); i++)
            if (options[i].name[0] == word[0] && !options[i].name[1]) {
                *argument = word + 1;
                return &options[i];
            }
    return NULL;
}

void cc_parse(struct cc_options *o, char **argv)
{
    for (char **a = argv; *a; a++) {
        if (**a == '@') {
            take_file(o, *a + 1);
            continue;
        }
        if (**a != '-' || !(*a)[1]) {
            cc_add(&o->inputs, *a);
            continue;
        }
        bool one_dash = (*a)[1] != '-';
        const char *argument = NULL;
        const struct option *p = find(*a + (one_dash ? 1 : 2), one_dash, &argument);
        if (!p) {
            /* Everything else is clang's and gcc's: -fPIC, -W..., -m..., -pthread; and -Wl,... the
             * linker's. */
            if (one_dash && strchr("fWmp", (*a)[1])) {
                bool warning = (*a)[1] == 'W' && (*a)[2] && (*a)[3] != ',';
                cc_add(warning ? &o->both : &o->host, *a);
                cc_add(&o->link, *a);
                continue;
            }
            cc_fail("unknown option %s", *a);
        }
        if (wants_argument(p->what) && !argument && !(argument = *++a))
            cc_fail("-%s wants an argument", p->name);
        use(o, p, argument);
    }
}
