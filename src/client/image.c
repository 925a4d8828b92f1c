/*
 * What kind of image a program hands over, and how long it is: programs pass a pointer and nothing else. Only the
 * outermost structure is read here, in the program's own process and from its own memory; the parsers proper are on
 * the other side.
 */
#include "client/module.h"

#include <elf.h>
#include <string.h>

#define WRAPPER_MAGIC  0x466243b1u
#define FATBIN_MAGIC   0xba55ed50u
#define FATBIN_PTX     1u
#define FATBIN_MAXIMUM (1ull << 31)

struct fatbin_wrapper {
    uint32_t magic;
    uint32_t version;
    const void *data;
    const void *list;
};

struct fatbin_header {
    uint32_t magic;
    uint16_t version;
    uint16_t header_size;
    uint64_t size; /* of all entries */
};

struct fatbin_entry {
    uint16_t kind;
    uint16_t reserved;
    uint32_t header_size;
    uint64_t size; /* of the payload, padded */
    uint32_t compressed_size;
    uint32_t options_at;
    uint16_t minor, major;
    uint32_t arch;
    uint32_t name_at, name_size;
    uint64_t flags;
    uint64_t zero;
    uint64_t uncompressed_size;
};
_Static_assert(sizeof(struct fatbin_header) == 16 && sizeof(struct fatbin_entry) == 64, "layout");

/* PTX starts with ".version", after white space and comments. */
static bool is_ptx(const char *s)
{
    for (;;) {
        s += strspn(s, " \t\r\n\v\f");
        if (s[0] == '/' && s[1] == '/') {
            s += strcspn(s, "\n");
        } else if (s[0] == '/' && s[1] == '*') {
            const char *end = strstr(s + 2, "*/");
            if (!end)
                return false;
            s = end + 2;
        } else {
            break;
        }
    }
    return strncmp(s, ".version", 8) == 0;
}

static size_t elf_size(const Elf64_Ehdr *e)
{
    const uint8_t *base = (const uint8_t *)e;
    uint64_t end = e->e_shoff + (uint64_t)e->e_shnum * e->e_shentsize;
    end = GM_MAX(end, e->e_phoff + (uint64_t)e->e_phnum * e->e_phentsize);
    for (unsigned i = 0; i < e->e_shnum; i++) {
        Elf64_Shdr s;
        memcpy(&s, base + e->e_shoff + (uint64_t)i * e->e_shentsize, sizeof(s));
        if (s.sh_type != SHT_NOBITS)
            end = GM_MAX(end, s.sh_offset + s.sh_size);
    }
    return end < FATBIN_MAXIMUM ? (size_t)end : 0;
}

/* The newest PTX that lies there uncompressed. */
static int fatbin_look(const uint8_t *data, struct rt_image *out)
{
    struct fatbin_header h;
    uint32_t best = 0;
    memcpy(&h, data, sizeof(h));
    if (h.magic != FATBIN_MAGIC || h.header_size < sizeof(h) || h.size > FATBIN_MAXIMUM)
        return CUDA_ERROR_INVALID_IMAGE;
    if (rt_session && rt_session->memory_apart) { /* a real GPU's driver chooses, and reads what is compressed */
        *out = (struct rt_image) { data, h.header_size + h.size, WIRE_IMAGE_KIND_FATBIN };
        return CUDA_SUCCESS;
    }
    const uint8_t *at = data + h.header_size;
    uint64_t left = h.size;
    out->data = NULL;
    while (left >= sizeof(struct fatbin_entry)) {
        struct fatbin_entry e;
        memcpy(&e, at, sizeof(e));
        if (e.header_size < sizeof(e) || e.header_size > left || e.size > left - e.header_size)
            return CUDA_ERROR_INVALID_IMAGE;
        const char *text = (const char *)at + e.header_size;
        if (e.kind == FATBIN_PTX && e.compressed_size == 0 && e.arch >= best && e.size > 0) {
            best = e.arch;
            *out = (struct rt_image) { text, strnlen(text, e.size), WIRE_IMAGE_KIND_PTX };
        }
        at += e.header_size + e.size;
        left -= e.header_size + e.size;
    }
    return out->data ? CUDA_SUCCESS : CUDA_ERROR_NO_BINARY_FOR_GPU;
}

int rt_image_look(const void *image, struct rt_image *out)
{
    uint32_t magic;
    const char *text = image;
    /* No magic number has a zero in it, and a text may be shorter than one. */
    if (strnlen(text, sizeof(magic)) < sizeof(magic))
        return CUDA_ERROR_INVALID_IMAGE;
    memcpy(&magic, image, sizeof(magic));
    if (magic == WRAPPER_MAGIC) {
        struct fatbin_wrapper w;
        memcpy(&w, image, sizeof(w));
        return w.data ? fatbin_look(w.data, out) : CUDA_ERROR_INVALID_IMAGE;
    }
    if (magic == FATBIN_MAGIC)
        return fatbin_look(image, out);
    if (memcmp(image, ELFMAG, SELFMAG) == 0) {
        *out = (struct rt_image) { image, elf_size(image), WIRE_IMAGE_KIND_CUBIN };
        return out->size ? CUDA_SUCCESS : CUDA_ERROR_INVALID_IMAGE;
    }
    if (!is_ptx(text))
        return CUDA_ERROR_INVALID_IMAGE;
    *out = (struct rt_image) { text, strlen(text), WIRE_IMAGE_KIND_PTX };
    return CUDA_SUCCESS;
}
