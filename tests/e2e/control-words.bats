#!/usr/bin/env bats
# Every command with words that it does not expect. What NVIDIA's tool says to them is recorded
# for some (control-ui.bats); to the rest the answer is what it says to a server that there is not,
# or one clear line. In any case the daemon lives, nothing has changed, and the status says that
# the command arrived.

load helper

setup() {
    common_setup
    classic=${control%/*}/nvidia-cuda-mps-control
}

teardown() {
    common_teardown
}

# As people mistype them, and as hostile scripts write them.
BAD=("" " " -1 0 99999999999999999999 -99999999999999999999 1e400 nan 0x10 1.5.2 abc "a b" "--" "-f" "*" '%s%n' "'" '"'
    $'\xff\xfe' $'\xc3' $'caf\xc3\xa9' "$(printf 'x%.0s' {1..300})" "$(printf '9%.0s' {1..300})")

commands() {
    "$control" --dump-commands | sed -n 's/^\*\([a-z_]*\)\*.*/\1/p'
}

# What all the settings are, in one text.
settings() {
    local name
    for name in active_thread_percentage client_priority; do
        "$control" "get_default_$name"
    done
    "$control" get_default_device_pinned_mem_limit 0
    "$control" get_active_thread_percentage "$1"
    "$control" get_device_pinned_mem_limit "$1" 0
    "$control" get_server_list
    "$control" get_client_list "$1"
}

# answered_well COMMAND..: status 0, few lines, and none of a daemon that is gone.
answered_well() {
    local text
    text=$("$classic" "$@" 2>&1) || {
        echo "status of: $*"
        return 1
    }
    if [[ $text == *"Cannot find MPS control daemon"* ]] || [ "$(wc -l <<< "$text")" -gt 4 ]; then
        printf '%q ' "$@"
        echo "was answered: $text"
        return 1
    fi
}

@test "every command with missing, extra, huge, negative, non-numeric and non-UTF-8 words" {
    start_daemon
    start_client one
    [[ $(answered one) == served* ]]
    server=$(the_server)
    before=$(settings "$server")
    count=0
    for command in $(commands); do
        case $command in
        quit | restart) continue ;; # below
        esac
        answered_well "$command"
        for word in "${BAD[@]}"; do
            answered_well "$command" "$word"
            case $command in
            set_default_active_thread_percentage | set_default_client_priority) ;; # one word is all they take
            *) answered_well "$command" "$word" "$word" ;;
            esac
            ((count += 1))
        done
        answered_well "$command" "$server" "${BAD[2]}" extra extra extra extra
    done
    [ "$count" -ge 400 ]
    [ "$(settings "$server")" = "$before" ]
    # Still there, and so is the program.
    [ "$("$control" get_server_status "$server")" = ACTIVE ]
    [ "$("$control" get_client_list "$server")" = "$one" ]
}

@test "restart and quit with words that they do not know" {
    start_daemon
    for word in abc -1 99999999999999999999; do
        [ "$("$classic" restart "$word")" = "restart takes no words" ]
    done
    [ "$(count_lines control "Starting control daemon")" = 1 ]
    [[ $("$classic" quit -t abc) == "Invalid timeout"* ]]
    [[ $("$classic" quit -t) == "Invalid timeout"* ]]
    [ "$("$control" get_server_list)" = "" ]
    "$classic" quit -x # recorded: it quits
    until_true 100 gone "$daemon"
}
