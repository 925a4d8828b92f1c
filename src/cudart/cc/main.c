/*
 * gmux-cc's steps: kernels to PTX for each architecture, the PTX to a fat binary, the host's code
 * to an object that contains it, objects to a program.
 */
#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <limits.h>
#include <spawn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cudart/cc/cc.h"
#include "fatbin/fatbin.h"

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

/* Where the parts of gmux-cc lie: installed, or in a build tree. */
static struct {
    const char *clang, *resources, *include, *include_cuda, *bitcode, *libraries, *driver, *managed;
    char scratch[64];
} place;

static struct cc_list scratch_files;

static const char *scratch(const char *name)
{
    char *path = cc_format("%s/%s", place.scratch, name);
    cc_add(&scratch_files, path);
    return path;
}

static void clean_up(void)
{
    for (size_t i = 0; i < scratch_files.count; i++)
        (void)unlink(scratch_files.at[i]);
    if (*place.scratch)
        (void)rmdir(place.scratch);
}

static bool exists(const char *path)
{
    return access(path, R_OK) == 0;
}

static const char *find_clang(void)
{
    const char *own = getenv("GMUX_CLANG");
    static const char *const names[] = { "/usr/bin/clang++-19", "/usr/lib/llvm-19/bin/clang++",
                                         "/usr/local/bin/clang++-19" };
    if (own && *own)
        return own;
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
        if (access(names[i], X_OK) == 0)
            return names[i];
    cc_fail("needs clang 19 (Debian: apt-get install clang-19), or its path in GMUX_CLANG");
}

static void find_places(unsigned cudart)
{
    char self[PATH_MAX];
    ssize_t n = readlink("/proc/self/exe", self, sizeof(self) - 1);
    if (n <= 0)
        cc_fail("/proc/self/exe: %s", strerror(errno));
    self[n] = '\0';
    const char *here = dirname(self);
    const char *installed = cc_format("%s/../%s", here, CC_LIBRARIES);
    if (exists(cc_format("%s/gmux-device.bc", here))) {
        place.include = cc_format("%s/include", here);
        place.include_cuda = cc_format("%s/../../include", here);
        place.bitcode = cc_format("%s/gmux-device.bc", here);
        place.libraries = cc_format("%s/v%u", here, cudart);
        place.driver = cc_format("%s/../client", here);
        place.managed = cc_format("%s/gmux-cc-managed", here);
    } else if (exists(cc_format("%s/gmux-device.bc", installed))) {
        place.include = place.include_cuda = cc_format("%s/../include/gmux", here);
        place.bitcode = cc_format("%s/gmux-device.bc", installed);
        place.libraries = place.driver = installed;
        place.managed = cc_format("%s/../%s/gmux-cc-managed", here, CC_LIBEXEC);
    } else
        cc_fail("there is no gmux-device.bc beside %s nor in %s: built without libclc-19?", here,
                installed);
    place.clang = find_clang();
    const char *tmp = getenv("TMPDIR");
    int length = snprintf(place.scratch, sizeof(place.scratch), "%s/gmux-cc.XXXXXX",
                          tmp && strlen(tmp) < 32 ? tmp : "/tmp");
    if (length < 0 || !mkdtemp(place.scratch)) {
        *place.scratch = '\0';
        cc_fail("no temporary folder: %s", strerror(errno));
    }
    (void)atexit(clean_up);
}

/* The path that clang prints in answer to that question. */
static const char *clang_place(const char *question)
{
    char line[PATH_MAX];
    FILE *f = popen(cc_format("'%s' %s", place.clang, question), "re");
    if (!f || !fgets(line, sizeof(line), f))
        cc_fail("%s does not run", place.clang);
    (void)pclose(f);
    line[strcspn(line, "\n")] = '\0';
    return cc_format("%s", line);
}

/* The host's code may use OpenMP if clang's library is there; if not, clang prints the bare
 * name. */
static void check_openmp(const struct cc_options *o)
{
    for (size_t i = 0; i < o->link.count; i++)
        if (strcmp(o->link.at[i], "-fopenmp") == 0 &&
            !strchr(clang_place("-print-file-name=libomp.so"), '/'))
            cc_fail("-fopenmp needs clang's OpenMP (Debian: apt-get install libomp-19-dev)");
}

