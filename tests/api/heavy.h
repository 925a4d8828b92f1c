/* A kernel that wants many registers. */
#ifndef GMUX_TESTS_API_HEAVY_H
#define GMUX_TESTS_API_HEAVY_H

/* The text of a kernel `heavy` with one pointer as its parameter, which reads so many values from
 * there and then writes all of them. `directives` stand in front of its body. The caller frees it;
 * never NULL. */
char *heavy_text(const char *directives, int values);

#endif
