#include "device/soft/image.h"

#include <stdio.h>
#include <string.h>

#include "device/attributes.h"

#define FATBIN_MAGIC      0xba55ed50u
#define FATBIN_PTX        1u
#define FATBIN_COMPRESSED 0xa000u /* LZ4, zstd */
#define ENTRIES_MOST      4096u

/* Little-endian fields of a fat binary's entry, by offset; its header is at least this long. */
struct entry {
    uint16_t kind;
    uint16_t version;
    uint32_t header_size;
    uint64_t payload_size;
    uint32_t compressed_size;
    uint32_t options;
    uint16_t minor, major;
    uint32_t target;
    uint32_t name, name_size;
    uint64_t flags;
};

/* The device runs PTX of any target; the nearest one not above its own is what a GPU would take. */
static bool better(uint32_t target, uint32_t than)
{
    if (than == 0)
        return true;
    if ((target <= DEV_CAPABILITY) != (than <= DEV_CAPABILITY))
        return target <= DEV_CAPABILITY;
    return target <= DEV_CAPABILITY ? target > than : target < than;
}

static int fatbin_text(const uint8_t *p, size_t size, struct soft_text *out, char *why, size_t why_size)
{
    uint16_t header;
    uint64_t all;
    uint32_t best = 0;
    unsigned cubins = 0, compressed = 0;

    memcpy(&header, p + 6, 2);
    memcpy(&all, p + 8, 8);
    if (header < 16 || header > size || all > size - header) {
        snprintf(why, why_size, "fat binary is cut short");
        return GM_CUDA_INVALID_IMAGE;
    }
    size_t at = header, end = header + (size_t)all;
    for (unsigned n = 0; n < ENTRIES_MOST && end - at >= sizeof(struct entry); n++) {
        struct entry e;
        memcpy(&e, p + at, sizeof(e));
        if (e.header_size < sizeof(e) || e.header_size > end - at || e.payload_size > end - at - e.header_size) {
            snprintf(why, why_size, "entry %u of the fat binary does not fit into it", n);
            return GM_CUDA_INVALID_IMAGE;
        }
        if (e.kind != FATBIN_PTX) {
            cubins++;
        } else if (e.flags & FATBIN_COMPRESSED) {
            compressed++;
        } else if (better(e.target, best)) {
            best = e.target ? e.target : 1;
            out->data = (const char *)p + at + e.header_size;
            out->size = strnlen(out->data, (size_t)e.payload_size);
        }
        at += e.header_size + (size_t)e.payload_size;
    }
    if (best)
        return GM_CUDA_SUCCESS;
    if (compressed)
        snprintf(why, why_size,
                 "the fat binary's PTX is compressed, which this device does not read; build with "
                 "-Xfatbin --compress-mode=none or load the PTX text");
    else
        snprintf(why, why_size,
                 "the fat binary has machine code for GPUs (%u images) and no PTX; the software device needs PTX "
                 "(nvcc -gencode arch=compute_75,code=compute_75)",
                 cubins);
    return GM_CUDA_NO_BINARY_FOR_GPU;
}

int soft_image_text(const void *image, size_t size, uint32_t kind, struct soft_text *out, char *why, size_t why_size)
{
    uint32_t magic = 0;
    out->data = NULL;
    out->size = 0;
    if (size >= 16)
        memcpy(&magic, image, sizeof(magic));
    if (magic == FATBIN_MAGIC)
        return fatbin_text(image, size, out, why, why_size);
    if (size >= 4 && memcmp(image, "\177ELF", 4) == 0) {
        snprintf(why, why_size,
                 "a cubin holds machine code for one GPU; the software device needs PTX "
                 "(nvcc -ptx, or -gencode arch=compute_75,code=compute_75)");
        return GM_CUDA_NO_BINARY_FOR_GPU;
    }
    if (kind != WIRE_IMAGE_KIND_PTX) {
        snprintf(why, why_size, "not a fat binary, a cubin or PTX text");
        return GM_CUDA_INVALID_IMAGE;
    }
    out->data = image;
    out->size = strnlen(image, size);
    return GM_CUDA_SUCCESS;
}
