/*
 * The relocations of compiled kernels, per machine: references from code to constants and between
 * functions of one object. Position-independent code without external symbols needs no more.
 */
#ifndef GMUX_SOFT_LOADER_RELOCATE_H
#define GMUX_SOFT_LOADER_RELOCATE_H

#include "base/attr.h"

/* Bytes that a relocation of that type writes; 0 if the loader does not know it. */
uint32_t loader_relocation_width(uint32_t type);

/* Writes symbol + addend into the field at `where`. False if the value does not fit. */
GM_MUST_CHECK bool loader_relocate(uint32_t type, uint8_t *where, uint64_t symbol, int64_t addend);

#endif
