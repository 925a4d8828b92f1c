/*
 * The wire: packets of sockets and the blobs that module_loaded carries. The first byte of the
 * input says what the rest is:
 *
 *   0       a whole packet
 *   1..n    the body of sample number n - 1: a message, or a struct that lies in a descriptor
 *
 * Beyond not crashing: what decodes well encodes to the same bytes, since nothing may be written in
 * two ways; and every element of a list in it can be read.
 */
#include "sample.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_again(const struct sample *s, const uint8_t *body, size_t size)
{
    static uint8_t buffer[1 << 20];
    struct wire_dec d;
    struct wire_enc e;
    if (size > sizeof(buffer))
        return;
    wire_dec_init(&d, body, size);
    wire_enc_init(&e, buffer, sizeof(buffer));
    if (!s->again(&d, &e))
        return;
    if (e.fatal || e.size != size || (size && memcmp(buffer, body, size) != 0))
        abort();
}

static void check_lists(const uint8_t *body, size_t size)
{
    struct wire_dec d, items;
    struct wire_module_info m;
    struct wire_function_info f;
    struct wire_global_info g;
    wire_dec_init(&d, body, size);
    wire_get_module_info(&d, &m);
    if (!wire_dec_finish(&d))
        return;
    wire_dec_init(&items, m.functions.data, m.functions.size);
    while (!wire_dec_end(&items)) {
        wire_get_function_info(&items, &f);
        if (f.name[strlen(f.name)] != '\0')
            abort();
    }
    if (!wire_dec_finish(&items))
        abort();
    wire_dec_init(&items, m.globals.data, m.globals.size);
    while (!wire_dec_end(&items))
        wire_get_global_info(&items, &g);
    if (!wire_dec_finish(&items))
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size == 0)
        return 0;
    size_t kind = data[0];
    data++;
    size--;
    if (kind == 0) {
        struct wire_dec d;
        struct wire_header h = wire_dec_begin(&d, data, size);
        const struct wire_message_info *info = wire_message_info(h.type);
        if (d.fatal || !info)
            return 0;
        if (!info->check(&d))
            return 0;
        for (size_t i = 0; i < samples_count; i++)
            if (samples[i].type == h.type)
                check_again(&samples[i], data + sizeof(h), size - sizeof(h));
        return 0;
    }
    if (kind > samples_count)
        return 0;
    check_again(&samples[kind - 1], data, size);
    if (strcmp(samples[kind - 1].name, "module_info") == 0)
        check_lists(data, size);
    return 0;
}
