# The daemon with the real server and executor, on the null device: no stand-in but the client.

load helper

setup() {
    common_setup
    unset GMUX_LIBEXECDIR # the server beside the program in the build tree
    export GMUX_DEVICE=null
}

teardown() {
    common_teardown
}

log_has() {
    grep -qE "^\[[-0-9]{10} [0-9:]{8}\.[0-9]{3} $2\] $3$" "$DIR/log/$1.log" || {
        echo "no line like: $2] $3"
        return 1
    }
}

@test "the logs of one life" {
    CUDA_MPS_ACTIVE_THREAD_PERCENTAGE=50 start_daemon
    start_client one command=/tmp/bench
    [[ $(answered one) == served* ]]
    server=$(the_server)
    [ "$("$control" get_server_status "$server")" = ACTIVE ]
    [ "$("$control" get_client_list "$server")" = "$one" ]
    run -0 "$control" ps
    [[ ${lines[1]} == "$one "*" $server "*" /tmp/bench"* ]]
    run -0 "$control" device_query --csv
    [[ ${lines[2]} =~ ^0,[0-9a-f]{4}(:[0-9a-f]{2})(\.[0-9a-f]{2}){2},GPU-[-0-9a-f]{36},.+,N/A$ ]]
    [ "$("$control" set_active_thread_percentage "$server" 25)" = 25.0 ]
    wait_log server "Active Threads Percentage set to 25.0"
    stop_client one
    wait_log server "Client process $one disconnected"
    "$control" quit
    gone "$daemon"
    gone "$server"
    c="Control +$daemon" o="Other +$server" s="Server +$server"
    log_has control "$c" "Starting control daemon using socket $DIR/pipe/control"
    log_has control "$c" "Accepting connection\.\.\."
    log_has control "$c" "NEW CLIENT $one from user $(id -u): Server is not ready, push client to pending list"
    log_has control "Control +$server" "Starting new server $server for user $(id -u)"
    log_has control "$c" "NEW SERVER $server: Ready"
    log_has control "$c" "Cmd:get_server_status $server"
    log_has control "$c" "Server $server exited with status 0"
    log_has control "$c" "Exit with status 0"
    log_has server "$o" "Startup"
    log_has server "$o" "Connecting to control daemon on socket: $DIR/pipe/control"
    log_has server "$o" "Initializing server process"
    log_has server "$s" "Creating server context on device 0 \(.+\)"
    log_has server "$s" "CUDA MPS Server for Linux/Unix\. Binary version: 13000"
    log_has server "$s" "Active Threads Percentage set to 50\.0"
    log_has server "$s" "Server Priority set to 0"
    log_has server "$s" "Server has started"
    log_has server "$s" "Received new client request for \{PID: $one, Context ID: 0\}"
    log_has server "$s" "Client \{PID: $one, Context ID: 0\} connected"
    log_has server "$s" "Exiting"
}

@test "quit -t 0 with a client" {
    start_daemon
    start_client one
    [[ $(answered one) == served* ]]
    server=$(the_server)
    "$control" quit -t 0
    gone "$daemon"
    gone "$server"
    grep -q lost "$DIR/one.out"
}

@test "shutdown_server, and another server for the next client" {
    start_daemon
    start_client one
    answered one
    server=$(the_server)
    "$control" shutdown_server "$server" -f
    wait_log control "Server $server exited with status"
    start_client two
    [[ $(answered two) == served* ]]
    [ "$(the_server)" != "$server" ]
}

@test "a server that is killed" {
    start_daemon
    start_client one
    answered one
    server=$(the_server)
    kill -9 "$server"
    until_true 50 grep -q lost "$DIR/one.out"
    start_client two
    [[ $(answered two) == served* ]]
}

@test "a device that does not exist: 6 starts, the reason in the log" {
    GMUX_DEVICE=bogus start_daemon
    start_client one
    [[ $(answered one 300) == "refused "* ]]
    [ "$(count_lines control 'Starting new server')" = 6 ]
    has_line control "giving up: .*bogus"
}

@test "two users at once" {
    [ "$(id -u)" = 0 ] || skip "needs root"
    a=(setpriv --reuid 12345 --regid 12345 --clear-groups)
    "${a[@]}" test -x "$client" -a -x "$GMUX_BUILD/src/server/gmux-server" || skip "user 12345 cannot reach the build"
    start_daemon
    start_client one "${a[@]}" --
    [[ $(answered one) == served* ]]
    start_client two
    [[ $(answered two) == served* ]]
    [ "$(the_server | wc -l)" = 2 ]
    for server in $(the_server); do
        stat -c %u "/proc/$server"
    done | sort -n > "$DIR/uids"
    [ "$(cat "$DIR/uids")" = $'0\n12345' ]
}

