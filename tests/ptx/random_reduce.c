/*
 * Makes a random kernel smaller that two ways of running it do not agree on: lines that only
 * compute or store values are left out as long as the difference stays. Addresses, branches and
 * barriers stay, so that what is left neither faults nor waits for ever.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "random_ptx.h"

/* What becomes of a line. */
enum { KEPT, TRIED, DROPPED };

struct lines {
    char **at;
    size_t count;
};

static struct lines split(char *text)
{
    struct lines l = { 0 };
    size_t room = 1;
    for (const char *c = text; *c; c++)
        room += *c == '\n';
    l.at = calloc(room, sizeof(*l.at));
    for (char *line = text, *end; l.at && *line; line = end + 1) {
        l.at[l.count++] = line;
        end = strchr(line, '\n');
        if (!end)
            break;
        *end = 0;
    }
    return l;
}

/* NULL: no memory. */
static char *join(const struct lines *l, const uint8_t *without)
{
    char *text = NULL;
    size_t size;
    FILE *out = open_memstream(&text, &size);
    if (!out)
        return NULL;
    for (size_t k = 0; k < l->count; k++)
        if (without[k] == KEPT)
            fprintf(out, "%s\n", l->at[k]);
    fclose(out);
    return text;
}

/* Whether an operand is a register that holds a value (random_maker.h), a list of such, or memory.
 */
static bool holds_value(const char *operand)
{
    static const char *const names[] = { "%rd", "%r", "%fd", "%f", "%h", "%p" };
    if (*operand == '[')
        return true;
    operand += *operand == '{';
    for (size_t k = 0; k < GM_ARRAY_LEN(names); k++) {
        size_t length = strlen(names[k]);
        if (strncmp(operand, names[k], length) == 0 && operand[length] >= '0' &&
            operand[length] <= '9')
            return true;
    }
    return false;
}

/* Whether a line only computes or stores a value. */
static bool is_value(const char *line)
{
    if (*line++ != '\t')
        return false;
    if (*line == '@') /* the guard */
        line = strchr(line, ' ') ? strchr(line, ' ') + 1 : "";
    const char *operand = strchr(line, ' ');
    return operand && strncmp(line, "bra", 3) != 0 && strncmp(line, "bar", 3) != 0 &&
           !strstr(line, ".param") && holds_value(operand + 1);
}

/* Changes the state of values' lines from k to `end`; how many. */
static size_t set_range(const struct lines *l, uint8_t *without, size_t k, size_t end, uint8_t from,
                        uint8_t to)
{
    size_t count = 0;
    for (; k < end; k++)
        if (without[k] == from && is_value(l->at[k])) {
            without[k] = to;
            count++;
        }
    return count;
}

char *random_reduce(const char *text, bool (*differs)(void *arg, const char *text), void *arg)
{
    char *copy = strdup(text), *best = strdup(text);
    struct lines l = split(copy);
    uint8_t *without = calloc(l.count, sizeof(*without));
    size_t first = 0, step = 1;
    for (size_t k = 0; k < l.count; k++)
        if (strncmp(l.at[k], "L_cleared:", 10) == 0) /* the end of the prologue */
            first = k;
    while (step < l.count)
        step *= 2;
    for (; step; step /= 2)
        for (size_t k = first; k < l.count; k += step) {
            size_t end = GM_MIN(l.count, k + step);
            char *less = set_range(&l, without, k, end, KEPT, TRIED) ? join(&l, without) : NULL;
            if (less && differs(arg, less)) {
                free(best);
                best = less;
                set_range(&l, without, k, end, TRIED, DROPPED);
            } else {
                free(less);
                set_range(&l, without, k, end, TRIED, KEPT);
            }
        }
    free(without);
    free(l.at);
    free(copy);
    return best;
}
