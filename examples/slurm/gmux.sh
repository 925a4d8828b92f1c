# Where things are on this node: for prolog, epilog and task_prolog. A file local.sh beside this one can say otherwise.
export CUDA_MPS_PIPE_DIRECTORY=/tmp/nvidia-mps CUDA_MPS_LOG_DIRECTORY=/var/log/nvidia-mps
GMUX_LIBRARY=/usr/lib/x86_64-linux-gnu/gmux
GMUX_JOBS=/run/gmux-jobs
local=$(dirname "${BASH_SOURCE[0]}")/local.sh
# shellcheck source=/dev/null
[ ! -e "$local" ] || source "$local"
mkdir -p "$GMUX_JOBS" 2>/dev/null || true # task_prolog is not root's
