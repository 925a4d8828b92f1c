/*
 * Reads the ELF file of a program without running it. Anybody may have made the file, so that every
 * offset is checked.
 */
#include "cli/program.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "cli/place.h"

char *cli_library_folder(void)
{
    static const char *const folders[] = { CLI_LIBRARY_DIRS, NULL };
    char names[2][PATH_MAX];
    const char *list[] = { names[0], names[1], NULL };
    for (int i = 0; folders[i]; i++)
        snprintf(names[i], sizeof(names[i]), "%s/libcuda.so.1", folders[i]);
    char *path = cli_find_beside(list);
    char *slash = path ? strrchr(path, '/') : NULL;
    if (slash)
        *slash = '\0';
    return path;
}

/* A mapped file. Its offsets were written by anybody: each read is checked. */
struct file {
    const uint8_t *data;
    size_t size;
};

static const void *at(const struct file *f, uint64_t offset, uint64_t size)
{
    return offset <= f->size && size <= f->size - offset ? f->data + offset : NULL;
}

/* Returns where the loader would find `address`, in the file. */
static const void *at_address(const struct file *f, const Elf64_Phdr *headers, unsigned n,
                              uint64_t address)
{
    for (unsigned i = 0; i < n; i++)
        if (headers[i].p_type == PT_LOAD && address >= headers[i].p_vaddr &&
            address - headers[i].p_vaddr < headers[i].p_filesz)
            return at(f, headers[i].p_offset + (address - headers[i].p_vaddr), 1);
    return NULL;
}

/* Returns a terminated string that lies in the file, or NULL. */
static const char *string_at(const struct file *f, const void *place)
{
    const uint8_t *p = place;
    return p && memchr(p, 0, f->size - (size_t)(p - f->data)) ? (const char *)p : NULL;
}

/* Looks for a libcuda.so.1 in the directories, which have colons between them. */
static void look_in(struct cli_program *p, const char *directories)
{
    while (*directories && !*p->path_libcuda) {
        size_t n = strcspn(directories, ":");
        char path[PATH_MAX];
        if (strncmp(directories, "$ORIGIN", 7) == 0 && n >= 7)
            snprintf(path, sizeof(path), "%.*s%.*s/libcuda.so.1",
                     (int)(strrchr(p->path, '/') - p->path), p->path, (int)n - 7, directories + 7);
        else
            snprintf(path, sizeof(path), "%.*s/libcuda.so.1", (int)n, directories);
        if (access(path, R_OK) == 0)
            snprintf(p->path_libcuda, sizeof(p->path_libcuda), "%s", path);
        directories += n + (directories[n] == ':');
    }
}

static void read_dynamic(struct cli_program *p, const struct file *f, const Elf64_Phdr *headers,
                         unsigned n, const Elf64_Phdr *dynamic)
{
    const uint64_t count = dynamic->p_filesz / sizeof(Elf64_Dyn);
    const uint8_t *entries = at(f, dynamic->p_offset, count * sizeof(Elf64_Dyn));
    const uint8_t *strings = NULL;
    const char *rpath = NULL;
    Elf64_Dyn d;
    bool runpath = false;
    for (int pass = 0; entries && pass < 2; pass++)
        for (uint64_t i = 0; i < count; i++) {
            memcpy(&d, entries + i * sizeof(d), sizeof(d));
            if (d.d_tag == DT_NULL)
                break;
            if (d.d_tag == DT_STRTAB)
                strings = at_address(f, headers, n, d.d_un.d_ptr);
            if (pass == 0 || !strings || d.d_un.d_val >= f->size - (size_t)(strings - f->data))
                continue;
            const char *s = string_at(f, strings + d.d_un.d_val);
            if (d.d_tag == DT_NEEDED && s && strncmp(s, "libcuda.so", 10) == 0)
                p->needs_libcuda = true;
            if (d.d_tag == DT_NEEDED && s && strncmp(s, "libcudart.so", 12) == 0)
                snprintf(p->needs_cudart, sizeof(p->needs_cudart), "%s", s);
            if (d.d_tag == DT_RPATH)
                rpath = s;
            runpath |= d.d_tag == DT_RUNPATH;
        }
    /* The loader ignores DT_RPATH if there is a DT_RUNPATH, which comes after LD_LIBRARY_PATH. */
    if (rpath && !runpath)
        look_in(p, rpath);
}

