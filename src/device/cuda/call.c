/*
 * Finds the function that answers a client's question, in the tables that call.h makes. What the
 * client has submitted before goes to the driver first.
 */
#include "device/cuda/call.h"

#include "device/cuda/fallback.h"
#include "device/cuda/intake.h"
#include "device/cuda/module.h"

typedef int module_call(struct dev_module *m, struct wire_dec *args, struct wire_enc *reply);
typedef int client_call(struct dev_client *c, struct wire_dec *args, struct wire_enc *reply);

#define X(kind, name) [WIRE_CALL_##kind] = name,
static module_call *const module_calls[] = { CUDA_MODULE_CALLS(X) };
static client_call *const client_calls[] = { CUDA_CLIENT_CALLS(X) };
#undef X

/* What it makes cannot be made again, or may not be. */
static bool binds(uint32_t function)
{
    return function == WIRE_CALL_VARIABLE_FIND || function == WIRE_CALL_ARRAY_CREATE ||
           function == WIRE_CALL_OBJECT_CREATE || function == WIRE_CALL_SPLIT;
}

int cuda_call(struct dev_client *c, const struct dev_call *call)
{
    int r = GM_CUDA_NOT_SUPPORTED;
    cuda_flush(c); /* the answer may take long, and others are to see what runs (admit.h) */
    const uint32_t device = call->module ? call->module->gpu->index : call->device;
    if (GM_UNLIKELY(binds(call->function)))
        cuda_fallback_await(c, device);
    c->asked = cuda_home(c, device);
    cuda_enter(c->asked);
    if (call->function < GM_ARRAY_LEN(module_calls) && module_calls[call->function])
        r = call->module ? module_calls[call->function](call->module, call->args, call->reply)
                         : GM_CUDA_INVALID_HANDLE;
    else if (call->function < GM_ARRAY_LEN(client_calls) && client_calls[call->function])
        r = client_calls[call->function](c, call->args, call->reply);
    if (r != GM_CUDA_SUCCESS)
        cuda_die_if_lost(c->asked);
    return r;
}
