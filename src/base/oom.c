/*
 * Reads, raises and writes oom_score_adj of this process.
 */
#include "base/oom.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/attr.h"
#include "base/cleanup.h"

void gm_oom_offer(int by)
{
    char text[16] = "";
    GM_AUTO_FD int fd = open("/proc/self/oom_score_adj", O_RDWR | O_CLOEXEC);
    if (fd < 0 || pread(fd, text, sizeof(text) - 1, 0) <= 0)
        return;
    const int now = GM_MAX(atoi(text), 0);
    const int size = snprintf(text, sizeof(text), "%d", GM_MIN(now + by, GM_OOM_FIRST));
    if (pwrite(fd, text, (size_t)size, 0) < 0)
        return;
}
