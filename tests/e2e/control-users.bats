# Several users. Needs root, to be several users.

load helper

setup() {
    common_setup
    [ "$(id -u)" = 0 ] || skip "needs root"
    a=(setpriv --reuid 12345 --regid 12345 --clear-groups)
    b=(setpriv --reuid 12346 --regid 12346 --clear-groups)
    "${a[@]}" test -x "$client" || skip "user 12345 cannot reach the tests"
}

teardown() {
    common_teardown
}

@test "users do not wait for each other; each server is its user's" {
    start_daemon
    start_client one "${a[@]}" --
    [[ $(answered one) == served* ]]
    start_client two "${b[@]}" --
    [[ $(answered two) == served* ]]
    start_client three
    [[ $(answered three) == served* ]]
    [ "$(the_server | wc -l)" = 3 ]
    has_line server "limits none uid 12345 gid 12345 home /"
    has_line server "limits none uid 12346 gid 12346 home /"
    has_line server "limits none uid 0 gid 0"
    has_line control "NEW CLIENT $one from user 12345: Server already exists"
    [ "$("$control" ps | wc -l)" = 4 ]
}

@test "-M: all share one server" {
    start_daemon -M
    start_client one "${a[@]}" --
    [[ $(answered one) == served* ]]
    start_client two "${b[@]}" --
    [[ $(answered two) == served* ]]
    [ "$(the_server | wc -l)" = 1 ]
    has_line server "client $one uid 12345 "
    has_line server "client $two uid 12346 "
    has_line control "Starting new server $(the_server) for user 0"
}

@test "--exclusive-user: one after the other, in the order they came" {
    start_daemon --exclusive-user
    start_client one "${a[@]}" --
    [[ $(answered one) == served* ]]
    server=$(the_server)
    start_client two "${b[@]}" --
    wait_log control "Try shutting down server $server, backoff is enabled"
    has_line control "Server $server has 1 active worker threads. Server will not shutdown."
    has_line control "Control will try shutting down server $server again in at most 1600ms"
    start_client three "${a[@]}" --
    wait_log control "NEW CLIENT $three from user 12345: Server is not ready, push client to pending list"
    wait_log control "again in at most 3200ms"
    [ ! -s "$DIR/two.out" ]
    stop_client one
    [[ $(answered two) == served* ]]
    has_line control "Server $server exited with status 0"
    [ "$(the_server | wc -l)" = 1 ]
    [ ! -s "$DIR/three.out" ]
    stop_client two
    [[ $(answered three) == served* ]]
}

@test "a daemon that is not root serves its own user only" {
    mkdir "$DIR/pipe" "$DIR/log"
    chown 12345 "$DIR/pipe" "$DIR/log"
    "${a[@]}" "$control" -d 3>&-
    daemon=$(cat "$DIR/pipe/nvidia-cuda-mps-control.pid")
    start_client one "${a[@]}" --
    [[ $(answered one) == served* ]]
    start_client two "${b[@]}" --
    [[ $(answered two) == "refused 800 "* ]]
    run -0 "$control" start_server -uid 12346
    [ "$output" = "The daemon does not run as root: it can start servers for its own user only" ]
}

@test "another user may look and not change" {
    start_daemon
    run -0 "${a[@]}" "$control" get_default_active_thread_percentage
    [ "$output" = 100.0 ]
    run -0 "${a[@]}" "$control" ps
    for command in "set_default_active_thread_percentage 5" quit "start_server -uid 12345" "set_default_client_priority 1"; do
        run -0 "${a[@]}" "$control" $command
        [ "$output" = "Only user 0 and root may use ${command%% *}" ]
    done
    [ "$("$control" get_default_active_thread_percentage)" = 100.0 ]
}

@test "one user's flood does not keep others out" {
    start_daemon
    "${a[@]}" "$client" abuse flood &
    flood=$!
    start_client one "${b[@]}" --
    [[ $(answered one) == served* ]]
    wait "$flood"
}

@test "a user whose server cannot start does not hold up another" {
    start_daemon
    echo die > "$DIR/mode"
    start_client one "${a[@]}" --
    wait_log control "for user 12345 failed to start"
    rm "$DIR/mode"
    start_client two "${b[@]}" --
    [[ $(answered two) == served* ]]
}

@test "clients whose process ids the daemon cannot see are told apart" {
    unshare --pid --fork --kill-child true 2>/dev/null || skip "no PID namespaces"
    unshare --pid --fork --kill-child "$control" -f > "$DIR/out" 2>&1 3>&- &
    CLIENTS+=($!)
    until_true 50 "$control" ps > /dev/null
    start_client one command=first
    [[ $(answered one) == served* ]]
    start_client two command=second
    [[ $(answered two) == served* ]]
    has_line control "NEW CLIENT 0 from user 0: Server already exists"
    [ "$("$control" get_client_list "$(the_server)")" = $'1073741824\n1073741825' ]
    [ "$("$control" ps | grep -c '^107374182[45] .*\(first\|second\)')" = 2 ]
    [ "$("$control" terminate_client "$(the_server)" 1073741825)" = 0 ]
    until_true 50 grep -q lost "$DIR/two.out"
    grep -q served "$DIR/one.out"
    "$control" quit -t 0
    # Its number was one of its namespace.
    rm -f "$DIR/pipe/nvidia-cuda-mps-control.pid"
}

@test "a client in namespaces of its own needs the pipe directory only" {
    unshare --pid --net --ipc --uts --fork true 2>/dev/null || skip "no namespaces"
    start_daemon
    start_client one unshare --pid --net --ipc --uts --fork --kill-child --
    [[ $(answered one) == "served 1" ]]
    pid=$("$control" get_client_list "$(the_server)")
    [ "$(readlink "/proc/$pid/ns/net")" != "$(readlink /proc/self/ns/net)" ]
    grep -q fake-client "/proc/$pid/cmdline"
}
