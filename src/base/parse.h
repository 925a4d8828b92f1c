/*
 * Strict parsing of short texts: environment variables, command arguments. Every function takes the
 * whole string or refuses it; none changes the output on refusal.
 */
#ifndef GMUX_BASE_PARSE_H
#define GMUX_BASE_PARSE_H

#include "base/attr.h"

/* Decimal, no sign, no blanks, at most `max`. */
GM_MUST_CHECK bool gm_parse_u64(const char *s, uint64_t max, uint64_t *out);

/* A number with optional fraction ("33", "33.5"), no sign, no exponent, finite. */
GM_MUST_CHECK bool gm_parse_decimal(const char *s, double *out);

/* A percentage as CUDA_MPS_ACTIVE_THREAD_PERCENTAGE has it: 0 < value <= 100. */
GM_MUST_CHECK bool gm_parse_percentage(const char *s, double *out);
/* A percentage as people write it: 33 or 33%. */
GM_MUST_CHECK bool gm_parse_share(const char *s, double *out);

/* Bytes with a suffix as the MPS memory limits have it: integer + G, GB, M, MB (powers of 1024;
 * also K, KB; any case). A bare number is refused, as NVIDIA's commands require the suffix. */
GM_MUST_CHECK bool gm_parse_size(const char *s, uint64_t *out_bytes);

#endif
