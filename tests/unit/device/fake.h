/*
 * Kernels that are plain C functions: the block scheduler and the fault guard are tested with
 * these, without a parser, interpreter or compiler.
 */
#ifndef TEST_UNIT_DEVICE_FAKE_H
#define TEST_UNIT_DEVICE_FAKE_H

#include "device/soft/kernel.h"
#include "rig.h"

typedef enum soft_outcome fake_run(const struct soft_code *code, struct soft_block *b);

enum {
    FAKE_SPIN,    /* u64 ns: takes that long */
    FAKE_ADD,     /* u64 address: adds 1 to a u64 there */
    FAKE_STORE,   /* u64 address: stores the block's number at address + 8 * block */
    FAKE_WILD,    /* u64 address, u64 block: that block writes to the address */
    FAKE_DIVIDE,  /* divides an integer by zero */
    FAKE_ENDLESS, /* u64 address: adds 1 to a u64 there unless it is 0, and never ends */
    FAKE_TRAP,
    FAKE_SHARED, /* u64 address: adds to a u64 there the bytes of shared memory that are not 0, then
                    sets them */
    FAKE_OVERRUN, /* writes 1.5 and 8 MiB below its stack frame, as a function with such a frame may
                   */
    FAKE_CLOCK,   /* u64 address: stores the processor time of this process there */
    FAKE_AWAIT,   /* u64 address: until a u64 there is not 0 */
    FAKE_COUNT,
};

/* A module of all of these. */
struct dev_module *fake_module(struct rig_client *c);
/* The processor time that this process has used. */
uint64_t fake_process_cpu_ns(void);
/* One-dimensional launch with u64 parameters. */
uint64_t fake_launch(struct rig *r, struct rig_client *c, int stream, struct dev_module *m,
                     uint32_t function, uint32_t blocks, uint64_t p0, uint64_t p1);

#endif
