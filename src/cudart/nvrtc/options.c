/*
 * NVRTC's options. Most of them are also nvcc's, which gmux-cc has. Some direct parts of NVIDIA's
 * compiler, and are ignored. Everything else is an error.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cudart/nvrtc/nvrtc.h"

enum how {
    PASS,     /* pass to gmux-cc as it is */
    PASS_ARG, /* pass with its argument */
    DEFINE,
    UNDEFINE,
    ARCH,
    DEFAULT_DEVICE,
    DROP, /* ignore: it means nothing here */
    DROP_ARG,
};

static const struct {
    const char *name; /* without the dashes */
    enum how how;
} options[] = {
    { "gpu-architecture", ARCH },
    { "arch", ARCH },
    { "device-as-default-execution-space", DEFAULT_DEVICE },
    { "default-device", DEFAULT_DEVICE },
    { "include-path", PASS_ARG },
    { "I", PASS_ARG },
    { "define-macro", DEFINE },
    { "D", DEFINE },
    { "undefine-macro", UNDEFINE },
    { "U", UNDEFINE },
    { "pre-include", PASS_ARG },
    { "include", PASS_ARG },
    { "std", PASS_ARG },
    { "fmad", PASS_ARG },
    { "ftz", PASS_ARG },
    { "prec-div", PASS_ARG },
    { "prec-sqrt", PASS_ARG },
    { "use_fast_math", PASS },
    { "relocatable-device-code", PASS_ARG },
    { "rdc", PASS_ARG },
    { "generate-line-info", PASS },
    { "lineinfo", PASS },
    { "device-debug", PASS },
    { "G", PASS },
    { "disable-warnings", PASS },
    { "w", PASS },
    { "restrict", DROP },
    { "extra-device-vectorization", DROP },
    { "maxrregcount", DROP_ARG },
    { "ptxas-options", DROP_ARG },
    { "Xptxas", DROP_ARG },
    { "dopt", DROP_ARG },
    { "Ofast-compile", DROP_ARG },
    { "modify-stack-limit", DROP_ARG },
    { "builtin-move-forward", DROP_ARG },
    { "builtin-initializer-list", DROP_ARG },
    { "no-source-include", DROP },
    { "no-cache", DROP },
    { "pch", DROP },
    { "pch-dir", DROP_ARG },
    { "pch-messages", DROP_ARG },
    { "pch-verbose", DROP_ARG },
    { "instantiate-templates-in-pch", DROP_ARG },
    { "minimal", DROP },
    { "device-int128", DROP },
    { "device-stack-protector", DROP_ARG },
    { "display-error-number", DROP },
    { "no-display-error-number", DROP },
    { "diag-error", DROP_ARG },
    { "diag-suppress", DROP_ARG },
    { "diag-warn", DROP_ARG },
    { "brief-diagnostics", DROP_ARG },
    { "version-ident", DROP_ARG },
    { "split-compile", DROP_ARG },
    { "time", DROP_ARG },
};

/* Finds the option; -1: there is none. `*argument` is the rest of the word, or NULL. */
static int find(const char *word, const char **argument)
{
    bool one_dash = word[1] != '-';
    const char *name = word + (one_dash ? 1 : 2);
    size_t length = strcspn(name, "=");
    *argument = name[length] ? name + length + 1 : NULL;
    for (size_t i = 0; i < sizeof(options) / sizeof(options[0]); i++)
        if (strlen(options[i].name) == length && strncmp(options[i].name, name, length) == 0)
            return (int)i;
    if (one_dash && *name && strchr("IDU", *name)) {
        *argument = name + 1;
        for (size_t i = 0; i < sizeof(options) / sizeof(options[0]); i++)
            if (options[i].name[0] == *name && !options[i].name[1])
                return (int)i;
    }
    return -1;
}

/* Whether a macro is for the program's text and not for the headers that we put in front of it,
 * which may use its name for something else, as with -Dint32_t=int. Headers take instructions by
 * names of the implementation and by NDEBUG. */
static bool is_of_text(const char *macro)
{
    return *macro && *macro != '_' && strcspn(macro, "=") == strcspn(macro, "=\n") &&
           !(strncmp(macro, "NDEBUG", 6) == 0 && (!macro[6] || macro[6] == '='));
}

/* Writes what -D or -U says of a macro as a line of a header. */
static void write_macro(FILE *f, enum how how, const char *macro)
{
    size_t name = strcspn(macro, "=");
    if (how == UNDEFINE)
        (void)fprintf(f, "#undef %s\n", macro);
    else
        (void)fprintf(f, "#define %.*s %s\n", (int)name, macro,
                      macro[name] ? macro + name + 1 : "1");
}

static int translate(struct rtc_arguments *a, FILE *macros, const char *const *given, size_t count,
                     const char **wrong)
{
    for (size_t i = 0; i < count; i++) {
        const char *word = *wrong = given[i] ? given[i] : "(null)", *argument;
        int o = word[0] == '-' && word[1] ? find(word, &argument) : -1;
        if (o < 0)
            return -EINVAL;
        enum how how = options[o].how;
        bool wants = how != PASS && how != DEFAULT_DEVICE && how != DROP;
        bool apart = wants && !argument;
        if (apart && (i + 1 == count || !(argument = given[++i])))
            return -EINVAL;
        if (how == ARCH)
            a->real_architecture = strncmp(argument, "sm_", 3) == 0;
        if (how == DEFAULT_DEVICE)
            a->default_device = true;
        bool macro = how == DEFINE || how == UNDEFINE;
        if (macro && is_of_text(argument))
            write_macro(macros, how, argument);
        else if (macro || how == PASS || how == PASS_ARG || how == ARCH) {
            a->at[a->count++] = word;
            if (apart)
                a->at[a->count++] = argument;
        }
    }
    return 0;
}

int rtc_translate(struct rtc_arguments *a, const char *const *given, size_t count,
                  const char **wrong)
{
    size_t size;
    *a = (struct rtc_arguments) { .at = calloc(count + 1, sizeof(*a->at)) };
    FILE *macros = a->at ? open_memstream(&a->macros, &size) : NULL;
    if (!macros)
        return -ENOMEM;
    int r = translate(a, macros, given, count, wrong);
    return fclose(macros) != 0 && !r ? -ENOMEM : r;
}
