/*
 * gmux-cc's steps: kernels to PTX for each architecture, the PTX to a fat binary, the host's code
 * to an object that contains it, objects to a program.
 */
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cudart/cc/cc.h"
#include "fatbin/fatbin.h"

#define FIXES_MAX 8 /* times that a source is mended and compiled again */

/* the newest PTX that drivers of CUDA 12.3 read, and the newest that clang 19 writes */
#define PTX_MAJOR    8
#define PTX_MINOR    3
#define ARCH_DEFAULT 75

static const char usage[] =
    "usage: gmux-cc [OPTION]... FILE...\n"
    "Compiles CUDA C++ with clang 19 and links it with gmux's CUDA runtime. Options are nvcc's: "
    "-o\n"
    "-c -ptx -E -I -D -U -L -l -O -g -G -lineinfo -arch -gencode -std -use_fast_math -rdc -dc "
    "-dlink\n"
    "-default-stream -Xcompiler -Xlinker -shared -x cu -v -dryrun; -cudart 12|13 chooses the\n"
    "runtime's version. See gmux-cc(1).\n";

/* The host's code may use OpenMP if clang's library is there; if not, clang prints the bare
 * name. */
static void check_openmp(const struct cc_options *o)
{
    for (size_t i = 0; i < o->link.count; i++)
        if (strcmp(o->link.at[i], "-fopenmp") == 0 &&
            !strchr(cc_clang_place("-print-file-name=libomp.so"), '/'))
            cc_fail("-fopenmp needs clang's OpenMP (Debian: apt-get install libomp-19-dev)");
}

/* The runtime API's header to include: the version that our headers declare. */
static const char *interface(const struct cc_options *o)
{
    return cc_format("-DGMUX_CUDART_VERSION=%s", o->cudart == 13 ? "13000" : "12080");
}

/* A CUDA source that is being compiled. */
struct unit {
    const char *source;
    unsigned number; /* its number on the command line, for names of files */
    bool checked;    /* it is known whether it has managed variables, and how clang takes it */
    bool managed;    /* its kernels may use managed variables */
    bool respelled;  /* clang takes it only as a text that spelling.c has changed */
    bool runtime;    /* NVRTC's, with functions that are the device's by default */
};

/* Options of both passes that are not for the preprocessor. */
static void add_behind_preprocessor(struct cc_list *l, const struct cc_list *from)
{
    for (size_t i = 0; i < from->count; i++) {
        const char *option = from->at[i];
        if (strcmp(option, "-include") == 0 || strcmp(option, "-MF") == 0 ||
            strcmp(option, "-MT") == 0)
            i++;
        else if (option[0] != '-' || !strchr("DUIM", option[1]))
            cc_add(l, option);
    }
}

/* nvcc and gcc take an object with a constructor for `...`. Messages about failures pass strings
 * so, which nobody reads until there is one: clang's code then ends the program. */
static void add_ellipsis(struct cc_list *l)
{
    cc_add(l, "-Wno-error=non-pod-varargs");
}

/* Arguments for both passes over a CUDA source; `text`: for a preprocessed one. */
static void cuda_arguments(struct cc_list *l, const struct cc_options *o, bool text)
{
    cc_add(l, cc_place.clang);
    cc_add(l, "-x");
    cc_add(l, "cuda");
    /* No toolkit: our headers are the only ones. */
    cc_add(l, cc_format("--cuda-path=%s/none", cc_place.scratch));
    cc_add(l, "-nocudainc");
    cc_add(l, "-nocudalib");
    cc_add(l, "-Xclang");
    /* Selects the launch ABI that has been used since 9.2. */
    cc_add(l, "-target-sdk-version=12.3");
    cc_add(l, "-Wno-unknown-cuda-version");
    /* For nvcc this is only a warning, and so is the next. */
    cc_add(l, "-Wno-c++11-narrowing");
    cc_add(l, "-Wno-register");
    add_ellipsis(l);
    /* nvcc's front end accepts declarations of variadic functions, too, which are never called. */
    cc_add(l, "-Xclang");
    cc_add(l, "-fcuda-allow-variadic-functions");
    if (o->relocatable)
        cc_add(l, "-fgpu-rdc");
    if (text) {
        add_behind_preprocessor(l, &o->both);
        return;
    }
    /* clang's wrappers of libstdc++'s headers. */
    cc_add(l, "-isystem");
    cc_add(l, cc_format("%s/include/cuda_wrappers", cc_place.resources));
    cc_add(l, "-isystem");
    cc_add(l, cc_place.include);
    cc_add(l, "-isystem");
    cc_add(l, cc_place.include_cuda);
    cc_add(l, "-include");
    /* Ours, and not that of a toolkit in -I. */
    cc_add(l, cc_format("%s/cuda_runtime.h", cc_place.include));
    cc_add(l, interface(o));
    cc_add_all(l, &o->both);
}

