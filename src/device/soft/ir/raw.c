/*
 * Storage of raw functions, and the first error that stops a module.
 */
#include "device/soft/ir/raw.h"

#include <stdarg.h>
#include <stdio.h>

bool ir_refuse(struct ir_problem *why, int error, uint32_t line, uint32_t column, const char *fmt,
               ...)
{
    if (why->error)
        return false;
    why->error = error;
    why->line = line;
    why->column = column;
    va_list args;
    va_start(args, fmt);
    vsnprintf(why->text, sizeof(why->text), fmt, args);
    va_end(args);
    return false;
}

bool ir_grow_(void **array, uint32_t *cap, uint32_t count, size_t size)
{
    uint32_t wanted = count < 8 ? 16 : count > UINT32_MAX / 2 ? UINT32_MAX : count * 2;
    size_t bytes;
    if (wanted <= count || __builtin_mul_overflow((size_t)wanted, size, &bytes))
        return false;
    void *grown = realloc(*array, bytes);
    if (!grown)
        return false;
    memset((char *)grown + (size_t)*cap * size, 0, bytes - (size_t)*cap * size);
    *array = grown;
    *cap = wanted;
    return true;
}

void ir_raw_finish(struct ir_raw_fn *raw)
{
    free(raw->instrs);
    free(raw->regs);
    free(raw->labels);
    free(raw->lists);
    free(raw->targets);
    free(raw->temps);
    free(raw->calls);
    free(raw->args);
    free(raw->prototypes);
    free(raw->formals);
}
