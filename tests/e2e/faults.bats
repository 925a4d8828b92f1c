# Kernels that misbehave, in real programs under a real daemon on the software device: what CUDA says to the culprit,
# and nothing to anybody else.

load helper

setup() {
    real_setup
}

teardown() {
    common_teardown
}

# In compiled code and, the first time, in the interpreter.
both_tiers() {
    GMUX_SOFT_JIT=0 start_daemon
    "$@"
    "$control" quit -t 1
    start_daemon
    "$@"
}

every_fault() {
    local kind
    start_program neighbour "$misbehave" steady
    program_says neighbour running
    for kind in null host far unmapped; do
        run -0 "$misbehave" fault "$kind"
        [ "$output" = "700 700 700 700" ] || { echo "$kind: $output"; false; }
    done
    run -0 "$misbehave" fault misaligned
    [ "$output" = "716 716 716 716" ]
    run -0 "$misbehave" fault trap
    [ "$output" = "719 719 719 719" ]
    run -0 "$misbehave" fault divide # not an error in CUDA, and SIGFPE nowhere
    [ "$output" = "0 0 0 0" ]
    end_program neighbour
    grep -q '^right [0-9]* times' "$DIR/neighbour.out"
}

@test "faults are their client's: 700, 716, 719, and sticky" {
    both_tiers every_fault
    has_line server "gets error 700"
    has_line server "gets error 716"
    has_line server "gets error 719"
}

@test "n-body beside faults is right" {
    start_daemon
    start_program nbody "$GMUX_BUILD/examples/nbody" -numbodies=1024 -iterations=50 -compare
    for kind in unmapped trap misaligned null; do
        "$misbehave" fault "$kind"
    done
    ends_well nbody
    grep -q "^compare: device and CPU agree" "$DIR/nbody.out"
}

@test "an endless kernel: terminate_client ends it with 810, the neighbour goes on" {
    start_daemon
    start_program neighbour "$misbehave" steady
    program_says neighbour running
    start_program endless "$misbehave" spin
    program_says endless running
    run -0 "$GMUX_BUILD/examples/vecadd"
    [ "$("$control" terminate_client "$(the_server)" "$endless")" = 0 ]
    program_says endless 810
    end_program neighbour
}

@test "programs that hand over without end, and lie about what is done: the neighbour goes on" {
    start_daemon
    start_program neighbour "$misbehave" steady
    program_says neighbour running
    start_program hog "$misbehave" hog 300
    start_program liar "$misbehave" liar 1
    start_program liars "$misbehave" liar 300
    for name in hog liar liars; do
        program_says $name running
    done
    for _ in 1 2 3; do
        run -0 "$GMUX_BUILD/examples/vecadd"
    done
    kill -9 "$hog" "$liar" "$liars"
    end_program neighbour
    grep -q '^right [0-9]* times' "$DIR/neighbour.out"
    run -0 "$GMUX_BUILD/examples/vecadd"
}

@test "an endless kernel whose client is killed leaves the device" {
    start_daemon
    start_program endless "$misbehave" spin
    program_says endless running
    server=$(the_server)
    kill -9 "$endless"
    nobody_left() { [ -z "$("$control" get_client_list "$server")" ]; }
    until_true 100 nobody_left
    run -0 "$GMUX_BUILD/examples/vecadd"
    rests "$(the_executor)"
}

@test "quit -t 1 ends a daemon with endless kernels" {
    start_daemon
    for name in one two three; do
        start_program $name "$misbehave" spin
        program_says $name running
    done
    server=$(the_server)
    "$control" quit -t 1
    until_true 50 gone "$daemon"
    until_true 50 gone "$server"
    for name in one two three; do
        until_true 100 gone "${!name}"
    done
}
