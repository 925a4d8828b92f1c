/*
 * Makes calls to the executor, one at a time, because session memory has room for one answer. The
 * caller holds the lock until it has read the answer.
 */
#include "client/stream/call.h"

#include <string.h>

#include "client/stream/context.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct rt_stream *stream;                            /* lock */
static uint64_t number;                                     /* lock; the number of the last call */
static uint8_t answer[sizeof((struct tp_reply *)0)->bytes]; /* lock */
static struct {                                             /* lock */
    struct wire_rec_call record;
    uint8_t args[WIRE_REC_CALL_ARGS_MAX];
} question;

void rt_call_begin(struct rt_call *c, uint32_t function, uint32_t module)
{
    pthread_mutex_lock(&lock);
    c->function = function;
    c->device = 0;
    c->module = module;
    wire_enc_init(&c->args, question.args, sizeof(question.args));
    wire_dec_init(&c->reply, answer, 0);
}

static int ask(struct rt_call *c)
{
    if (c->args.fatal)
        return CUDA_ERROR_INVALID_VALUE;
    int r = stream ? CUDA_SUCCESS : rt_stream_create_bare(0, 0, &stream);
    if (r)
        return r;
    question.record = (struct wire_rec_call) { .head.op = WIRE_OP_CALL,
                                               .number = number + 1,
                                               .function = c->function,
                                               .module = c->module,
                                               .device = c->device };
    r = rt_queue_submit(stream, &question.record.head, sizeof(question.record) + c->args.size, NULL,
                        0);
    if (r)
        return r;
    number++;
    r = tp_word_wait(&rt_session->shared.control->replied, number, &rt_session->patient);
    return r ? r : rt_session_error(rt_session);
}

int rt_call_run(struct rt_call *c)
{
    int r = ask(c);
    if (r)
        return r;
    const struct tp_reply *shared = rt_session->shared.reply;
    uint32_t size = GM_MIN(shared->size, (uint32_t)sizeof(answer));
    int result = shared->result;
    memcpy(answer, shared->bytes, size);
    wire_dec_init(&c->reply, answer, size);
    return result;
}

int rt_call_end(struct rt_call *c, int result)
{
    if (result == CUDA_SUCCESS && c->reply.fatal)
        result = CUDA_ERROR_UNKNOWN;
    pthread_mutex_unlock(&lock);
    return result;
}
