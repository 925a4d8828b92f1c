/* What a client sends to be linked: whole, in order, bounded; the driver sees nothing else. */
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "device/cuda/call.h"
#include "device/cuda/link.h"
#include "device/cuda/state.h"

TestSuite(link, .timeout = 20);

/* --- a linker that writes its inputs one behind the other ------------------------------------- */

static char linked[1 << 20];
static size_t linked_size;
static unsigned states, inputs, options_seen;
static char *error_log;
static CUresult outcome;

static CUresult create(unsigned count, CUjit_option *options, void **values, CUlinkState *out)
{
    for (unsigned i = 0; i < count; i++)
        if (options[i] == CU_JIT_ERROR_LOG_BUFFER)
            error_log = values[i];
    options_seen = count;
    linked_size = inputs = 0;
    states++;
    *out = (CUlinkState)(void *)linked;
    return CUDA_SUCCESS;
}

static CUresult add(CUlinkState s, CUjitInputType type, void *data, size_t size, const char *name,
                    unsigned count, CUjit_option *options, void **values)
{
    cr_assert_eq(type, CU_JIT_INPUT_PTX);
    cr_assert_eq(((char *)data)[size - 1], '\0');
    memcpy(linked + linked_size, data, size - 1);
    linked_size += size - 1;
    inputs++;
    if (outcome)
        strcpy(error_log, "line 1; no");
    return outcome;
}

static CUresult complete(CUlinkState s, void **cubin, size_t *size)
{
    *cubin = linked;
    *size = linked_size;
    return CUDA_SUCCESS;
}

static CUresult destroy(CUlinkState s)
{
    states--;
    return CUDA_SUCCESS;
}

static struct dev device = { .api = { .cuLinkCreate_v2 = create,
                                      .cuLinkAddData_v2 = add,
                                      .cuLinkComplete = complete,
                                      .cuLinkDestroy = destroy } };
static struct dev_client client = { .dev = &device };

/* --- calls ------------------------------------------------------------------------------------ */

static uint8_t sent[1 << 16], received[1 << 16];
static struct wire_enc e, reply;

static void say(void)
{
    wire_enc_init(&e, sent, sizeof(sent));
    wire_enc_init(&reply, received, sizeof(received));
}

static int call(int (*f)(struct dev_client *c, struct wire_dec *args, struct wire_enc *reply))
{
    struct wire_dec d;
    wire_dec_init(&d, sent, e.size);
    int r = f(&client, &d, &reply);
    return d.fatal ? GM_CUDA_INVALID_VALUE : r;
}

static int begin(const uint32_t *options, uint32_t bytes)
{
    say();
    wire_put_call_link_begin(&e, &(struct wire_call_link_begin) { { options, bytes } });
    return call(cuda_link_begin);
}

static int input(uint32_t kind, uint64_t size)
{
    say();
    wire_put_call_link_input(
        &e, &(struct wire_call_link_input) { .kind = kind, .size = size, .name = "n" });
    return call(cuda_link_input);
}

static int data(const void *bytes, uint32_t size)
{
    say();
    wire_put_call_link_data(&e, &(struct wire_call_link_data) { { bytes, size } });
    return call(cuda_link_data);
}

static int finish(struct wire_call_linked *w)
{
    struct wire_dec d;
    say();
    int r = call(cuda_link_complete);
    *w = (struct wire_call_linked) { 0 };
    wire_dec_init(&d, received, reply.size);
    if (reply.size)
        wire_get_call_linked(&d, w);
    return r;
}

static int look(uint64_t offset, struct wire_bytes *out)
{
    struct wire_dec d;
    struct wire_call_link_data w;
    say();
    wire_put_call_link_read(&e, &(struct wire_call_link_read) { offset });
    int r = call(cuda_link_read);
    if (r)
        return r;
    wire_dec_init(&d, received, reply.size);
    wire_get_call_link_data(&d, &w);
    *out = w.data;
    return r;
}

/* --- tests ------------------------------------------------------------------------------------ */

Test(link, what_goes_in_comes_out)
{
    static char text[70000];
    struct wire_call_linked w;
    struct wire_bytes part;
    const uint32_t options[] = { CU_JIT_MAX_REGISTERS, 32 };
    for (size_t i = 0; i < sizeof(text); i++)
        text[i] = (char)('a' + i % 23);
    cr_assert_eq(begin(options, sizeof(options)), 0);
    cr_assert_eq(input(WIRE_IMAGE_KIND_PTX, sizeof(text)), 0);
    for (size_t at = 0; at < sizeof(text); at += 32000)
        cr_assert_eq(data(text + at, (uint32_t)GM_MIN(sizeof(text) - at, (size_t)32000)), 0);
    cr_assert_eq(input(WIRE_IMAGE_KIND_PTX, 3), 0);
    cr_assert_eq(data("end", 3), 0);
    cr_assert_eq(finish(&w), 0);
    cr_assert_eq(w.size, sizeof(text) + 3);
    cr_assert_eq(inputs, 2);
    cr_assert_eq(options_seen, 5);
    cr_assert_eq(states, 0);
    uint64_t at = 0;
    while (at < w.size) {
        cr_assert_eq(look(at, &part), 0);
        cr_assert(part.size > 0 && at + part.size <= w.size);
        for (uint32_t i = 0; i < part.size && at + i < sizeof(text); i++)
            cr_assert_eq(((const char *)part.data)[i], text[at + i]);
        at += part.size;
    }
    cr_assert_eq(look(at, &part), 0);
    cr_assert_eq(part.size, 0);
    cr_assert_eq(look(at + 1, &part), GM_CUDA_INVALID_VALUE);
    cr_assert_eq(finish(&w), GM_CUDA_INVALID_VALUE); /* once is enough */
    cuda_link_finish(&client);
    cr_assert_null(client.linking);
}