/* Options that clang needs once more when it continues from intermediate code. */
static void add_of_code(struct cc_list *l, const struct cc_list *from)
{
    for (size_t i = 0; i < from->count; i++)
        if (from->at[i][0] == '-' && strchr("Ofmg", from->at[i][1]))
            cc_add(l, from->at[i]);
}

/* Makes clang stop at intermediate code. */
static void add_stop_at_ir(struct cc_list *l)
{
    cc_add(l, "-Xclang");
    cc_add(l, "-disable-llvm-passes");
    cc_add(l, "-emit-llvm");
    cc_add(l, "-c");
}

/* Changes a file of intermediate code (ir.h). */
static void change_ir(const struct cc_options *o, const char *path)
{
    static struct cc_list l;
    l.count = 0;
    cc_add(&l, cc_place.ir);
    cc_add(&l, path);
    cc_run(o, &l);
}

static void device_target(struct cc_list *l, const struct cc_options *o)
{
    cc_add(l, "-Xclang");
    cc_add(l, "-target-feature");
    cc_add(l, "-Xclang");
    cc_add(l, cc_format("+ptx%d%d", PTX_MAJOR, PTX_MINOR));
    cc_add(l, "-O3");
    /* Silences warnings about `#pragma unroll` that cannot be obeyed, as nvcc does. */
    cc_add(l, "-Wno-pass-failed");
    /* a * b + c in the program's own code becomes one instruction, but not in the mathematics,
     * which depends on each rounding. */
    cc_add(l, "-ffp-contract=fast-honor-pragmas");
    cc_add_all(l, &o->device);
}

/* Begins the arguments of a pass: for one architecture's kernels, or for the host. */
static void begin_pass(struct cc_list *l, const struct cc_options *o, unsigned sm, bool text)
{
    l->count = 0;
    cuda_arguments(l, o, text);
    cc_add(l, sm ? "--cuda-device-only" : "--cuda-host-only");
    if (sm)
        cc_add(l, cc_format("--cuda-gpu-arch=sm_%u", sm));
}

/* Where the text is that clang is given in place of a source. */
static const char *text_of(const struct unit *u, unsigned sm)
{
    return cc_scratch(cc_format("%u.%u.cu", u->number, sm));
}

/* Makes that text and changes its spelling; the preprocessor's status. Its messages go to the file
 * of that name, if there is one. *other: whether the text differs from the source. */
static int respell_with(const struct cc_options *o, const struct unit *u, unsigned sm,
                        const char *messages, bool *other)
{
    static struct cc_list l;
    begin_pass(&l, o, sm, false);
    cc_add_all(&l, sm ? &o->device : &o->host);
    if (!messages)
        cc_add(&l, "-w");
    cc_add(&l, "-Wno-unused-command-line-argument");
    cc_add(&l, "-E");
    cc_add(&l, u->source);
    cc_add(&l, "-o");
    cc_add(&l, text_of(u, sm));
    int status = cc_try(o, &l, messages ? messages : "/dev/null");
    *other = !status && !o->dry && cc_respell(text_of(u, sm));
    return status;
}

static const char *respell(const struct cc_options *o, const struct unit *u, unsigned sm,
                           bool *other)
{
    const char *text = text_of(u, sm);
    bool differs;
    if (!u->respelled || access(text, R_OK) != 0)
        (void)respell_with(o, u, sm, NULL, other ? other : &differs);
    return text;
}

/* Compiles the kernels to PTX; with managed variables, to intermediate code; the status. Messages
 * go to the file of that name, if there is one. `dependencies`: also writes the names of the files
 * that it reads, except system headers. */
