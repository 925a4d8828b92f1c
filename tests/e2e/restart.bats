# A daemon that is killed and started again under running programs: their servers come to the new one.

load helper

setup() {
    real_setup
    gmux=$GMUX_BUILD/src/cli/gmux
}

teardown() {
    common_teardown
}

busy() {
    start_program "$1" "$GMUX_BUILD/examples/nbody" -benchmark -numbodies=1024 -iterations=1000000
    until_true 200 lists "${!1}"
}

lists() {
    "$control" ps 2>/dev/null | grep -q "^$1 "
}

# Its lock goes with its last thread, a moment after the process shows as ended.
kill_daemon() {
    kill -9 "$daemon"
    until_true 100 flock -n "$DIR/pipe/control_lock" true
}

@test "programs go on, and the new daemon lists, limits and ends them" {
    start_daemon
    busy one
    server=$(the_server)
    [ "$("$control" set_active_thread_percentage "$server" 40)" = 40.0 ]
    before=$("$control" ps)
    kill_daemon
    start_daemon
    until_true 100 lists "$one"
    [ "$("$control" ps)" = "$before" ]
    [ "$(the_server)" = "$server" ]
    [ "$("$control" get_server_status "$server")" = ACTIVE ]
    [ "$("$control" get_active_thread_percentage "$server")" = 40.0 ]
    wait_log control "Server $server of user $(id -u) is back from an earlier daemon"
    # New programs come to the same server.
    run -0 "$GMUX_BUILD/examples/vecadd"
    [[ $output == *"all correct"* ]]
    [ "$(the_server)" = "$server" ]
    [ "$("$control" set_active_thread_percentage "$server" 15)" = 15.0 ]
    [[ $("$control" clients "$server") == "$one"$'\t'*$'\t15.0\t'* ]]
    [ "$("$control" terminate_client "$server" "$one")" = 0 ]
    until_true 100 gone "$one"
    "$control" quit
    until_true 100 gone "$server"
}

@test "again and again: the same server, and nothing piles up" {
    start_daemon
    busy one
    server=$(the_server)
    for n in {1..10}; do
        kill_daemon
        start_daemon
        until_true 100 lists "$one"
        [ "$n" != 2 ] || before=$(descriptors "$server") # by then the program has begun
    done
    [ "$(the_server)" = "$server" ]
    expect_descriptors "$before" "$server"
    [ "$("$control" get_client_list "$server")" = "$one" ]
}

@test "restart: a new program in the same process, and nobody notices" {
    start_daemon -f & # in the foreground, as service managers have it
    CLIENTS+=($!)
    until_true 100 test -S "$DIR/pipe/control"
    until_true 100 test -s "$DIR/pipe/nvidia-cuda-mps-control.pid"
    daemon=$(cat "$DIR/pipe/nvidia-cuda-mps-control.pid")
    busy one
    server=$(the_server)
    before=$(descriptors "$daemon" "$server")
    for _ in {1..10}; do
        run -0 "$control" restart
        [ "$output" = Restarting ]
        run -0 "$GMUX_BUILD/examples/vecadd" # it comes between two programs, or to either
        [[ $output == *"all correct"* ]]
        until_true 100 lists "$one"
    done
    [ "$(cat "$DIR/pipe/nvidia-cuda-mps-control.pid")" = "$daemon" ]
    tr '\0' '\n' <"/proc/$daemon/environ" | grep "^GMUX_RESTARTED=$daemon,"
    run ! grep -z ^GMUX_RESTARTED "/proc/$server/environ"
    [ "$("$control" terminate_client "$server" "$one")" = 0 ]
    until_true 100 gone "$one"
    [ "$(the_server)" = "$server" ] # there was never another one
    expect_descriptors "$before" "$daemon" "$server"
    "$control" quit
    until_true 100 gone "$daemon"
    [ "$(pgrep -c -P "$daemon" || true)" = 0 ]
}

@test "restart while programs come in crowds: all are served" {
    start_daemon
    busy one
    for _ in {1..3}; do
        for i in {1..6}; do
            GMUX_REQUIRE=1 start_program "crowd$i" "$GMUX_BUILD/examples/vecadd"
        done
        run -0 "$control" restart
        for i in {1..6}; do
            until_true 200 grep -q "all correct" "$DIR/crowd$i.out" || {
                cat "$DIR/crowd$i.out"
                false
            }
        done
    done
}

@test "what another process has passed on is not believed" {
    exec 9<"$DIR"
    for value in "" x , 1,2 "1,0,9:control" "-1,0,9:control" "99999999999999999999,0,9:control" "$$,0,9:control"; do
        GMUX_RESTARTED=$value start_daemon
        [ "$("$control" get_default_active_thread_percentage)" = 100.0 ]
        "$control" quit
        until_true 100 gone "$daemon"
    done
    exec 9<&-
}

@test "passed on to itself: what is not there or not known is made anew, and nothing stays open" {
    for rest in "" ",4,4" ",,:,x:y,9" ",0:control,1:control_lock,99999999999:control" ",9:x/y/control,9:other" ",77:control_lock"; do
        bash -c 'exec 9</dev/null; GMUX_RESTARTED=$$,0$1 exec "$2" -f' - "$rest" "$control" >"$DIR/out" 2>&1 3>&- &
        CLIENTS+=($!)
        daemon=$!
        until_true 100 "$control" get_default_active_thread_percentage || { echo "$rest"; cat "$DIR/out"; false; }
        "$control" quit
        until_true 100 gone "$daemon"
    done
}

