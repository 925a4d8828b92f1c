# A daemon or a server that stands still: programs hear of it in time, and others go on. And no daemon at all: said in one line.
# Real programs on the software device.

load helper

setup() {
    real_setup
    export GMUX_ANSWER_TIMEOUT=1
    start_daemon
}

teardown() {
    kill -CONT "${stopped[@]}" 2>/dev/null || true
    common_teardown
}

program() {
    LD_LIBRARY_PATH=$GMUX_BUILD/src/client:$GMUX_BUILD/src/device/soft timeout 20 "$GMUX_BUILD/examples/vecadd" 2>&1
}

stop() {
    stopped=("$1")
    kill -STOP "$1"
}

# An error at cuInit, not the time limit's 124 and not a result without a daemon.
ends_in_time() {
    run program
    echo "status $status: $output"
    [ "$status" != 0 ] && [ "$status" != 124 ]
    [[ $output == *805* ]]
}

@test "a daemon that is stopped: cuInit ends in time, and works when it goes on" {
    stop "$daemon"
    ends_in_time
    kill -CONT "$daemon"
    run -0 program
}

@test "a server that is stopped: cuInit ends in time, and works when it goes on" {
    run -0 program
    one_server
    stop "$(the_server)"
    ends_in_time
    [ "$("$control" get_default_active_thread_percentage)" = 100.0 ]
    kill -CONT "${stopped[0]}"
    run -0 program
}

@test "another user's server that is stopped is nothing to us" {
    two_users "$GMUX_BUILD/examples/vecadd"
    "${a[@]}" test -r "$GMUX_BUILD/src/client/libcuda.so.1" || skip "user 12345 cannot reach the library"
    start_client one "${a[@]}" --
    [[ $(answered one) == served* ]]
    stop "$(the_server)"
    run -0 program
}

# alone WORDS: the program runs by itself and says why, once; with GMUX_REQUIRE=1 it does not run; doctor says it, too.
alone() {
    run -0 --separate-stderr program_apart
    [ "${#stderr_lines[@]}" = 1 ] && [[ ${stderr_lines[0]} == "gmux: "*"$1: running without a daemon" ]] || {
        echo "$stderr"
        return 1
    }
    [[ $output == *"all correct"* ]]
    GMUX_REQUIRE=1 run ! --separate-stderr program_apart
    [[ ${stderr_lines[0]} == "gmux: "*"$1: refused, since GMUX_REQUIRE is set" && $stderr == *805* ]]
    run -1 "$GMUX_BUILD/src/cli/gmux" doctor
    [[ $output == *"BAD  $2"* ]] || {
        echo "$output"
        return 1
    }
}

program_apart() {
    LD_LIBRARY_PATH=$GMUX_BUILD/src/client:$GMUX_BUILD/src/device/soft timeout 20 "$GMUX_BUILD/examples/vecadd"
}

@test "no daemon where one was named, one that has died, a path that is too long: one line each" {
    CUDA_MPS_PIPE_DIRECTORY=$DIR/nowhere alone "there is no socket of a daemon" "CUDA_MPS_PIPE_DIRECTORY is $DIR/nowhere, and no daemon"
    kill -9 "$daemon"
    until_true 100 gone "$daemon"
    alone "its daemon has ended" "CUDA_MPS_PIPE_DIRECTORY is $DIR/pipe, and no daemon is there (Connection refused)"
    CUDA_MPS_PIPE_DIRECTORY=$DIR/$(printf 'long%.0s' {1..40}) alone "the path is too long for a socket" "CUDA_MPS_PIPE_DIRECTORY is longer"
    # Nobody has named one: nothing is to be said.
    unset CUDA_MPS_PIPE_DIRECTORY
    [ ! -e /tmp/nvidia-mps ] || skip "there is a daemon of this machine"
    run -0 --separate-stderr program_apart
    [ -z "$stderr" ]
}

@test "another user's daemon: not believed, and who would have to be" {
    two_users "$GMUX_BUILD/examples/vecadd"
    "$control" quit -t 0
    mkdir "$DIR/theirs"
    chown 12345 "$DIR/theirs"
    CUDA_MPS_PIPE_DIRECTORY=$DIR/theirs CUDA_MPS_LOG_DIRECTORY=$DIR/theirs "${a[@]}" "$control" -d 3>&-
    export CUDA_MPS_PIPE_DIRECTORY=$DIR/theirs
    alone "user 12345 listens there, who is neither root nor you (GMUX_DAEMON_USER=12345 would believe this user)" \
        "the daemon in $DIR/theirs is another user's"
    run -1 "$GMUX_BUILD/src/cli/gmux" run true
    [[ $output == "gmux run: the daemon in $DIR/theirs is another user's"* ]]
    "${a[@]}" "$control" quit
}
