/* Local memory, of which a context has as much for each thread as any kernel in it needs. */
#include "peer.h"

#define ROW  16
#define ROWS 40

static struct peer peers[2];

/* Launches that follow each other: gmux hands over such rows as graphs, once there have been some.
 */
static void rows(CUstream s, CUdeviceptr p, unsigned count, unsigned *sum)
{
    unsigned by = 1;
    void *params[] = { &p, &by };
    for (unsigned i = 0; i < count; i++) {
        for (unsigned n = 0; n < ROW; n++)
            OK(cuLaunchKernel(tap_function("add_to"), 1, 1, 1, 1, 1, 1, 0, s, params, NULL));
        OK(cuStreamSynchronize(s));
        *sum += ROW;
    }
}

static size_t free_memory(void)
{
    size_t left, all;
    OK(cuMemGetInfo(&left, &all));
    return left;
}

/* The driver gives it back when the program that needed it is gone. A graph that was made before
 * would end the context if it were launched afterwards. */
static void goes_with_the_program_that_needed_it(void)
{
    unsigned sum = 0, got = 0;
    CUstream s;
    CUdeviceptr p;
    OK(cuStreamCreate(&s, CU_STREAM_NON_BLOCKING));
    OK(cuMemAlloc(&p, sizeof(got)));
    OK(cuMemsetD32(p, 0, 1));
    rows(s, p, ROWS, &sum);
    for (unsigned i = 0; i < COUNT(peers); i++) {
        struct peer_message m = ASK(peers[i], .op = PEER_ALLOC, .size = 4096);
        EQ(m.result, CUDA_SUCCESS);
        ASK_OK(peers[i], .op = PEER_DEEP, .pointer = m.pointer);
        rows(s, p, ROWS, &sum);
        const size_t before = free_memory();
        peer_exit(&peers[i]);
        for (unsigned n = 0; n < 50 * ROWS && tap_gpu() && free_memory() < before + (1ul << 30);
             n++)
            rows(s, p, 1, &sum);
        TRUE(!tap_gpu() || !tap_alone() || free_memory() > before);
        rows(s, p, ROWS, &sum);
    }
    OK(cuMemcpyDtoH(&got, p, sizeof(got)));
    if (tap_computes())
        EQ(got, sum);
    OK(cuMemFree(p));
    OK(cuStreamDestroy(s));
}

int main(void)
{
    static const struct tap_test tests[] = { TEST(goes_with_the_program_that_needed_it) };
    for (unsigned i = 0; i < COUNT(peers); i++)
        peer_start(&peers[i]);
    return tap_main(tests, COUNT(tests));
}
