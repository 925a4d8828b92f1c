/*
 * module/: programs for the device. This folder owns images, modules, libraries, functions,
 * linking, and launches of kernels. It calls memory and what is below that.
 *
 * The executor loads a module, and describes its contents once, at the load; all later questions
 * (names, parameter layouts, attributes, variables) are answered here. A device may load functions
 * only when they are needed. Then nothing is described at the load, and each function or variable
 * is asked for once, by its name (lookup.c).
 *
 * A library is a module without a context; a kernel is a function of one. Both kinds of handle are
 * accepted wherever a function is.
 *
 * From the top down; each file calls only those below it:
 *
 *   launch_old, launch, cluster       launches of kernels
 *   occupancy, attribute              what fits on a multiprocessor; attributes of launches
 *   renew, api, function              what programs ask; renew: after a primary context has ended
 *   library, link                     libraries on several devices; several images made into one
 *   module                            loading and unloading
 *   managed, heap, find               what a load needs
 *   lookup, link_device               what the device is asked
 *   contents, image, image_file       the contents of modules and images
 *   units, jit_log                    several texts as one; the log of a load
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

/* A function as the load described it. Constant; lives as long as its module. */
struct rt_entry {
    const char *name;
    uint32_t index; /* launches name the function by it */
    uint32_t param_bytes;
    uint32_t param_count;
    const struct rt_param *params;
    bool padded; /* some bytes of the parameters belong to no parameter */
    uint32_t max_threads;
    uint32_t registers;
    uint32_t shared_bytes;
    uint32_t const_bytes;
    uint32_t local_bytes;
    uint32_t ptx_version;
    uint32_t binary_version;
    uint32_t cluster[3];                    /* the cluster size that it was compiled for; 0: none */
    uint32_t required[3];                   /* the only block size that it accepts; 0: any */
    const char *lacks;                      /* why it cannot be launched; NULL: it can */
    _Atomic(struct rt_function *) function; /* made when it is first asked for */
};

/* How many blocks of a function a multiprocessor holds (occupancy.c). CUresult. */
int rt_occupancy_blocks(struct rt_function *f, uint32_t threads, uint64_t dynamic_bytes,
                        uint32_t *out);

/* The largest block for which a multiprocessor has registers; 0: registers do not limit it. */
uint32_t rt_occupancy_register_threads(const struct rt_function *f);

/* Asks the device's driver about clusters (w->largest says which question).
 * CUDA_ERROR_NOT_SUPPORTED: it has none. */
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
    uint32_t number;  /* launches name the module by it */
    uint64_t globals; /* the address of the variables listed below */
    /* for a library: it ended with the device's primary context (renew.c) */
    _Atomic bool ended;
    struct rt_entry *entries; /* sorted by name */
    uint32_t entries_count;
    struct rt_variable *variables; /* sorted by name */
    uint32_t variables_count;
    struct rt_param *params; /* of all entries */
    /* The device would keep managed variables where this process cannot reach them. */
    bool managed_apart;
    /* With managed_apart: the server's memory that has the managed variables (managed.c); 0:
     * none. */
    uint64_t managed;
    /* the contents are not listed above but found one by one; lookup.c's lock */
    bool by_name;
    struct rt_entry **found; /* by their index */
    uint32_t found_count;
    struct rt_variable **found_variables;
    uint32_t found_variables_count;
    void *info; /* the mapped module_info, which contains the names */
    size_t info_size;
    void *library; /* for a library its handle; for a module NULL */
    /* For a library that the program may use on other devices, too (library.c's lock, until it
     * ends): the image as it was loaded, and the modules that it is there. */
    int image_fd; /* -1: none */
    size_t image_size;
    uint32_t image_kind;
    struct rt_module **elsewhere; /* by device; NULL: on no other device yet */
};

struct rt_function {
    struct rt_object object;
    struct rt_module *module;
    const struct rt_entry *entry;
    struct rt_context *context;     /* the module's; NULL: any */
    _Atomic uint32_t dynamic_limit; /* CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES */
    _Atomic uint64_t occupancy;     /* occupancy.c: the last question with its answer; 0: none */
    /* cluster.c: the last shapes that the device's driver has accepted */
    _Atomic uint64_t clusters[4];
    _Atomic unsigned clusters_next;
    int carveout;
    int large_clusters, cluster_policy; /* on a device without clusters: what the program has set */
    CUfunc_cache cache_config;
    struct rt_old_launch *old_launch; /* launch_old.c's lock; NULL: never used */
    /* by device: the same function there; NULL: on no other device yet */
    _Atomic(_Atomic(struct rt_function *) *) elsewhere;
};

extern struct rt_table rt_modules;   /* CUmodule */
extern struct rt_table rt_libraries; /* CUlibrary: its slots hold struct rt_library */
extern struct rt_table rt_functions; /* CUfunction, CUkernel */

struct rt_library {
    struct rt_object object;
    struct rt_module *module;
    CUmodule handle;
    const void *image; /* set if the program keeps the image; else NULL */
};

/* The log buffers that a program may pass to a load, and what it wants in them. */
struct rt_jit_log {
    char *info, *error;
    uint32_t info_size, error_size;
    void **info_used, **error_used; /* where the sizes are returned, as values of the options */
};
/* CUresult. */
int rt_jit_log_options(struct rt_jit_log *log, unsigned count, const CUjit_option *options,
                       void **values);
