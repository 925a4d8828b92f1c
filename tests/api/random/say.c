/* What a program prints. A line is written out before its call is made, so that a call that does
 * not come back is the last one to be seen. */
#include <stdarg.h>
#include <stdio.h>

#include "random.h"

static unsigned lines;
static bool open;

void random_end_line(void)
{
    if (open)
        putchar('\n');
    open = false;
}

void random_say(const char *format, ...)
{
    va_list args;
    random_end_line();
    printf("%u ", ++lines);
    va_start(args, format);
    vprintf(format, args);
    va_end(args);
    fflush(stdout);
    open = true;
}

void random_put(const char *format, ...)
{
    va_list args;
    va_start(args, format);
    vprintf(format, args);
    va_end(args);
    fflush(stdout);
}

CUresult random_done(CUresult result)
{
    const char *name = NULL;
    if (cuGetErrorName(result, &name) != CUDA_SUCCESS || !name)
        name = "?";
    if (strncmp(name, "CUDA_", 5) == 0)
        name += 5;
    if (strncmp(name, "ERROR_", 6) == 0)
        name += 6;
    printf(" = %s", name);
    return result;
}

void random_out(const char *format, ...)
{
    va_list args;
    printf(", ");
    va_start(args, format);
    vprintf(format, args);
    va_end(args);
}

uint32_t random_hash(const void *data, size_t size)
{
    uint32_t h = 2166136261u;
    for (size_t i = 0; i < size; i++)
        h = (h ^ ((const unsigned char *)data)[i]) * 16777619u;
    return h;
}
