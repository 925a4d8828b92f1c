# What the control program says, word for word as NVIDIA's does: without a daemon, and with one that has no server.

load helper

setup() {
    common_setup
}

teardown() {
    common_teardown
}

# says COMMAND EXPECTED: as arguments and on standard input, with and without a newline at the end; status 0.
says() {
    local out
    out=$("$control" $1; echo "status $?")
    [ "$out" = "${2:+$2$'\n'}status 0" ] || { echo "$1: $out"; return 1; }
    out=$(echo "$1" | "$control"; echo "status $?")
    [ "$out" = "${2:+$2$'\n'}status 0" ] || { echo "$1 on stdin: $out"; return 1; }
    out=$(printf %s "$1" | "$control"; echo "status $?")
    [ "$out" = "${2:+$2$'\n'}status 0" ] || { echo "$1 on stdin without newline: $out"; return 1; }
}

@test "no daemon: every command says so, status 1" {
    for command in get_server_list ps quit "get_server_status 1" bogus; do
        run -1 "$control" $command
        [ "$output" = "Cannot find MPS control daemon process" ]
        run -1 "$control" <<< "$command"
        [ "$output" = "Cannot find MPS control daemon process" ]
    done
}

@test "version: the daemon's, which here is the program's own" {
    start_daemon
    says version "$("$control" --version | tail -n 1)"
}

@test "no server: every command" {
    start_daemon
    says get_server_list ""
    says ps "Server not found"
    says "ps -p 669" $'Server 669 not found\nServer 669 not found\n' || true
    [ "$("$control" ps -p 669; echo .)" = $'Server 669 not found\nServer 669 not found\n\n.' ]
    says "get_server_status 99" "Server 99 not found"
    says "get_client_list 99" "Server 99 not found"
    says get_device_client_list ""
    says "get_device_client_list 99" "Server 99 not found"
    says "get_active_thread_percentage 99" "Server 99 not found"
    says "set_active_thread_percentage 99 50" "Server 99 not found"
    says "set_device_pinned_mem_limit 99 0 1G" "Server 99 not found"
    says "get_device_pinned_mem_limit 99 0" "Server 99 not found"
    says "shutdown_server 99" "Server 99 not found"
    says "shutdown_server 99 -f" "Server 99 not found"
    says "terminate_client 1 2" $'Server 1 not found\nServer 1 not found!\n1'
    for command in "start_server" "start_server -uid" "start_server -uid abc" "start_server -uid -1"; do
        says "$command" "A user id (UID) is required to start a new server"
    done
    says bogus 'Unknown command "bogus"'
    says "bogus 1 2" 'Unknown command "bogus"'
    says help 'Unknown command "help"'
    says lspart 'Unknown command "lspart"'
    [ "$("$control" "")" = 'Unknown command ""' ]
    [ "$(echo | "$control")" = 'Unknown command ""' ]
    [ "$("$control" < /dev/null)" = "" ]
}

@test "no server: default percentage" {
    start_daemon
    says get_default_active_thread_percentage 100.0
    says "set_default_active_thread_percentage 33.5" 33.5
    says get_default_active_thread_percentage 33.5
    for bad in "" 0 -5 101 abc 1e1 "nan" "+5"; do
        says "set_default_active_thread_percentage $bad" 33.5
    done
    says "set_default_active_thread_percentage 100" 100.0
}

@test "no server: default memory limits and priority" {
    start_daemon
    says "get_default_device_pinned_mem_limit 0" ""
    says "set_default_device_pinned_mem_limit 0 2G" ""
    says "get_default_device_pinned_mem_limit 0" 2G
    says "set_default_device_pinned_mem_limit 0 abc" ""
    says "set_default_device_pinned_mem_limit 0 99999999999999999999G" ""
    says "set_default_device_pinned_mem_limit 0" ""
    says "get_default_device_pinned_mem_limit 0" 2G
    says "get_default_device_pinned_mem_limit GPU-70f5" ""
    says "set_default_device_pinned_mem_limit GPU-70f5 512M" ""
    says "get_default_device_pinned_mem_limit GPU-70f5" 512M
    says get_default_client_priority 0
    says "set_default_client_priority 1" ""
    says get_default_client_priority 1
    says "set_default_client_priority 9" "Invalid priority value - must be 0 or 1!"
    says "set_default_client_priority" "Invalid priority value - must be 0 or 1!"
    says get_default_client_priority 1
}

