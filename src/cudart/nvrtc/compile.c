/*
 * One compilation: writes the files into a temporary folder, runs gmux-cc there, and reads its
 * output. gmux-cc runs as a process of the caller's user; no code of clang runs in the caller's
 * process.
 */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <limits.h>
#include <spawn.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cudart/nvrtc/nvrtc.h"

#define RESULT_MAX ((size_t)256 << 20) /* PTX or log */

/* What stands between is the device's, too, where the program wants that by default. */
static const char default_begin[] =
    "#pragma clang force_cuda_host_device begin\n#define GMUX_DEFAULT_DEVICE\n";
static const char default_end[] = "\n#pragma clang force_cuda_host_device end\n";

/* The host's headers among them: what they declare is the host's, since our own headers include
 * parts of them before, and the same function cannot be both. A header of the same name goes first
 * and steps out of the pragma. Those that are not in this list can be included as they are. */
static const char *const host_headers =
    "algorithm any bitset charconv codecvt complex condition_variable cstdio cxxabi.h deque "
    "exception filesystem forward_list fstream functional future iomanip ios iosfwd iostream "
    "istream iterator list locale map memory memory_resource mutex new optional ostream queue "
    "random ranges regex scoped_allocator set shared_mutex span sstream stack stdexcept "
    "stdio.h streambuf string string_view system_error thread tuple typeindex typeinfo "
    "unordered_map unordered_set variant vector";
static const char host_header[] = "#ifdef GMUX_DEFAULT_DEVICE\n"
                                  "#undef GMUX_DEFAULT_DEVICE\n"
                                  "#pragma clang force_cuda_host_device end\n"
                                  "#include_next <%1$.*2$s>\n"
                                  "#pragma clang force_cuda_host_device begin\n"
                                  "#define GMUX_DEFAULT_DEVICE\n"
                                  "#else\n"
                                  "#include_next <%1$.*2$s>\n"
                                  "#endif\n";

/* Headers that give the types of 64 bits their names, which our own headers keep back as long as
 * they go. */
static const struct {
    const char *name, *text;
} number_headers[] = {
    { "stdint.h", "#include_next <stdint.h>\n"
                  "#if !defined(int64_t) && !defined(GMUX_NUMBERS)\n"
                  "#define GMUX_NUMBERS\n"
                  "typedef gmux_int64_t int64_t;\n"
                  "typedef gmux_uint64_t uint64_t;\n"
                  "#endif\n" },
    { "cstdint", "#include <stdint.h>\n"
                 "#include_next <cstdint>\n"
                 "#ifdef GMUX_NUMBERS\n"
                 "namespace std { using ::int64_t; using ::uint64_t; }\n"
                 "#endif\n" },
};

static char *in(const char *folder, const char *name)
{
    char *path;
    return asprintf(&path, "%s/%s", folder, name) < 0 ? NULL : path;
}

/* Makes the folders on the way to `path`; the part before the character `from` exists. */
static int make_folders(char *path, size_t from)
{
    for (char *p = path + from; (p = strchr(p, '/')); p++) {
        *p = '\0';
        int r = mkdir(path, 0700) < 0 && errno != EEXIST ? -errno : 0;
        *p = '/';
        if (r)
            return r;
    }
    return 0;
}

__attribute__((format(printf, 2, 3))) static int write_text(const char *path, const char *format,
                                                            ...)
{
    va_list args;
    FILE *f = fopen(path, "we");
    if (!f)
        return -errno;
    va_start(args, format);
    int r = vfprintf(f, format, args) < 0 ? -EIO : 0;
    va_end(args);
    if (fclose(f) != 0 && !r)
        r = -errno;
    return r;
}

static int write_headers(const struct _nvrtcProgram *p, const char *folder)
{
    for (size_t i = 0; i < p->headers_count; i++) {
        char *path = in(folder, p->headers[i].name);
        int r = path ? make_folders(path, strlen(folder) + 1) : -ENOMEM;
        if (!r)
            r = write_text(path, "%s", p->headers[i].text);
        free(path);
        if (r)
            return r;
    }
    return 0;
}

/* Makes the folder `folder` with headers that go before the system's: of numbers, and for each of
 * the host's if what a program declares is the device's. */
static int write_host_headers(const char *folder, bool default_device)
{
    if (mkdir(folder, 0700) < 0)
        return -errno;
    for (size_t i = 0; i < sizeof(number_headers) / sizeof(number_headers[0]); i++) {
        char *path = in(folder, number_headers[i].name);
        int r = path ? write_text(path, "%s", number_headers[i].text) : -ENOMEM;
        free(path);
        if (r)
            return r;
    }
    const char *names = default_device ? host_headers : "";
    for (const char *name = names; *name; name += strspn(name, " ")) {
        int length = (int)strcspn(name, " ");
        char *path;
        if (asprintf(&path, "%s/%.*s", folder, length, name) < 0)
            return -ENOMEM;
        int r = write_text(path, host_header, name, length);
        free(path);
        if (r)
            return r;
        name += length;
    }
    return 0;
}