/* Runs clang. If its status is not 0, the program ends with that status. */
static void run(const struct cc_options *o, struct cc_list *l)
{
    l->at[l->count] = NULL;
    if (o->verbose) {
        for (size_t i = 0; i < l->count; i++)
            (void)fprintf(stderr, "%s%s", i ? " " : "#$ ", l->at[i]);
        (void)fputc('\n', stderr);
    }
    if (o->dry)
        return;
    pid_t pid;
    int status;
    char *argv[CC_MAX + 1];
    memcpy(argv, l->at, sizeof(argv));
    int r = posix_spawn(&pid, argv[0], NULL, NULL, argv, environ);
    if (r)
        cc_fail("%s: %s", argv[0], strerror(r));
    while (waitpid(pid, &status, 0) < 0)
        if (errno != EINTR)
            cc_fail("%s: %s", argv[0], strerror(errno));
    if (!WIFEXITED(status) || WEXITSTATUS(status))
        exit(WIFEXITED(status) ? WEXITSTATUS(status) : 1);
}

/* The runtime API's header to include: the version that our headers declare. */
static const char *interface(const struct cc_options *o)
{
    return cc_format("-DGMUX_CUDART_VERSION=%s", o->cudart == 13 ? "13000" : "12080");
}

/* Arguments for both passes over a CUDA source. */
static void cuda_arguments(struct cc_list *l, const struct cc_options *o)
{
    cc_add(l, place.clang);
    cc_add(l, "-x");
    cc_add(l, "cuda");
    /* No toolkit: our headers are the only ones. */
    cc_add(l, cc_format("--cuda-path=%s/none", place.scratch));
    cc_add(l, "-nocudainc");
    cc_add(l, "-nocudalib");
    cc_add(l, "-Xclang");
    /* Selects the launch ABI that has been used since 9.2. */
    cc_add(l, "-target-sdk-version=12.3");
    cc_add(l, "-Wno-unknown-cuda-version");
    /* For nvcc this is only a warning, and so is the next. */
    cc_add(l, "-Wno-c++11-narrowing");
    cc_add(l, "-Wno-register");
    /* nvcc's front end accepts declarations of variadic functions, too, which are never called. */
    cc_add(l, "-Xclang");
    cc_add(l, "-fcuda-allow-variadic-functions");
    /* clang's wrappers of libstdc++'s headers. */
    cc_add(l, "-isystem");
    cc_add(l, cc_format("%s/include/cuda_wrappers", place.resources));
    cc_add(l, "-isystem");
    cc_add(l, place.include);
    cc_add(l, "-isystem");
    cc_add(l, place.include_cuda);
    cc_add(l, "-include");
    /* Ours, and not that of a toolkit in -I. */
    cc_add(l, cc_format("%s/cuda_runtime.h", place.include));
    if (o->relocatable)
        cc_add(l, "-fgpu-rdc");
    cc_add(l, interface(o));
    cc_add_all(l, &o->both);
}

/* A CUDA source that is being compiled. */
struct unit {
    const char *source;
    unsigned number; /* its number on the command line, for names of files */
    bool checked;    /* it is known whether it has managed variables */
    bool managed;    /* it may have managed variables */
};

/* Options that clang needs once more when it continues from intermediate code. */
static void add_of_code(struct cc_list *l, const struct cc_list *from)
{
    for (size_t i = 0; i < from->count; i++)
        if (from->at[i][0] == '-' && strchr("Ofmg", from->at[i][1]))
            cc_add(l, from->at[i]);
}