@test "limits from the daemon's environment" {
    CUDA_MPS_ACTIVE_THREAD_PERCENTAGE=25 CUDA_MPS_PINNED_DEVICE_MEM_LIMIT=0=1G,junk,1=512MB \
        CUDA_MPS_CLIENT_PRIORITY=1 start_daemon
    says get_default_active_thread_percentage 25.0
    says "get_default_device_pinned_mem_limit 0" 1G
    says "get_default_device_pinned_mem_limit 1" 512MB
    says get_default_client_priority 1
}

@test "nonsense in the daemon's environment is ignored" {
    CUDA_MPS_ACTIVE_THREAD_PERCENTAGE=much CUDA_MPS_CLIENT_PRIORITY=7 start_daemon
    says get_default_active_thread_percentage 100.0
    says get_default_client_priority 0
}

@test "device_query without a server" {
    start_daemon
    run -0 "$control" device_query
    [ "${lines[0]}" = Default ]
    [ "${lines[1]}" = "Device Ordinal  PCI IDs        UUID                                      Name                              Attributes" ]
    run -0 "$control" device_query --csv
    [ "${lines[1]}" = "Device Ordinal,PCI IDs,UUID,Name,Attributes" ]
}

@test "several commands in one session, the last without a newline" {
    start_daemon
    run -0 bash -c 'printf "get_default_active_thread_percentage\nbogus\nset_default_active_thread_percentage 10" | "$0"' "$control"
    [ "$output" = $'100.0\nUnknown command "bogus"\n10.0' ]
    wait_log control "UI closed"
    [ "$(count_lines control 'NEW UI')" = 1 ]
}

@test "a line that is too long" {
    start_daemon
    run -0 "$control" <<< "$(head -c 5000 /dev/zero | tr '\0' x)"
    [ "$output" = "Command too long" ]
    says get_default_active_thread_percentage 100.0
}

@test "quit: the directory afterwards; a new daemon takes it over" {
    start_daemon
    "$control" quit
    gone "$daemon"
    [ -S "$DIR/pipe/control" ]
    [ -S "$DIR/pipe/control_privileged" ]
    [ -e "$DIR/pipe/control_lock" ]
    [ ! -e "$DIR/pipe/nvidia-cuda-mps-control.pid" ]
    run -1 "$control" ps
    start_daemon
    says ps "Server not found"
    run -0 "$control" quit -x
    gone "$daemon"
}

@test "quit in the middle of standard input" {
    start_daemon
    run -1 "$control" <<< $'ps\nquit\nps'
    [ "$output" = $'Server not found\nCannot send command to MPS control daemon process' ]
}

@test "the Kubernetes device plugin's sequence" {
    mkdir -m 755 "$DIR/pipe" "$DIR/log"
    ln -s "$control" "$DIR/nvidia-cuda-mps-control"
    control=$DIR/nvidia-cuda-mps-control
    run -0 "$control" -d 3>&-
    daemon=$(cat "$DIR/pipe/nvidia-cuda-mps-control.pid")
    for device in 0 1; do
        run -0 bash -c 'printf "set_default_device_pinned_mem_limit $1 4606M" | "$0"' "$control" $device
        [ "$output" = "" ]
    done
    run -0 bash -c 'printf "set_default_active_thread_percentage 25" | "$0"' "$control"
    [ "$output" = 25.0 ]
    run -0 bash -c 'printf get_default_active_thread_percentage | "$0"' "$control"
    [ "$output" = 25.0 ]
    grep -q "Cmd:set_default_device_pinned_mem_limit 0 4606M" "$DIR/log/control.log"
    run -0 bash -c 'printf quit | "$0"' "$control"
    gone "$daemon"
}

@test "what Slurm's sample prolog and epilog do" {
    ln -s "$control" "$DIR/nvidia-cuda-mps-control"
    control=$DIR/nvidia-cuda-mps-control
    unset CUDA_MPS_ACTIVE_THREAD_PERCENTAGE
    run -0 "$control" -d 3>&-
    daemon=$(cat "$DIR/pipe/nvidia-cuda-mps-control.pid")
    run -0 "$control" start_server -uid "$(id -u)"
    [ "$output" = "" ]
    has_server() { [ -n "$("$control" get_server_list)" ]; }
    until_true 50 has_server
    server=$("$control" get_server_list)
    run -0 bash -c 'echo quit | "$0"' "$control"
    # It drains the node if one of them is still there.
    gone "$daemon"
    gone "$server"
}