static int write_source(const struct _nvrtcProgram *p, const char *path, bool default_device)
{
    FILE *f = fopen(path, "we");
    if (!f)
        return -errno;
    (void)fprintf(f, "%s#line 1 \"", default_device ? default_begin : "");
    for (const char *c = p->name; *c; c++)
        (void)fprintf(f, *c == '"' || *c == '\\' ? "\\%c" : "%c", *c == '\n' ? ' ' : *c);
    (void)fprintf(f, "\"\n%s%s", p->source, default_device ? default_end : "");
    for (size_t i = 0; i < p->names_count; i++) {
        char symbol[32];
        const char *e = p->names[i].expression;
        rtc_name_symbol(symbol, i);
        /* NVRTC accepts both a name and its address. */
        (void)fprintf(f,
                      "\n#line 1 \"name expression\"\nextern \"C\" __device__ const void *const "
                      "%s[] = { (const void *)%s%s };\n",
                      symbol, e[strspn(e, " \t")] == '&' ? "" : "&", e);
    }
    int r = ferror(f) ? -EIO : 0;
    return fclose(f) != 0 && !r ? -errno : r;
}

/* Reads the whole file as text, which the caller frees. NULL, with errno set. */
static char *read_text(const char *path)
{
    char *text = NULL;
    struct stat st;
    FILE *f = fopen(path, "re");
    if (!f)
        return NULL;
    if (fstat(fileno(f), &st) == 0 && st.st_size >= 0 && (size_t)st.st_size <= RESULT_MAX &&
        (text = calloc(1, (size_t)st.st_size + 1)) &&
        fread(text, 1, (size_t)st.st_size, f) != (size_t)st.st_size) {
        free(text);
        text = NULL;
        errno = EIO;
    }
    (void)fclose(f);
    return text;
}

/* Finds gmux-cc: in a build tree above this library's folder, or where it is installed. */
static char *find_compiler(void)
{
    static const char anchor;
    Dl_info me;
    char *path = NULL;
    if (dladdr(&anchor, &me) && me.dli_fname && strrchr(me.dli_fname, '/')) {
        int length = (int)(strrchr(me.dli_fname, '/') - me.dli_fname);
        static const char *const ways[] = { "..", NVRTC_BINDIR };
        for (size_t i = 0; i < sizeof(ways) / sizeof(ways[0]); i++) {
            if (asprintf(&path, "%.*s/%s/gmux-cc", length, me.dli_fname, ways[i]) < 0)
                return NULL;
            if (access(path, X_OK) == 0)
                return path;
            free(path);
        }
    }
    errno = ENOENT;
    return NULL;
}

/* Runs the compiler to its end; `log` is a file that gets its messages. Its output shows whether it
 * succeeded: its status may be lost in a program that waits for all of its children. */
static int run(const char *const *argv, const char *log)
{
    posix_spawn_file_actions_t files;
    pid_t pid;
    if (posix_spawn_file_actions_init(&files))
        return -ENOMEM;
    int r = posix_spawn_file_actions_addopen(&files, 0, "/dev/null", O_RDONLY, 0);
    if (!r)
        r = posix_spawn_file_actions_addopen(&files, 1, log, O_WRONLY | O_CREAT | O_APPEND, 0600);
    if (!r)
        r = posix_spawn_file_actions_adddup2(&files, 1, 2);
    if (!r)
        r = posix_spawn(&pid, argv[0], &files, NULL, (char *const *)(uintptr_t)argv, environ);
    (void)posix_spawn_file_actions_destroy(&files);
    if (r)
        return -r;
    while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
        ;
    return 0;
}

/* Removes the name of our temporary folder from the compiler's messages: it would only confuse. */
static void hide_folder(char *text, const char *folder)
{
    size_t n = strlen(folder);
    for (char *at = text; (at = strstr(at, folder));)
        memmove(at, at + n + (at[n] == '/'), strlen(at + n + (at[n] == '/')) + 1);
}

