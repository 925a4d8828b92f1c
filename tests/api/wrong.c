/* Calls with wrong arguments (wrong.h) never crash, always answer, and never take a handle that
 * nobody gave out. */
#include "wrong.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

#include "tap.h"

#define ROOM 65536u

static uint64_t room[ROOM / 8];

void *wrong_pointer(unsigned what)
{
    return what == WRONG_HANDLES || what == WRONG_LITTLE ? room : NULL;
}

void *wrong_handle(unsigned what)
{
    return what == WRONG_HANDLES || what == WRONG_HANDLES_HUGE
               ? (void *)(uintptr_t)0xdead0000dead000
               : NULL;
}

uint64_t wrong_number(unsigned what)
{
    return what == WRONG_HANDLES_HUGE || what == WRONG_HUGE ? UINT64_MAX : what == WRONG_LITTLE;
}

/* One that cannot be used is the program's own affair where the host copies. */
uint64_t wrong_address(unsigned what)
{
    return what == WRONG_LITTLE ? (uintptr_t)room : wrong_number(what);
}

void wrong_callback(void)
{
}

static CUresult call(const struct wrong_function *f, unsigned what)
{
    void *function = dlsym(RTLD_DEFAULT, f->name);
    CUcontext primary;
    if (!function)
        tap_fail(__FILE__, __LINE__, "%s is not exported", f->name);
    memset(room, 0, sizeof(room));
    OK(cuDevicePrimaryCtxRetain(&primary, 0));
    OK(cuCtxSetCurrent(primary));
    return f->call(function, what);
}

/* No call crashes or hangs, and each answers something that the API has. */
static void all_return(unsigned what)
{
    const char *text;
    for (size_t i = 0; i < wrong_functions_count; i++) {
        CUresult r = call(&wrong_functions[i], what);
        if (cuGetErrorName(r, &text) != CUDA_SUCCESS)
            tap_fail(__FILE__, __LINE__, "%s answers %d", wrong_functions[i].name, (int)r);
        if (what != WRONG_HANDLES && what != WRONG_HANDLES_HUGE)
            continue;
        if (wrong_functions[i].handles && r == CUDA_SUCCESS)
            tap_fail(__FILE__, __LINE__, "%s takes handles that nobody gave out",
                     wrong_functions[i].name);
    }
}

static void nothing(void)
{
    all_return(WRONG_NOTHING);
}

static void handles(void)
{
    all_return(WRONG_HANDLES);
}

static void handles_and_huge_numbers(void)
{
    all_return(WRONG_HANDLES_HUGE);
}

static void huge_numbers(void)
{
    all_return(WRONG_HUGE);
}

static void little(void)
{
    all_return(WRONG_LITTLE);
}

int main(void)
{
    const struct tap_test tests[] = {
        TEST(nothing),      TEST(handles), TEST(handles_and_huge_numbers),
        TEST(huge_numbers), TEST(little),
    };
    return tap_ours() ? tap_main(tests, COUNT(tests)) : 0;
}