void rt_jit_log_give(const struct rt_jit_log *log, const char *info, const char *error);

/* heap.c. If the module's kernels call malloc: makes sure that its context has a heap, and tells
 * the module where it is. CUresult. */
int rt_heap_enter(struct rt_module *m);
/* Changes the heap's limit. CUDA_ERROR_INVALID_VALUE: a kernel has already called malloc.
 * CUresult. */
int rt_heap_resize(struct rt_context *c, uint64_t size);
/* The context ends, and nothing runs in it: frees its heap. */
void rt_heap_end(struct rt_context *c);

/* Loads an image (PTX text, cubin, fatbin or its wrapper). CUresult. */
int rt_module_load(struct rt_context *c, const void *image, struct rt_jit_log *log,
                   struct rt_module **out);
/* Loads an image from a file. */
int rt_module_load_file(struct rt_context *c, const char *path, struct rt_jit_log *log,
                        struct rt_module **out);
/* Unloads a module of which nothing runs. The handles of the module and of its functions end. */
void rt_module_destroy(struct rt_module *m);
void rt_module_destroy_all(struct rt_context *c);
static inline CUmodule rt_module_handle(const struct rt_module *m)
{
    return (CUmodule)rt_object_handle(&rt_modules, &m->object);
}

/* Finds a function. CUresult: CUDA_ERROR_NOT_FOUND, or the device's error for a function that it
 * loads only now. */
int rt_module_find_entry(struct rt_module *m, const char *name, struct rt_entry **out);
int rt_module_find_variable(struct rt_module *m, const char *name, const struct rt_variable **out);
/* Finds a managed variable of a library; results as in rt_module_find_entry(). */
int rt_module_find_managed(struct rt_module *m, const char *name, const struct rt_variable **out);
/* The number of functions in *count, and the first `capacity` of them in `out`. CUresult. */
int rt_module_list(struct rt_module *m, struct rt_entry **out, uint32_t capacity, uint32_t *count);
/* The function object of an entry, of which there is one; NULL: no memory. */
struct rt_function *rt_module_function(struct rt_module *m, struct rt_entry *e);

/* --- libraries on several devices (library.c) ------------------------------------------------- */

/* Replaces *m by the same library's module on `device`, and loads it there if that is necessary.
 * Other modules stay as they are. CUresult. */
int rt_module_on(struct rt_module **m, int device);
int rt_function_elsewhere(struct rt_function **f, int device);
/* Replaces *f by the same function on `device`, like rt_module_on(). */
static inline int rt_function_on(struct rt_function **f, int device)
{
    return GM_LIKELY((*f)->module->device == device || (*f)->context)
               ? CUDA_SUCCESS
               : rt_function_elsewhere(f, device);
}
/* The devices whose streams may use the library or its variables, one bit each. */
uint32_t rt_library_reach(struct rt_module *m);

/* --- libraries and the end of a primary context (renew.c) ------------------------------------- */
void rt_library_context_ends(struct rt_context *c);
void rt_library_context_begins(struct rt_context *c);

/* Loads an image that is in a descriptor. CUresult. */
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
/* Adds a managed variable that has its address already: from now on it is found. CUresult. */
int rt_lookup_add_managed(struct rt_module *m, const char *name, uint64_t address, uint64_t size);
/* The module has been loaded again under another number: finds everything there that was found
 * before. CUresult. */
int rt_lookup_again(struct rt_module *m);
/* The module ends: frees functions, variables and memory. */
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
    char why[256]; /* the reason of a failure, for the program's log; may be empty */
};
/* Finds out what the program's pointer points to; images have no length of their own.
 * CUDA_ERROR_INVALID_IMAGE: it is nothing known; CUDA_ERROR_NO_BINARY_FOR_GPU: a fat binary has no
 * PTX that could be used. After success the caller drops the image. */
int rt_image_look(const void *image, struct rt_image *out);
void rt_image_drop(struct rt_image *image);
/* The PTX of a fat binary that is best for this device; `wanted`: enum fb_wanted.
 * CUDA_ERROR_NO_BINARY_FOR_GPU: there is none. */
int rt_image_text(const void *fatbin, unsigned wanted, struct rt_image *out);

/* The architecture of the GPU that images are for: 90 for sm_90. */
uint32_t rt_image_capability(void);

/* --- images in files (image_file.c) ----------------------------------------------------------- */

/* Reads a file. Zeros follow its bytes, and are not counted: so a text has an end, and a short file
 * can be read beyond it. The caller frees *data. CUresult: CUDA_ERROR_FILE_NOT_FOUND;
 * CUDA_ERROR_OUT_OF_MEMORY also if the file is longer than `limit`. */
int rt_image_read(const char *path, size_t limit, char **data, size_t *size);

/* --- managed variables on a GPU (module/managed.c) -------------------------------------------- */

/* Gives the managed variables of the image memory that host and device reach, with their initial
 * values. *out is the machine code that uses it. From now on the variables are found in `m`.
 * CUresult. */
int rt_module_managed_move(struct rt_module *m, const struct rt_image *image, struct rt_image *out);
/* The module has ended: frees that memory. */
void rt_module_managed_finish(struct rt_module *m);

#endif