/* Rewrites intermediate code in which managed variables are only marked (managed.c). */
static void transform_managed(const struct cc_options *o, const char *in, const char *out)
{
    static struct cc_list l;
    l.count = 0;
    if (access(place.managed, X_OK) != 0)
        cc_fail("__managed__ variables need %s, which this build lacks: built without llvm-19-dev?",
                place.managed);
    cc_add(&l, place.managed);
    cc_add(&l, in);
    cc_add(&l, out);
    run(o, &l);
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

/* Compiles the kernels to PTX; with managed variables, to intermediate code. `dependencies`: also
 * writes the names of the files that it reads, except system headers. */
static void compile_kernels(const struct cc_options *o, const struct unit *u, unsigned sm,
                            const char *output, const char *dependencies)
{
    static struct cc_list l;
    l.count = 0;
    cuda_arguments(&l, o);
    cc_add(&l, "--cuda-device-only");
    cc_add(&l, cc_format("--cuda-gpu-arch=sm_%u", sm));
    cc_add(&l, "-Xclang");
    cc_add(&l, "-mlink-builtin-bitcode");
    cc_add(&l, "-Xclang");
    cc_add(&l, place.bitcode);
    device_target(&l, o);
    if (dependencies) {
        cc_add(&l, "-MMD");
        cc_add(&l, "-MF");
        cc_add(&l, dependencies);
    }
    if (u->managed) {
        cc_add(&l, "-Xclang");
        cc_add(&l, "-disable-llvm-passes");
        cc_add(&l, "-emit-llvm");
        cc_add(&l, "-c");
    } else
        cc_add(&l, "-S");
    cc_add(&l, u->source);
    cc_add(&l, "-o");
    cc_add(&l, output);
    run(o, &l);
}

static void make_ptx(const struct cc_options *o, struct unit *u, unsigned sm, const char *output)
{
    static struct cc_list l;
    if (!u->checked) {
        const char *files = scratch(cc_format("%u.d", u->number));
        compile_kernels(o, u, sm, output, files);
        u->checked = true;
        u->managed = !o->dry && cc_any_mentions(files, "__managed__");
        if (!u->managed)
            return;
    }
    const char *before = scratch(cc_format("%u.device.bc", u->number));
    const char *after = scratch(cc_format("%u.managed.bc", u->number));
    compile_kernels(o, u, sm, u->managed ? before : output, NULL);
    if (!u->managed)
        return;
    transform_managed(o, before, after);
    l.count = 0;
    cc_add(&l, place.clang);
    cc_add(&l, "--target=nvptx64-nvidia-cuda");
    cc_add(&l, cc_format("-march=sm_%u", sm));
    cc_add(&l, "-nocudalib");
    device_target(&l, o);
    add_of_code(&l, &o->both);
    cc_add(&l, "-Wno-unused-command-line-argument");
    cc_add(&l, "-S");
    cc_add(&l, "-x");
    cc_add(&l, "ir");
    cc_add(&l, after);
    cc_add(&l, "-o");
    cc_add(&l, output);
    run(o, &l);
}

static void compile_ptx(const struct cc_options *o, struct unit *u, unsigned sm, const char *output)
{
    make_ptx(o, u, sm, output);
    if (o->relocatable && !o->dry)
        cc_drop_kept(output);
}

static const char *make_fatbin(const struct cc_options *o, struct unit *u)
{
    struct fb_ptx ptx[sizeof(o->archs) / sizeof(o->archs[0])];
    for (size_t i = 0; i < o->archs_count; i++) {
        const char *path = scratch(cc_format("%u.%u.ptx", u->number, o->archs[i]));
        compile_ptx(o, u, o->archs[i], path);
        ptx[i] =
            (struct fb_ptx) { .isa_major = PTX_MAJOR, .isa_minor = PTX_MINOR, .sm = o->archs[i] };
        ptx[i].text = o->dry ? "" : cc_read(path, &ptx[i].size);
        if (!ptx[i].text)
            cc_fail("%s: %s", path, strerror(errno));
    }
    const char *path = scratch(cc_format("%u.fatbin", u->number));
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

/* Compiles host code with managed variables from intermediate code to an object. */
static void compile_managed_host(const struct cc_options *o, const char *before, const char *output,
                                 unsigned number)
{
    static struct cc_list l;
    const char *after = scratch(cc_format("%u.host.managed.bc", number));
    transform_managed(o, before, after);
    l.count = 0;
    cc_add(&l, place.clang);
    add_of_code(&l, &o->both);
    add_of_code(&l, &o->host);
    cc_add(&l, "-Wno-unused-command-line-argument");
    cc_add(&l, "-c");
    cc_add(&l, "-x");
    cc_add(&l, "ir");
    cc_add(&l, after);
    cc_add(&l, "-o");
    cc_add(&l, output);
    run(o, &l);
}

/* Arguments for a source without kernels. nvcc gives C to gcc, which ignores a C++ standard, and of
 * which only version 14 rejects implicit declarations of old C. */
static void host_arguments(struct cc_list *l, const struct cc_options *o, bool c)
{
    static const char *const old_c[] = { "implicit-function-declaration", "implicit-int",
                                         "int-conversion", "incompatible-function-pointer-types",
                                         "return-mismatch" };
    cc_add(l, place.clang);
    cc_add(l, "-x");
    cc_add(l, c ? "c" : "c++");
    cc_add(l, "-isystem");
    cc_add(l, place.include);
    cc_add(l, "-isystem");
    cc_add(l, place.include_cuda);
    cc_add(l, interface(o));
    for (size_t i = 0; c && i < sizeof(old_c) / sizeof(old_c[0]); i++)
        cc_add(l, cc_format("-Wno-error=%s", old_c[i]));
    for (size_t i = 0; i < o->both.count; i++)
        if (!c || !strstr(o->both.at[i], "-std=") || !strstr(o->both.at[i], "++"))
            cc_add(l, o->both.at[i]);
}

/* Compiles a source to an object, or to standard output if that is asked for. */
static void compile(const struct cc_options *o, const char *source, const char *output,
                    unsigned number)
{
    static struct cc_list l;
    l.count = 0;
    bool is_cuda = kind_of(o, source) == CUDA;
    struct unit u = { .source = source, .number = number };
    const char *fatbin = is_cuda && o->stage != CC_PREPROCESS ? make_fatbin(o, &u) : NULL;
    const char *before = NULL;
    if (is_cuda) {
        cuda_arguments(&l, o);
        cc_add(&l, "--cuda-host-only");
    } else {
        host_arguments(&l, o, ends_with(source, ".c"));
    }
    if (fatbin) {
        cc_add(&l, "-Xclang");
        cc_add(&l, "-fcuda-include-gpubinary");
        cc_add(&l, "-Xclang");
        cc_add(&l, fatbin);
    }
    if (o->stage != CC_PREPROCESS)
        cc_add(&l, "-c");
    cc_add_all(&l, &o->host);
    cc_add(&l, "-Wno-unused-command-line-argument");
    cc_add(&l, source);
    if (u.managed) {
        before = scratch(cc_format("%u.host.bc", number));
        cc_add(&l, "-Xclang");
        cc_add(&l, "-disable-llvm-passes");
        cc_add(&l, "-emit-llvm");
    }
    if (output) {
        cc_add(&l, "-o");
        cc_add(&l, before ? before : output);
    }
    run(o, &l);
    if (before)
        compile_managed_host(o, before, output, number);
}

/* Makes an object that registers relocatable device code of the inputs; NULL: there is none. */
static const char *register_relocatable(const struct cc_options *o, const struct cc_list *objects,
                                        const char *output)
{
    static struct cc_list l;
    const char *source = scratch("registrations.c");
    if (!cc_write_registrations(objects, source))
        return NULL;
    const char *object = output ? output : scratch("registrations.o");
    cc_add(&l, place.clang);
    cc_add(&l, "-x");
    cc_add(&l, "c");
    cc_add(&l, "-O2");
    cc_add(&l, "-fPIC");
    cc_add(&l, "-c");
    cc_add(&l, source);
    cc_add(&l, "-o");
    cc_add(&l, object);
    run(o, &l);
    return object;
}

/* -dlink: makes such an object, even if there is nothing to register. */
static void link_device_code(const struct cc_options *o, const struct cc_list *objects)
{
    static struct cc_list l;
    const char *output = o->output ? o->output : "a_dlink.o";
    if (register_relocatable(o, objects, output))
        return;
    cc_add(&l, place.clang);
    cc_add(&l, "-x");
    cc_add(&l, "c");
    cc_add(&l, "-c");
    cc_add(&l, "/dev/null");
    cc_add(&l, "-o");
    cc_add(&l, output);
    run(o, &l);
}

static void link_program(struct cc_options *o, struct cc_list *objects)
{
    static struct cc_list l;
    const char *registrations = register_relocatable(o, objects, NULL);
    if (registrations)
        cc_add(objects, registrations);
    cc_add(&l, place.clang);
    cc_add_all(&l, &o->link);
    cc_add(&l, "-Wno-unused-command-line-argument");
    cc_add(&l, "-o");
    cc_add(&l, o->output ? o->output : "a.out");
    for (size_t i = 0; i < objects->count; i++)
        cc_add(&l, strcmp(objects->at[i], "-lnvrtc")
                       ? objects->at[i]
                       : cc_format("%s/libnvrtc.so.%u", place.libraries, o->cudart));
    cc_add(&l, cc_format("%s/libcudart.so.%u", place.libraries, o->cudart));
    cc_add(&l, cc_format("-Wl,-rpath,%s", place.libraries));
    cc_add(&l, cc_format("-L%s", place.driver));
    cc_add(&l, cc_format("-Wl,-rpath,%s", place.driver));
    cc_add(&l, "-lm");
    cc_add(&l, "-ldl");
    cc_add(&l, "-lpthread");
    run(o, &l);
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
            const char *object = scratch(cc_format("%u.o", number));
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
        link_program(o, &objects);
    else if (o->stage == CC_DEVICE_LINK)
        link_device_code(o, &objects);
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
    find_places(o.cudart);
    /* Has clang's own headers. */
    place.resources = clang_place("-print-resource-dir");
    check_openmp(&o);
    run_all(&o);
    return 0;
}
