#!/usr/bin/env bats
# Programs that stand still, and then are killed, at each of their system calls: between connecting and being served, while
# memory is passed from one to another, while they fork. Here at every so many of them, on each day others. And programs that
# get signals all the time, or have closed what others leave open.

load helper

setup() {
    real_setup
    step=$GMUX_BUILD/tests/e2e/step
    vecadd=$GMUX_BUILD/examples/vecadd
    start_daemon
    "$vecadd"
    server=$(the_server)
    "$step" 0 "$vecadd" || skip "no program may be traced"
}

teardown() {
    common_teardown
}

# at_each EVERY PROGRAM: beside it another one works, and after it nothing is left.
at_each() {
    local i first every=$1 descriptors status=0
    [ "$GMUX_SANITIZE" = none ] || every=$((every * 3))
    first=$(($(date +%-j) % every))
    descriptors=$(find "/proc/$server/fd" | wc -l)
    for ((i = first; status == 0; i += every)); do
        timeout 60 "$step" "$i" -p "$vecadd" "$2" </dev/null 3>&- >"$DIR/step.out" 2>&1 || status=$?
    done
    echo "call $i of $2: $status"
    [ "$status" = 1 ]
    [ "$i" -gt $((first + 5 * every)) ]
    nothing_is_charged
    [ "$(the_server)" = "$server" ]
    [ "$(find "/proc/$server/fd" | wc -l)" -le "$descriptors" ]
}

@test "a program that is killed at any of its calls leaves nothing, and keeps nobody waiting" {
    at_each 11 "$vecadd"
}

@test "programs that share memory" {
    at_each 257 "$GMUX_BUILD/tests/api/api-ipc"
}

@test "programs that fork" {
    at_each 29 "$GMUX_BUILD/tests/api/api-fork"
}

@test "programs whose calls are interrupted all the time" {
    [ "$GMUX_SANITIZE" = none ] || skip "the sanitizers' library has to be loaded first"
    for program in "$vecadd" "$GMUX_BUILD"/tests/api/api-{memory,ipc,fork,launch,event,module,hostfunc,print}; do
        run -0 env LD_PRELOAD="$GMUX_BUILD/tests/e2e/storm.so" "$program"
        CUDA_MPS_PIPE_DIRECTORY=/nonexistent run -0 env LD_PRELOAD="$GMUX_BUILD/tests/e2e/storm.so" "$program"
    done
}

@test "programs without standard input, output and error, which print all the same" {
    [ "$GMUX_SANITIZE" = none ] || skip "the sanitizer takes what libc keeps for a closed descriptor for a leak"
    for program in "$vecadd" "$GMUX_BUILD"/tests/api/api-{memory,copy,compile,fork,launch,event,module,hostfunc}; do
        "$program" <&- >&- 2>&-
        CUDA_MPS_PIPE_DIRECTORY=/nonexistent "$program" <&- >&- 2>&-
    done
}
