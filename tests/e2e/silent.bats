# A daemon or a server that stands still: programs hear of it in time, and others go on. Real programs on the software device.

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