static int compile_kernels(const struct cc_options *o, const struct unit *u, unsigned sm,
                           const char *output, const char *dependencies, const char *messages)
{
    static struct cc_list l;
    const char *source = u->respelled ? respell(o, u, sm, NULL) : u->source;
    begin_pass(&l, o, sm, u->respelled);
    if (u->respelled && u->runtime) {
        /* nvcc's front end reads a template's body when it is instantiated: a type in it, or a
         * function, may be declared later. */
        cc_add(&l, "-fdelayed-template-parsing");
        cc_add(&l, "-Wno-delayed-template-parsing-in-cxx20");
        /* For cc_fix, all of them. */
        cc_add(&l, "-fdiagnostics-print-source-range-info");
        cc_add(&l, "-ferror-limit=0");
    }
    cc_add(&l, "-Xclang");
    cc_add(&l, "-mlink-builtin-bitcode");
    cc_add(&l, "-Xclang");
    cc_add(&l, cc_place.bitcode);
    device_target(&l, o);
    if (messages && isatty(STDERR_FILENO))
        cc_add(&l, "-fcolor-diagnostics");
    if (dependencies) {
        cc_add(&l, "-MMD");
        cc_add(&l, "-MF");
        cc_add(&l, dependencies);
    }
    if (u->managed) {
        add_stop_at_ir(&l);
    } else
        cc_add(&l, "-S");
    cc_add(&l, source);
    cc_add(&l, "-o");
    cc_add(&l, output);
    return cc_try(o, &l, messages);
}

/* Whether the text of what could not be compiled is another one now, by what was said (NULL:
 * nothing is tried). It is respelled first, and then mended so often at most. */
static bool mend(const struct cc_options *o, struct unit *u, unsigned sm, const char *messages,
                 int *rounds)
{
    if (!messages || o->dry)
        return false;
    if (!u->respelled) {
        (void)respell(o, u, sm, &u->respelled);
        u->respelled |= cc_declares(messages);
        return u->respelled;
    }
    return (*rounds)++ < FIXES_MAX && (cc_declare(text_of(u, sm), messages) ||
                                       (u->runtime && cc_fix(text_of(u, sm), messages)));
}

static void show(const struct cc_options *o, const char *messages)
{
    size_t size;
    char *text = o->dry ? NULL : cc_read(messages, &size);
    if (text) {
        cc_drop_ranges(text);
        (void)fputs(text, stderr);
    }
    free(text);
}

/* Shows what was said at last, if it was kept (NULL: not), and ends where that was a failure. */
static void finish(const struct cc_options *o, const char *messages, int status)
{
    if (messages)
        show(o, messages);
    if (status)
        exit(status);
}

/* Compiles the kernels for the first time, and finds out what there is to know of the source. */
static void try_kernels(const struct cc_options *o, struct unit *u, unsigned sm, const char *output)
{
    const char *files = cc_scratch(cc_format("%u.d", u->number));
    const char *messages = cc_scratch(cc_format("%u.messages", u->number));
    int status, rounds = 0;
    /* Clang refuses most programs of NVRTC's as they are; and where a file is missing, NVRTC says
     * nothing of what the program could not be compiled for besides. */
    u->runtime = !o->dry && cc_mentions(u->source, "force_cuda_host_device");
    if (u->runtime) {
        status = respell_with(o, u, sm, messages, &u->respelled);
        finish(o, status || u->respelled ? messages : NULL, status);
    }
    status = compile_kernels(o, u, sm, output, u->respelled ? NULL : files, messages);
    while (status && mend(o, u, sm, messages, &rounds))
        status = compile_kernels(o, u, sm, output, NULL, messages);
    finish(o, messages, status);
    if (u->respelled)
        files = text_of(u, sm);
    u->checked = true;
    u->managed = !o->dry && (u->respelled ? cc_mentions(files, "gmux_managed")
                                          : cc_any_mentions(files, "__managed__"));
}

static void make_ptx(const struct cc_options *o, struct unit *u, unsigned sm, const char *output)
{
    static struct cc_list l;
    if (!u->checked) {
        try_kernels(o, u, sm, output);
        if (!u->managed)
            return;
    }
    const char *ir = cc_scratch(cc_format("%u.device.bc", u->number));
    const char *messages = u->respelled ? cc_scratch(cc_format("%u.messages", u->number)) : NULL;
    const char *made = u->managed ? ir : output;
    int status = compile_kernels(o, u, sm, made, NULL, messages), rounds = 0;
    while (status && mend(o, u, sm, messages, &rounds))
        status = compile_kernels(o, u, sm, made, NULL, messages);
    finish(o, messages, status);
    if (!u->managed)
        return;
    change_ir(o, ir);
    l.count = 0;
    cc_add(&l, cc_place.clang);
    cc_add(&l, "--target=nvptx64-nvidia-cuda");
    cc_add(&l, cc_format("-march=sm_%u", sm));
    cc_add(&l, "-nocudalib");
    device_target(&l, o);
    add_of_code(&l, &o->both);
    cc_add(&l, "-Wno-unused-command-line-argument");
    cc_add(&l, "-S");
    cc_add(&l, "-x");
    cc_add(&l, "ir");
    cc_add(&l, ir);
    cc_add(&l, "-o");
    cc_add(&l, output);
    cc_run(o, &l);
}

