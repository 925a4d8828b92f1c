/*
 * What the software device and its compiler, gmux-jit, say to each other: one packet each way over
 * a SOCK_SEQPACKET pair, the big parts (PTX text, object) in sealed memfds that travel with the
 * packet.
 *
 * gmux-jit reads hostile text, so its answers are not believed either: the loader checks the
 * object, the client checks these structs.
 */
#ifndef GMUX_SOFT_LOADER_JOB_H
#define GMUX_SOFT_LOADER_JOB_H

#include "base/attr.h"

#define SOFT_JOB_MAGIC      0x6a78756du /* "muxj" */
#define SOFT_JOB_SOCKET     3           /* gmux-jit finds its socket here */
#define SOFT_JOB_NAME_MAX   4096u       /* longest entry name, with its end */
#define SOFT_JOB_TEXT_MAX   (64u << 20) /* PTX text */
#define SOFT_JOB_OBJECT_MAX (64u << 20)
#define SOFT_JOB_REASON_MAX 512u
#define SOFT_FRAME_MAX                                                                             \
    (1u << 20) /* stack of one function; the workers' stacks (exec/worker.h) hold a few */

/* Instruction set to compile for. */
enum soft_isa {
    SOFT_ISA_NATIVE, /* everything this machine's CPU has */
    SOFT_ISA_AVX2,   /* x86-64-v3: for tests and comparisons on a bigger CPU */
    SOFT_ISA_BASE,   /* x86-64-v2, or the base of the architecture */
};

/* What decides the code besides text and entry. Part of the cache key as it is: no padding. */
struct soft_job_options {
    uint32_t ntid[3];     /* code for this block size only; all 0: for any */
    uint32_t isa;         /* enum soft_isa */
    uint32_t large;       /* 0; 1 for tests: compile it as what is too large to be optimised */
    uint32_t frame_bytes; /* no function may need more of the stack; 0: SOFT_FRAME_MAX, and never
                             more than that */
};

/* Request; one descriptor: memfd of text_size bytes. */
struct soft_job_request {
    uint32_t magic;
    uint32_t serial;
    uint64_t text_size;
    struct soft_job_options options;
    char entry[SOFT_JOB_NAME_MAX]; /* ends with 0 */
};

enum soft_job_status {
    SOFT_JOB_OK = 0,          /* one descriptor: memfd of object_size bytes */
    SOFT_JOB_UNSUPPORTED = 1, /* correct PTX that the compiler cannot do; `reason` says what */
    SOFT_JOB_FAILED = 2,      /* anything else */
};

struct soft_job_answer {
    uint32_t magic;
    uint32_t serial;
    uint32_t status; /* enum soft_job_status */
    uint32_t reserved;
    uint64_t object_size;
    char reason[SOFT_JOB_REASON_MAX]; /* one line, ends with 0 */
};

/*
 * What the compiler leaves in the object beside the code: the symbol SOFT_INFO_SYMBOL names a
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
    uint32_t ntid[3];     /* block size it is made for; 0: any */
    uint32_t row;         /* blocks that one call may run; 0: one */
};

#endif
