/* Logs: what grows is bounded, and what is left out is said. */
#include <criterion/criterion.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "control/logfile.h"

static char directory[] = "/tmp/gmux-log-XXXXXX";
static struct ctl_logfile file = { .directory = -1, .fd = -1, .echo = -1 };

static int place(void)
{
    cr_assert_not_null(mkdtemp(directory));
    int fd = open(directory, O_PATH | O_DIRECTORY | O_CLOEXEC);
    cr_assert_geq(fd, 0);
    return fd;
}

static off_t size_of(int at, const char *name)
{
    struct stat st;
    return fstatat(at, name, &st, AT_SYMLINK_NOFOLLOW) == 0 ? st.st_size : -1;
}

static void remove_place(int at)
{
    unlinkat(at, "control.log", 0);
    unlinkat(at, "control.log.1", 0);
    rmdir(directory);
}

Test(logfile, two_files_are_all_that_can_be_filled)
{
    int at = place();
    cr_assert_eq(ctl_logfile_open(&file, at, "control.log"), 0);
    ctl_logfile_write(&file, "Control", 1, "first");
    const off_t line = size_of(at, "control.log");
    cr_assert_gt(line, 0);
    for (unsigned round = 0; round < 3; round++) {
        /* As if it had grown that far. */
        cr_assert_eq(ftruncate(file.fd, CTL_LOG_MAX - line / 2), 0);
        file.size = CTL_LOG_MAX - (uint64_t)line / 2;
        ctl_logfile_write(&file, "Control", 1, "first");
        cr_assert_eq(size_of(at, "control.log"), line, "round %u", round);
        cr_assert_eq(size_of(at, "control.log.1"), CTL_LOG_MAX - line / 2, "round %u", round);
        cr_assert_eq(file.size, (uint64_t)line);
    }
    ctl_logfile_finish(&file);
    /* What was there counts when it is opened. */
    file = (struct ctl_logfile) { .directory = -1, .fd = -1, .echo = -1 };
    cr_assert_eq(ctl_logfile_open(&file, at, "control.log"), 0);
    cr_assert_eq(file.size, (uint64_t)line);
    ctl_logfile_finish(&file);
    remove_place(at);
}

Test(logfile, what_others_put_at_its_place_is_not_written_to)
{
    int at = place();
    char target[128];
    snprintf(target, sizeof(target), "%s/target", directory);
    cr_assert_eq(close(open(target, O_CREAT | O_WRONLY | O_CLOEXEC, 0600)), 0);
    cr_assert_eq(symlinkat(target, at, "control.log"), 0);
    cr_assert_lt(ctl_logfile_open(&file, at, "control.log"), 0);
    cr_assert_eq(unlinkat(at, "control.log", 0), 0);
    cr_assert_eq(linkat(at, "target", at, "control.log", 0), 0);
    cr_assert_lt(ctl_logfile_open(&file, at, "control.log"), 0);
    cr_assert_eq(size_of(at, "target"), 0);
    unlink(target);
    remove_place(at);
}

/* A flood of 100,000 lines within a second: the burst, a rate, and a line that says how many were
 * left out. */
Test(ration, a_burst_then_a_rate)
{
    struct ctl_ration r;
    uint64_t now = GM_NS_PER_S, told = 0;
    unsigned written = 0, left_out;
    ctl_ration_init(&r, 1000, 50);
    for (unsigned i = 0; i < 100000; i++, now += GM_NS_PER_S / 100000) {
        written += ctl_ration_take(&r, now, 0, &left_out);
        told += left_out;
    }
    cr_assert(written >= 1000 && written <= 1060, "%u", written);
    now += 2 * GM_NS_PER_S;
    cr_assert(ctl_ration_take(&r, now, 0, &left_out));
    cr_assert_eq(told + left_out, 100000 - written);
    cr_assert_not(ctl_ration_is_whole(&r, now));
    cr_assert(ctl_ration_is_whole(&r, now + 30 * GM_NS_PER_S));
}

Test(ration, a_reserve_is_for_other_lines)
{
    struct ctl_ration r;
    unsigned written = 0, left_out;
    ctl_ration_init(&r, 100, 1);
    while (ctl_ration_take(&r, GM_NS_PER_S, 50, &left_out))
        written++;
    cr_assert_eq(written, 50);
    cr_assert(ctl_ration_take(&r, GM_NS_PER_S, 0, &left_out));
}
