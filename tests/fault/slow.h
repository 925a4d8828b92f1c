/* What of a client makes the slow device wait; slow.c. */
#ifndef GMUX_TESTS_SLOW_H
#define GMUX_TESTS_SLOW_H

#define SLOW_STOP    2u
#define SLOW_DESTROY 3u
#define SLOW_BYTES   (24u << 20)

#define SLOW_MEMORY (1u << 30) /* that it has: less than a client has addresses for */

#endif
