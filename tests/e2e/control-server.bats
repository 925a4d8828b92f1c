# Servers and clients, with stand-ins for both: the life of a server, its limits, and its end.

load helper

setup() {
    common_setup
}

teardown() {
    common_teardown
}

# A line of the log, whatever the time and the process.
stamp='^\[20[0-9]{2}-[0-9]{2}-[0-9]{2} [0-9]{2}:[0-9]{2}:[0-9]{2}\.[0-9]{3}'

@test "one client: every command" {
    start_daemon
    start_client one command=/tmp/bench
    [[ $(answered one) == served* ]]
    server=$(the_server)
    kill -0 "$server"
    [ "$("$control" get_server_status "$server")" = ACTIVE ]
    until_true 50 grep -q . <("$control" get_client_list "$server")
    [ "$("$control" get_client_list "$server")" = "$one" ]
    run -0 "$control" ps
    [ "${lines[0]}" = "PID       ID        SERVER         DEVICE                    NAMESPACE      COMMAND        " ]
    printf -v row '%-10s%-10s%-15s%-26s%-15s%-15s' "$one" 1 "$server" GPU-00010203-0405-0607 4026531836 /tmp/bench
    [ "${lines[1]}" = "$row" ]
    run -0 "$control" ps -p "$server"
    [ "${lines[1]}" = "$row" ]
    [ "$("$control" get_device_client_list)" = "[0] 06:00.0, Fake Device"$'\n'"$one.1" ]
    [ "$("$control" get_device_client_list "$server")" = "[0] 06:00.0, Fake Device"$'\n'"$one.1" ]
    run -0 "$control" device_query
    [ "${lines[2]}" = "0               0000:06.00.00  GPU-00010203-0405-0607-0809-0a0b0c0d0e0f  Fake Device                       N/A" ]
    run -0 "$control" device_query --csv
    [ "${lines[2]}" = "0,0000:06.00.00,GPU-00010203-0405-0607-0809-0a0b0c0d0e0f,Fake Device,N/A" ]
    stop_client one
    wait_log server "Client process $one disconnected"
    [ "$("$control" get_client_list "$server")" = "" ]
    [ "$("$control" get_device_client_list)" = "" ]
    [ "$("$control" ps | wc -l)" = 1 ]
    [ "$(the_server)" = "$server" ]
}

@test "terminate_client" {
    start_daemon
    start_client one
    answered one
    server=$(the_server)
    [ "$("$control" terminate_client "$server" "$one")" = 0 ]
    until_true 50 grep -q lost "$DIR/one.out"
    run -0 "$control" terminate_client "$server" 1
    [ "$output" = $'Client 1 not found!\n1' ]
}

@test "the logs of one life" {
    start_daemon
    start_client one
    answered one
    server=$(the_server)
    stop_client one
    wait_log server "disconnected"
    "$control" quit
    mapfile -t got < <(grep -v 'UI\|Cmd\|Accepting' "$DIR/log/control.log")
    local want=(
        "Control $(printf %5d "$daemon")\] Starting control daemon using socket $DIR/pipe/control"
        "Control $(printf %5d "$daemon")\] To connect CUDA applications to this daemon, set env CUDA_MPS_PIPE_DIRECTORY=$DIR/pipe"
        "Control $(printf %5d "$daemon")\] CUDA MPS Control binary version: 13000"
        "Control $(printf %5d "$daemon")\] NEW CLIENT $one from user $(id -u): Server is not ready, push client to pending list"
        "Control $(printf %5d "$server")\] Starting new server $server for user $(id -u)"
        "Control $(printf %5d "$daemon")\] NEW SERVER $server: Ready"
        "Control $(printf %5d "$daemon")\] NEW CLIENT $one from user $(id -u): Server already exists"
        "Control $(printf %5d "$daemon")\] $server"
        "Control $(printf %5d "$daemon")\] Try shutting down server $server, backoff is disabled"
        "Control $(printf %5d "$daemon")\] Server $server exited with status 0"
        "Control $(printf %5d "$daemon")\] Exit with status 0"
    )
    [ "${#got[@]}" = "${#want[@]}" ]
    for i in "${!want[@]}"; do
        [[ ${got[i]} =~ $stamp\ ${want[i]}$ ]] || { echo "${got[i]} is not ${want[i]}"; return 1; }
    done
    grep -qE "$stamp Control +$daemon\] Accepting connection\.\.\.$" "$DIR/log/control.log"
    grep -qE "$stamp Control +$daemon\] NEW UI$" "$DIR/log/control.log"
    grep -qE "$stamp Control +$daemon\] Cmd:get_server_list$" "$DIR/log/control.log"
    grep -qE "$stamp Control +$daemon\] UI closed$" "$DIR/log/control.log"
    grep -qE "$stamp Other +$server\] Startup$" "$DIR/log/server.log"
    grep -qE "$stamp Other +$server\] Connecting to control daemon on socket: $DIR/pipe/control$" "$DIR/log/server.log"
    grep -qE "$stamp Other +$server\] Initializing server process$" "$DIR/log/server.log"
    grep -qE "$stamp Server +$server\] Creating server context on device 0" "$DIR/log/server.log"
    grep -qE "$stamp Server +$server\] Client \{PID: $one, Context ID: 0\} connected$" "$DIR/log/server.log"
}

