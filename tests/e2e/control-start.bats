# Options, and starting the daemon where that is not possible.

load helper

setup() {
    common_setup
}

teardown() {
    common_teardown
}

@test "help, version, unknown options" {
    run -0 "$control" -h
    for option in --daemon --foreground --multiuser-server --exclusive-user --classic-limits --static-partitioning -S -q; do
        [[ $output == *"$option"* ]]
    done
    run -0 "$control" -v
    [ "${lines[0]}" = "CUDA MPS Control binary version: 13000" ]
    for option in -x --bogus -p -a --daemon=1; do
        run -1 "$control" "$option"
        [[ $output == "gmux-control: unrecognized option "* ]]
        [ "${#lines[@]}" = 1 ]
        run -0 "${control%/*}/nvidia-cuda-mps-control" "$option"
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

@test "SIGHUP: logs whose directory has been removed, or moved away" {
    start_daemon
    rm -r "$DIR/log"
    kill -HUP "$daemon"
    until_true 50 test -e "$DIR/log/server.log"
    "$control" ps
    wait_log control "Cmd:ps"
    mv "$DIR/log" "$DIR/old"
    ln -s "$DIR/old" "$DIR/log" # is not followed: it goes on where it was
    kill -HUP "$daemon"
    "$control" get_server_list
    until_true 50 grep -q Cmd:get_server_list "$DIR/old/control.log"
    rm "$DIR/log"
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

# refuses_directory PATH WHY: as root, for either directory.
refuses_directory() {
    CUDA_MPS_PIPE_DIRECTORY=$1 run -1 "$control" -d
    [ "$output" = "gmux-control: $1: $2" ] || { echo "pipe: $output"; return 1; }
    CUDA_MPS_LOG_DIRECTORY=$1 run -1 "$control" -d
    [ "$output" = "gmux-control: $1: $2" ] || { echo "log: $output"; return 1; }
}

@test "root takes no directory that another user could exchange" {
    [ "$(id -u)" = 0 ] || skip "needs root"
    others="is for others to write to, who could take our place (chmod go-w, or +t)"
    mkdir "$DIR/theirs" "$DIR/ours"
    chown 12345 "$DIR/theirs"
    refuses_directory "$DIR/theirs" "belongs to user 12345, who could take our place"
    mkdir "$DIR/theirs/below"
    refuses_directory "$DIR/theirs/below" "a directory above it belongs to user 12345, who could take our place"
    mkdir -m 777 "$DIR/open" "$DIR/group" "$DIR/open/below"
    chmod 775 "$DIR/group"
    chmod 755 "$DIR/open/below"
    refuses_directory "$DIR/open" "$others"
    refuses_directory "$DIR/group" "$others"
    refuses_directory "$DIR/open/below" "a directory above it $others"
    ln -s ours "$DIR/link"
    refuses_directory "$DIR/link" "is a link"
    ln -s "$DIR/ours" "$DIR/theirs/link"
    chown -h 12345 "$DIR/theirs/link"
    chown 0 "$DIR/theirs"
    mkdir "$DIR/ours/below"
    refuses_directory "$DIR/theirs/link/below" "a directory above it belongs to user 12345, who could take our place"
    [ -z "$(ls "$DIR/ours/below")" ]
    mkdir -m 1777 "$DIR/sticky"
    CUDA_MPS_PIPE_DIRECTORY=$DIR/sticky run -0 "$control" -d
    CUDA_MPS_PIPE_DIRECTORY=$DIR/sticky run -0 "$control" quit
}

@test "what others left in a sticky directory is not taken for ours" {
    [ "$(id -u)" = 0 ] || skip "needs root"
    mkdir -m 1777 "$DIR/pipe" "$DIR/log"
    touch "$DIR/pipe/control_lock"
    chown 12345 "$DIR/pipe/control_lock"
    run -1 "$control" -d
    [ "$output" = "gmux-control: $DIR/pipe/control_lock: is in the way: it is not a daemon's lock" ]
    rm "$DIR/pipe/control_lock"
    echo precious > "$DIR/victim"
    ln "$DIR/victim" "$DIR/log/control.log"
    run -1 "$control" -d
    [ "$output" = "gmux-control: $DIR/log: Operation not permitted" ]
    [ "$(cat "$DIR/victim")" = precious ]
    rm "$DIR/log/control.log"
    touch "$DIR/log/server.log"
    chown 12345 "$DIR/log/server.log"
    run -1 "$control" -d
    [ "$output" = "gmux-control: $DIR/log: Operation not permitted" ]
}

@test "the mode of a socket is not set through its name" {
    strace -o /dev/null true 2> /dev/null || skip "no strace"
    strace -f -o "$DIR/trace" -e trace=chmod,fchmodat,bind "$control" -d 3>&- &
    CLIENTS+=($!)
    until_true 100 test -s "$DIR/pipe/nvidia-cuda-mps-control.pid"
    daemon=$(cat "$DIR/pipe/nvidia-cuda-mps-control.pid")
    grep -q 'bind(.*sun_path="control"' "$DIR/trace"
    not grep -q chmod "$DIR/trace"
}

reaches() {
    [ "$("$control" get_default_active_thread_percentage)" = 100.0 ]
}

names_the_daemon() {
    [ "$(cat "$DIR/pipe/nvidia-cuda-mps-control.pid" 2>/dev/null)" = "$daemon" ]
}

@test "the pipe directory is removed under a running daemon" {
    start_daemon
    start_client one
    [[ $(answered one) == served* ]]
    rm -r "$DIR/pipe" || true # what was removed first may be there again before it has come to the end
    until_true 100 reaches
    until_true 100 names_the_daemon # rm may have come to this file last
    [ "$(stat -c %A "$DIR/pipe/control")" = srw-rw-rw- ]
    [ "$(stat -c %A "$DIR/pipe/control_privileged")" = srwxr-xr-x ]
    run -1 "$control" -d
    [ "$output" = "An instance of this daemon is already running" ]
    has_line control "Something was removed from the pipe directory: made again"
    for name in control control_privileged control_lock nvidia-cuda-mps-control.pid; do
        rm "$DIR/pipe/$name"
        until_true 100 test -e "$DIR/pipe/$name"
    done
    mv "$DIR/pipe" "$DIR/elsewhere"
    until_true 100 reaches
    run -1 "$control" -d
    [ "$output" = "An instance of this daemon is already running" ]
    [ "$("$control" get_client_list "$(the_server)")" = "$one" ]
    [ ! -s "$DIR/lost" ] && ! grep -q lost "$DIR/one.out"
}

@test "the pipe directory is removed again and again" {
    start_daemon
    for _ in {1..60}; do
        rm -r "$DIR/pipe" || true
        until_true 100 reaches
        until_true 100 names_the_daemon
    done
}

@test "its place is somebody else's: the daemon serves its clients and ends" {
    start_daemon
    start_client one
    [[ $(answered one) == served* ]]
    old=$daemon
    rm -r "$DIR/log"
    mkdir "$DIR/pipe.new"
    touch "$DIR/pipe.new/control_lock"
    chmod 600 "$DIR/pipe.new/control_lock"
    exec {lock}<> "$DIR/pipe.new/control_lock"
    flock "$lock"
    mv -T --exchange "$DIR/pipe" "$DIR/pipe.new" 2>/dev/null || python3 - "$DIR/pipe" "$DIR/pipe.new" <<'END'
import ctypes, sys
sys.exit(-ctypes.CDLL(None).renameat2(-100, sys.argv[1].encode(), -100, sys.argv[2].encode(), 2))
END
    [ ! -e "$DIR/pipe/control" ]
    not grep -q lost "$DIR/one.out"
    stop_client one
    until_true 100 gone "$old"
    [ ! -e "$DIR/pipe/control" ]
}
