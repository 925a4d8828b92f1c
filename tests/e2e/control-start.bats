# Options, and starting the daemon where that is not possible.

load helper

setup() {
    common_setup
}

teardown() {
    common_teardown
}

@test "help, version, unknown options: status 0" {
    run -0 "$control" -h
    for option in --daemon --foreground --multiuser-server --exclusive-user --classic-limits -q; do
        [[ $output == *"$option"* ]]
    done
    run -0 "$control" -v
    [ "${lines[0]}" = "CUDA MPS Control binary version: 13000" ]
    for option in -x --bogus -S --daemon=1; do
        run -0 "$control" "$option"
        [[ ${lines[0]} == "Unrecognized option "* ]]
        [[ $output == *--daemon* ]]
    done
    [ ! -e "$DIR/pipe" ]
}

@test "NVIDIA's spellings of options" {
    "$control" -multiuser-server -q --daemon 3>&-
    daemon=$(cat "$DIR/pipe/nvidia-cuda-mps-control.pid")
    "$control" quit
    "$control" --forground > "$DIR/out" 3>&- &
    until_true 100 "$control" ps > /dev/null
    "$control" quit
    wait $!
    grep -q "Control .* Starting control daemon" "$DIR/out"
}

@test "what is in the pipe directory" {
    umask 077
    start_daemon
    [ "$(stat -c %A "$DIR/pipe/control")" = srw-rw-rw- ]
    [ "$(stat -c %A "$DIR/pipe/control_privileged")" = srwxr-xr-x ]
    [ -f "$DIR/pipe/control_lock" ]
    [ "$(stat -c %A "$DIR/pipe/nvidia-cuda-mps-control.pid")" = -rw-r--r-- ]
    kill -0 "$(cat "$DIR/pipe/nvidia-cuda-mps-control.pid")"
    tr '\0' '\n' < "/proc/$daemon/environ" | grep -qx "CUDA_MPS_PIPE_DIRECTORY=$DIR/pipe"
}

@test "a second daemon" {
    start_daemon
    run -1 "$control" -d
    [ "$output" = "An instance of this daemon is already running" ]
    run -1 "$control" -f
    [ "$output" = "An instance of this daemon is already running" ]
    run -0 "$control" ps
}

@test "a daemon that was killed leaves its sockets: they are replaced" {
    start_daemon
    kill -9 "$daemon"
    until_true 50 gone "$daemon"
    [ -S "$DIR/pipe/control" ]
    run -1 "$control" ps
    start_daemon
    run -0 "$control" ps
}

@test "something that is no socket is not removed" {
    mkdir "$DIR/pipe"
    echo precious > "$DIR/pipe/control"
    run -1 "$control" -d
    [ "$output" = "gmux-control: $DIR/pipe/control: is in the way: it is not a socket" ]
    [ "$(cat "$DIR/pipe/control")" = precious ]
}

@test "links at the places of our files are not followed" {
    mkdir "$DIR/pipe" "$DIR/log"
    ln -s "$DIR/victim" "$DIR/pipe/control_lock"
    run -1 "$control" -d
    [[ ${lines[0]} == "gmux-control: $DIR/pipe/control_lock: "* ]]
    rm "$DIR/pipe/control_lock"
    ln -s "$DIR/victim" "$DIR/log/control.log"
    run -1 "$control" -d
    [ ! -e "$DIR/victim" ]
}

@test "path too long" {
    long=$DIR/$(head -c 90 /dev/zero | tr '\0' x)
    CUDA_MPS_PIPE_DIRECTORY=$long run -1 "$control" -d
    [ "${#lines[@]}" = 1 ]
    [[ $output == "gmux-control: $long: is too long for a pipe directory: "*" bytes, 87 are possible" ]]
    [ ! -e "$long" ]
    CUDA_MPS_PIPE_DIRECTORY=$long run -1 "$control" ps
    [ "$output" = "Cannot find MPS control daemon process" ]
}

@test "path of exactly 87 bytes" {
    CUDA_MPS_PIPE_DIRECTORY=$DIR/$(head -c $((87 - ${#DIR} - 1)) /dev/zero | tr '\0' x)
    [ ${#CUDA_MPS_PIPE_DIRECTORY} = 87 ]
    run -0 "$control" -d 3>&-
    run -0 "$control" ps
    run -0 "$control" quit
}

@test "pipe directory that cannot be made, or is none" {
    CUDA_MPS_PIPE_DIRECTORY=$DIR/no/such/parent run -1 "$control" -d
    [ "$output" = "gmux-control: $DIR/no/such/parent: No such file or directory" ]
    CUDA_MPS_PIPE_DIRECTORY=/proc/version run -1 "$control" -d
    [ "$output" = "gmux-control: /proc/version: Not a directory" ]
    CUDA_MPS_PIPE_DIRECTORY=/proc/self/fdinfo run -1 "$control" -f
    [ "${#lines[@]}" = 1 ]
    [[ $output == "gmux-control: /proc/"*"/fdinfo/control_lock: "* ]]
}

@test "pipe directory that is not writable" {
    if [ "$(id -u)" = 0 ]; then
        as=(setpriv --reuid 12345 --regid 12345 --clear-groups)
        "${as[@]}" test -x "$control" || skip "user 12345 cannot reach the build"
    fi
    mkdir -m 555 "$DIR/pipe"
    run -1 "${as[@]}" "$control" -d
    [ "$output" = "gmux-control: $DIR/pipe/control_lock: Permission denied" ]
}

@test "log directory that is not possible" {
    CUDA_MPS_LOG_DIRECTORY=/proc/nowhere run -1 "$control" -d
    [[ $output == "gmux-control: /proc/nowhere: "* ]]
    [ "${#lines[@]}" = 1 ]
}

@test "SIGHUP: the logs can be rotated" {
    start_daemon
    mv "$DIR/log/control.log" "$DIR/log/control.log.1"
    kill -HUP "$daemon"
    until_true 50 test -e "$DIR/log/control.log"
    "$control" ps
    wait_log control "Cmd:ps"
}

@test "SIGTERM ends it in order" {
    start_daemon
    kill -TERM "$daemon"
    until_true 100 gone "$daemon"
    [ ! -e "$DIR/pipe/nvidia-cuda-mps-control.pid" ]
    has_line control "Exit with status 0"
}

@test "the daemon keeps none of its caller's descriptors" {
    exec {lock}> "$DIR/lock"
    flock "$lock"
    "$control" -d
    daemon=$(cat "$DIR/pipe/nvidia-cuda-mps-control.pid")
    exec {lock}>&-
    flock -n "$DIR/lock" true
    [ "$(readlink "/proc/$daemon/fd/0" "/proc/$daemon/fd/1" "/proc/$daemon/fd/2" | sort -u)" = /dev/null ]
    [ "$(readlink "/proc/$daemon/cwd")" = / ]
}

@test "relative directories" {
    cd "$DIR"
    CUDA_MPS_PIPE_DIRECTORY=pipe/ CUDA_MPS_LOG_DIRECTORY=log GMUX_LIBEXECDIR=bin start_daemon
    has_line control "Starting control daemon using socket $DIR/pipe/control"
    start_client one
    [[ $(answered one) == served* ]]
}

@test "a pipe directory of another user: a warning" {
    [ "$(id -u)" = 0 ] || skip "needs root"
    mkdir "$DIR/pipe"
    chown 12345 "$DIR/pipe"
    run -0 "$control" -d
    [ "$output" = "gmux-control: warning: $DIR/pipe: belongs to user 12345, who could take our place" ]
}