@test "a server that returns after another was started serves its programs and takes no new ones" {
    start_daemon
    busy one
    server=$(the_server)
    kill -STOP "$server"
    kill_daemon
    start_daemon
    run -0 "$GMUX_BUILD/examples/vecadd"
    new=$(the_server)
    [ "$new" != "$server" ]
    kill -CONT "$server"
    until_true 100 lists "$one"
    run -0 "$GMUX_BUILD/examples/vecadd"
    # It is one that takes no new programs for the next daemon, too.
    kill_daemon
    start_daemon
    until_true 100 lists "$one"
    kill -9 "$one"
    until_true 100 gone "$server"
}

@test "GMUX_WAIT: a program that is there before its daemon waits for it" {
    GMUX_WAIT=60 GMUX_REQUIRE=1 start_program early "$GMUX_BUILD/examples/vecadd"
    GMUX_WAIT=0 GMUX_REQUIRE=1 run "$GMUX_BUILD/examples/vecadd"
    [ "$status" != 0 ]
    [[ $output == *"there is no socket of a daemon"* ]]
    for bad in x -1 1e3 99999999999999999999; do # as if it were not set
        GMUX_WAIT=$bad GMUX_REQUIRE=1 run "$GMUX_BUILD/examples/vecadd"
        [ "$status" != 0 ]
    done
    not gone "$early"
    start_daemon
    until_true 200 grep -q "all correct" "$DIR/early.out"
    [ -n "$(the_server)" ]
}

@test "without a daemon a server ends with its last program" {
    start_daemon
    busy one
    server=$(the_server)
    kill_daemon
    not gone "$server"
    kill -9 "$one"
    until_true 100 gone "$server"
}

@test "an idle server ends with its daemon" {
    start_daemon
    run -0 "$GMUX_BUILD/examples/vecadd"
    server=$(the_server)
    kill_daemon
    until_true 100 gone "$server"
}

@test "a server killed after its return costs its own programs only" {
    start_daemon
    busy one
    server=$(the_server)
    kill_daemon
    start_daemon
    until_true 100 lists "$one"
    kill -9 "$server"
    wait_log control "Server $server has ended"
    until_true 100 gone "$one"
    run -0 "$GMUX_BUILD/examples/vecadd"
    [[ $output == *"all correct"* ]]
}

@test "-M: the server of all users comes back to a daemon with -M, and to no other" {
    two_users "$GMUX_BUILD/examples/vecadd"
    start_daemon -M
    start_program one "${a[@]}" "$GMUX_BUILD/examples/nbody" -benchmark -numbodies=1024 -iterations=1000000
    until_true 200 lists "$one"
    server=$(the_server)
    kill_daemon
    start_daemon
    wait_log control "a server is back, but with or without -M it is not what this daemon has"
    run -0 "${b[@]}" "$GMUX_BUILD/examples/vecadd"
    [ "$(the_server)" != "$server" ]
    not gone "$one"
    kill -9 "$one"
    until_true 100 gone "$server"
}

@test "what says that it is a server is that of its user, and of nobody else" {
    two_users "$GMUX_BUILD/examples/vecadd"
    start_daemon
    run -0 "${b[@]}" "$GMUX_BUILD/examples/vecadd"
    good=$(the_server)
    # A program of another user says that it has come back with a client of a third one.
    "${a[@]}" "$BATS_TEST_DIRNAME/returned-server" "$DIR/pipe/control" "client of user 12346"
    wait_log control "Server [0-9]+ of user 12345 is back"
    wait_log control "it sent a malformed or unexpected message"
    for what in "another version" multiuser cut "twice" "many clients" "out of range"; do
        "${a[@]}" "$BATS_TEST_DIRNAME/returned-server" "$DIR/pipe/control" "$what"
    done
    # Many of them find an end.
    "${a[@]}" "$BATS_TEST_DIRNAME/returned-server" "$DIR/pipe/control" crowd
    wait_log control "a server is back, but there are too many"
    run -0 "${b[@]}" "$GMUX_BUILD/examples/vecadd"
    [ "$("$control" get_server_status "$good")" = ACTIVE ]
    not gone "$daemon"
}

# A program has connected and is gone, another one has its number, and a third one its connection.
number_is_taken() {
    local number
    start_program late "${a[@]}" "$BATS_TEST_DIRNAME/returned-server" "$DIR/pipe/control" late
    until_true 100 has_output "$DIR/late.out"
    read -r number sender <"$DIR/late.out"
    CLIENTS+=("$sender")
    wait "$late"
    echo $((number - 1)) >/proc/sys/kernel/ns_last_pid
    sleep 1000 3>&- &
    other=$!
    CLIENTS+=("$other")
    [ "$other" = "$number" ] # unless somebody else was quicker
}

@test "a process that got the number of one that said it is a server is not taken for it" {
    two_users "$GMUX_BUILD/examples/vecadd"
    : >/proc/sys/kernel/ns_last_pid || skip "no choice of process numbers"
    start_daemon
    until_true 200 number_is_taken
    kill -USR1 "$sender"
    until_true 100 grep -q closed "$DIR/late.out"
    # It would have been killed before the connection was closed.
    not gone "$other"
    not gone "$daemon"
}
