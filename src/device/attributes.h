/*
 * What the null and soft devices say of themselves: one table of CUDA attribute values for both, so
 * that a program meets the same device whether it computes or not.
 */
#ifndef GMUX_DEVICE_ATTRIBUTES_H
#define GMUX_DEVICE_ATTRIBUTES_H

#include "device/device.h"

/* Limits that launches are checked against; they are also what the attributes say. */
#define DEV_BLOCK_THREADS             1024u
#define DEV_BLOCKS_PER_MULTIPROCESSOR 16u
#define DEV_ATTR_COOPERATIVE_LAUNCH   95u /* of CU_DEVICE_ATTRIBUTE_* */
#define DEV_BLOCK_XY                  1024u
#define DEV_BLOCK_Z                   64u
#define DEV_GRID_X                    0x7fffffffu
#define DEV_GRID_YZ                   65535u
#define DEV_SHARED_BYTES              (48u << 10) /* without asking */
/* with CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES */
#define DEV_SHARED_OPTIN_BYTES (96u << 10)
#define DEV_PARAM_BYTES        4096u
#define DEV_CAPABILITY         75u /* 7.5: no PTX feature of a later target is promised */

/* Fills everything but completes_always for the device with this number of so many, all made of
 * this machine's processors and memory. */
void dev_info_describe(struct dev_info *info, const char *name, uint32_t multiprocessors,
                       uint32_t device, uint32_t devices);

/* How many devices the null and the soft back end have: GMUX_SOFT_DEVICES, or one. They share the
 * worker threads. */
uint32_t dev_device_count(void);
/* Which of them the control daemon leaves to this server (GMUX_VISIBLE_DEVICES, as
 * CUDA_VISIBLE_DEVICES has them, in its order): how many. */
uint32_t dev_device_numbers(const char *name, uint32_t numbers[DEV_DEVICES]);

/* Worker threads of the soft device, one multiprocessor each: GMUX_SOFT_WORKERS, or the processors
 * this process may run on. */
uint32_t dev_worker_count(void);

#endif