/* Writes the first line of a message of clang, FILE:LINE:COLUMN: KIND: TEXT, as NVRTC has it. */
static void say(FILE *f, const char *line, int length)
{
    static const char missing[] = "' file not found", fatal[] = ": fatal error: '";
    const char *end = line + length;
    const char *kind = memmem(line, (size_t)length, ": ", 2);
    const char *column = kind ? memrchr(line, ':', (size_t)(kind - line)) : NULL;
    const char *number = column ? memrchr(line, ':', (size_t)(column - line)) : NULL;
    if (!number || strspn(number + 1, "0123456789") != (size_t)(column - number - 1) ||
        strspn(column + 1, "0123456789") != (size_t)(kind - column - 1)) {
        (void)fprintf(f, "%.*s\n", length, line);
        return;
    }
    (void)fprintf(f, "%.*s(%.*s)", (int)(number - line), line, (int)(column - number - 1),
                  number + 1);
    const char *name = kind + strlen(fatal), *stop = end - strlen(missing);
    /* Programs look for this one, supply the file and compile again. */
    if (stop > name && memcmp(kind, fatal, strlen(fatal)) == 0 &&
        memcmp(stop, missing, strlen(missing)) == 0)
        (void)fprintf(f, ": catastrophic error: cannot open source file \"%.*s\"\n",
                      (int)(stop - name), name);
    else
        (void)fprintf(f, "%.*s\n", (int)(end - kind), kind);
}

/* Gives the compiler's messages the form of NVRTC's, which programs read: a blank line is between
 * two, and none says by way of which files another was included. Returns the log, which may be
 * another one. */
static char *say_as_nvrtc(char *log)
{
    static const char by_way[] = "In file included from ";
    char *said = NULL;
    size_t size;
    FILE *f = open_memstream(&said, &size);
    if (!f)
        return log;
    for (const char *line = log, *end; *line; line = *end ? end + 1 : end) {
        end = strchrnul(line, '\n');
        if (strncmp(line, by_way, strlen(by_way)) == 0)
            continue;
        /* What is shown of the source begins with a space. */
        if (*line != ' ' && ftell(f) > 0)
            (void)fputc('\n', f);
        say(f, line, (int)(end - line));
    }
    if (fclose(f) != 0) {
        free(said);
        return log;
    }
    free(log);
    return said;
}

static int compile_in(struct _nvrtcProgram *p, const struct rtc_arguments *a, const char *folder)
{
    char *compiler = find_compiler(), *source = in(folder, "gmux-nvrtc.cu");
    char *ptx = in(folder, "gmux-nvrtc.ptx"), *log = in(folder, "gmux-nvrtc.log");
    char *host = in(folder, "gmux-nvrtc.host"), *macros = in(folder, "gmux-nvrtc.macros");
    const char **argv = calloc(a->count + 16, sizeof(*argv));
    int r = source && ptx && log && host && macros && argv ? 0 : -ENOMEM;
    if (!r && !compiler) {
        char *said = strdup("libnvrtc: gmux-cc is not there: install it, and clang 19\n");
        if (said) {
            free(p->log);
            p->log = said;
        }
        r = said ? 1 : -ENOMEM;
    }
    if (!r)
        r = write_headers(p, folder);
    if (!r)
        r = write_host_headers(host, a->default_device);
    if (!r)
        r = write_source(p, source, a->default_device);
    if (!r)
        r = write_text(macros, "#pragma GCC system_header\n%s", a->macros);
    if (!r) {
        /* The system's headers go first: our own include them, and a program that brings
         * replacements of them would have both. */
        const char *const fixed[] = {
            compiler,     "-ptx", "-cudart",  NVRTC_CUDART, "-D__CUDACC_RTC__",
            "-idirafter", folder, "-include", macros
        };
        size_t n = sizeof(fixed) / sizeof(fixed[0]);
        memcpy(argv, fixed, sizeof(fixed));
        memcpy(argv + n, a->at, a->count * sizeof(*argv));
        n += a->count;
        argv[n++] = "-isystem";
        argv[n++] = host;
        argv[n++] = "-o";
        argv[n++] = ptx;
        argv[n++] = source;
        r = run(argv, log);
    }
    char *said = r ? NULL : read_text(log);
    if (said) {
        hide_folder(said, folder);
        free(p->log);
        p->log = say_as_nvrtc(said);
    }
    if (!r && !(p->ptx = read_text(ptx)))
        r = errno == ENOENT ? 1 : -errno;
    if (!r)
        rtc_take_names(p, p->ptx);
    free(argv);
    free(macros);
    free(host);
    free(log);
    free(ptx);
    free(source);
    free(compiler);
    return r;
}

static int remove_one(const char *path, const struct stat *st, int flag, struct FTW *at)
{
    (void)st;
    (void)flag;
    (void)at;
    return remove(path);
}

int rtc_compile(struct _nvrtcProgram *p, const struct rtc_arguments *a)
{
    const char *tmp = getenv("TMPDIR");
    char *folder = in(tmp && *tmp ? tmp : "/tmp", "gmux-nvrtc.XXXXXX");
    if (!folder)
        return -ENOMEM;
    int r = mkdtemp(folder) ? 0 : -errno;
    if (!r) {
        r = compile_in(p, a, folder);
        (void)nftw(folder, remove_one, 8, FTW_DEPTH | FTW_PHYS);
    }
    free(folder);
    return r;
}
