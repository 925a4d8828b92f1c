/*
 * Each way is a jump through a word of its own. It leaves registers and stack as they are, because
 * nothing is known of the parameters of these functions. Words are claimed without a lock, since
 * the program may fork at any time.
 */
#include "client/entry/late.h"

#include <dlfcn.h>
#include <stdint.h>
#include <string.h>

#include "base/attr.h"
#include "device/genuine/genuine.h"

/* As many as the jumps below; the drivers of a year add some dozens of functions. */
#define WAYS         256
#define WAY_BYTES    16
#define STRING_OF(x) #x
#define STRING(x)    STRING_OF(x)

enum decision { UNDECIDED, FOR_GENUINE, FOR_SESSION };

typedef CUresult (*look_up_fn)(const char *, void **, int, cuuint64_t,
                               CUdriverProcAddressQueryResult *);

static CUresult too_early(void)
{
    return CUDA_ERROR_NOT_INITIALIZED;
}

static CUresult not_served(void)
{
    static atomic_bool said;
    return rt_not_supported("a function that only a newer driver has", &said);
}

_Atomic(rt_proc_fn) rt_late_words[WAYS] __attribute__((visibility("hidden"), used)) = {
    [0 ... WAYS - 1] = (rt_proc_fn)too_early,
};
extern const unsigned char rt_late_ways[WAYS * WAY_BYTES] __attribute__((visibility("hidden")));
static _Atomic(rt_proc_fn) functions[WAYS]; /* the function that each word was claimed for */
static _Atomic int decision = UNDECIDED;

#if defined(__x86_64__)
__asm__(".pushsection .text\n"
        ".balign 16\n"
        ".hidden rt_late_ways\n"
        ".globl rt_late_ways\n"
        "rt_late_ways:\n"
        ".set rt_late_i, 0\n"
        ".rept " STRING(WAYS) "\n"
                              "endbr64\n"
                              "jmp *rt_late_words + rt_late_i(%rip)\n"
                              ".balign " STRING(WAY_BYTES) "\n"
                                                           ".set rt_late_i, rt_late_i + 8\n"
                                                           ".endr\n"
                                                           ".popsection\n");
#define HAS_WAYS true
#else
const unsigned char rt_late_ways[WAYS * WAY_BYTES];
#define HAS_WAYS false /* such functions are found after cuInit only */
#endif

static void point(unsigned i, rt_proc_fn function, int decided)
{
    atomic_store(&rt_late_words[i], decided == FOR_GENUINE ? function : (rt_proc_fn)not_served);
}

/* Returns the way to `function`, or NULL if no way is left. */
static rt_proc_fn way_to(rt_proc_fn function)
{
    for (unsigned i = 0; i < WAYS; i++) {
        rt_proc_fn whose = NULL;
        if (!atomic_compare_exchange_strong(&functions[i], &whose, function) && whose != function)
            continue;
        int decided = atomic_load(&decision); /* a thread that decides later sees the claim */
        if (decided != UNDECIDED)
            point(i, function, decided);
        return (rt_proc_fn)(uintptr_t)(rt_late_ways + i * WAY_BYTES);
    }
    return NULL;
}

static rt_proc_fn ask(look_up_fn look_up, const char *name, int version, cuuint64_t flags)
{
    CUdriverProcAddressQueryResult status = CU_GET_PROC_ADDRESS_SUCCESS;
    void *found = NULL;
    rt_proc_fn function = NULL;
    if (look_up(name, &found, version, flags, &status) == CUDA_SUCCESS && found)
        memcpy(&function, &found, sizeof(function));
    return function;
}

rt_proc_fn rt_proc_late(const char *name, int version, cuuint64_t flags, bool known)
{
    char why[256];
    if (!HAS_WAYS || !*name || atomic_load(&decision) == FOR_SESSION)
        return NULL;
    void *library = dev_genuine_library(why, sizeof(why));
    look_up_fn look_up = library ? (look_up_fn)dlsym(library, "cuGetProcAddress_v2") : NULL;
    rt_proc_fn function = look_up ? ask(look_up, name, version, flags) : NULL;
    if (!function || (known && function == ask(look_up, name, CUDA_VERSION, flags)))
        return NULL;
    return way_to(function);
}

void rt_late_decide(bool genuine)
{
    int decided = genuine ? FOR_GENUINE : FOR_SESSION;
    atomic_store(&decision, decided);
    for (unsigned i = 0; i < WAYS; i++) {
        rt_proc_fn function = atomic_load(&functions[i]);
        if (function)
            point(i, function, decided);
    }
}
