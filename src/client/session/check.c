/*
 * Reads from the environment what the checker is to do, and where its report goes. The file
 * client/stream/check.c tells the checker what happens.
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "client/session/session.h"

uint32_t rt_checks;
unsigned rt_check_told;

static uint32_t word_bit(const char *word, size_t length)
{
    static const struct {
        const char *word;
        uint32_t bit;
    } words[] = {
        { "memory", WIRE_CHECK_MEMORY },
        { "race", WIRE_CHECK_RACE },
        { "uninit", WIRE_CHECK_UNINIT },
    };
    for (size_t i = 0; i < GM_ARRAY_LEN(words); i++)
        if (strlen(words[i].word) == length && memcmp(words[i].word, word, length) == 0)
            return words[i].bit;
    return 0;
}

bool rt_check_read(char *why, size_t why_size)
{
    const char *text = secure_getenv("GMUX_CHECK");
    uint32_t checks = 0;
    if (!text || !*text)
        return true;
    for (const char *at = text;;) {
        size_t length = strcspn(at, ",");
        uint32_t bit = word_bit(at, length);
        if (!bit) {
            (void)snprintf(why, why_size,
                           "GMUX_CHECK=%.100s: \"%.*s\" is none of memory, race, uninit", text,
                           (int)GM_MIN(length, (size_t)40), at);
            return false;
        }
        checks |= bit;
        if (at[length] == '\0')
            break;
        at += length + 1;
    }
    rt_checks = checks;
    return true;
}

void rt_check_write(const char *text, size_t size)
{
    const char *name = secure_getenv("GMUX_CHECK_LOG");
    if (!name || !*name) {
        rt_write_out(STDERR_FILENO, text, size);
        return;
    }
    GM_AUTO_FD int fd = open(name, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NOFOLLOW, 0600);
    rt_write_out(fd >= 0 ? fd : STDERR_FILENO, text, size);
}
