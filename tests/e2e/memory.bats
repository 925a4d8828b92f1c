# A machine, or a control group, that runs out of memory, with real programs on the software device.

load helper

LIMIT_MIB=512

setup() {
    real_setup
    make_group
}

teardown() {
    common_teardown
    [ -z "${group:-}" ] || until_true 100 rmdir "$group" 2>/dev/null
}

# A control group of version 2 or 1 with so much memory.
make_group() {
    local root=/sys/fs/cgroup
    [ "$(id -u)" = 0 ] || skip "needs root"
    if grep -qw memory "$root/cgroup.subtree_control" 2>/dev/null; then
        home=$root$(sed -n 's/^0:://p' /proc/self/cgroup) limit=memory.max swap=memory.swap.max events=memory.events
    else
        root+=/memory limit=memory.limit_in_bytes swap=memory.swappiness events=memory.oom_control
        home=$root$(sed -n 's/^[0-9]*:memory://p' /proc/self/cgroup)
    fi
    mkdir "$root/gmux-test.$$" 2>/dev/null || skip "needs the right to make control groups"
    group=$root/gmux-test.$$
    [ -e "$group/$limit" ] || skip "needs a memory controller"
    echo $((LIMIT_MIB << 20)) > "$group/$limit"
    echo 0 > "$group/$swap" || true
}

# The daemon, and so server and executor, are in the group, and the programs are not.
start_daemon_inside() {
    echo 0 > "$group/cgroup.procs"
    start_daemon
    echo 0 > "$home/cgroup.procs"
}

eat_inside() {
    echo 0 > "$group/cgroup.procs"
    exec "$misbehave" eat "$@"
}

killed() {
    awk '/^oom_kill / { print $2 }' "$group/$events"
}

@test "a control group smaller than the device: cuMemAlloc fails, and nobody is killed" {
    start_daemon_inside
    start_program idle "$misbehave" idle
    program_says idle 41
    executor=$(the_executor)
    start_program fill "$misbehave" fill
    filled() { grep -q '^2 after' "$DIR/fill.out"; }
    until_true 300 filled
    cat "$DIR/fill.out"
    mib=$(sed -n 's/^2 after \([0-9]*\) MiB/\1/p' "$DIR/fill.out")
    [ "$mib" -ge $((LIMIT_MIB / 4)) ]
    [ "$mib" -lt "$LIMIT_MIB" ]
    echo more >&"$idle_in"
    program_says idle 42
    [ "$(the_executor)" = "$executor" ]
    [ "$(killed)" = 0 ]
    # Were it otherwise, the compiler would go first, then the executor, and never who cannot be started anew.
    jit=$(cat "/proc/$executor/task"/*/children)
    [ -z "$jit" ] || [ "$(cat "/proc/${jit%% *}/oom_score_adj")" = 1000 ]
    end_program fill
    end_program idle
    local other
    for other in "$daemon" "$(the_server)"; do
        [ "$(cat "/proc/$executor/oom_score")" -gt "$(cat "/proc/$other/oom_score")" ]
    done
}

@test "the kernel kills the executor for memory: who had nothing in flight goes on" {
    [ "${GMUX_SANITIZE:-none}" = none ] || skip "a sanitizer takes memory of its own"
    start_daemon_inside
    start_program idle "$misbehave" idle
    program_says idle 41
    start_program fill "$misbehave" fill
    filled() { grep -q '^2 after' "$DIR/fill.out"; }
    until_true 300 filled
    for round in 1 2; do
        executor=$(the_executor)
        echo 1000 > "/proc/$executor/oom_score_adj" # it is chosen
        (eat_inside "$executor" $((LIMIT_MIB * 2))) || true # it may be next
        until_true 100 gone "$executor"
        [ "$(killed)" -ge "$round" ]
        echo more >&"$idle_in"
        program_says idle $((41 + round))
        echo more >&"$fill_in"
        program_says fill "still: 0"
        : > "$DIR/fill.out"
        [ "$(the_executor)" != "$executor" ]
    done
    end_program fill
    run -0 "$GMUX_BUILD/examples/vecadd"
    end_program idle
}
