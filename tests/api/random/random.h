/*
 * Random programs of driver calls, each of which prints what it calls and what is answered. A
 * program is a function of its seed, so the outputs of one seed on two drivers are compared line by
 * line.
 *
 * Each call is made by a generator, which draws its arguments, says the call in symbols (handles by
 * the number of their slot), makes it, and prints what must be the same everywhere. What call
 * number n draws depends on the seed and on n alone, and a slot is picked by its number, so that
 * after a difference the rest of a program stays comparable.
 *
 * No answer may depend on time. Work that has been started in one stream is waited for before a
 * call that uses another one (random_use); what is not done for certain is never asked for.
 */
#ifndef GMUX_TESTS_API_RANDOM_RANDOM_H
#define GMUX_TESTS_API_RANDOM_RANDOM_H

#include <cuda.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

enum random_kind {
    CONTEXT,
    STREAM,
    EVENT,
    BUFFER, /* memory of the device, or managed */
    HOST,   /* pinned memory */
    MODULE,
    FUNCTION,
    ARENA, /* memory that graphs use, which nobody frees */
    GRAPH,
    NODE,
    EXEC,
    OBJECT, /* a user object */
    POOL,
    ARRAY,
    MIPMAP,
    TEXTURE, /* or a surface */
    LIBRARY,
    KERNEL,
    RANGE,    /* reserved addresses */
    PHYSICAL, /* memory to be mapped there */
    LINKER,
    KINDS
};

#define SLOTS 8

/* A slot is empty where the handle is 0. */
struct random_object {
    uint64_t handle;
    size_t size;
    int owner;     /* the slot of the context with which it ends; -1: none */
    int how;       /* of buffers and pinned memory: the generator's affair */
    unsigned mark; /* ... of the other kinds, too */
};

struct random_generator {
    const char *name;
    void (*make)(void);
    unsigned weight;
};

/* A subject's generators. A program has a few subjects that it is mostly about. */
struct random_subject {
    const char *name;
    const struct random_generator *generators;
    size_t count;
    void (*begin)(void); /* makes what the calls of a program about this need; may be NULL */
};

extern const struct random_subject random_contexts, random_streams, random_events, random_memory,
    random_copies, random_modules, random_launches, random_graph_subject, random_captures,
    random_pools, random_virtual, random_libraries, random_arrays, random_textures, random_batches,
    random_misc;

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))
#define SUBJECT(table, begin)                                                                      \
    {                                                                                              \
#table, table, COUNT(table), begin                                                         \
    }
#define GENERATOR(function, weight)                                                                \
    {                                                                                              \
#function, function, weight                                                                \
    }

extern bool random_dead; /* --dead: handles of what was destroyed are passed, too */

/* What a program begins with, how it finds a context again, and a fault, as its last part. */
void random_context_begin(void);
void random_context_again(void);
void random_memory_begin(void);
void random_module_begin(void);
void random_fault(void);

/* A kernel for a node of a graph, which writes up to 128 bytes; its name, or NULL if the current
 * context has none. */
const char *random_node_kernel(CUDA_KERNEL_NODE_PARAMS *params, CUdeviceptr out);
/* A part of 128 bytes of the current context's arena, which no other node writes; 0: there is none.
 */
CUdeviceptr random_region(unsigned *number);
void random_look_arena(void);
/* Generators of nodes, in node.c. */
void random_add_node(void);
void random_set_params(void);
void random_get_params(void);
/* Whether the result is the same without an edge. */
bool random_edge_may_go(int from, int to);
/* Makes some arrays. */
void random_begin_arrays(void);
/* What counts how often the host was called. */
void CUDA_CB random_count(void *by);
int *random_step(void);
/* The graphs that were made may have what an end takes with it: no event, module or buffer of
 * theirs is destroyed. */
bool random_graphs(void);
/* Keeps a graph and its nodes. */
void random_keep_graph(int slot, CUgraph graph);

/* The kernels that programs use, by name. */
extern const char *const random_kernels[];
extern const char tap_ptx[];

/* Draws, in draw.c. */
void random_seed(uint64_t seed, uint64_t number);
unsigned random_below(unsigned n);
bool random_chance(unsigned in); /* true once in so many times */
/* One of a list of values. */
#define ONE_OF(type, ...)                                                                          \
    (((const type[]) {                                                                             \
        __VA_ARGS__ })[random_below((unsigned)COUNT(((const type[]) { __VA_ARGS__ })))])

/* Objects, in object.c. A slot of -1 stands for no handle, which is passed as NULL. */
struct random_object *random_at(enum random_kind kind, int slot);
uint64_t random_handle(enum random_kind kind, int slot);
#define HANDLE(type, kind, slot) ((type)(uintptr_t)random_handle(kind, slot))
int random_pick(enum random_kind kind);         /* a full slot, or -1 if there is none */
int random_pick_or_null(enum random_kind kind); /* ... or -1 now and then */
int random_pick_owned(enum random_kind kind);   /* one of the current context, or -1 */
int random_free_slot(enum random_kind kind);    /* an empty slot; the first one if all are full */
const char *random_name(enum random_kind kind, int slot);
/* Keeps a handle in a slot; what was there is left alone for good. */
void random_keep(enum random_kind kind, int slot, uint64_t handle, size_t size);
void random_drop(enum random_kind kind, int slot);
/* Drops those of a kind that belong to a slot of another one. */
void random_drop_of(enum random_kind kind, int how);
/* Drops what ends with a context, and what may refer to that. */
void random_drop_context(int slot);
/* The slot of the current context, -1 if there is none, or none of ours. */
int random_current(void);
/* The slot whose object has a handle; -1 if none has. */
int random_find(enum random_kind kind, uint64_t handle);

/* Streams have three more, which are always there: below -1. */
#define STREAM_LEGACY     (-2)
#define STREAM_PER_THREAD (-3)
CUstream random_stream(int slot);
int random_pick_stream(void);
/* Waits for the work in all other streams, if there is some. */
void random_use(int stream);
/* Says that a stream has work now, unless it records. */
void random_used(int stream);
/* Says that a context has work in a stream without a slot. */
void random_used_context(int slot);
/* Waits for all work. False if the driver refuses it, because a stream records. */
bool random_settle(void);
/* Whether any stream records, or answers an error. */
bool random_capturing(void);
/* Whether a stream has work that is not known to be done. */
bool random_busy(int stream);

/* What is printed, in say.c. A call's text comes before the call, its result after it, then values
 * that it gave. */
void random_say(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* Goes on with a call's text. */
void random_put(const char *format, ...) __attribute__((format(printf, 1, 2)));
CUresult random_done(CUresult result);
void random_out(const char *format, ...) __attribute__((format(printf, 1, 2)));
void random_end_line(void);
uint32_t random_hash(const void *data, size_t size);

/* Memory that is not pinned: what is copied from, and what is copied to. */
#define PAGEABLE (256u << 10)
extern unsigned char random_source[PAGEABLE], random_sink[PAGEABLE];
/* Keeps memory that was allocated in a stream's order, in which it is made known. */
void random_keep_pooled(int slot, CUdeviceptr p, size_t size, int stream);
/* A buffer of at least so many bytes; -1 if there is none. */
int random_buffer(size_t size);
/* Prints a hash of all that can be seen: buffers, pinned memory, the sink. */
void random_look(void);
/* A size of up to `most`, or now and then one of the edges around it. */
size_t random_size(size_t most);

#endif
