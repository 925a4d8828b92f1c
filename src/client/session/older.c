/*
 * Looks at the names of the libraries that the process has loaded.
 */
#include "client/session/older.h"

#include <errno.h>
#include <link.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* The name is libcudart.so.11.0, or in some packages, with a checksum,
 * libcudart-d0da41ae.so.11.0. */
static int look_at(struct dl_phdr_info *info, size_t size GM_UNUSED, void *found)
{
    const char *slash = strrchr(info->dlpi_name, '/');
    const char *name = slash ? slash + 1 : info->dlpi_name;
    const char *version = strncmp(name, "libcudart", 9) == 0 ? strstr(name, ".so.") : NULL;
    long major = version ? strtol(version + 4, NULL, 10) : 0;
    *(bool *)found |= major > 0 && major < 12;
    return 0;
}

bool rt_older_loaded(void)
{
    bool found = false;
    (void)dl_iterate_phdr(look_at, &found);
    return found;
}

void rt_older_say(enum rt_older what)
{
    static const char *const words[] = {
        [RT_OLDER_LEFT] =
            "it runs on the driver itself, is not shared, and limits do not apply to it",
        [RT_OLDER_TOO_LATE] = ("it is refused, since it has used the GPU by other means before (it "
                               "runs on the driver "
                               "itself where CUDA_MPS_PIPE_DIRECTORY names no daemon)"),
        [RT_OLDER_REFUSED] = "it is refused, since GMUX_REQUIRE is set",
    };
    static atomic_bool said;
    if (!atomic_exchange(&said, true))
        (void)dprintf(STDERR_FILENO,
                      "gmux: %s uses a CUDA runtime older than 12.0, which cannot be served: %s\n",
                      program_invocation_short_name, words[what]);
}
