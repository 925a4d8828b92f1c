/*
 * Compares a user's number with the three that are trusted.
 */
#include "transport/trust.h"

#include <pwd.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/parse.h"

static bool is_named(uid_t uid)
{
    const char *name = secure_getenv("GMUX_DAEMON_USER");
    uint64_t number;
    char buffer[4096];
    struct passwd entry, *found = NULL;
    if (!name || !*name)
        return false;
    if (gm_parse_u64(name, UINT32_MAX - 1, &number))
        return uid == (uid_t)number;
    return getpwnam_r(name, &entry, buffer, sizeof(buffer), &found) == 0 && found &&
           found->pw_uid == uid;
}

bool tp_daemon_is_trusted(uid_t uid)
{
    return uid == 0 || uid == geteuid() || is_named(uid);
}
