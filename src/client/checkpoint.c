/*
 * Checkpoints of processes. A session's state on the device belongs to the server, which cannot
 * take it away and bring it back later. So a process always counts as running, and it cannot be
 * locked. Calls that need another state fail, because the process is not in it.
 */
#include <unistd.h>

#include "client/gen/api.h"
#include "client/session/attach.h"

/* Checks that the call is about this process. Another process may run anywhere, and this library
 * knows nothing of it. */
static int enter(int pid)
{
    int r = rt_ready();
    if (r)
        return r;
    if (pid <= 0)
        return CUDA_ERROR_OPERATING_SYSTEM;
    return pid == getpid() ? CUDA_SUCCESS : CUDA_ERROR_NOT_SUPPORTED;
}

static int refuse(int pid)
{
    static atomic_bool said;
    int r = enter(pid);
    return r ? r : (int)rt_not_supported("checkpoints of processes", &said);
}

CUresult rt_cuCheckpointProcessGetState(int pid, CUprocessState *state)
{
    int r = rt_ready();
    if (r)
        return r;
    if (!state)
        return CUDA_ERROR_INVALID_VALUE;
    r = enter(pid);
    if (r == CUDA_SUCCESS)
        *state = CU_PROCESS_STATE_RUNNING;
    return r;
}

CUresult rt_cuCheckpointProcessGetRestoreThreadId(int pid, int *tid)
{
    return tid ? refuse(pid) : CUDA_ERROR_INVALID_VALUE;
}

CUresult rt_cuCheckpointProcessLock(int pid, CUcheckpointLockArgs *args GM_UNUSED)
{
    return refuse(pid);
}

CUresult rt_cuCheckpointProcessCheckpoint(int pid, CUcheckpointCheckpointArgs *args GM_UNUSED)
{
    int r = enter(pid);
    return r ? r : CUDA_ERROR_ILLEGAL_STATE; /* the process is not locked */
}

CUresult rt_cuCheckpointProcessRestore(int pid, CUcheckpointRestoreArgs *args GM_UNUSED)
{
    int r = enter(pid);
    return r ? r : CUDA_ERROR_ILLEGAL_STATE;
}

CUresult rt_cuCheckpointProcessUnlock(int pid, CUcheckpointUnlockArgs *args GM_UNUSED)
{
    int r = enter(pid);
    return r ? r : CUDA_ERROR_ILLEGAL_STATE;
}