static void read_elf(struct cli_program *p, const struct file *f)
{
    Elf64_Ehdr e;
    const void *start = at(f, 0, sizeof(e));
    if (!start || memcmp(start, ELFMAG, SELFMAG) != 0)
        return;
    memcpy(&e, start, sizeof(e));
    p->is_elf = true;
    p->is_32bit = e.e_ident[EI_CLASS] != ELFCLASS64;
    p->other_machine = !p->is_32bit && e.e_machine != EM_X86_64;
    if (p->is_32bit || p->other_machine || e.e_phentsize != sizeof(Elf64_Phdr) || e.e_phoff % 8)
        return;
    const Elf64_Phdr *headers = at(f, e.e_phoff, (uint64_t)e.e_phnum * sizeof(Elf64_Phdr));
    p->is_static = true;
    for (unsigned i = 0; headers && i < e.e_phnum; i++) {
        if (headers[i].p_type == PT_INTERP)
            p->is_static = false;
        if (headers[i].p_type == PT_DYNAMIC)
            read_dynamic(p, f, headers, e.e_phnum, &headers[i]);
    }
}

static int find_program(struct cli_program *p, const char *name)
{
    const char *path = getenv("PATH");
    if (!*name)
        return -ENOENT;
    if (strchr(name, '/') || !path)
        return realpath(name, p->path) ? 0 : -errno;
    while (*path) {
        char candidate[PATH_MAX];
        size_t n = strcspn(path, ":");
        snprintf(candidate, sizeof(candidate), "%.*s/%s", (int)n, path, name);
        if (n && access(candidate, X_OK) == 0 && realpath(candidate, p->path))
            return 0;
        path += n + (path[n] == ':');
    }
    return -ENOENT;
}

bool cli_program_obstacle(const struct cli_program *p, unsigned i, char *out, size_t size)
{
    const bool loads = p->is_elf && !p->is_32bit && !p->other_machine;
    const struct {
        bool is;
        const char *text;
    } all[CLI_OBSTACLES] = {
        { p->is_32bit, "it is a 32-bit program: there is no 32-bit libcuda.so.1" },
        { p->other_machine, "it is for another processor" },
        { p->privileged, "it is set-uid or set-gid: the loader ignores LD_LIBRARY_PATH, and our "
                         "library the environment" },
        { loads && p->is_static, "it is statically linked and cannot load our library" },
        { *p->path_libcuda != '\0', NULL },
    };
    if (all[i].text)
        snprintf(out, size, "%s", all[i].text);
    else
        snprintf(out, size, "its run path (DT_RPATH) leads to %s, which it will find first",
                 p->path_libcuda);
    return all[i].is;
}

int cli_program_read(struct cli_program *p, const char *name, bool all_of_it)
{
    struct stat st;
    memset(p, 0, sizeof(*p));
    int r = find_program(p, name);
    if (r < 0)
        return r;
    GM_AUTO_FD int fd = open(p->path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0 || fstat(fd, &st) < 0)
        return -errno;
    if (!S_ISREG(st.st_mode) || st.st_size <= 0)
        return -ENOEXEC;
    p->privileged = (st.st_mode & S_ISUID && st.st_uid != geteuid()) ||
                    (st.st_mode & S_ISGID && st.st_gid != getegid());
    struct file f = { .size = (size_t)st.st_size };
    void *map = mmap(NULL, f.size, PROT_READ, MAP_PRIVATE, fd, 0);
    if (map == MAP_FAILED)
        return -errno;
    f.data = map;
    if (f.size > 2 && memcmp(map, "#!", 2) == 0) {
        size_t n = GM_MIN(f.size - 2, sizeof(p->script) - 1);
        memcpy(p->script, f.data + 2, n);
        p->script[strcspn(p->script, "\r\n")] = '\0';
    }
    read_elf(p, &f);
    if (all_of_it && p->is_elf && !p->is_32bit && !p->other_machine && !p->needs_libcuda)
        p->opens_libcuda = memmem(f.data, f.size, "libcuda.so.1", 12);
    munmap(map, f.size);
    return 0;
}
