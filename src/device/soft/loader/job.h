/*
 * What the software device and its compiler, gmux-jit, send each other: one packet each way over a
 * SOCK_SEQPACKET pair. PTX text and object travel with the packets, in sealed memfds.
 *
 * gmux-jit reads hostile text, so its answers are not believed: the loader checks the object, the
 * helper's user checks these structs.
 */
#ifndef GMUX_SOFT_LOADER_JOB_H
#define GMUX_SOFT_LOADER_JOB_H

#include "base/attr.h"

#define SOFT_JOB_MAGIC      0x6a78756du /* "muxj" */
#define SOFT_JOB_SOCKET     3           /* the descriptor at which gmux-jit finds its socket */
#define SOFT_JOB_NAME_MAX   4096u       /* longest entry name, including its final 0 */
#define SOFT_JOB_TEXT_MAX   (64u << 20) /* PTX text */
#define SOFT_JOB_OBJECT_MAX (64u << 20)
#define SOFT_JOB_REASON_MAX 512u
/* Stack of one function; a worker's stack (exec/worker.h) holds several. */
#define SOFT_FRAME_MAX (1u << 20)

/* Instruction sets to compile for. */
enum soft_isa {
    SOFT_ISA_NATIVE, /* everything this machine's CPU has */
    SOFT_ISA_AVX2,   /* x86-64-v3: for tests and comparisons on a CPU that has more */
    SOFT_ISA_BASE,   /* x86-64-v2, or the base of the architecture */
};

/* What decides the code besides text and entry. It is part of the cache key as bytes, so it has no
 * padding. */
struct soft_job_options {
    uint32_t ntid[3]; /* code for this block size only; all 0: for any */
    uint32_t isa;     /* enum soft_isa */
    /* for tests: 1 compiles it like a kernel that is too large to be optimised; else 0 */
    uint8_t large;
    /* for tests: 1 has blocks share their tests for lanes that wait, as in kernels with many ways
     * between blocks; else 0 */
    uint8_t chains;
    /* for tests: 16 or 8 lanes to a warp, as long kernels have; else 0 */
    uint16_t lanes;
    /* No function may need more of the stack than this; 0, or more than it: SOFT_FRAME_MAX. */
    uint32_t frame_bytes;
};

/* The request. Its descriptor is a memfd of text_size bytes. */
struct soft_job_request {
    uint32_t magic;
    uint32_t serial;
    uint64_t text_size;
    struct soft_job_options options;
    char entry[SOFT_JOB_NAME_MAX]; /* ends with a 0 */
};

enum soft_job_status {
    SOFT_JOB_OK = 0, /* one descriptor: memfd of object_size bytes */
    /* correct PTX that the compiler cannot translate; `reason` says why */
    SOFT_JOB_UNSUPPORTED = 1,
    SOFT_JOB_FAILED = 2, /* anything else */
};

struct soft_job_answer {
    uint32_t magic;
    uint32_t serial;
    uint32_t status; /* enum soft_job_status */
    uint32_t reserved;
    uint64_t object_size;
    char reason[SOFT_JOB_REASON_MAX]; /* one line, ends with a 0 */
};

/*
 * What the compiler puts into the object beside the code. The symbol SOFT_INFO_SYMBOL names a
 * read-only struct soft_object_info, SOFT_ENTRY_SYMBOL a function with the signature of
 * soft_code.run_block.
 */
#define SOFT_INFO_SYMBOL  "soft_info"
#define SOFT_ENTRY_SYMBOL "soft_run_block"
struct soft_object_info {
    uint32_t magic;       /* SOFT_JOB_MAGIC */
    uint32_t abi;         /* SOFT_ABI_VERSION */
    uint32_t save_bytes;  /* per warp */
    uint32_t local_bytes; /* per thread */
    uint32_t ntid[3];     /* the block size that it is made for; 0: any */
    uint32_t row;         /* how many blocks one call may run; 0: one */
};

#endif
