/*
 * What of the world's PTX the software device can run: reads texts, prints for each kernel that
 * could not be launched why, and for each text that is refused why, and at the end how many there
 * were. With --entries: the kernels that could be, as well, for those who want to hand them to
 * gmux-jit.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "device/soft/interp/interp.h"
#include "device/soft/ir/ir.h"
#include "device/soft/ptx/ptx.h"

struct tally {
    unsigned texts, refused, whole, kernels, lacking;
};

static char *read_text(const char *path, size_t *size)
{
    GM_AUTO_FILE FILE *f = fopen(path, "rb");
    char *text = NULL;
    size_t room = 0;
    *size = 0;
    while (f && *size == room) {
        room = room ? 2 * room : 1 << 16;
        char *grown = realloc(text, room);
        if (!grown)
            break;
        text = grown;
        *size += fread(text + *size, 1, room - *size, f);
    }
    if (!f)
        perror(path);
    return text;
}

static void survey_module(const char *path, const struct ir_module *m, bool entries,
                          struct tally *t)
{
    unsigned lacking = 0;
    for (uint32_t i = 0; i < m->fn_count; i++) {
        const struct ir_fn *fn = &m->fns[i];
        char why[256];
        if (!fn->is_entry)
            continue;
        t->kernels++;
        struct soft_code *code = interp_code_create(m, i, why, sizeof(why));
        if (!code) {
            lacking++;
            printf("lacks\t%s\t%s\t%s\n", path, ir_name(m, fn->name), why);
            continue;
        }
        code->destroy(code);
        if (entries)
            printf("entry\t%s\t%s\n", path, ir_name(m, fn->name));
    }
    t->lacking += lacking;
    t->whole += lacking == 0;
}

static void survey(const char *path, bool entries, struct tally *t)
{
    size_t size;
    GM_AUTO_FREE char *text = read_text(path, &size);
    struct ir_module *m;
    struct ptx_error err;
    if (!text)
        return;
    t->texts++;
    if (ptx_parse(text, size, &m, &err) < 0) {
        t->refused++;
        printf("refused\t%s\t%u:%u: %s\n", path, err.line, err.column, err.text);
        return;
    }
    survey_module(path, m, entries, t);
    ir_module_destroy(m);
}

int main(int argc, char **argv)
{
    struct tally t = { 0 };
    bool entries = argc > 1 && strcmp(argv[1], "--entries") == 0;
    for (int i = 1 + entries; i < argc; i++)
        survey(argv[i], entries, &t);
    printf("%u texts: %u load, of %u all kernels can be launched; %u kernels, %u cannot\n", t.texts,
           t.texts - t.refused, t.whole, t.kernels, t.lacking);
    return t.texts == 0;
}
