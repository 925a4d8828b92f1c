/*
 * Checks the bytes of UTF-8. It does not matter which code points have a meaning.
 */
#include "base/text.h"

#include <string.h>

#include "base/attr.h"

size_t gm_utf8_size(const char *s, size_t left)
{
    unsigned char c = (unsigned char)*s;
    size_t n = c < 0x80                ? 1
               : c >= 0xc2 && c < 0xe0 ? 2
               : (c & 0xf0) == 0xe0    ? 3
               : c >= 0xf0 && c < 0xf5 ? 4
                                       : 0;
    if (left < n)
        return 0;
    for (size_t i = 1; i < n; i++)
        if (((unsigned char)s[i] & 0xc0) != 0x80)
            return 0;
    return n;
}

static bool is_control(const char *s)
{
    const unsigned char c = (unsigned char)*s;
    return c < ' ' || c == 0x7f || (c == 0xc2 && (unsigned char)s[1] < 0xa0);
}

void gm_text_clean(char *s)
{
    for (size_t left = strlen(s); left;) {
        const size_t n = gm_utf8_size(s, left), size = GM_MAX(n, (size_t)1);
        if (n == 0 || is_control(s))
            memset(s, '?', size);
        s += size;
        left -= size;
    }
}
