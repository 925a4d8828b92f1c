/*
 * Checkpoints of processes. What a session has on its device is the server's, which does not take
 * it away and bring it back: a process runs, and cannot be locked. Calls that only make sense in
 * another state say that it is not that one.
 */
#include <unistd.h>

#include "client/gen/api.h"
#include "client/session/attach.h"

/* Of this process. Others have to be asked about where they run: this library knows nothing of
 * them. */
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
    return r ? r : CUDA_ERROR_ILLEGAL_STATE; /* it is not locked */
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
