# Servers that fail, hang or lie, with stand-ins: their clients get an error, and the log says why.

load helper

setup() {
    common_setup
}

teardown() {
    common_teardown
}

@test "a server that is killed: its clients notice, the next one gets another server" {
    start_daemon
    start_client one
    answered one
    server=$(the_server)
    kill -9 "$server"
    until_true 50 grep -q lost "$DIR/one.out"
    wait_log control "Server $server was killed by signal 9"
    start_client two
    [[ $(answered two) == served* ]]
    [ "$(the_server)" != "$server" ]
}

@test "a server that dies at start is tried six times; the client gets 805, the log the cause" {
    echo die > "$DIR/mode"
    start_daemon
    start_client one
    [ "$(answered one 200)" = "refused 805 the device is on fire" ]
    [ "$(count_lines control 'Starting new server')" = 6 ]
    [ "$(count_lines control 'exited with status 3')" = 6 ]
    has_line control "failed to start: the device is on fire. Trying again in 1600ms \(5 of 5\)"
    has_line control "failed to start 6 times, giving up: the device is on fire"
    [ "$("$control" ps)" = "Server not found" ]
    rm "$DIR/mode"
    start_client two
    [[ $(answered two) == served* ]]
}

@test "a server that says why it fails: its clients get its error" {
    echo fail > "$DIR/mode"
    start_daemon
    start_client one
    [ "$(answered one 200)" = "refused 100 there is no device" ]
    has_line server "last words"
}

@test "a server that cannot be executed: the log names the path" {
    rm "$GMUX_LIBEXECDIR/gmux-server"
    printf '\x7fELF' > "$GMUX_LIBEXECDIR/gmux-server"
    chmod 755 "$GMUX_LIBEXECDIR/gmux-server"
    start_daemon
    start_client one
    wait_log control "failed to start: cannot execute $GMUX_LIBEXECDIR/gmux-server: Exec format error"
    rm "$GMUX_LIBEXECDIR/gmux-server"
    ln -s "$BATS_TEST_DIRNAME/fake-server" "$GMUX_LIBEXECDIR/gmux-server"
    [[ $(answered one) == served* ]]
}

@test "a server that dies as soon as it is ready does not take the daemon with it" {
    echo crash > "$DIR/mode"
    start_daemon
    start_client one
    out=$(answered one 200)
    [[ $out == "refused 805 "* || $out == dropped ]]
    run -0 "$control" ps
}

@test "a server that talks nonsense is killed" {
    echo liar > "$DIR/mode"
    start_daemon
    "$control" start_server -uid "$(id -u)"
    wait_log control "Killing server [0-9]+: it sent a malformed or unexpected message 17 \(link_ready\)"
    wait_log control "was killed by signal 9"
    run -0 "$control" ps
    [ "$output" = "Server not found" ]
}

@test "initializing: status, and shutdown in that state" {
    echo hang > "$DIR/mode"
    start_daemon
    start_client one
    until_true 50 one_server
    server=$(the_server)
    [ "$("$control" get_server_status "$server")" = INITIALIZING ]
    "$control" shutdown_server "$server" -f
    [[ $(answered one) == "refused 807 "* ]]
    wait_log control "Server $server exited with status 0"
}
