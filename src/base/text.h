/*
 * Texts that others have written, before they stand in a log or on somebody's terminal.
 */
#ifndef GMUX_BASE_TEXT_H
#define GMUX_BASE_TEXT_H

#include <stddef.h>

/* How many bytes the character at `s` has, of `left` that there are; 0: it is no UTF-8. */
size_t gm_utf8_size(const char *s, size_t left);

/* Replaces control characters, in place, by question marks: those of ASCII, those that Unicode has
 * from U+0080 on, which terminals obey as well, and bytes that are no UTF-8. */
void gm_text_clean(char *s);

#endif
