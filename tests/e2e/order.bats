# Random work of many processes under one daemon, beside a model each (tests/cudart/order.cuh): what they hand to each
# other is right, while others die and fault. GMUX_ORDER="FIRST COUNT": other programs, and more of them.

load helper

setup() {
    real_setup
    [ -x "$GMUX_BUILD/src/cudart/gmux-cc" ] || skip "no gmux-cc in this build"
    [ "${GMUX_SANITIZE:-none}" = none ] || skip "programs without sanitizers cannot load a library with them"
}

teardown() {
    common_teardown
}

compile() {
    "$GMUX_BUILD/src/cudart/gmux-cc" -O2 "$GMUX_SOURCE/tests/cudart/$1.cu" -lcuda -o "$DIR/$1"
}

# order NAME PROGRAM: begins it with its share of the programs, each process with numbers of its own.
order() {
    local first count
    read -r first count <<<"${GMUX_ORDER:-1 15}"
    start_program "$1" "$DIR/$2" "$((first + 100000 * ${#CLIENTS[@]}))" "$count"
}

has_passed() {
    local tenths=300
    [ -z "${GMUX_ORDER:-}" ] || tenths=36000
    until_true $tenths gone "${!1}"
    wait "${!1}" || {
        cat "$DIR/$1.out"
        return 1
    }
    program_says "$1" passed
}

all_together() {
    local server executor
    start_daemon
    run -0 "$GMUX_BUILD/examples/vecadd"
    server=$(the_server) executor=$(the_executor)
    order peers order_processes
    order threads order_threads
    order others order_processes
    for share in 20 100 50 100; do # of programs that are about to begin, and of those that run
        "$control" set_active_thread_percentage "$server" "$share"
        run -0 "$misbehave" fault divide # a short program, and no fault
    done
    for name in peers threads others; do
        has_passed "$name"
    done
    [ "$(the_server)" = "$server" ]
    [ "$(the_executor)" = "$executor" ]
    nothing_is_charged
}

@test "workers, threads, programs that die and programs that fault: the work is right, and nothing is left behind" {
    compile order_processes
    compile order_threads
    all_together
    "$control" quit -t 5
    GMUX_SOFT_JIT=0 all_together
}
