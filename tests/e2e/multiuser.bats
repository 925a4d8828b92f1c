# One server for several users (-M), with real programs on the software device. Needs root, to be several users.

load helper

setup() {
    real_setup
    two_users "$misbehave"
}

teardown() {
    common_teardown
}

# status_of PID FIELD: its first word in /proc/PID/status.
status_of() {
    sed -n "s/^$2:[[:space:]]*\([^[:space:]]*\).*/\1/p" "/proc/$1/status"
}

# one_server_for_all USER EXECUTOR: numbers of the users that they run as.
one_server_for_all() {
    [ "$(the_server | wc -l)" = 1 ]
    [ "$(stat -c %u "/proc/$(the_server)")" = "$1" ]
    [ "$(status_of "$(the_executor)" Uid)" = "$2" ]
}

no_clients() {
    [ -z "$("$control" get_client_list "$(the_server)")" ]
}

several_users_work() {
    local p pids=()
    run -0 "$GMUX_BUILD/tests/api/api-users"
    [ "$(grep -c '^ok .*[a-z]$' <<<"$output")" = 5 ]
    for i in 1 2; do
        "${a[@]}" "$GMUX_BUILD/examples/vecadd" >"$DIR/a.$i" & pids+=($!)
        "${b[@]}" "$GMUX_BUILD/examples/matmul" -n=256 >"$DIR/b.$i" & pids+=($!)
        "$GMUX_BUILD/examples/nbody" -numbodies=1024 -iterations=5 -compare >"$DIR/r.$i" & pids+=($!)
    done
    for p in "${pids[@]}"; do
        wait "$p"
    done
    grep -q "all correct" "$DIR/a.1" "$DIR/a.2"
}

@test "-M: users' programs side by side in one server, and nothing of one is another's" {
    start_daemon -M
    several_users_work
    one_server_for_all 0 "$nobodys"
    until_true 100 no_clients
    nothing_is_charged
}

@test "-M --server-user: the same without root" {
    start_daemon -M --server-user 12347
    several_users_work
    one_server_for_all 12347 12347
    until_true 100 no_clients
    nothing_is_charged
}

@test "-M: what runs programs' kernels has no rights, new ones neither, and few system calls" {
    local process field status
    start_daemon -M
    start_program steady "${a[@]}" "$misbehave" steady
    program_says steady running
    compiled() { ls "$objects" | grep -q '\.o$'; }
    if [ -e "$GMUX_BUILD/src/jit/gmux-jit" ]; then
        until_true 300 compiled
    fi
    for process in "$(the_executor)" $(pgrep -P "$(the_executor)"); do
        [ "$(status_of "$process" Uid)" = "$nobodys" ]
        [ "$(status_of "$process" Gid)" = "$nobodys" ]
        [ -z "$(status_of "$process" Groups)" ]
        for field in CapInh CapPrm CapEff CapAmb; do
            [ "$(status_of "$process" "$field")" = 0000000000000000 ]
        done
        for status in /proc/"$process"/task/*/status; do
            grep -q '^NoNewPrivs:[[:space:]]*1$' "$status"
            grep -q '^Seccomp:[[:space:]]*2$' "$status"
        done
    done
    end_program steady
}

@test "-M: one user's faults and deaths leave another's program alone" {
    start_daemon -M
    start_program neighbour "${b[@]}" "$misbehave" steady
    program_says neighbour running
    for kind in null unmapped trap misaligned; do
        run "${a[@]}" "$misbehave" fault "$kind"
        [[ "$output" =~ ^(700|716|719)" " ]]
    done
    start_program victim "${a[@]}" "$misbehave" steady
    program_says victim running
    kill -9 "$victim"
    end_program neighbour
    grep -q '^right [0-9]* times' "$DIR/neighbour.out"
}

@test "-M: limits of the one server hold for all users" {
    start_daemon -M
    "$control" set_default_device_pinned_mem_limit 0 64M
    for user in a b; do
        declare -n as=$user
        run -0 "${as[@]}" "$misbehave" limit
        read -r free _ over _ <<<"$output"
        [ "$free" -le $((64 * 1024)) ] && [ "$over" = 2 ]
    done
    [ "$(the_server | wc -l)" = 1 ]
}
