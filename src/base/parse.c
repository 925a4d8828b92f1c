/*
 * Strict parsing, one character after the other. The results do not depend on the locale of the
 * program in which this library lives.
 */
#include "base/parse.h"

#include <ctype.h>
#include <string.h>

bool gm_parse_u64(const char *s, uint64_t max, uint64_t *out)
{
    uint64_t value = 0;
    if (*s == '\0')
        return false;
    for (; *s; s++) {
        if (*s < '0' || *s > '9')
            return false;
        if (__builtin_mul_overflow(value, 10u, &value) ||
            __builtin_add_overflow(value, (uint64_t)(*s - '0'), &value))
            return false;
    }
    if (value > max)
        return false;
    *out = value;
    return true;
}

/* strtod() would depend on the program's locale. */
bool gm_parse_decimal(const char *s, double *out)
{
    double value = 0;
    double scale = 1;
    bool digits = false;
    for (; *s >= '0' && *s <= '9'; s++) {
        value = value * 10 + (*s - '0');
        digits = true;
    }
    if (*s == '.')
        for (s++; *s >= '0' && *s <= '9'; s++) {
            scale /= 10;
            value += scale * (*s - '0');
            digits = true;
        }
    if (*s != '\0' || !digits || value > 1e15)
        return false;
    *out = value;
    return true;
}

bool gm_parse_percentage(const char *s, double *out)
{
    double value;
    if (!gm_parse_decimal(s, &value) || value <= 0 || value > 100)
        return false;
    *out = value;
    return true;
}

bool gm_parse_share(const char *s, double *out)
{
    char number[64];
    size_t n = strcspn(s, "%");
    if (n >= sizeof(number) || (s[n] && s[n + 1]))
        return false;
    memcpy(number, s, n);
    number[n] = '\0';
    return gm_parse_percentage(number, out);
}

bool gm_parse_size(const char *s, uint64_t *out_bytes)
{
    char digits[24];
    size_t n = strspn(s, "0123456789");
    if (n == 0 || n >= sizeof(digits))
        return false;
    memcpy(digits, s, n);
    digits[n] = '\0';

    uint64_t value;
    if (!gm_parse_u64(digits, UINT64_MAX, &value))
        return false;

    unsigned shift;
    switch (toupper((unsigned char)s[n])) {
    case 'K':
        shift = 10;
        break;
    case 'M':
        shift = 20;
        break;
    case 'G':
        shift = 30;
        break;
    default:
        return false;
    }
    const char *rest = s + n + 1;
    if (toupper((unsigned char)*rest) == 'B')
        rest++;
    if (*rest != '\0' || value > (UINT64_MAX >> shift))
        return false;
    *out_bytes = value << shift;
    return true;
}
