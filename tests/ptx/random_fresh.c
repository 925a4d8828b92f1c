/*
 * Compilers write PTX nearly in SSA form: a register is set once. The generator's temporaries are
 * set again and again; here each of their definitions gets a register of its own. Without this
 * nothing in a random kernel would be a ramp over the lanes, since registers with several
 * definitions seldom are, and what is compiled for ramps would not be tried.
 */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "random_maker.h"

static const struct {
    const char *name, *type;
} temporaries[] = {
    { "%t0", ".b32" }, { "%t1", ".b32" }, { "%a0", ".b64" }, { "%a1", ".b64" }, { "%q", ".pred" }
};

#define COUNT GM_ARRAY_LEN(temporaries)

/* Which temporary stands at `at`; COUNT: none. */
static size_t temporary(const char *at)
{
    for (size_t k = 0; k < COUNT; k++) {
        size_t n = strlen(temporaries[k].name);
        if (strncmp(at, temporaries[k].name, n) == 0 && !isalnum((unsigned char)at[n]))
            return k;
    }
    return COUNT;
}

static void rename_part(FILE *out, const char *at, const char *end, const unsigned version[COUNT])
{
    while (at < end) {
        size_t k = *at == '%' ? temporary(at) : COUNT;
        if (k == COUNT) {
            fputc(*at++, out);
        } else {
            fprintf(out, "%s_%u", temporaries[k].name, version[k]);
            at += strlen(temporaries[k].name);
        }
    }
}

/* One line: its destination is what stands before the first comma, if it is a temporary; a jump by
 * a table has none. */
static void rename_line(FILE *out, const char *line, const char *end, unsigned version[COUNT])
{
    const char *op = line + strspn(line, " \t");
    if (*op == '@')
        op += strcspn(op, " ") + 1;
    const char *operands = op + strcspn(op, " \n");
    operands += *operands == ' ';
    size_t k = operands < end ? temporary(operands) : COUNT;
    const char *after = operands + (k < COUNT ? strlen(temporaries[k].name) : 0);
    if (k == COUNT || *after != ',' || strncmp(op, "brx", 3) == 0) {
        rename_part(out, line, end, version);
        return;
    }
    unsigned before[COUNT];
    memcpy(before, version, sizeof(before));
    version[k]++;
    rename_part(out, line, operands, before);
    rename_part(out, operands, after, version);
    rename_part(out, after, end, before);
}

char *random_fresh_temporaries(char *text)
{
    char *renamed = NULL;
    size_t size;
    unsigned version[COUNT] = { 0 };
    FILE *out = open_memstream(&renamed, &size);
    char *body = strstr(text, RANDOM_TEMPORARIES);
    if (!out || !body)
        abort();
    for (char *line = body + strlen(RANDOM_TEMPORARIES); *line;) {
        char *end = line + strcspn(line, "\n");
        end += *end == '\n';
        rename_line(out, line, end, version);
        line = end;
    }
    fclose(out);
    char *all = NULL;
    out = open_memstream(&all, &size);
    if (!out)
        abort();
    fwrite(text, 1, (size_t)(body - text), out);
    for (size_t k = 0; k < COUNT; k++)
        fprintf(out, "\t.reg %s %s_<%u>;\n", temporaries[k].type, temporaries[k].name,
                version[k] + 1);
    fputs(renamed, out);
    fclose(out);
    free(renamed);
    free(text);
    return all;
}
