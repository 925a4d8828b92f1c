/*
 * The logs of loads and links. They go into buffers that the options name.
 */
#include <string.h>

#include "client/module/module.h"

int rt_jit_log_options(struct rt_jit_log *log, unsigned count, const CUjit_option *options,
                       void **values)
{
    *log = (struct rt_jit_log) { 0 };
    if (count && (!options || !values))
        return CUDA_ERROR_INVALID_VALUE;
    for (unsigned i = 0; i < count; i++) {
        switch (options[i]) {
        case CU_JIT_INFO_LOG_BUFFER:
            log->info = values[i];
            break;
        case CU_JIT_INFO_LOG_BUFFER_SIZE_BYTES:
            log->info_size = (uint32_t)(uintptr_t)values[i];
            log->info_used = &values[i];
            break;
        case CU_JIT_ERROR_LOG_BUFFER:
            log->error = values[i];
            break;
        case CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES:
            log->error_size = (uint32_t)(uintptr_t)values[i];
            log->error_used = &values[i];
            break;
        case CU_JIT_MAX_REGISTERS:
            if (!values[i])
                return CUDA_ERROR_INVALID_VALUE;
            break;
        default: /* other options are for a compiler that this library is not */
            if ((unsigned)options[i] >= CU_JIT_NUM_OPTIONS)
                return CUDA_ERROR_INVALID_VALUE;
            break;
        }
    }
    return CUDA_SUCCESS;
}

static void fill_log(char *buffer, uint32_t size, void **used, const char *text)
{
    size_t n = 0;
    if (buffer && size) {
        n = GM_MIN(strlen(text), (size_t)size - 1);
        memcpy(buffer, text, n);
        buffer[n] = '\0';
    }
    if (used)
        *used = (void *)(uintptr_t)n; /* the option's value becomes the number of bytes written */
}

void rt_jit_log_give(const struct rt_jit_log *log, const char *info, const char *error)
{
    fill_log(log->info, log->info_size, log->info_used, info);
    fill_log(log->error, log->error_size, log->error_used, error);
}
