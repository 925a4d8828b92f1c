/* Splits of multiprocessors where a driver says what they come to: whatever that is, the program is
 * told, and what it makes of it stands in session memory. */
#include <criterion/criterion.h>
#include <cuda.h>
#include <string.h>

#include "client/session/session.h"
#include "fake.h"

static struct fake fake;
static CUdevResource all;
static struct wire_call_split asked; /* the last question */
static struct wire_call_split_is reply;

/* In place of the executor. */
static void *answer_calls(void *arg GM_UNUSED)
{
    static uint8_t buffer[WIRE_RECORD_MAX] GM_ALIGNED(8);
    for (;;) {
        struct wire_rec_call r;
        struct wire_dec args;
        struct wire_enc out;
        uint32_t bell = tp_ring_bell(&fake.ring);
        if (tp_ring_peek(&fake.ring, buffer, sizeof(buffer)) != 1) {
            tp_ring_wait(&fake.ring, bell, 100);
            continue;
        }
        memcpy(&r, buffer, sizeof(r));
        if (r.head.op == WIRE_OP_CALL && r.function == WIRE_CALL_SPLIT) {
            wire_dec_init(&args, buffer + sizeof(r), r.head.size - sizeof(r));
            wire_get_call_split(&args, &asked);
            wire_enc_init(&out, fake.session.reply->bytes, sizeof(fake.session.reply->bytes));
            wire_put_call_split_is(&out, &reply);
            fake.session.reply->result = args.fatal ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
            fake.session.reply->size = (uint32_t)out.size;
            tp_word_publish(&fake.session.control->replied, r.number);
        }
        tp_word_publish(&fake.session.streams[r.head.stream].completed, r.head.seq);
        tp_ring_advance(&fake.ring);
    }
    return NULL;
}

static void setup(void)
{
    pthread_t thread;
    fake_start(&fake, fake_serve_well, NULL);
    cr_assert_eq(cuInit(0), CUDA_SUCCESS);
    rt_session->memory_apart = true;
    rt_session->devices[0].multiprocessors_granted = 132;
    rt_session->devices[0].multiprocessors_step = 8;
    cr_assert_eq(pthread_create(&thread, NULL, answer_calls, NULL), 0);
    cr_assert_eq(cuDeviceGetDevResource(0, &all, CU_DEV_RESOURCE_TYPE_SM), CUDA_SUCCESS);
    cr_assert_eq(all.sm.smCount, 132);
}

/* There are 15 groups of 8, but only one of 64. */
static void halve(CUdevResource half[2], CUdevResource *rest)
{
    unsigned count = 2;
    reply = (struct wire_call_split_is) { .groups = 2, .size = 64, .rest = 4 };
    cr_assert_eq(cuDevSmResourceSplitByCount(half, &count, &all, rest, 0, 64), CUDA_SUCCESS);
    cr_assert_eq(count, 2);
    cr_assert(asked.of == 0 && asked.minimum == 64 && asked.wanted == 2 && asked.flags == 0);
}

static void is_part(uint32_t n, uint32_t of, uint64_t low, uint64_t high, uint32_t minimum,
                    uint32_t wanted)
{
    const struct tp_part *p = &fake.session.parts[n];
    cr_assert_eq(atomic_load(&p->of), of);
    cr_assert_eq(atomic_load(&p->groups[0]), low);
    cr_assert_eq(atomic_load(&p->groups[1]), high);
    cr_assert_eq(atomic_load(&p->minimum), minimum);
    cr_assert_eq(atomic_load(&p->wanted), wanted);
}

static CUgreenCtx make(CUdevResource *resources, unsigned count)
{
    CUdevResourceDesc desc;
    CUgreenCtx green;
    cr_assert_eq(cuDevResourceGenerateDesc(&desc, resources, count), CUDA_SUCCESS);
    cr_assert_eq(cuGreenCtxCreate(&green, desc, 0, CU_GREEN_CTX_DEFAULT_STREAM), CUDA_SUCCESS);
    return green;
}

