/*
 * module/: programs for the device. It owns images, modules, libraries, functions, linking, and
 * launches of kernels. It calls memory and what is below that.
 *
 * Modules, libraries and their functions. A module is loaded by the executor; what it holds is told
 * once, at the load, and all later questions (names, parameter layouts, attributes, globals) are
 * answered from that here. A device may load functions as late as they are needed: of such a module
 * nothing is told at the load, and each function or variable is asked for once, by its name
 * (lookup.c).
 *
 * A library is a module without a context; a kernel is a function of one. Both kinds of handle are
 * accepted wherever a function is.
 *
 * From the top down; each file calls only those below it:
 *
 *   launch_old, launch, cluster       launches of kernels
 *   occupancy, attribute              what fits on a multiprocessor; what launches may ask for
 *   renew, api, function              what programs ask; renew: after a primary context has ended
 *   library, link                     libraries on several devices; several images made into one
 *   module                            loading and unloading
 *   managed, heap, find               what a load needs
 *   lookup, link_device               what the device is asked
 *   contents, image, image_file       what stands in modules and images
 *   units, jit_log                    several texts as one; what is said of a load
 */
#ifndef GMUX_CLIENT_MODULE_MODULE_H
#define GMUX_CLIENT_MODULE_MODULE_H

#include "client/stream/context.h"

#define RT_PARAMS_MAX        32764u /* bytes of a kernel's parameters */
#define RT_LAUNCH_ATTRIBUTES 24u    /* of one launch */

struct rt_param {
    uint32_t offset;
    uint32_t size;
};

/* What the load said about a function; constant, lives with its module. */
struct rt_entry {
    const char *name;
    uint32_t index; /* what launches name it by */
    uint32_t param_bytes;
    uint32_t param_count;
    const struct rt_param *params;
    bool padded; /* bytes of the parameters belong to none */
    uint32_t max_threads;
    uint32_t registers;
    uint32_t shared_bytes;
    uint32_t const_bytes;
    uint32_t local_bytes;
    uint32_t ptx_version;
    uint32_t binary_version;
    uint32_t cluster[3];                    /* that it was compiled for; 0: none */
    uint32_t required[3];                   /* the only size of its blocks; 0: any */
    const char *lacks;                      /* why it cannot be launched; NULL: it can */
    _Atomic(struct rt_function *) function; /* made when somebody asks for it */
};

/* How many blocks of a function a multiprocessor holds (occupancy.c). CUresult. */
int rt_occupancy_blocks(struct rt_function *f, uint32_t threads, uint64_t dynamic_bytes,
                        uint32_t *out);

/* The largest block that a multiprocessor has registers for; 0: it does not matter. */
uint32_t rt_occupancy_register_threads(const struct rt_function *f);

/* Asks the device's driver about clusters (w->largest: which question). CUDA_ERROR_NOT_SUPPORTED:
 * there are none. */
struct wire_call_clusters;
int rt_occupancy_clusters(struct rt_function *f, const struct wire_call_clusters *w, int *out);

struct rt_variable {
    const char *name;
    uint64_t address;
    uint64_t size;
    bool managed;
    uint8_t reference; /* enum wire_reference; 0: an ordinary variable */
};

struct rt_module {
    struct rt_object object;
    struct rt_context *context; /* NULL: a library */
    int device;
    uint32_t number;          /* what launches name it by */
    uint64_t globals;         /* where the variables that are listed lie */
    _Atomic bool ended;       /* of a library: with the device's primary context (renew.c) */
    struct rt_entry *entries; /* sorted by name */
    uint32_t entries_count;
    struct rt_variable *variables; /* sorted by name */
    uint32_t variables_count;
    struct rt_param *params; /* of all entries */
    bool managed_apart; /* the device would keep managed variables where this process cannot reach
                           them */
    uint64_t managed;   /* with managed_apart they are here, memory of the server's
                           (module/managed.c); 0: none */
    bool by_name;       /* not listed above but found, one by one: lookup.c's lock */
    struct rt_entry **found; /* at their index */
    uint32_t found_count;
    struct rt_variable **found_variables;
    uint32_t found_variables_count;
    void *info; /* the mapped module_info, where names lie */
    size_t info_size;
    void *library; /* library: its handle; module: NULL */
    /* Of a library that the program may use on other devices, too (library.c's lock, until it
     * ends): the image as it was loaded, and what it is there. */
    int image_fd; /* -1: none */
    size_t image_size;
    uint32_t image_kind;
    struct rt_module **elsewhere; /* by device; NULL: nowhere yet */
};

