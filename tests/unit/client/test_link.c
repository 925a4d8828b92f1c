/* Linking from end to end: the client's side and the device's, with a linker that writes its inputs
 * one behind the other. */
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "client/gen/api.h"
#include "client/module/module.h"
#include "client/stream/call.h"
#include "device/cuda/call.h"
#include "device/cuda/link.h"

TestSuite(link_client, .timeout = 20);

/* --- the linker ------------------------------------------------------------------------------- */

static char linked[1 << 20];
static size_t linked_size;
static char names[256];
static char *info_log;
static unsigned registers;
static bool verbose;
static CUresult outcome;

static CUresult create(unsigned count, CUjit_option *options, void **values, CUlinkState *out)
{
    for (unsigned i = 0; i < count; i++) {
        if (options[i] == CU_JIT_INFO_LOG_BUFFER)
            info_log = values[i];
        if (options[i] == CU_JIT_MAX_REGISTERS)
            registers = (unsigned)(uintptr_t)values[i];
        if (options[i] == CU_JIT_LOG_VERBOSE)
            verbose = values[i] != NULL;
    }
    *out = (CUlinkState)(void *)linked;
    return CUDA_SUCCESS;
}

static CUresult add(CUlinkState s, CUjitInputType type, void *data, size_t size, const char *name,
                    unsigned count, CUjit_option *options, void **values)
{
    memcpy(linked + linked_size, data, size - 1);
    linked_size += size - 1;
    strcat(names, name ? name : "-");
    if (verbose) /* a text is compiled when it is added */
        strcat(info_log, "ptxas info    : 0 bytes gmem\n");
    return CUDA_SUCCESS;
}

static CUresult complete(CUlinkState s, void **cubin, size_t *size)
{
    strcat(info_log, "linked");
    *cubin = linked;
    *size = linked_size;
    return outcome;
}

static CUresult destroy(CUlinkState s)
{
    return CUDA_SUCCESS;
}

static struct dev device = { .api = { .cuLinkCreate_v2 = create,
                                      .cuLinkAddData_v2 = add,
                                      .cuLinkComplete = complete,
                                      .cuLinkDestroy = destroy } };
static struct dev_client client = { .dev = &device };

/* --- between them: what goes through the ring and the session's memory ------------------------ */

static uint8_t sent[WIRE_REC_CALL_ARGS_MAX], answer[sizeof((struct tp_reply *)0)->bytes];
static unsigned calls_open;

void rt_call_begin(struct rt_call *c, uint32_t function, uint32_t module)
{
    cr_assert_eq(calls_open++, 0);
    c->function = function;
    wire_enc_init(&c->args, sent, sizeof(sent));
    wire_dec_init(&c->reply, answer, 0);
}

int rt_call_run(struct rt_call *c)
{
    static int (*const functions[])(struct dev_client * c, struct wire_dec * args,
                                    struct wire_enc * reply) = {
        [WIRE_CALL_LINK_BEGIN] = cuda_link_begin,       [WIRE_CALL_LINK_INPUT] = cuda_link_input,
        [WIRE_CALL_LINK_DATA] = cuda_link_data,         [WIRE_CALL_LINK_READ] = cuda_link_read,
        [WIRE_CALL_LINK_COMPLETE] = cuda_link_complete, [WIRE_CALL_LINK_END] = cuda_link_end,
    };
    struct wire_dec args;
    struct wire_enc reply;
    cr_assert(!c->args.fatal && c->function < GM_ARRAY_LEN(functions) && functions[c->function]);
    wire_dec_init(&args, sent, c->args.size);
    wire_enc_init(&reply, answer, sizeof(answer));
    int r = functions[c->function](&client, &args, &reply);
    cr_assert(!args.fatal && !reply.fatal);
    wire_dec_init(&c->reply, answer, reply.size);
    return r;
}

int rt_call_end(struct rt_call *c, int result)
{
    calls_open--;
    return result == CUDA_SUCCESS && c->reply.fatal ? CUDA_ERROR_UNKNOWN : result;
}

/* --- the rest of the client ------------------------------------------------------------------- */

static struct tp_session_control control;
static struct rt_session session = { .memory_apart = true };
static struct rt_context context = { .active = true };
struct rt_session *rt_session = &session;
__thread struct rt_current rt_current;

int rt_current_missing(void)
{
    return CUDA_ERROR_INVALID_CONTEXT;
}

int rt_session_failed(struct rt_session *s, int error)
{
    return error;
}

int rt_enter_any(void)
{
    return CUDA_SUCCESS;
}

CUresult rt_not_supported(const char *name, atomic_bool *said)
{
    return CUDA_ERROR_NOT_SUPPORTED;
}

int rt_jit_log_options(struct rt_jit_log *log, unsigned count, const CUjit_option *options,
                       void **values)
{
    *log = (struct rt_jit_log) { 0 };
    for (unsigned i = 0; i < count; i++)
        if (options[i] == CU_JIT_INFO_LOG_BUFFER)
            log->info = values[i];
    return CUDA_SUCCESS;
}

void rt_jit_log_give(const struct rt_jit_log *log, const char *info, const char *error)
{
    if (log->info) {
        cr_assert_lt(strlen(info), 128); /* what the tests have room for */
        strcpy(log->info, info);
    }
}