static void compile_ptx(const struct cc_options *o, struct unit *u, unsigned sm, const char *output)
{
    make_ptx(o, u, sm, output);
    if (o->dry)
        return;
    cc_drop_kept(output, o->relocatable);
    if (!o->relocatable && o->stage != CC_PTX && sm == o->archs[0])
        cc_report_undefined(output);
}

static const char *make_fatbin(const struct cc_options *o, struct unit *u)
{
    struct fb_ptx ptx[sizeof(o->archs) / sizeof(o->archs[0])];
    for (size_t i = 0; i < o->archs_count; i++) {
        const char *path = cc_scratch(cc_format("%u.%u.ptx", u->number, o->archs[i]));
        compile_ptx(o, u, o->archs[i], path);
        ptx[i] =
            (struct fb_ptx) { .isa_major = PTX_MAJOR, .isa_minor = PTX_MINOR, .sm = o->archs[i] };
        ptx[i].text = o->dry ? "" : cc_read(path, &ptx[i].size);
        if (!ptx[i].text)
            cc_fail("%s: %s", path, strerror(errno));
    }
    const char *path = cc_scratch(cc_format("%u.fatbin", u->number));
    if (o->dry)
        return path;
    void *data;
    size_t size;
    int r = fb_make(ptx, o->archs_count, &data, &size);
    FILE *f = r ? NULL : fopen(path, "we");
    if (r || !f || fwrite(data, 1, size, f) != size || fclose(f) != 0)
        cc_fail("%s: %s", path, strerror(r ? -r : errno));
    free(data);
    for (size_t i = 0; i < o->archs_count; i++)
        free((void *)(uintptr_t)ptx[i].text);
    return path;
}

static bool ends_with(const char *text, const char *end)
{
    size_t a = strlen(text), b = strlen(end);
    return a > b && strcmp(text + a - b, end) == 0;
}

enum kind { CUDA, CXX, OTHER };

static enum kind kind_of(const struct cc_options *o, const char *path)
{
    static const char *const cxx[] = { ".cc", ".cpp", ".cxx", ".C", ".c" };
    if (path[0] == '-')
        return OTHER;
    if (ends_with(path, ".cu"))
        return CUDA;
    for (size_t i = 0; i < sizeof(cxx) / sizeof(cxx[0]); i++)
        if (ends_with(path, cxx[i]))
            return o->all_cuda ? CUDA : CXX;
    return OTHER;
}

/* Compiles the host's code from intermediate code to an object. */
static void compile_host_ir(const struct cc_options *o, const char *path, const char *output)
{
    static struct cc_list l;
    l.count = 0;
    cc_add(&l, cc_place.clang);
    add_of_code(&l, &o->both);
    add_of_code(&l, &o->host);
    cc_add(&l, "-Wno-unused-command-line-argument");
    cc_add(&l, "-c");
    cc_add(&l, "-x");
    cc_add(&l, "ir");
    cc_add(&l, path);
    cc_add(&l, "-o");
    cc_add(&l, output);
    cc_run(o, &l);
}

/* Arguments for a source without kernels. nvcc gives C to gcc, which ignores a C++ standard, and of
 * which only version 14 rejects implicit declarations of old C. */
static void host_arguments(struct cc_list *l, const struct cc_options *o, bool c)
{
    static const char *const old_c[] = { "implicit-function-declaration", "implicit-int",
                                         "int-conversion", "incompatible-function-pointer-types",
                                         "return-mismatch" };
    cc_add(l, cc_place.clang);
    cc_add(l, "-x");
    cc_add(l, c ? "c" : "c++");
    cc_add(l, "-isystem");
    cc_add(l, cc_place.include);
    cc_add(l, "-isystem");
    cc_add(l, cc_place.include_cuda);
    cc_add(l, interface(o));
    if (!c)
        add_ellipsis(l);
    for (size_t i = 0; c && i < sizeof(old_c) / sizeof(old_c[0]); i++)
        cc_add(l, cc_format("-Wno-error=%s", old_c[i]));
    for (size_t i = 0; i < o->both.count; i++)
        if (!c || !strstr(o->both.at[i], "-std=") || !strstr(o->both.at[i], "++"))
            cc_add(l, o->both.at[i]);
}

/* Compiles the host's code to intermediate code, or to what is asked for; the status. Messages go
 * to the file of that name, if there is one. */
