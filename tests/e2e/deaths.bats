# Processes that die under real programs on the software device: the executor, the server, and two hundred clients.

load helper

setup() {
    real_setup
}

teardown() {
    common_teardown
}

@test "the executor is killed: memory, globals and modules outlive it, busy clients get an error" {
    start_daemon
    start_program idle "$misbehave" idle
    program_says idle 41
    for round in 1 2 3; do
        start_program busy "$misbehave" spin
        program_says busy running
        executor=$(the_executor)
        kill -9 "$executor"
        program_says busy 719
        echo more >&"$idle_in"
        program_says idle $((41 + round))
        [ "$(the_executor)" != "$executor" ]
    done
    run -0 "$GMUX_BUILD/examples/vecadd"
    end_program idle
}

@test "the server is killed: 806 for its clients, which exit; another server for the next" {
    start_daemon
    start_program idle "$misbehave" idle
    program_says idle 41
    start_program busy "$misbehave" spin
    program_says busy running
    server=$(the_server)
    executor=$(the_executor)
    kill -9 "$server"
    program_says busy 806
    echo more >&"$idle_in"
    program_says idle -806
    ends_well busy
    end_program idle
    until_true 100 gone "$executor"
    run -0 "$GMUX_BUILD/examples/vecadd"
    [ "$(the_server)" != "$server" ]
}

@test "the server is killed: who only asks, or waits for another program's event, hears of it, too" {
    start_daemon
    start_program stream "$misbehave" ask stream
    start_program event "$misbehave" ask event
    start_program other "$misbehave" other
    for name in stream event other; do
        program_says "$name" running
    done
    kill -9 "$(the_server)"
    for name in stream event other; do
        program_says "$name" 806
        ends_well "$name"
    done
}

anonymous_kib() {
    awk '/^Private_Dirty/ { print $2 }' "/proc/$1/smaps_rollup"
}

@test "two hundred clients that die at any point under load leave nothing behind" {
    [ "$(id -u)" = 0 ] || skip "needs root"
    start_daemon
    start_program neighbour "$misbehave" steady
    program_says neighbour running
    server=$(the_server)
    executor=$(the_executor)
    only_neighbour() { [ "$("$control" get_client_list "$server")" = "$neighbour" ]; }
    "$misbehave" churn 24 # fills caches and pools, compiles
    until_true 100 only_neighbour
    before=$(descriptors "$daemon" "$server" "$executor")
    server_kib=$(anonymous_kib "$server") executor_kib=$(anonymous_kib "$executor")

    run -0 "$misbehave" churn 200
    echo "$output"

    until_true 100 only_neighbour
    expect_descriptors "$before" "$daemon" "$server" "$executor"
    [ "$(the_server)" = "$server" ]
    [ "$(the_executor)" = "$executor" ]
    echo "# KiB: server $server_kib, then $(anonymous_kib "$server"); executor $executor_kib, then" \
        "$(anonymous_kib "$executor")" >&3
    if [ "${GMUX_SANITIZE:-none}" = none ]; then # a sanitizer keeps what was freed, to see whether it is used
        [ "$(($(anonymous_kib "$server") - server_kib))" -lt 512 ]
        # what several threads of malloc keep differs by some MiB from one moment to the next
        [ "$(($(anonymous_kib "$executor") - executor_kib))" -lt 16384 ]
    fi
    end_program neighbour
    grep -q '^right [0-9]* times' "$DIR/neighbour.out"
    run -0 "$misbehave" fault divide # the device still works
    "$control" quit -t 5
    gone "$server"
}

@test "limits of file sizes, which hold for memory that is shared, too" {
    # What programs and daemons are started with may be raised as far as the system lets them.
    (ulimit -Sf 1000; "$control" -d 3>&-)
    run -0 "$GMUX_BUILD/examples/vecadd"
    (ulimit -f 100; exec "$GMUX_BUILD/examples/vecadd")
    (ulimit -Sf 100; CUDA_MPS_PIPE_DIRECTORY=/nonexistent exec "$GMUX_BUILD/examples/vecadd")
    daemon=$(cat "$DIR/pipe/nvidia-cuda-mps-control.pid")
    "$control" quit
    until_true 100 gone "$daemon"
    # Where that is not far enough nobody dies of it.
    (ulimit -f 100; "$control" -d 3>&-)
    run "$GMUX_BUILD/examples/vecadd"
    [ "$status" -lt 126 ]
    [ -n "$(the_server)" ]
    run -0 "$control" version
}

@test "a daemon that was started with all signals blocked, and one with all ignored, hears of them" {
    local server
    for how in block ignore; do
        env "--$how-signal" "$control" -d 3>&-
        daemon=$(cat "$DIR/pipe/nvidia-cuda-mps-control.pid")
        run -0 "$GMUX_BUILD/examples/vecadd"
        server=$(the_server)
        kill -9 "$server"
        run -0 "$GMUX_BUILD/examples/vecadd"
        another_server() { [ "$(the_server | wc -l)" = 1 ] && [ "$(the_server)" != "$server" ]; }
        until_true 100 another_server
        kill -TERM "$daemon"
        until_true 100 gone "$daemon"
    done
}

@test "more modules than a process may have descriptors: two programs load the same ones, and they outlive the executor" {
    modules=2000
    if [ "${GMUX_SANITIZE:-none}" != none ]; then modules=800; fi
    ulimit -n 1024
    start_daemon
    for name in one other; do
        start_program "$name" "$GMUX_BUILD/tests/e2e/modules" "$modules"
    done
    program_says one loaded
    program_says other loaded
    server=$(the_server)
    before=$(descriptors "$daemon" "$server")
    echo go >&"$one_in"
    program_says one "$modules"
    executor=$(the_executor)
    kill -9 "$executor"
    for name in one other; do
        eval 'echo go >&"$'$name'_in"'
        program_says "$name" "$modules"
    done
    [ "$(the_executor)" != "$executor" ]
    expect_descriptors "$before" "$daemon" "$server"
    end_program one
    end_program other
}