TestSuite(green, .init = setup, .timeout = 20);

Test(green, halves)
{
    CUdevResource half[2], rest, is;
    CUstream s;
    halve(half, &rest);
    cr_assert_eq(half[0].sm.smCount, 64);
    cr_assert_eq(half[1].sm.smCount, 64);
    cr_assert_eq(rest.sm.smCount, 4);
    CUgreenCtx green = make(&half[1], 1);
    is_part(1, 0, 2, 0, 64, 2);
    cr_assert_eq(cuGreenCtxStreamCreate(&s, green, CU_STREAM_NON_BLOCKING, 0), CUDA_SUCCESS);
    unsigned found = 0;
    for (uint32_t i = 0; i < TP_STREAMS; i++)
        found += atomic_load(&fake.session.streams[i].part) == 1;
    cr_assert_eq(found, 1);
    cr_assert_eq(cuGreenCtxGetDevResource(green, &is, CU_DEV_RESOURCE_TYPE_SM), CUDA_SUCCESS);
    cr_assert_eq(is.sm.smCount, 64);
    make(half, 2);
    is_part(2, 0, 3, 0, 64, 2);
    make(&rest, 1);
    is_part(3, 0, 0, 1ull << 63, 64, 2);
}

Test(green, equal_splits_are_the_same)
{
    CUdevResource half[2], other[2];
    CUdevResourceDesc desc;
    halve(half, NULL);
    halve(other, NULL);
    CUdevResource mixed[] = { half[0], other[1] }, twice[] = { half[0], other[0] };
    make(mixed, 2);
    make(other, 2);
    is_part(1, 0, 3, 0, 64, 2);
    is_part(2, 0, 0, 0, 0, 0);
    cr_assert_eq(cuDevResourceGenerateDesc(&desc, twice, 2),
                 CUDA_ERROR_INVALID_RESOURCE_CONFIGURATION);
}

Test(green, parts_of_parts)
{
    CUdevResource half[2], is, quarter, rest, other;
    unsigned count = 1;
    halve(half, NULL);
    cr_assert_eq(cuDevSmResourceSplitByCount(&quarter, &count, &half[0], NULL, 0, 32),
                 CUDA_ERROR_INVALID_RESOURCE_CONFIGURATION,
                 "not before there is a green context of it");
    CUgreenCtx green = make(half, 1);
    cr_assert_eq(cuGreenCtxGetDevResource(green, &is, CU_DEV_RESOURCE_TYPE_SM), CUDA_SUCCESS);
    reply = (struct wire_call_split_is) { .groups = 1, .size = 32, .rest = 32 };
    cr_assert_eq(cuDevSmResourceSplitByCount(&quarter, &count, &is, &rest, 0, 32), CUDA_SUCCESS);
    cr_assert_eq(asked.of, 1);
    make(&quarter, 1);
    is_part(2, 1, 1, 0, 32, 1);
    other = half[1];
    CUdevResource mixed[] = { quarter, other };
    CUdevResourceDesc desc;
    cr_assert_eq(cuDevResourceGenerateDesc(&desc, mixed, 2),
                 CUDA_ERROR_INVALID_RESOURCE_CONFIGURATION);
}

Test(green, answers_that_cannot_be)
{
    CUdevResource part[2];
    unsigned count = 1;
    memset(part, 0x5a, sizeof(part));
    reply = (struct wire_call_split_is) { .groups = 2, .size = 64, .rest = 4 };
    cr_assert_eq(cuDevSmResourceSplitByCount(part, &count, &all, NULL, 0, 64), CUDA_ERROR_UNKNOWN);
    cr_assert_eq(((unsigned char *)&part[1])[0], 0x5a);
    reply = (struct wire_call_split_is) { 0 };
    cr_assert_eq(cuDevSmResourceSplitByCount(part, &count, &all, NULL, 0, 64),
                 CUDA_ERROR_INVALID_RESOURCE_CONFIGURATION);
}