static int compile_host(const struct cc_options *o, const struct unit *u, const char *fatbin,
                        const char *ir, const char *output, const char *messages)
{
    static struct cc_list l;
    l.count = 0;
    const char *source = u->respelled ? respell(o, u, 0, NULL) : u->source;
    if (kind_of(o, u->source) == CUDA)
        begin_pass(&l, o, 0, u->respelled);
    else
        host_arguments(&l, o, ends_with(source, ".c"));
    if (fatbin) {
        cc_add(&l, "-Xclang");
        cc_add(&l, "-fcuda-include-gpubinary");
        cc_add(&l, "-Xclang");
        cc_add(&l, fatbin);
    }
    if (ir)
        add_stop_at_ir(&l);
    else if (o->stage != CC_PREPROCESS)
        cc_add(&l, "-c");
    if (u->respelled)
        add_behind_preprocessor(&l, &o->host);
    else
        cc_add_all(&l, &o->host);
    cc_add(&l, "-Wno-unused-command-line-argument");
    cc_add(&l, source);
    if (output) {
        cc_add(&l, "-o");
        cc_add(&l, ir ? ir : output);
    }
    return cc_try(o, &l, messages);
}

/* Compiles a source to an object, or to standard output if that is asked for. */
static void compile(const struct cc_options *o, const char *source, const char *output,
                    unsigned number)
{
    struct unit u = { .source = source, .number = number };
    bool kernels = kind_of(o, source) == CUDA && o->stage != CC_PREPROCESS;
    const char *fatbin = kernels ? make_fatbin(o, &u) : NULL;
    const char *ir = fatbin ? cc_scratch(cc_format("%u.host.bc", number)) : NULL;
    /* Some headers have declarations only for the host that clang refuses. */
    const char *messages = fatbin ? cc_scratch(cc_format("%u.host.messages", number)) : NULL;
    int status = compile_host(o, &u, fatbin, ir, output, messages), rounds = 0;
    while (status && mend(o, &u, 0, messages, &rounds))
        status = compile_host(o, &u, fatbin, ir, output, messages);
    finish(o, messages, status);
    if (ir) {
        change_ir(o, ir);
        compile_host_ir(o, ir, output);
    }
}

static char *object_name(const char *source, const char *end)
{
    const char *slash = strrchr(source, '/'), *base = slash ? slash + 1 : source;
    const char *dot = strrchr(base, '.');
    return cc_format("%.*s%s", dot ? (int)(dot - base) : (int)strlen(base), base, end);
}

static void run_all(struct cc_options *o)
{
    static struct cc_list objects;
    unsigned number = 0;
    for (size_t i = 0; i < o->inputs.count; i++) {
        const char *in = o->inputs.at[i];
        enum kind k = kind_of(o, in);
        number++;
        if (k == OTHER)
            cc_add(&objects, in);
        else if (o->stage == CC_LINK || o->stage == CC_DEVICE_LINK) {
            const char *object = cc_scratch(cc_format("%u.o", number));
            compile(o, in, object, number);
            cc_add(&objects, object);
        } else if (o->stage == CC_PTX)
            compile_ptx(o, &(struct unit) { .source = in, .number = number }, o->archs[0],
                        o->output ? o->output : object_name(in, ".ptx"));
        else if (o->stage == CC_PREPROCESS)
            compile(o, in, o->output, number);
        else
            compile(o, in, o->output ? o->output : object_name(in, ".o"), number);
    }
    if (o->stage == CC_LINK)
        cc_link_program(o, &objects);
    else if (o->stage == CC_DEVICE_LINK)
        cc_link_device_code(o, &objects);
}

int main(int argc, char **argv)
{
    static struct cc_options o = { .cudart = 12 };
    if (argc == 2 && (strcmp(argv[1], "--version") == 0 || strcmp(argv[1], "-V") == 0)) {
        (void)printf("gmux-cc %s, for CUDA's runtime 12.8 and 13.0\n", GMUX_VERSION);
        return 0;
    }
    if (argc == 2 && (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0)) {
        (void)fputs(usage, stdout);
        return 0;
    }
    cc_parse(&o, argv + 1);
    if (o.inputs.count == 0)
        cc_fail("no input files");
    if (o.archs_count == 0)
        o.archs[o.archs_count++] = ARCH_DEFAULT;
    cc_find_places(o.cudart);
    /* Has clang's own headers. */
    cc_place.resources = cc_clang_place("-print-resource-dir");
    check_openmp(&o);
    run_all(&o);
    return 0;
}
