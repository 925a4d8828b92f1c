# OpenMPI from Debian's packages: ranks share the device.

load ../e2e/helper

setup() {
    command -v mpirun >/dev/null && command -v mpicc >/dev/null || skip "needs Debian's openmpi-bin and libopenmpi-dev"
    real_setup
    export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_CC=${CC:-cc}
    if [ "${GMUX_SANITIZE:-none}" != none ]; then # as the library; what OpenMPI itself does not free is not ours
        sanitize=-fsanitize=$GMUX_SANITIZE
        export ASAN_OPTIONS=${ASAN_OPTIONS:+$ASAN_OPTIONS:}detect_leaks=0
    fi
    # shellcheck disable=SC2086 # an option or none
    mpicc ${sanitize:-} -O2 -Wall -Wextra -Wno-cast-function-type -I"$GMUX_BUILD/include" "$GMUX_SOURCE/examples/mpi/sum.c" -o "$DIR/sum" \
        -L"$GMUX_BUILD/src/client" -l:libcuda.so.1
    export LD_LIBRARY_PATH=$GMUX_BUILD/src/client
}

teardown() {
    [ -z "${DIR:-}" ] || common_teardown
}

@test "four ranks add up on one device" {
    CUDA_MPS_ACTIVE_THREAD_PERCENTAGE=25 start_daemon
    run -0 mpirun --oversubscribe -np 4 "$DIR/sum" "$GMUX_SOURCE/examples/reduction/kernel.ptx"
    [ "${lines[-1]}" = "4 ranks: sum 6291456, correct" ]
    [ "$(count_lines server 'Client {PID: [0-9]*, Context ID: 0} connected')" = 4 ]
}

@test "a rank that dies takes no other one's device" {
    start_daemon
    start_program other "$GMUX_BUILD/examples/nbody" -benchmark -numbodies=1024 -iterations=1000000
    run ! mpirun --oversubscribe -np 2 "$DIR/sum" /nonexistent.ptx
    not gone "$other"
    run -0 mpirun --oversubscribe -np 2 "$DIR/sum" "$GMUX_SOURCE/examples/reduction/kernel.ptx"
    [ "${lines[-1]}" = "2 ranks: sum 3145728, correct" ]
}
