/* What kernels print on its way to the client: order, bounds, loss, and peers that lie. */
#include "transport/output.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static struct tp_session session;
static struct tp_output out;
static struct tp_input in;
static char text[TP_OUTPUT_TEXT_MAX + 1];

static void begin(void)
{
    int fd = tp_session_create();
    cr_assert_eq(tp_session_attach(&session, fd, TP_SESSION_SIZE), 0);
    close(fd);
    tp_output_init(&out, &session);
    tp_input_init(&in, &session);
}

static const char *take(int *fd)
{
    size_t n = tp_input_take(&in, fd, text);
    text[n] = '\0';
    return text;
}

Test(output, texts_come_as_they_went, .init = begin)
{
    int fd = 0;
    cr_assert_not(tp_input_pending(&in));
    cr_assert_eq(tp_input_take(&in, &fd, text), 0);
    for (unsigned i = 0; i < 300000; i++) { /* several times around the ring */
        char line[64];
        int n = snprintf(line, sizeof(line), "%u %.*s\n", i, (int)(i % 40),
                         "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMN");
        cr_assert(tp_output_write(&out, i % 3 ? 1 : 2, line, (size_t)n));
        cr_assert(tp_input_pending(&in));
        cr_assert_str_eq(take(&fd), line);
        cr_assert_eq(fd, i % 3 ? 1 : 2);
    }
    cr_assert_not(tp_input_pending(&in));
    /* A second executor goes on where the first one stood. */
    tp_output_finish(&out);
    tp_output_init(&out, &session);
    cr_assert(tp_output_write(&out, 1, "again", 5));
    cr_assert_str_eq(take(&fd), "again");
}

Test(output, long_texts_come_in_parts, .init = begin)
{
    size_t size = 3 * TP_OUTPUT_TEXT_MAX + 5, got = 0, n;
    int fd;
    char *much = malloc(size);
    for (size_t i = 0; i < size; i++)
        much[i] = (char)('0' + i % 61);
    cr_assert(tp_output_write(&out, 1, much, size));
    while ((n = tp_input_take(&in, &fd, text)) > 0) {
        cr_assert_leq(got + n, size);
        cr_assert_eq(memcmp(text, much + got, n), 0);
        got += n;
    }
    cr_assert_eq(got, size);
    free(much);
}

Test(output, what_finds_no_room_is_lost_with_a_note, .init = begin)
{
    unsigned kept = 0, lost = 0;
    int fd;
    for (unsigned i = 0; i < 20000; i++)
        *(tp_output_write(&out, 1,
                          "0123456789012345678901234567890123456789012345678901234567890123", 64)
              ? &kept
              : &lost) += 1;
    cr_assert_gt(kept, 10000);
    cr_assert_gt(lost, 100);
    for (unsigned i = 0; i < kept; i++)
        cr_assert_eq(strlen(take(&fd)), 64);
    cr_assert_not(tp_input_pending(&in));
    cr_assert(tp_output_write(&out, 1, "there", 5));
    char note[96];
    snprintf(note, sizeof(note), "[%u texts that the device printed were lost here]\n", lost);
    cr_assert_str_eq(take(&fd), note);
    cr_assert_eq(fd, 2);
    cr_assert_str_eq(take(&fd), "there");
    cr_assert_eq(fd, 1);
}

Test(output, a_client_that_lies_gets_nothing, .init = begin)
{
    static const uint32_t lies[] = {
        1, 4, 0x7fffffff, 0x80000000, 0xffff0000, TP_OUTPUT_BYTES, TP_OUTPUT_BYTES + 4
    };
    for (size_t i = 0; i < GM_ARRAY_LEN(lies); i++) {
        atomic_store(&session.control->output.read, out.written + lies[i]);
        (void)tp_output_write(&out, 1, "text", 4);
    }
    atomic_store(&session.control->output.read, out.written);
    cr_assert(tp_output_write(&out, 1, "text", 4));
}

Test(output, an_executor_that_lies_prints_at_most_rubbish, .init = begin)
{
    uint32_t state = 1;
    int fd;
    for (unsigned i = 0; i < 20000; i++) {
        state = state * 1664525u + 1013904223u;
        if (i % 3 == 0)
            atomic_store(&session.control->output.written, state);
        else
            memcpy(session.output + (in.read % TP_OUTPUT_BYTES & ~3u), &state, sizeof(state));
        for (unsigned k = 0; k < 10; k++)
            cr_assert_leq(tp_input_take(&in, &fd, text), TP_OUTPUT_TEXT_MAX);
    }
}
