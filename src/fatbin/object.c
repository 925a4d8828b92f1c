/*
 * An archive is a magic word and members, each behind a header of text. An object of the host's
 * compiler is a 64-bit ELF file. nvcc and clang call the section .nv_fatbin; nvcc calls it
 * __nv_relfatbin if code is relocatable.
 */
#include "fatbin/object.h"

#include <elf.h>
#include <errno.h>
#include <string.h>

#include "fatbin/cubin.h"
#include "fatbin/fatbin.h"

#define ARCHIVE      "!<arch>\n"
#define ARCHIVE_SIZE 8u
#define MEMBER_SIZE  60u /* bytes of a member's header */
#define LENGTH_AT    48u /* the place in the header of ten decimal digits */
#define LENGTH_SIZE  10u

int fb_objects_open(struct fb_objects *o, const void *data, size_t size)
{
    *o = (struct fb_objects) { .data = data, .size = size };
    if (size >= ARCHIVE_SIZE && memcmp(data, ARCHIVE, ARCHIVE_SIZE) == 0) {
        o->next = ARCHIVE_SIZE;
        return 0;
    }
    if (!fb_elf_fits(data, size))
        return -EBADMSG;
    o->object = data;
    o->object_size = size;
    o->next = size;
    return 0;
}

/* Goes to the archive's next member that is an object. Returns 1, 0 at the end, or -EBADMSG. */
static int next_member(struct fb_objects *o)
{
    o->section = 0;
    while (o->size - o->next >= MEMBER_SIZE) {
        const uint8_t *header = o->data + o->next;
        size_t length = 0;
        for (unsigned i = 0;
             i < LENGTH_SIZE && header[LENGTH_AT + i] >= '0' && header[LENGTH_AT + i] <= '9'; i++)
            length = length * 10 + (size_t)(header[LENGTH_AT + i] - '0');
        o->next += MEMBER_SIZE;
        if (length > o->size - o->next)
            return -EBADMSG;
        o->object = o->data + o->next;
        o->object_size = length;
        o->next += length;
        o->next += o->next < o->size && length % 2;
        if (fb_elf_fits(o->object, length))
            return 1;
    }
    o->object = NULL;
    return 0;
}

static void section_read(const struct fb_objects *o, uint64_t index, Elf64_Shdr *s)
{
    Elf64_Ehdr e;
    memcpy(&e, o->object, sizeof(e));
    memcpy(s, o->object + e.e_shoff + index * sizeof(*s), sizeof(*s));
}

/* Whether a section has device code. A section's header gives the place of its name. The file was
 * checked (fb_elf_fits), so that all sections lie in it. */
static bool has_device_code(const struct fb_objects *o, const Elf64_Shdr *s, uint64_t count)
{
    static const char *const names[] = { ".nv_fatbin", "__nv_relfatbin" };
    Elf64_Ehdr e;
    Elf64_Shdr strings;
    memcpy(&e, o->object, sizeof(e));
    if (e.e_shstrndx == 0 || e.e_shstrndx >= count || !fb_section_has_bytes(s))
        return false;
    section_read(o, e.e_shstrndx, &strings);
    if (!fb_section_has_bytes(&strings) || s->sh_name >= strings.sh_size)
        return false;
    const uint8_t *name = o->object + strings.sh_offset + s->sh_name;
    for (size_t i = 0; i < GM_ARRAY_LEN(names); i++) {
        size_t length = strlen(names[i]) + 1;
        if (length <= strings.sh_size - s->sh_name && memcmp(name, names[i], length) == 0)
            return true;
    }
    return false;
}

/* Goes to the object's next section with device code. */
static bool next_section(struct fb_objects *o)
{
    Elf64_Ehdr e;
    Elf64_Shdr s;
    memcpy(&e, o->object, sizeof(e));
    section_read(o, 0, &s);
    uint64_t count = e.e_shnum ? e.e_shnum : s.sh_size;
    while (++o->section < count) {
        section_read(o, o->section, &s);
        if (!has_device_code(o, &s, count))
            continue;
        o->at = o->object + s.sh_offset;
        o->end = o->at + s.sh_size;
        return true;
    }
    return false;
}

int fb_objects_next(struct fb_objects *o, const void **fatbin)
{
    for (;;) {
        size_t left = (size_t)(o->end - o->at);
        if (left < FB_HEADER_SIZE) {
            o->at = o->end = NULL;
            if (o->object && next_section(o))
                continue;
            int r = next_member(o);
            if (r <= 0)
                return r;
            continue;
        }
        size_t size = fb_size(o->at);
        if (size == 0) { /* padding between two of them */
            o->at += GM_MIN(left, (size_t)8);
            continue;
        }
        if (size > left)
            return -EBADMSG;
        *fatbin = o->at;
        o->at += GM_MIN(left, gm_padded(size));
        return 1;
    }
}