Test(link, out_of_order)
{
    struct wire_call_linked w;
    struct wire_bytes part;
    cr_assert_eq(input(WIRE_IMAGE_KIND_PTX, 10), GM_CUDA_INVALID_VALUE);
    cr_assert_eq(data("x", 1), GM_CUDA_INVALID_VALUE);
    cr_assert_eq(finish(&w), GM_CUDA_INVALID_VALUE);
    cr_assert_eq(look(0, &part), GM_CUDA_INVALID_VALUE);
    cr_assert_eq(begin(NULL, 0), 0);
    cr_assert_eq(data("x", 1), GM_CUDA_INVALID_VALUE); /* of which input? */
    cr_assert_eq(look(0, &part), GM_CUDA_INVALID_VALUE);
    cr_assert_eq(input(WIRE_IMAGE_KIND_PTX, 3), 0);
    cr_assert_eq(data("four", 4), GM_CUDA_INVALID_VALUE);
    cr_assert_eq(data("ab", 2), 0);
    cr_assert_eq(finish(&w), GM_CUDA_INVALID_VALUE); /* not all there */
    cr_assert_eq(inputs, 0);
    cr_assert_eq(begin(NULL, 0), 0);                    /* another one instead */
    cr_assert_eq(finish(&w), CUDA_ERROR_OUT_OF_MEMORY); /* the linker made nothing */
    cuda_link_finish(&client);
}

Test(link, bounds)
{
    const uint32_t logs[] = { CU_JIT_ERROR_LOG_BUFFER, 4096 };
    const uint32_t odd[] = { CU_JIT_MAX_REGISTERS, 1, 2 };
    struct wire_call_linked w;
    cr_assert_eq(begin(logs, sizeof(logs)),
                 GM_CUDA_INVALID_VALUE); /* an address of this process's? */
    cr_assert_eq(begin(odd, sizeof(odd)), GM_CUDA_INVALID_VALUE);
    cr_assert_eq(begin(NULL, 0), 0);
    cr_assert_eq(input(WIRE_IMAGE_KIND_FATBIN_LIST, 10), GM_CUDA_INVALID_VALUE);
    cr_assert_eq(input(77, 10), GM_CUDA_INVALID_VALUE);
    cr_assert_eq(input(WIRE_IMAGE_KIND_PTX, 0), GM_CUDA_INVALID_VALUE);
    cr_assert_eq(input(WIRE_IMAGE_KIND_PTX, UINT64_MAX), GM_CUDA_OUT_OF_MEMORY);
    cr_assert_eq(input(WIRE_IMAGE_KIND_PTX, 64u << 20), 0);
    cr_assert_eq(input(WIRE_IMAGE_KIND_PTX, 1), GM_CUDA_OUT_OF_MEMORY);
    cr_assert_eq(begin(NULL, 0), 0);
    for (unsigned i = 0; i < 256; i++)
        cr_assert_eq(input(WIRE_IMAGE_KIND_PTX, 1), 0);
    cr_assert_eq(input(WIRE_IMAGE_KIND_PTX, 1), GM_CUDA_OUT_OF_MEMORY);
    /* Said to be a text, is none. */
    cr_assert_eq(begin(NULL, 0), 0);
    cr_assert_eq(input(WIRE_IMAGE_KIND_PTX, 8), 0);
    cr_assert_eq(data("\177ELF....", 8), 0);
    cr_assert_eq(finish(&w), GM_CUDA_INVALID_IMAGE);
    cr_assert_eq(inputs, 0);
    cuda_link_finish(&client);
}

Test(link, what_the_linker_says)
{
    struct wire_call_linked w;
    outcome = CUDA_ERROR_INVALID_PTX;
    cr_assert_eq(begin(NULL, 0), 0);
    cr_assert_eq(input(WIRE_IMAGE_KIND_PTX, 3), 0);
    cr_assert_eq(data("bad", 3), 0);
    cr_assert_eq(finish(&w), CUDA_ERROR_INVALID_PTX);
    cr_assert_str_eq(w.error, "line 1; no");
    cr_assert_eq(w.size, 0);
    cr_assert_eq(states, 0);
    say();
    cr_assert_eq(call(cuda_link_end), 0);
    cr_assert_null(client.linking);
}
