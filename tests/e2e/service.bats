# The daemon as a service: it says when it is ready, takes over sockets that the manager made, and its units are sound.

load helper

setup() {
    real_setup
    manager=$BATS_TEST_DIRNAME/manager
    units=$GMUX_SOURCE/packaging/systemd
}

teardown() {
    common_teardown
}

# Starts the daemon behind the sockets NAME=PATH..; it begins when a line comes on descriptor 9.
start_behind() {
    mkfifo "$DIR/go"
    LISTEN=$1 "$manager" sockets "$control" -f <"$DIR/go" >"$DIR/manager.out" 2>&1 3>&- &
    CLIENTS+=($!)
    daemon=$!
    exec 9>"$DIR/go"
    until_true 100 grep -q listening "$DIR/manager.out"
}

both="control=PIPE/control,control_privileged=PIPE/control_privileged"

# Somebody has connected to the socket (beside the one that listens).
has_caller() {
    [ "$(grep -c " $DIR/pipe/control$" /proc/net/unix)" -ge 2 ]
}

@test "it tells the manager once, when programs can connect" {
    "$manager" notify "$control" -f >"$DIR/told" 2>"$DIR/manager.err" 3>&- &
    CLIENTS+=($!)
    until_true 100 has_output "$DIR/told"
    run -0 "$GMUX_BUILD/examples/vecadd" # at once
    [[ $output == *"all correct"* ]]
    "$control" quit
    wait "${CLIENTS[0]}"
    [ "$(cat "$DIR/told")" = READY=1 ]
}

@test "a program that came before the daemon waits in its socket" {
    start_behind "${both//PIPE/$DIR/pipe}"
    start_program early "$GMUX_BUILD/examples/vecadd"
    until_true 100 has_caller
    echo >&9
    until_true 100 gone "$early"
    wait "$early"
    grep -q "all correct" "$DIR/early.out"
    [ "$("$control" get_default_active_thread_percentage)" = 100.0 ]
    [ "$(cat "$DIR/pipe/nvidia-cuda-mps-control.pid")" = "$daemon" ]
    # Started anew in the same process it keeps them, and tells its servers nothing of them.
    server=$(the_server)
    [ "$(tr '\0' '\n' <"/proc/$server/environ" | grep -c ^LISTEN_)" = 0 ]
    "$control" restart
    run -0 "$GMUX_BUILD/examples/vecadd"
    "$control" quit
    until_true 100 gone "$daemon"
}

@test "only one of the sockets: it makes the other itself" {
    start_behind "control=$DIR/pipe/control"
    echo >&9
    until_true 100 test -S "$DIR/pipe/control_privileged"
    run -0 "$GMUX_BUILD/examples/vecadd"
    "$control" quit
}

refused() {
    start_behind "$1"
    echo >&9
    not wait "$daemon"
    [[ $(cat "$DIR/manager.out") == *"$2"* ]] || { cat "$DIR/manager.out"; return 1; }
}

@test "sockets that are something else are refused with one line" {
    refused "log=$DIR/pipe/control" '"log" from the service manager: it is called neither control nor control_privileged'
}

@test "a stream socket is refused" {
    refused "control!=$DIR/pipe/control" "it is not a socket that listens for packets"
}

@test "two of one name are refused" {
    refused "control=$DIR/pipe/control,control=$DIR/pipe/other" "there are two of that name"
}

@test "sockets of another pipe directory are refused" {
    mkdir "$DIR/pipe"
    python3 -c 'import socket, sys; socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET).bind(sys.argv[1])' "$DIR/pipe/control"
    refused "control=$DIR/elsewhere/control" "pipe/control: is not the socket that the service manager made"
}

@test "descriptors that were passed to another process are left alone" {
    LISTEN_PID=1 LISTEN_FDS=2 LISTEN_FDNAMES=control:control_privileged "$control" -f >"$DIR/out" 2>&1 3>&- &
    CLIENTS+=($!)
    until_true 100 "$control" get_default_active_thread_percentage
    "$control" quit
}

@test "the units are what systemd expects, and bounded" {
    command -v systemd-analyze >/dev/null || skip "there is no systemd-analyze"
    cp "$GMUX_BUILD"/packaging/systemd/gmux.service "$units"/*.socket "$DIR"
    sed -i "s|^\(Exec[A-Za-z]*=\)[^ ]*gmux-control|\1$control|" "$DIR/gmux.service"
    run -0 systemd-analyze verify --man=no "$DIR/gmux.service" "$DIR/gmux.socket" "$DIR/gmux-privileged.socket"
    [ -z "$output" ]
    # In tenths: 100 is unconfined.
    run -0 systemd-analyze security --offline=true --threshold=45 "$DIR/gmux.service"
}

@test "the unit's capabilities are enough for root's daemon to serve two users, also from one server" {
    two_users "$GMUX_BUILD/examples/vecadd"
    caps=$(sed -n 's/^CapabilityBoundingSet=//p' "$GMUX_BUILD/packaging/systemd/gmux.service")
    caps=${caps,,}
    caps=${caps//cap_/+}
    for mode in "" -M; do
        setpriv --bounding-set "-all,${caps// /,}" --no-new-privs "$control" -d $mode 3>&-
        daemon=$(cat "$DIR/pipe/nvidia-cuda-mps-control.pid")
        run -0 "${a[@]}" "$GMUX_BUILD/examples/vecadd"
        run -0 "${b[@]}" "$GMUX_BUILD/examples/vecadd"
        start_program long "${b[@]}" "$GMUX_BUILD/examples/nbody" -benchmark -numbodies=1024 -iterations=1000000
        server_of() { server=$("$control" ps | awk -v pid="$long" '$1 == pid { print $3 }') && [ -n "$server" ]; }
        until_true 200 server_of
        [ "$("$control" terminate_client "$server" "$long")" = 0 ]
        until_true 100 gone "$long"
        "$control" quit
        until_true 100 gone "$daemon"
    done
}
