# Strangers on the control socket: one that misbehaves is dropped with one line in the log, everybody else goes on.

load helper

setup() {
    common_setup
    start_daemon
}

teardown() {
    common_teardown
}

still_serves() {
    [ "$("$control" get_default_active_thread_percentage)" = 100.0 ]
    start_client honest
    [[ $(answered honest) == served* ]]
}

@test "every message cut at every length" {
    run -0 "$client" cut
    [[ $output =~ ^dropped\ ([0-9]+)\ of\ ([0-9]+)$ ]]
    [ "${BASH_REMATCH[1]}" = "${BASH_REMATCH[2]}" ]
    still_serves
}

@test "garbage, wrong messages, wrong values: dropped, one line each" {
    for kind in type wrong-party size trailing big descriptor limits priority privileged-hello; do
        before=$(count_lines control "Dropping connection of process [0-9]+, user $(id -u): ")
        run -0 "$client" abuse "$kind"
        [ "$output" = dropped ] || { echo "$kind: $output"; false; }
        [ "$(count_lines control "Dropping connection of process [0-9]+, user $(id -u): ")" = $((before + 1)) ]
    done
    run -0 "$client" abuse random
    [ "$output" = dropped ]
    still_serves
}

@test "a client that goes on talking while it waits for its server" {
    echo hang > "$DIR/mode"
    run -0 "$client" abuse twice
    [ "$output" = dropped ]
    has_line control "Dropping connection .*: unexpected message 1 \(hello\)"
}

@test "a connection that stays silent is dropped" {
    run -0 "$client" abuse silent
    [ "$output" = dropped ]
    has_line control "Dropping connection .*: silent for 10 s; .*libcuda"
    still_serves
}

@test "more connections than one user may have" {
    run -0 "$client" abuse flood
    [ "$output" = dropped ]
    has_line control "Dropping connection .*: too many connections"
    still_serves
}

@test "a peer that looks and leaves" {
    python3 -c 'import socket, sys; s = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET); s.connect(sys.argv[1])' "$DIR/pipe/control"
    wait_log control "User did not send valid credentials"
}

@test "protocol versions" {
    start_client future version=9 minimum=9
    [[ $(answered future) == "refused 803 "* ]]
    start_client past version=0 minimum=0
    [[ $(answered past) == "refused 803 "* ]]
    start_client newer version=9 minimum=1
    [[ $(answered newer) == served* ]]
}

@test "what a client calls itself cannot forge log lines or ps" {
    start_client evil "command=$(printf 'a\nb\033[2J\302\2332J')"
    answered evil
    "$control" ps > "$DIR/ps"
    [ "$(wc -l < "$DIR/ps")" = 2 ]
    grep -q 'a?b?\[2J??2J' "$DIR/ps"
}

@test "commands cannot forge log lines" {
    "$control" "$(printf 'ps\n[2026-01-01 00:00:00.000 Control     1] forged')"
    not grep -q '^\[2026-01-01' "$DIR/log/control.log"
}

@test "two hundred clients that leave at any point leave nothing behind" {
    start_client first
    answered first
    server=$(the_server)
    before=$(descriptors "$daemon")
    run -0 "$client" abuse leave
    only_first() { [ "$("$control" get_client_list "$server")" = "$first" ]; }
    until_true 100 only_first
    expect_descriptors "$before" "$daemon"
    [ "$("$control" ps | wc -l)" = 2 ]
    [ "$(the_server)" = "$server" ]
    [ "$(cat "$DIR/first.out")" = "served $first" ]
    still_serves
}

@test "descriptors that nobody asked for, which take ten minutes to close" {
    few_descriptors() { [ "$(ls "/proc/$daemon/fd" | wc -l)" -le "$before" ]; }
    before=$(ls "/proc/$daemon/fd" | wc -l)
    run -0 "$client" abuse linger "$daemon"
    [ "$output" = dropped ]
    until_true 100 few_descriptors
    still_serves
}

@test "a UI that does not read is cut after 10 s" {
    run -0 "$client" abuse unread-for-long
    [ "$output" = dropped ]
    has_line control "Dropping connection .*: it does not read the answers to its commands"
    still_serves
}

@test "answers that are not read take little memory" {
    run -0 "$client" abuse unread
    [ "$output" = dropped ]
    has_line control "Dropping connection .*: it does not read the answers to its commands"
    [ "$(awk '/VmHWM/ { print $2 }' "/proc/$daemon/status")" -lt 65536 ]
    still_serves
}
