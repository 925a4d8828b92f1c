/*
 * Relocations of x86-64 and of AArch64. A type that is not handled here is refused.
 */
#include "device/soft/loader/relocate.h"

#include <elf.h>
#include <string.h>

static void put32(uint8_t *where, uint32_t v)
{
    memcpy(where, &v, sizeof(v));
}

static void put64(uint8_t *where, uint64_t v)
{
    memcpy(where, &v, sizeof(v));
}

#if defined(__x86_64__)

uint32_t loader_relocation_width(uint32_t type)
{
    switch (type) {
    case R_X86_64_PC32:
    case R_X86_64_PLT32:
        return 4;
    case R_X86_64_64:
    case R_X86_64_PC64:
        return 8;
    default:
        return 0;
    }
}

bool loader_relocate(uint32_t type, uint8_t *where, uint64_t symbol, int64_t addend)
{
    uint64_t value = symbol + (uint64_t)addend;
    uint64_t relative = value - (uint64_t)(uintptr_t)where;
    switch (type) {
    case R_X86_64_PC32:
    case R_X86_64_PLT32:
        if ((int64_t)relative != (int32_t)relative)
            return false;
        put32(where, (uint32_t)relative);
        return true;
    case R_X86_64_64:
        put64(where, value);
        return true;
    case R_X86_64_PC64:
        put64(where, relative);
        return true;
    default:
        return false;
    }
}

#elif defined(__aarch64__)

uint32_t loader_relocation_width(uint32_t type)
{
    switch (type) {
    case R_AARCH64_PREL32:
    case R_AARCH64_CALL26:
    case R_AARCH64_JUMP26:
    case R_AARCH64_ADR_PREL_PG_HI21:
    case R_AARCH64_ADD_ABS_LO12_NC:
    case R_AARCH64_LDST8_ABS_LO12_NC:
    case R_AARCH64_LDST16_ABS_LO12_NC:
    case R_AARCH64_LDST32_ABS_LO12_NC:
    case R_AARCH64_LDST64_ABS_LO12_NC:
    case R_AARCH64_LDST128_ABS_LO12_NC:
        return 4;
    case R_AARCH64_ABS64:
    case R_AARCH64_PREL64:
        return 8;
    default:
        return 0;
    }
}

static uint32_t get32(const uint8_t *where)
{
    uint32_t v;
    memcpy(&v, where, sizeof(v));
    return v;
}

/* Writes the 12-bit offset field of an add, load or store of 1 << scale bytes. */
static bool put_low12(uint8_t *where, uint64_t value, unsigned scale)
{
    uint32_t low = (uint32_t)(value & 0xfff);
    if (low & ((1u << scale) - 1))
        return false;
    put32(where, (get32(where) & ~(0xfffu << 10)) | ((low >> scale) << 10));
    return true;
}

bool loader_relocate(uint32_t type, uint8_t *where, uint64_t symbol, int64_t addend)
{
    uint64_t value = symbol + (uint64_t)addend;
    int64_t relative = (int64_t)(value - (uint64_t)(uintptr_t)where);
    int64_t pages;
    switch (type) {
    case R_AARCH64_PREL32:
        put32(where, (uint32_t)relative);
        return relative == (int32_t)relative;
    case R_AARCH64_CALL26:
    case R_AARCH64_JUMP26:
        if ((relative & 3) || relative < -(1 << 27) || relative >= (1 << 27))
            return false;
        put32(where, (get32(where) & 0xfc000000u) | (((uint32_t)(relative >> 2)) & 0x03ffffffu));
        return true;
    case R_AARCH64_ADR_PREL_PG_HI21:
        pages = (int64_t)((value & ~0xfffULL) - ((uint64_t)(uintptr_t)where & ~0xfffULL)) >> 12;
        if (pages < -(1 << 20) || pages >= (1 << 20))
            return false;
        put32(where, (get32(where) & 0x9f00001fu) | ((uint32_t)(pages & 3) << 29) |
                         (((uint32_t)(pages >> 2) & 0x7ffffu) << 5));
        return true;
    case R_AARCH64_ADD_ABS_LO12_NC:
    case R_AARCH64_LDST8_ABS_LO12_NC:
        return put_low12(where, value, 0);
    case R_AARCH64_LDST16_ABS_LO12_NC:
        return put_low12(where, value, 1);
    case R_AARCH64_LDST32_ABS_LO12_NC:
        return put_low12(where, value, 2);
    case R_AARCH64_LDST64_ABS_LO12_NC:
        return put_low12(where, value, 3);
    case R_AARCH64_LDST128_ABS_LO12_NC:
        return put_low12(where, value, 4);
    case R_AARCH64_ABS64:
        put64(where, value);
        return true;
    case R_AARCH64_PREL64:
        put64(where, (uint64_t)relative);
        return true;
    default:
        return false;
    }
}

#else

uint32_t loader_relocation_width(uint32_t type)
{
    return 0;
}

bool loader_relocate(uint32_t type, uint8_t *where, uint64_t symbol, int64_t addend)
{
    return false;
}

#endif
