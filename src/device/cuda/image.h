/*
 * Images as clients send them, made into what the genuine driver takes. The driver gets a pointer
 * without a size and trusts what it reads, so this checks first that it will stay within the image.
 */
#ifndef GMUX_DEVICE_CUDA_IMAGE_H
#define GMUX_DEVICE_CUDA_IMAGE_H

#include "fatbin/fatbin.h"
#include "fatbin/move.h"

struct cuda_image {
    const void *data; /* for cuLibraryLoadData, as long as the image's bytes live */
    /* What it consists of; private. */
    struct fb_wrapper wrapper;
    const void **list;
    char *text;
};

/* `kind` is an enum wire_image_kind. CUresult: CUDA_ERROR_INVALID_IMAGE if the bytes are not of
 * that kind or contradict each other. The object must not be moved until it is closed. */
GM_MUST_CHECK int cuda_image_open(struct cuda_image *i, const void *bytes, size_t size,
                                  uint32_t kind);
/* True if a GPU of architecture `sm` uses machine code of this image, and not PTX: it is a cubin,
 * or a fat binary with one. The image has been opened before. */
bool cuda_image_has_cubin(const void *bytes, size_t size, uint32_t kind, uint32_t sm);
/* After a failed open, too. */
void cuda_image_close(struct cuda_image *i);

/* The code that a GPU takes of an image. */
struct cuda_code {
    const void *bytes;
    size_t size;
    bool is_ptx;
    size_t text_size; /* of PTX, without the padding that it has in a fat binary */
    void *unpacked;   /* owned; NULL: it stands in the image as it is */
};

/* Finds the code for a GPU of architecture `sm` (such as 90) in an image that has been opened and
 * is not a list. 1; 0: there is none for this GPU; negative: the image cannot be looked into. To be
 * closed in any case. */
GM_MUST_CHECK int cuda_code_open(struct cuda_code *c, const void *bytes, size_t size, uint32_t kind,
                                 uint32_t sm);
/* Copies the code into `unpacked`, unless it is there already. False: no memory. */
GM_MUST_CHECK bool cuda_code_own(struct cuda_code *c);
void cuda_code_close(struct cuda_code *c);

/* What is known about the code that a GPU takes of an image; all are true if it cannot be looked
 * into.
 */
struct cuda_image_traits {
    bool prints;       /* may call vprintf (output.h) */
    bool asserts;      /* may call __assertfail (complaint.h) */
    bool allocates;    /* may call malloc (capacity.h) */
    bool keeps_values; /* has variables that are not its compiler's: the library is one program's */
    bool loses_values; /* kernels may write to some of them: that is lost with the executor */
    bool has_managed;  /* some of them are managed: only this process would reach them */
};

/* Code some of whose variables can be moved. */
struct cuda_movable {
    struct cuda_code code; /* PTX: what can be moved, is known when it is compiled */
    struct fb_cubin cubin; /* over the code */
    struct fb_move_list list;
};

/* Takes the machine code made of a text that has variables. If there is no code (zeroes), or if
 * none of its variables can be moved, the movable is closed. False: the code has no variable in
 * which kernels may leave something. */
bool cuda_movable_compiled(struct cuda_movable *m, struct cuda_code *made);
/* May be all zeroes. */
void cuda_movable_close(struct cuda_movable *m);

/* For a GPU of architecture `sm` (90 ..). An image that was opened. `*m` is to be closed: the code
 * that was looked into, if it loses values that can be moved and it is known which, or if it is
 * PTX. */
void cuda_image_look(const void *bytes, size_t size, uint32_t kind, uint32_t sm,
                     struct cuda_image_traits *t, struct cuda_movable *m);

#endif
