/*
 * Finds PTX text in what a program hands over as a module: plain text, or a fat binary that carries text uncompressed.
 */
#ifndef GMUX_SOFT_IMAGE_H
#define GMUX_SOFT_IMAGE_H

#include "base/attr.h"

struct soft_text {
    const char *data; /* inside the image; not terminated */
    size_t size;
};

/* `kind` is what the sender thinks it is. GM_CUDA_SUCCESS; GM_CUDA_NO_BINARY_FOR_GPU or GM_CUDA_INVALID_IMAGE with the reason, one
 * line, in `why`. The image is hostile. */
GM_MUST_CHECK int soft_image_text(const void *image, size_t size, uint32_t kind, struct soft_text *out, char *why,
                                  size_t why_size);

#endif
