/*
 * Finds the kernels and module-scope variables in PTX text without understanding their code: what
 * the null device needs so that programs find their functions with the right parameters. Lenient
 * where the software device's parser is strict.
 */
#ifndef GMUX_DEVICE_NULL_SCAN_H
#define GMUX_DEVICE_NULL_SCAN_H

#include "device/modinfo.h"

/* `text` need not end with a NUL. GM_CUDA_SUCCESS with `out` filled (info.info.data is the caller's
 * to free), GM_CUDA_INVALID_PTX with out->log set if it is not PTX at all, GM_CUDA_OUT_OF_MEMORY.
 */
int dev_null_scan(const char *text, size_t size, struct dev_module_info *out, uint32_t *functions);

#endif