@test "called by NVIDIA's name, server processes have NVIDIA's name" {
    ln -s "$control" "$DIR/nvidia-cuda-mps-control"
    "$DIR/nvidia-cuda-mps-control" -d 3>&-
    daemon=$(cat "$DIR/pipe/nvidia-cuda-mps-control.pid")
    start_client one
    [[ $(answered one) == served* ]]
    [ "$(tr '\0' ' ' < "/proc/$(the_server)/cmdline")" = "nvidia-cuda-mps-server --control 3 " ]
    [ "$(tr '\0' ' ' < "/proc/$daemon/cmdline")" = "$DIR/nvidia-cuda-mps-control -d " ]
}

@test "a real program: its context in ps, its life in server.log" {
    library=$GMUX_BUILD/src/client
    [ -e "$library/libcuda.so.1" ] && [ -x "$GMUX_BUILD/examples/nbody" ] || skip "not built"
    start_daemon
    # More than it can do before we have looked.
    LD_LIBRARY_PATH=$library "$GMUX_BUILD/examples/nbody" -benchmark -numbodies=1024 -iterations=100000000 \
        > "$DIR/nbody.out" 2>&1 3>&- &
    nbody=$!
    CLIENTS+=($nbody)
    wait_log server "Status of client \{PID: $nbody, Context ID: 1\} is ACTIVE" 200
    server=$(the_server)
    run -0 "$control" ps
    [[ ${lines[1]} =~ ^$nbody\ +1\ +$server\ +GPU-[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}\ +[0-9]+\ +.*nbody ]]
    run -0 "$control" get_device_client_list
    [[ ${lines[0]} =~ ^\[0\]\ [0-9a-f]{2}:[0-9a-f]{2}\.[0-9a-f],\ .+$ ]]
    [ "${lines[1]}" = "$nbody.1" ]
    [ "$("$control" terminate_client "$server" "$nbody")" = 0 ]
    wait_log server "Client termination succeeded."
    # The process lives on without a device: what it makes of the error is its own affair.
    until_true 100 gone "$nbody"
    "$control" quit
    has_line control "Exit with status 0"
}

@test "two hundred clients that leave at any point leave nothing behind" {
    start_daemon
    start_client first
    answered first
    server=$(the_server)
    before=$(descriptors "$daemon" "$server")
    run -0 "$client" abuse leave
    only_first() { [ "$("$control" get_client_list "$server")" = "$first" ]; }
    until_true 100 only_first
    expect_descriptors "$before" "$daemon" "$server"
    [ "$(the_server)" = "$server" ]
    [ "$(cat "$DIR/first.out")" = "served $first" ]
}

# Takes descriptor 3 of a process, as its user's programs could.
take_link() {
    python3 -c '
import ctypes, os, sys
libc = ctypes.CDLL(None, use_errno=True)
fd = libc.syscall(438, os.pidfd_open(int(sys.argv[1])), 3, 0)
sys.exit(0 if fd < 0 and ctypes.get_errno() == 1 else 1)' "$1"
}

@test "a user's programs cannot take the link of the user's server" {
    two_users "$GMUX_BUILD/src/server/gmux-server"
    start_daemon
    start_client one "${a[@]}" --
    [[ $(answered one) == served* ]]
    server=$(the_server)
    grep -q '^Uid:[[:space:]]*12345' "/proc/$server/status"
    "${a[@]}" bash -c "$(declare -f take_link); take_link $server"
}

@test "a percentage of each context" {
    # The program opts in by CUDA_MPS_ENABLE_PER_CTX_DEVICE_MULTIPROCESSOR_PARTITIONING before cuInit; no context has more
    # than its program.
    export GMUX_SOFT_WORKERS=40
    start_daemon
    portion=$GMUX_BUILD/tests/api/api-portion
    run -0 "$portion"
    [[ $output == *"of 40: 10 % are 4, 50 % are 20"* && $output != *"# SKIP"* ]]
    CUDA_MPS_ACTIVE_THREAD_PERCENTAGE=25 DEVICE_SIZE=40 run -0 "$portion"
    [[ $output == *"of 10: 10 % are 4, 50 % are 10"* ]]
    # Without a daemon there is nothing that holds a program to it.
    CUDA_MPS_PIPE_DIRECTORY=/nonexistent run -0 "$portion"
    [[ $output == *"# SKIP contexts have percentages under a daemon only"* ]]
}

@test "CUDA_MPS_SM_PARTITION: no program runs on everything instead" {
    misbehave=$GMUX_BUILD/tests/e2e/misbehave
    start_daemon
    run -0 "$misbehave" limit
    CUDA_MPS_SM_PARTITION="" run -0 "$misbehave" limit
    for partition in GPU-01234567/Dx4AAAA 0 -1 $'\xff' "$(printf 'x%.0s' {1..3000})"; do
        CUDA_MPS_SM_PARTITION=$partition run -1 "$misbehave" limit
        [[ $output == "gmux: "*"CUDA_MPS_SM_PARTITION: multiprocessors are not partitioned here"*"915"* ]]
    done
    # Without a daemon it means nothing.
    CUDA_MPS_PIPE_DIRECTORY=/nonexistent CUDA_MPS_SM_PARTITION=0 run -0 "$misbehave" limit
}
