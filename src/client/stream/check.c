/*
 * Each thing that the checker has to know is told by a call of its own. That includes what this
 * library itself writes through the window.
 */
#include "client/stream/check.h"

#include <errno.h>
#include <stdio.h>
#include <unistd.h>

#include "client/session/map.h"
#include "client/stream/call.h"
#include "client/stream/reach.h"

#define PADDING 1024u /* bytes */

static void say(const char *text, int size)
{
    if (size > 0)
        rt_check_write(text, (size_t)size);
}

int rt_check_begin(void)
{
    char text[600];
    struct rt_call call;
    rt_call_begin(&call, WIRE_CALL_CHECK_BEGIN, 0);
    wire_put_call_check_begin(&call.args, &(struct wire_call_check_begin) { .checks = rt_checks });
    int r = rt_call_end(&call, rt_call_run(&call));
    if (r == CUDA_SUCCESS)
        say(text,
            snprintf(text, sizeof(text), "========= GMUX-CHECK of %.400s, process %d:%s%s%s\n",
                     program_invocation_name, (int)getpid(),
                     rt_checks & WIRE_CHECK_MEMORY ? " memory" : "",
                     rt_checks & WIRE_CHECK_RACE ? " race" : "",
                     rt_checks & WIRE_CHECK_UNINIT ? " uninit" : ""));
    return r;
}

/* Tells the checker something. If that fails the session has an error, of which the program will
 * learn. */
static void note(uint32_t what, uint64_t address, uint64_t size)
{
    struct rt_call call;
    rt_call_begin(&call, WIRE_CALL_CHECK_NOTE, 0);
    wire_put_call_check_note(&call.args, &(struct wire_call_check_note) {
                                             .note = what, .address = address, .size = size });
    (void)rt_call_end(&call, rt_call_run(&call));
}

void rt_check_entered(const struct rt_range *r)
{
    switch (r->kind) {
    case RT_MEMORY_GLOBAL: /* the device knows a module's variables */
    case RT_MEMORY_GLOBAL_MANAGED:
    case RT_MEMORY_PAGEABLE: /* no kernel can reach it */
        break;
    case RT_MEMORY_DEVICE:
        /* Earlier kernels may still use what was freed there. */
        (void)rt_reach_wait(rt_reach_of(r));
        note(WIRE_CHECK_NOTE_MADE, r->window, r->size);
        break;
    default:
        note(WIRE_CHECK_NOTE_LENT, r->window, r->size);
    }
}

void rt_check_left(const struct rt_range *r)
{
    if (GM_LIKELY(!rt_checks))
        return;
    (void)rt_reach_wait(rt_reach_of(r));
    note(WIRE_CHECK_NOTE_GONE, r->window, r->size);
}

uint64_t rt_check_padded(uint64_t size)
{
    uint64_t more;
    return GM_LIKELY(!rt_checks) || __builtin_add_overflow(size, PADDING, &more) ? size : more;
}

void rt_check_lent(uint64_t address, uint64_t size)
{
    if (GM_UNLIKELY(rt_checks))
        note(WIRE_CHECK_NOTE_LENT, address, size);
}

void rt_check_wrote(uint64_t address, uint64_t size)
{
    note(WIRE_CHECK_NOTE_WROTE, address, size);
}

void rt_check_end(void)
{
    struct wire_call_check_counted found = { 0 };
    struct rt_call call;
    char text[200];
    for (unsigned i = 0; i < rt_session->device_count; i++)
        (void)rt_reach_wait(rt_reach_of_device((int)i));
    rt_output_show(rt_session);
    rt_call_begin(&call, WIRE_CALL_CHECK_COUNT, 0);
    int r = rt_call_run(&call);
    if (r == CUDA_SUCCESS)
        wire_get_call_check_counted(&call.reply, &found);
    r = rt_call_end(&call, r);
    if (r) /* the call that ended the session may have left only what was told before */
        found.places = found.times = rt_check_told;
    say(text,
        snprintf(text, sizeof(text), "========= ERROR SUMMARY: %s%llu error%s (%llu times)%s\n",
                 r ? "at least " : "", (unsigned long long)found.places,
                 found.places == 1 ? "" : "s", (unsigned long long)found.times,
                 r ? "; the session ended in an error of its own" : ""));
}
