/* Random numbers: a generator that begins anew with each call of a program. */
#include "random.h"

static uint64_t state;

static uint64_t next(void)
{
    uint64_t z = state += 0x9e3779b97f4a7c15;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
    z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
    return z ^ (z >> 31);
}

void random_seed(uint64_t seed, uint64_t number)
{
    state = seed * 0xd1342543de82ef95 + number * 0x2545f4914f6cdd1d;
    next();
}

unsigned random_below(unsigned n)
{
    return n ? (unsigned)(next() % n) : 0;
}

bool random_chance(unsigned in)
{
    return random_below(in) == 0;
}

size_t random_size(size_t most)
{
    if (random_below(4))
        return random_below((unsigned)most) + 1;
    return ONE_OF(size_t, 0, 1, 3, 4, 255, 256, most - 1, most, most + 1);
}
