#include "heavy.h"

#include <stdio.h>
#include <stdlib.h>

char *heavy_text(const char *directives, int values)
{
    char *text = NULL;
    size_t size = 0;
    FILE *f = open_memstream(&text, &size);
    if (!f)
        abort();
    fprintf(f,
            ".version 6.0\n.target sm_50\n.address_size 64\n.visible .entry heavy(.param .u64 p)\n"
            "%s{\n.reg .u64 %%a;\n.reg .u32 %%r<%d>;\nld.param.u64 %%a, [p];\n",
            directives, values);
    for (int i = 0; i < values; i++)
        fprintf(f, "ld.volatile.global.u32 %%r%d, [%%a];\n", i);
    for (int i = values; i > 0; i--)
        fprintf(f, "st.volatile.global.u32 [%%a], %%r%d;\n", i - 1);
    fputs("ret;\n}\n", f);
    if (fclose(f) != 0)
        abort();
    return text;
}
