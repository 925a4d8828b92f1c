/*
 * C from before there were prototypes, given a standard of C++ as Makefiles of CUDA programs do:
 * nvcc leaves it to gcc, which takes it. gmux-cc does, too.
 */
#include <stdio.h>

square(x)
{
    return multiply(x, x);
}

multiply(x, y) int x, y;
{
    return x * y;
}

int main(void)
{
    return square(7) == 49 && puts("passed") >= 0 ? 0 : 1;
}
