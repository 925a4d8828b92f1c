/*
 * Where the parts of gmux-cc lie, and the folder for its intermediate files.
 */
#include <errno.h>
#include <libgen.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cudart/cc/cc.h"

struct cc_place cc_place;

static struct cc_list scratch_files;

const char *cc_scratch(const char *name)
{
    char *path = cc_format("%s/%s", cc_place.scratch, name);
    cc_add(&scratch_files, path);
    return path;
}

static void clean_up(void)
{
    for (size_t i = 0; i < scratch_files.count; i++)
        (void)unlink(scratch_files.at[i]);
    if (*cc_place.scratch)
        (void)rmdir(cc_place.scratch);
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

void cc_find_places(unsigned cudart)
{
    char self[PATH_MAX];
    ssize_t n = readlink("/proc/self/exe", self, sizeof(self) - 1);
    if (n <= 0)
        cc_fail("/proc/self/exe: %s", strerror(errno));
    self[n] = '\0';
    const char *here = dirname(self);
    const char *installed = cc_format("%s/../%s", here, CC_LIBRARIES);
    if (exists(cc_format("%s/gmux-device.bc", here))) {
        cc_place.include = cc_format("%s/include", here);
        cc_place.include_cuda = cc_format("%s/../../include", here);
        cc_place.bitcode = cc_format("%s/gmux-device.bc", here);
        cc_place.libraries = cc_format("%s/v%u", here, cudart);
        cc_place.driver = cc_format("%s/../client", here);
        cc_place.ir = cc_format("%s/gmux-cc-ir", here);
    } else if (exists(cc_format("%s/gmux-device.bc", installed))) {
        cc_place.include = cc_place.include_cuda = cc_format("%s/../include/gmux", here);
        cc_place.bitcode = cc_format("%s/gmux-device.bc", installed);
        cc_place.libraries = cc_place.driver = installed;
        cc_place.ir = cc_format("%s/../%s/gmux-cc-ir", here, CC_LIBEXEC);
    } else
        cc_fail("there is no gmux-device.bc beside %s nor in %s: built without libclc-19?", here,
                installed);
    cc_place.clang = find_clang();
    const char *tmp = getenv("TMPDIR");
    int length = snprintf(cc_place.scratch, sizeof(cc_place.scratch), "%s/gmux-cc.XXXXXX",
                          tmp && strlen(tmp) < 32 ? tmp : "/tmp");
    if (length < 0 || !mkdtemp(cc_place.scratch)) {
        *cc_place.scratch = '\0';
        cc_fail("no temporary folder: %s", strerror(errno));
    }
    (void)atexit(clean_up);
}

/* The path that clang prints in answer to that question. */
const char *cc_clang_place(const char *question)
{
    char line[PATH_MAX];
    FILE *f = popen(cc_format("'%s' %s", cc_place.clang, question), "re");
    if (!f || !fgets(line, sizeof(line), f))
        cc_fail("%s does not run", cc_place.clang);
    (void)pclose(f);
    line[strcspn(line, "\n")] = '\0';
    return cc_format("%s", line);
}
