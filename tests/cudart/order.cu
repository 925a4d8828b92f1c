/*
 * One thread's random work in streams, in one order altogether, beside a model (order.cuh). Each
 * third program is captured from three of the streams and launched twice.
 *
 *     order [FIRST [COUNT]]
 */
#include "order.cuh"

int main(int argc, char **argv)
{
    const unsigned first = argc > 1 ? (unsigned)atoi(argv[1]) : 1, count = argc > 2 ? (unsigned)atoi(argv[2]) : 400;
    sequence all;
    for (unsigned seed = first; seed < first + count && !failures; seed++) {
        all.program(seed, { FIRST, SECOND, NON_BLOCKING }, cudaStreamCaptureModeRelaxed);
        if (failures)
            printf("in program %u\n", seed);
    }
    if (!failures)
        printf("passed\n");
    return failures != 0;
}
