/*
 * UUIDs as people write them.
 */
#ifndef GMUX_BASE_UUID_H
#define GMUX_BASE_UUID_H

#include <stdint.h>
#include <stdio.h>

#define GM_UUID_TEXT 37 /* with the NUL */

/* "01234567-89ab-..", the bytes in memory order. */
static inline void gm_uuid_text(char out[GM_UUID_TEXT], const uint8_t uuid[16])
{
    for (int i = 0; i < 16; i++)
        out += sprintf(out, "%s%02x", i == 4 || i == 6 || i == 8 || i == 10 ? "-" : "", uuid[i]);
}

#endif
