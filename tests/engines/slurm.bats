# Slurm from Debian's packages, with examples/slurm: jobs that ask for parts of a GPU.

load ../e2e/helper

setup() {
    command -v slurmctld >/dev/null && command -v slurmd >/dev/null || skip "needs Debian's slurm-wlm"
    [ "$(id -u)" = 0 ] || skip "needs root"
    real_setup
    start_slurm
}

teardown() {
    [ -n "${DIR:-}" ] || return 0
    local pid
    for pid in $(cat "$DIR"/slurm/*.pid 2>/dev/null); do
        kill "$pid" 2>/dev/null || true
        until_true 100 gone "$pid" || kill -9 "$pid"
    done
    [ "${BATS_TEST_COMPLETED:-}" = 1 ] || tail -n 20 "$DIR"/slurm/*.log
    common_teardown
}

nodes_rest() {
    [ "$(sinfo -h -o %t)" = idle ]
}

# One node, without munge, on ports of its own; what is gmux's is the example's.
start_slurm() {
    local s=$DIR/slurm node port=$((20000 + RANDOM % 10000))
    node=$(hostname -s)
    mkdir -p "$s/state" "$s/spool"
    cp -r "$GMUX_SOURCE/examples/slurm" "$s/gmux"
    cat >"$s/gmux/local.sh" <<END
export CUDA_MPS_PIPE_DIRECTORY=$DIR/pipe CUDA_MPS_LOG_DIRECTORY=$DIR/log
export GMUX_DEVICE=soft GMUX_GENUINE_LIBCUDA=none GMUX_CACHE_DIR=$GMUX_CACHE_DIR
GMUX_LIBRARY=$GMUX_BUILD/src/client GMUX_JOBS=$DIR/jobs
PATH=$GMUX_BUILD/src/control:\$PATH
END
    mknod "$s/nvidia0" c 1 3 || skip "no device files here" # looks like a GPU's, is /dev/null
    sed "s|/dev/nvidia0|$s/nvidia0|" "$GMUX_SOURCE/examples/slurm/gres.conf" >"$s/gres.conf"
    {
        sed "s|/etc/slurm/gmux|$s/gmux|" "$GMUX_SOURCE/examples/slurm/slurm.conf"
        cat <<END
ClusterName=test
SlurmctldHost=$node(127.0.0.1)
SlurmctldPort=$port
SlurmdPort=$((port + 1))
AuthType=auth/none
CredType=cred/none
SlurmUser=root
SlurmdUser=root
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
MpiDefault=none
ReturnToService=2
SlurmctldPidFile=$s/slurmctld.pid
SlurmdPidFile=$s/slurmd.pid
StateSaveLocation=$s/state
SlurmdSpoolDir=$s/spool
SlurmctldLogFile=$s/slurmctld.log
SlurmdLogFile=$s/slurmd.log
NodeName=$node NodeAddr=127.0.0.1 CPUs=2 Gres=gpu:1,mps:100
PartitionName=all Nodes=ALL Default=YES State=UP OverSubscribe=YES:8
END
    } >"$s/slurm.conf"
    export SLURM_CONF=$s/slurm.conf
    unset GMUX_DEVICE CUDA_MPS_PIPE_DIRECTORY CUDA_MPS_LOG_DIRECTORY # the prolog's business
    slurmctld 3>&- && slurmd 3>&-
    until_true 200 nodes_rest
}

# The daemon of the jobs.
ask() {
    CUDA_MPS_PIPE_DIRECTORY=$DIR/pipe "$control" "$@"
}

has_gone() {
    not ask version >/dev/null 2>&1
}

@test "a job that asks for a third gets a third; the daemon lives as long as the last job" {
    srun --gres=mps:33 "$GMUX_BUILD/examples/nbody" -benchmark -numbodies=1024 -iterations=1000000 >"$DIR/long.out" 2>&1 3>&- &
    local long=$!
    CLIENTS+=("$long")
    # Its one client has the share that Slurm gave it.
    shared() { ask clients "$(ask get_server_list)" 2>/dev/null | grep -q $'\t33.0\t'; }
    until_true 300 shared
    run -0 srun --gres=mps:50 "$GMUX_BUILD/examples/vecadd"
    [[ $output == *"all correct"* ]]
    not has_gone # the second job has ended, the first has not
    scancel --user root
    until_true 300 gone "$long"
    until_true 200 has_gone
    until_true 200 nodes_rest # not drained
    grep -q "Exit with status 0" "$DIR/log/control.log"
}

@test "two users' jobs at once, each with its server" {
    # Slurm starts jobs of users that the machine knows.
    for who in nobody games; do
        setpriv --reuid "$who" --clear-groups test -x "$GMUX_BUILD/examples/reduction" -a -r "$SLURM_CONF" || skip "$who cannot reach the tests"
        setpriv --reuid "$who" --clear-groups env HOME=/ srun --gres=mps:33 "$GMUX_BUILD/examples/reduction" >"$DIR/$who.out" 2>&1 3>&- &
        CLIENTS+=($!)
    done
    wait "${CLIENTS[@]}" || { cat "$DIR"/{nobody,games}.out; false; }
    until_true 200 has_gone
    grep -q "Starting new server [0-9]* for user $(id -u nobody)" "$DIR/log/control.log"
    grep -q "Starting new server [0-9]* for user $(id -u games)" "$DIR/log/control.log"
}

@test "a job that asks for nothing starts no daemon" {
    run -0 srun sh -c 'echo "share ${CUDA_MPS_ACTIVE_THREAD_PERCENTAGE:-none}"'
    [ "$output" = "share none" ]
    [ ! -e "$DIR/log/control.log" ]
}