struct rt_function {
    struct rt_object object;
    struct rt_module *module;
    const struct rt_entry *entry;
    struct rt_context *context;     /* of the module; NULL: any */
    _Atomic uint32_t dynamic_limit; /* CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES */
    _Atomic uint64_t occupancy;     /* occupancy.c: the last question and its answer; 0: none */
    _Atomic uint64_t clusters[4];   /* cluster.c: the last shapes that the device's driver takes */
    _Atomic unsigned clusters_next;
    int carveout;
    int large_clusters, cluster_policy; /* on a device without clusters: what the program said */
    CUfunc_cache cache_config;
    struct rt_old_launch *old_launch; /* launch_old.c's lock; NULL: never used */
    /* by device: the same on others; NULL: nowhere yet */
    _Atomic(_Atomic(struct rt_function *) *) elsewhere;
};

extern struct rt_table rt_modules;   /* CUmodule */
extern struct rt_table rt_libraries; /* CUlibrary: its slots hold struct rt_library */
extern struct rt_table rt_functions; /* CUfunction, CUkernel */

struct rt_library {
    struct rt_object object;
    struct rt_module *module;
    CUmodule handle;
    const void *image; /* the program keeps it; NULL: it need not */
};

/* The log buffers that a program may hand to a load, and what it wants in them. */
struct rt_jit_log {
    char *info, *error;
    uint32_t info_size, error_size;
    void **info_used, **error_used; /* where the sizes come back, as the options' values */
};
/* CUresult. */
int rt_jit_log_options(struct rt_jit_log *log, unsigned count, const CUjit_option *options,
                       void **values);
void rt_jit_log_give(const struct rt_jit_log *log, const char *info, const char *error);

/* heap.c. If the module's kernels call malloc: its context has a heap now, and the module knows
 * where. CUresult. */
int rt_heap_enter(struct rt_module *m);
/* The limit changes. CUDA_ERROR_INVALID_VALUE once a kernel has called malloc. CUresult. */
int rt_heap_resize(struct rt_context *c, uint64_t size);
/* With the context: nothing runs in it. */
void rt_heap_end(struct rt_context *c);

/* Loads an image (PTX text, cubin, fatbin or its wrapper). CUresult. */
int rt_module_load(struct rt_context *c, const void *image, struct rt_jit_log *log,
                   struct rt_module **out);
/* As above, from a file. */
int rt_module_load_file(struct rt_context *c, const char *path, struct rt_jit_log *log,
                        struct rt_module **out);
/* Nothing of it may be running. Handles of the module and its functions end. */
void rt_module_destroy(struct rt_module *m);
void rt_module_destroy_all(struct rt_context *c);
static inline CUmodule rt_module_handle(const struct rt_module *m)
{
    return (CUmodule)rt_object_handle(&rt_modules, &m->object);
}

/* CUresult: CUDA_ERROR_NOT_FOUND, or what the device has to say about a function that it only now
 * looks at. */
int rt_module_find_entry(struct rt_module *m, const char *name, struct rt_entry **out);
int rt_module_find_variable(struct rt_module *m, const char *name, const struct rt_variable **out);
/* As above, for a library's managed variables. */
int rt_module_find_managed(struct rt_module *m, const char *name, const struct rt_variable **out);
/* How many functions there are; the first `capacity` of them in `out`. CUresult. */
int rt_module_list(struct rt_module *m, struct rt_entry **out, uint32_t capacity, uint32_t *count);
/* The one function object of an entry; NULL when out of memory. */
struct rt_function *rt_module_function(struct rt_module *m, struct rt_entry *e);