@test "limits: what a server starts with, what a client asks for" {
    CUDA_MPS_ACTIVE_THREAD_PERCENTAGE=80 start_daemon
    "$control" set_default_device_pinned_mem_limit 0 2G
    "$control" set_default_device_pinned_mem_limit 1 1G
    "$control" set_default_device_pinned_mem_limit 0 3G
    "$control" set_default_client_priority 1
    start_client one share=33 memory=0=800M priority=0
    answered one
    has_line server "Active Threads Percentage set to 80.0"
    has_line server "Server Priority set to 1"
    has_line server "limits 1=1G,0=3G "
    has_line server "client $one uid $(id -u) share 33.0 priority 0 memory 0=800M"
}

@test "limits: defaults are for servers to come, a server's own for clients that run" {
    start_daemon
    start_client one
    answered one
    server=$(the_server)
    [ "$("$control" set_default_active_thread_percentage 20)" = 20.0 ]
    [ "$("$control" get_active_thread_percentage "$server")" = 100.0 ]
    [ "$("$control" set_active_thread_percentage "$server" 50)" = 50.0 ]
    [ "$("$control" set_active_thread_percentage "$server" 0)" = 50.0 ]
    [ "$("$control" get_active_thread_percentage "$server")" = 50.0 ]
    wait_log server "limits share 50.0 priority 0 memory none running 1"
    "$control" set_device_pinned_mem_limit "$server" 0 1G
    [ "$("$control" get_device_pinned_mem_limit "$server" 0)" = 1G ]
    wait_log server "limits share 50.0 priority 0 memory 0=1G running 1"
    [ "$(count_lines server 'running')" = 2 ]
}

@test "limits: --classic-limits leaves running clients alone" {
    start_daemon --classic-limits
    start_client one
    answered one
    "$control" set_active_thread_percentage "$(the_server)" 50
    wait_log server "limits share 50.0 priority 0 memory none running 0"
}

@test "start_server" {
    start_daemon
    run -0 "$control" start_server -uid "$(id -u)"
    [ "$output" = "" ]
    until_true 50 one_server
    server=$(the_server)
    wait_log control "NEW SERVER $server: Ready"
    "$control" start_server -uid "$(id -u)"
    [ "$(the_server)" = "$server" ]
    start_client one
    [[ $(answered one) == served* ]]
    [ "$(the_server)" = "$server" ]
}

@test "shutdown_server waits for clients; new ones get a new server" {
    start_daemon
    start_client one
    answered one
    server=$(the_server)
    run -0 "$control" shutdown_server "$server"
    [ "$output" = "" ]
    start_client two
    [[ $(answered two) == served* ]]
    [ "$(the_server | wc -l)" = 2 ]
    [ "$(cat "$DIR/one.out")" = "served $one" ]
    stop_client one
    wait_log control "Server $server exited with status 0"
    [ "$(the_server | wc -l)" = 1 ]
    run -0 "$control" shutdown_server "$(the_server)" -f
    until_true 50 grep -q lost "$DIR/two.out"
}

@test "many clients at once" {
    start_daemon
    for i in {1..12}; do
        start_client "c$i"
    done
    for i in {1..12}; do
        [[ $(answered "c$i" 200) == served* ]]
    done
    server=$(the_server)
    [ "$("$control" get_client_list "$server" | wc -l)" = 12 ]
    for i in {1..12}; do
        stop_client "c$i"
    done
    until_true 50 test "$(count_lines server 'disconnected')" = 12 || true
    until_true 50 bash -c '[ -z "$("$0" get_client_list "$1")" ]' "$control" "$server"
}

@test "quit waits for clients; quit -t forces" {
    start_daemon
    start_client one
    answered one
    server=$(the_server)
    "$control" quit &
    ui=$!
    wait_log control "Try shutting down server $server, backoff is disabled"
    start_client two
    [[ $(answered two) == "refused 807 "* ]]
    kill -0 "$daemon"
    kill -0 "$ui"
    "$control" quit -t 1
    wait "$ui"
    gone "$daemon"
    has_line control "Force shutting down server $server"
    grep -q lost "$DIR/one.out"
}

@test "quit ends when the last client leaves" {
    start_daemon
    start_client one
    answered one
    "$control" quit &
    ui=$!
    wait_log control "Cmd:quit"
    kill -0 "$daemon"
    stop_client one
    wait "$ui"
    gone "$daemon"
}

@test "quit ends although a server does not" {
    echo deaf > "$DIR/mode"
    start_daemon
    start_client one
    answered one
    server=$(the_server)
    "$control" quit -t 0
    gone "$daemon"
    gone "$server"
    has_line control "Killing server $server: it was asked to end and does not"
}

@test "quit ends although a server is stopped and its clients are dead" {
    start_daemon
    start_client one
    answered one
    server=$(the_server)
    kill -STOP "$server"
    stop_client one
    "$control" quit
    gone "$daemon"
    gone "$server"
}
