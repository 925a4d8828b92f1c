/* Values that streams write and wait for, batches of copies, and hints about managed memory. */
#include "random.h"

#define ROOM 256u

/* A wait is for what was written just before it, so that it ends. */
static void write_and_wait(void)
{
    int b = random_buffer(ROOM), s = random_pick_stream();
    bool wide = random_chance(3);
    size_t off = ONE_OF(size_t, 0, 8, 16, 16, 2, 4);
    unsigned value = random_below(1000), flags = ONE_OF(unsigned, 0, 0, 1, 2),
             way = ONE_OF(unsigned, 0, 1, 2, 3, 4);
    CUstream stream = random_stream(s);
    CUdeviceptr p = random_handle(BUFFER, b) + off;
    if (b < 0)
        return;
    random_use(s);
    random_say("cuStreamWriteValue%d(%s, buffer%d + %zu, %u, %u)", wide ? 64 : 32,
               random_name(STREAM, s), b, off, value, flags);
    CUresult r = random_done(wide ? cuStreamWriteValue64(stream, p, value, flags)
                                  : cuStreamWriteValue32(stream, p, value, flags));
    random_used(s);
    if (r != CUDA_SUCCESS || way == 3 || (way == 2 && !value))
        return;
    random_say("cuStreamWaitValue%d(%s, buffer%d + %zu, %u, %u)", wide ? 64 : 32,
               random_name(STREAM, s), b, off, value, way);
    random_done(wide ? cuStreamWaitValue64(stream, p, value, way)
                     : cuStreamWaitValue32(stream, p, value, way));
}

static void several_values(void)
{
    int b = random_buffer(ROOM), s = random_pick_stream();
    unsigned count = random_below(4), flags = random_chance(8);
    CUstreamBatchMemOpParams ops[4];
    memset(ops, 0, sizeof(ops));
    if (b < 0)
        return;
    for (unsigned i = 0; i < count; i++) {
        ops[i].operation = (CUstreamBatchMemOpType)ONE_OF(int, 2, 2, 2, 5, 6, 3, 99);
        ops[i].writeValue.address = random_handle(BUFFER, b) + 8 * i;
        ops[i].writeValue.value64 = random_below(1000);
        if (ops[i].operation == CU_STREAM_MEM_OP_BARRIER ||
            ops[i].operation == CU_STREAM_MEM_OP_FLUSH_REMOTE_WRITES)
            ops[i].memoryBarrier.flags = 0;
    }
    random_use(s);
    random_say("cuStreamBatchMemOp(%s, {", random_name(STREAM, s));
    for (unsigned i = 0; i < count; i++)
        random_put("%s%d", i ? " " : "", (int)ops[i].operation);
    random_put("}, %u)", flags);
    random_done(cuStreamBatchMemOp(random_stream(s), count, ops, flags));
    random_used(s);
}

static void copies(void)
{
    int a = random_buffer(ROOM), b = random_buffer(ROOM), s = random_pick_stream();
    size_t count = random_below(3) + (random_below(8) != 0), index = random_chance(8) ? 1 : 0,
           attributes = random_below(8) != 0;
    CUdeviceptr to[3], from[3];
    size_t sizes[3];
    CUmemcpyAttributes how;
    memset(&how, 0, sizeof(how));
    how.srcAccessOrder = (CUmemcpySrcAccessOrder)ONE_OF(int, 1, 1, 1, 2, 3, 0, 9);
    how.flags = ONE_OF(unsigned, 0, 0, 1, 4);
    if (a < 0 || b < 0 || a == b)
        return;
    for (size_t i = 0; i < count; i++) {
        to[i] = random_handle(BUFFER, a) + 64 * i;
        from[i] = i == 1 ? (uintptr_t)random_source : random_handle(BUFFER, b) + 64 * i;
        sizes[i] = ONE_OF(size_t, 64, 64, 64, 1, 0);
    }
    random_use(s);
    random_say("cuMemcpyBatchAsync(buffer%d, buffer%d, %zu, order %d flags %u from %zu, %zu, %s)",
               a, b, count, (int)how.srcAccessOrder, how.flags, index, attributes,
               random_name(STREAM, s));
    random_done(
        cuMemcpyBatchAsync(to, from, sizes, count, &how, &index, attributes, random_stream(s)));
    random_used(s);
}

static void managed(void)
{
    int b = random_pick_or_null(BUFFER), s = random_pick_stream(), what = random_below(3),
        value = -99;
    CUdeviceptr p = random_handle(BUFFER, b);
    size_t size = b < 0 ? 16 : random_at(BUFFER, b)->size,
           n = random_chance(6) ? ONE_OF(size_t, 0, 1, size + 1) : size;
    CUmemLocation where = { .type = (CUmemLocationType)ONE_OF(int, 1, 1, 1, 2, 0, 3, 99),
                            .id = ONE_OF(int, 0, 0, 0, 99) };
    int advice = ONE_OF(int, 1, 2, 3, 4, 5, 6, 0, 7), attribute = ONE_OF(int, 1, 2, 3, 5, 6, 0, 9);
    unsigned flags = random_chance(8);
    random_use(s);
    if (what == 0) {
        random_say("cuMemPrefetchAsync(%s, %zu, %d:%d, %u, %s)", random_name(BUFFER, b), n,
                   (int)where.type, where.id, flags, random_name(STREAM, s));
        random_done(cuMemPrefetchAsync(p, n, where, flags, random_stream(s)));
        random_used(s);
    } else if (what == 1) {
        random_say("cuMemAdvise(%s, %zu, %d, %d:%d)", random_name(BUFFER, b), n, advice,
                   (int)where.type, where.id);
        random_done(cuMemAdvise(p, n, (CUmem_advise)advice, where));
    } else {
        random_say("cuMemRangeGetAttribute(%d, %s, %zu)", attribute, random_name(BUFFER, b), n);
        if (random_done(cuMemRangeGetAttribute(&value, 4, (CUmem_range_attribute)attribute, p,
                                               n)) == CUDA_SUCCESS)
            random_out("%d", value);
    }
}

static void attach(void)
{
    int b = random_pick_or_null(BUFFER), s = random_pick_stream();
    unsigned flags = ONE_OF(unsigned, 1, 2, 4, 0, 3);
    size_t n = ONE_OF(size_t, 0, 0, 16);
    /* Memory that is one stream's is not touched by others. */
    if (flags != 1 && b >= 0)
        return;
    random_use(s);
    random_say("cuStreamAttachMemAsync(%s, %s, %zu, %u)", random_name(STREAM, s),
               random_name(BUFFER, b), n, flags);
    random_done(cuStreamAttachMemAsync(random_stream(s), random_handle(BUFFER, b), n, flags));
    random_used(s);
}

static const struct random_generator batches[] = {
    GENERATOR(write_and_wait, 5), GENERATOR(several_values, 3), GENERATOR(copies, 4),
    GENERATOR(managed, 6),        GENERATOR(attach, 1),         GENERATOR(random_look, 1),
};
const struct random_subject random_batches = SUBJECT(batches, NULL);