/* --- libraries on several devices (library.c) ------------------------------------------------- */

/* What a library is on `device`, loaded there if need be; modules are what they are. CUresult. */
int rt_module_on(struct rt_module **m, int device);
int rt_function_elsewhere(struct rt_function **f, int device);
/* As above, of a function of it. */
static inline int rt_function_on(struct rt_function **f, int device)
{
    return GM_LIKELY((*f)->module->device == device || (*f)->context)
               ? CUDA_SUCCESS
               : rt_function_elsewhere(f, device);
}
/* The devices whose streams may use it or its variables: bits. */
uint32_t rt_library_reach(struct rt_module *m);

/* --- libraries and the end of a primary context (renew.c) ------------------------------------- */
void rt_library_context_ends(struct rt_context *c);
void rt_library_context_begins(struct rt_context *c);

/* Loads such an image. CUresult. */
int rt_module_load_fd(int device, int fd, size_t size, uint32_t kind, struct rt_module **out);

/* --- modules that are found by name (lookup.c) ------------------------------------------------ */

int rt_lookup_entry(struct rt_module *m, const char *name, struct rt_entry **out);
int rt_lookup_variable(struct rt_module *m, const char *name, bool managed,
                       const struct rt_variable **out);
int rt_lookup_list(struct rt_module *m, struct rt_entry **out, uint32_t capacity, uint32_t *count);
/* The device's own attributes of a function. CUresult. */
int rt_lookup_get_attribute(const struct rt_function *f, CUfunction_attribute attribute,
                            int *value);
int rt_lookup_set_attribute(const struct rt_function *f, CUfunction_attribute attribute, int value);
/* A managed variable that has its place already: it is found from now on. CUresult. */
int rt_lookup_add_managed(struct rt_module *m, const char *name, uint64_t address, uint64_t size);
/* The module has been loaded anew, under another number: all that was found is found there.
 * CUresult. */
int rt_lookup_again(struct rt_module *m);
/* The module ends: functions, variables, memory. */
void rt_lookup_finish(struct rt_module *m);

static inline struct rt_function *rt_function_find(const void *handle)
{
    return (struct rt_function *)rt_object_find(&rt_functions, handle);
}

/* --- images (image.c) ------------------------------------------------------------------------- */

struct rt_image {
    const void *data;
    size_t size;
    uint32_t kind; /* enum wire_image_kind */
    void *owned;   /* the data, if it is not the program's own */
    char why[256]; /* of a failure, for the program's log; may be empty */
};
/* What the program's pointer points to; images have no length of their own.
 * CUDA_ERROR_INVALID_IMAGE if it is nothing known, CUDA_ERROR_NO_BINARY_FOR_GPU if there is no PTX
 * in a fat binary that could be used. Dropped by the caller after success. */
int rt_image_look(const void *image, struct rt_image *out);
void rt_image_drop(struct rt_image *image);
/* The PTX of a fat binary that is best for this device; `wanted`: enum fb_wanted.
 * CUDA_ERROR_NO_BINARY_FOR_GPU if there is none. */
int rt_image_text(const void *fatbin, unsigned wanted, struct rt_image *out);

/* The architecture of the GPU that images are for, as in sm_90: 90. */
uint32_t rt_image_capability(void);

/* --- images in files (image_file.c) ----------------------------------------------------------- */

/* A file's bytes, with zeros behind them that are not counted: a text gets its end, a short file
 * what is read of it. *data is the caller's to free. CUresult: CUDA_ERROR_FILE_NOT_FOUND,
 * CUDA_ERROR_OUT_OF_MEMORY if it is longer than `limit`. */
int rt_image_read(const char *path, size_t limit, char **data, size_t *size);

/* --- managed variables on a GPU (module/managed.c) -------------------------------------------- */

/* Gives those of the image memory that host and device reach, and their first values; *out is the
 * machine code that has them there. They are found in `m` from now on. CUresult. */
int rt_module_managed_move(struct rt_module *m, const struct rt_image *image, struct rt_image *out);
/* The module has ended. */
void rt_module_managed_finish(struct rt_module *m);

#endif