int rt_module_load(struct rt_context *c, const void *image, struct rt_jit_log *log,
                   struct rt_module **out)
{
    cr_assert_fail("the device links");
    return CUDA_ERROR_UNKNOWN;
}

void rt_module_destroy(struct rt_module *m)
{
}

int rt_image_text(const void *fatbin, unsigned wanted, struct rt_image *out)
{
    return CUDA_ERROR_NO_BINARY_FOR_GPU;
}

int rt_image_look(const void *image, struct rt_image *out)
{
    return CUDA_ERROR_INVALID_IMAGE;
}

void rt_image_drop(struct rt_image *image)
{
}

/* --- tests ------------------------------------------------------------------------------------ */

static CUlinkState begin(unsigned count, CUjit_option *options, void **values)
{
    CUlinkState link;
    session.shared.control = &control;
    rt_current.context = &context;
    cr_assert_eq(rt_cuLinkCreate_v2(count, options, values, &link), CUDA_SUCCESS);
    return link;
}

Test(link_client, several_texts)
{
    static char a[70001], b[] = "tail";
    char info[128] = "";
    CUjit_option options[] = { CU_JIT_MAX_REGISTERS, CU_JIT_INFO_LOG_BUFFER };
    void *values[] = { (void *)40, info };
    void *cubin = NULL, *again = NULL;
    size_t size = 0;
    for (size_t i = 0; i + 1 < sizeof(a); i++)
        a[i] = (char)('a' + i % 23);
    CUlinkState link = begin(2, options, values);
    cr_assert_eq(rt_cuLinkAddData(link, CU_JIT_INPUT_PTX, a, sizeof(a), "first,", 0, NULL, NULL),
                 CUDA_SUCCESS);
    cr_assert_eq(rt_cuLinkAddData_v2(link, CU_JIT_INPUT_PTX, b, sizeof(b), NULL, 0, NULL, NULL),
                 CUDA_SUCCESS);
    cr_assert_eq(rt_cuLinkComplete(link, &cubin, &size), CUDA_SUCCESS);
    cr_assert_eq(size, sizeof(a) - 1 + sizeof(b) - 1);
    cr_assert_eq(memcmp(cubin, a, sizeof(a) - 1), 0);
    cr_assert_eq(memcmp((char *)cubin + sizeof(a) - 1, b, sizeof(b) - 1), 0);
    cr_assert_eq(registers, 40);
    cr_assert_str_eq(info, "linked");
    cr_assert_str_eq(names, "first,-");
    cr_assert_null(client.linking); /* nothing stays behind */
    cr_assert_eq(rt_cuLinkComplete(link, &again, &size), CUDA_SUCCESS);
    cr_assert_eq(again, cubin);
    cr_assert_eq(rt_cuLinkAddData_v2(link, CU_JIT_INPUT_PTX, b, sizeof(b), NULL, 0, NULL, NULL),
                 CUDA_ERROR_INVALID_VALUE);
    cr_assert_eq(rt_cuLinkDestroy(link), CUDA_SUCCESS);
    cr_assert_eq(rt_cuLinkDestroy(link), CUDA_ERROR_INVALID_HANDLE);
}

Test(link_client, failure)
{
    static char text[] = "text";
    char info[128] = "";
    CUjit_option option = CU_JIT_INFO_LOG_BUFFER;
    void *value = info, *cubin;
    size_t size;
    outcome = CUDA_ERROR_INVALID_PTX;
    CUlinkState link = begin(1, &option, &value);
    cr_assert_eq(rt_cuLinkAddData(link, CU_JIT_INPUT_PTX, text, sizeof(text), "t", 0, NULL, NULL),
                 CUDA_SUCCESS);
    cr_assert_eq(
        rt_cuLinkAddData(link, CU_JIT_INPUT_OBJECT, text, sizeof(text), "o", 0, NULL, NULL),
        CUDA_ERROR_UNKNOWN);
    cr_assert_eq(rt_cuLinkComplete(link, &cubin, &size), CUDA_ERROR_INVALID_PTX);
    cr_assert_str_eq(info, "linked"); /* the log comes in failure, too */
    cr_assert_null(client.linking);
    cr_assert_eq(rt_cuLinkDestroy(link), CUDA_SUCCESS);
}

/* As NVIDIA's sample ptxjit wants it. */
Test(link_client, all_that_the_compiler_says)
{
    static char text[] = "text";
    char info[128] = "";
    CUjit_option options[] = { CU_JIT_INFO_LOG_BUFFER, CU_JIT_INFO_LOG_BUFFER_SIZE_BYTES,
                               CU_JIT_LOG_VERBOSE };
    void *values[] = { info, (void *)sizeof(info), (void *)1 }, *cubin;
    size_t size;
    CUlinkState link = begin(3, options, values);
    for (int i = 0; i < 2; i++)
        cr_assert_eq(
            rt_cuLinkAddData(link, CU_JIT_INPUT_PTX, text, sizeof(text), NULL, 0, NULL, NULL),
            CUDA_SUCCESS);
    cr_assert_eq(rt_cuLinkComplete(link, &cubin, &size), CUDA_SUCCESS);
    cr_assert_str_eq(info, "ptxas info    : 0 bytes gmem\nptxas info    : 0 bytes gmem\nlinked");
    cr_assert_eq(rt_cuLinkDestroy(link), CUDA_SUCCESS);
}
