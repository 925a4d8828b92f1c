# One option table: command line, environment and configuration file; what a mistake in the file does.

load helper

setup() {
    common_setup
    gmux=$GMUX_BUILD/src/cli/gmux
    file=$DIR/gmux.toml
    me=$(id -un)
}

teardown() {
    common_teardown
}

write() {
    printf '%s\n' "$@" > "$file"
}

@test "options of the file; the environment goes before it, the command line before both" {
    write '# what programs may have' 'log = "warn,link=debug"' 'default-share = 40.5' 'default-memory = "0=2G,1=1G"' 'default-priority = 1' \
        'classic-limits = true' "log-directory = '$DIR/other-log'"
    unset CUDA_MPS_LOG_DIRECTORY
    start_daemon --config "$file"
    [ "$("$control" get_default_active_thread_percentage)" = 40.5 ]
    [ "$("$control" get_default_device_pinned_mem_limit 1)" = 1G ]
    [ "$("$control" get_default_client_priority)" = 1 ]
    [ -s "$DIR/other-log/control.log" ]
    "$control" quit
    CUDA_MPS_ACTIVE_THREAD_PERCENTAGE=30 start_daemon --config "$file"
    [ "$("$control" get_default_active_thread_percentage)" = 30.0 ]
    "$control" quit
    CUDA_MPS_ACTIVE_THREAD_PERCENTAGE=30 GMUX_CONFIG=$file start_daemon --default-share=20
    [ "$("$control" get_default_active_thread_percentage)" = 20.0 ]
    [ "$("$control" get_default_client_priority)" = 1 ]
}

@test "paths on the command line hold after a restart; the file is read again then" {
    write 'default-priority = 1' 'default-share = 60'
    cd "$DIR"
    "$control" -d --config gmux.toml --pipe-directory pipe 3>&-
    daemon=$(cat "$DIR/pipe/nvidia-cuda-mps-control.pid")
    [ "$("$control" get_default_active_thread_percentage)" = 60.0 ]
    write 'default-share = 50'
    run -0 "$control" restart
    answers() { [ "$("$control" get_default_active_thread_percentage 2>&1)" = 50.0 ]; }
    until_true 100 answers
    [ "$(cat "$DIR/pipe/nvidia-cuda-mps-control.pid")" = "$daemon" ]
    [ "$("$control" get_default_client_priority)" = 0 ]
    # A mistake by then: it goes on as it is.
    write 'default-share = 500'
    run -0 "$control" restart
    [[ $output == "$file:1: default-share: it is a percentage above 0, up to 100: the daemon was not restarted" ]]
    [ "$("$control" get_default_active_thread_percentage)" = 50.0 ]
}

@test "limits of users and groups" {
    write "[users.$me]" 'share = "70%"' 'memory = "4G"' '' '[groups."'"$me"'".train] # a group' 'guarantee = 20' 'share=30'
    start_daemon --config "$file"
    run -0 "$gmux" ls --groups -f csv,noheader
    [ "$output" = "train,$me,0,30.0,20.0,-" ]
    has_line control "From the configuration: limit_user $(id -u) share=70%"
    # What a command sets goes before the file until the daemon ends in order.
    run -0 "$gmux" set train share=10
    kill -9 "$daemon"
    until_true 100 gone "$daemon"
    start_daemon --config "$file"
    run -0 "$gmux" ls --groups -f csv,noheader
    [ "$output" = "train,$me,0,10.0,20.0,-" ]
}

# refused LINES...: says this, starts nothing, and leaves nothing behind.
refused() {
    local words=$1
    shift
    write "$@"
    run "$control" -d --config "$file" 3>&-
    [ "$status" = 1 ] && [ "${#lines[@]}" = 1 ] && [ "$output" = "gmux-control: $file:$words" ] && [ ! -e "$DIR/pipe" ] || {
        echo "$*: status $status: $output"
        return 1
    }
    run "$control" --check --config "$file"
    [ "$status" = 1 ] && [ "$output" = "gmux-control: $file:$words" ]
}

@test "mistakes: file, line, key, and nothing is applied" {
    refused '2: default-sharing: there is no such option' '' 'default-sharing = 3'
    refused '1: default-share: it is a percentage above 0, up to 100' 'default-share = 0'
    refused '3: default-priority: it is 0 (normal) or 1 (below normal)' 'default-share = 5' '' 'default-priority = 2'
    refused '1: multiuser-server: it is true or false' 'multiuser-server = 1'
    refused '1: server-user: it is neither true nor false' 'server-user = true'
    refused '1: default-memory: it is DEVICE=SIZE, or several with commas' 'default-memory = "2G"'
    refused '1: device: it is cuda, soft or null' 'device = "gpu"'
    refused '1: log: it is error, warn, info or debug, or PART=LEVEL, or several with commas' 'log = "warn,link=loud"'
    refused '1: config: there is no such option' 'config = "/etc/passwd"'
    refused '1: foreground: there is no such option' 'foreground = true'
    refused '2: users.nobody-there.share: there is no such user' '[users.nobody-there]' 'share = 3'
    refused '2: users.root.share: share is a percentage above 0, up to 100' '[users.root]' 'share = -3'
    refused '2: users.root.guarantee: limits of a user are share=, memory= and priority=' '[users.root]' 'guarantee = 3'
    refused "2: groups.root.a b.share: a group's name has letters, digits, '.', '_' and '-', not only digits" \
        '[groups.root."a b"]' 'share = 3'
    refused '2: limits.share: there is no such key: tables are users.USER and groups.USER.GROUP' '[limits]' 'share = 3'
    refused '2: default-share: the key is there twice' 'default-share = 3' 'default-share = 4'
    refused '1: default-share: something follows that does not belong there' 'default-share = 3 4'
    refused '1: log-directory: the string does not end' 'log-directory = "/tmp'
    refused '1: default-share: arrays are not understood here' 'default-share = [3]'
    refused '1: default-share: that is no value' 'default-share = '
    refused '1: default-share: a = is missing' 'default-share'
    refused $'1: log-directory: the text is no UTF-8' $'log-directory = "\xff\xfe"'
    refused '1: users: a ] is missing' '[users'
    run -1 "$control" -d --default-share 0
    [ "$output" = "gmux-control: --default-share 0: it is a percentage above 0, up to 100" ]
}

@test "files that are not believed" {
    run -1 "$control" -d --config "$DIR/none"
    [ "$output" = "gmux-control: $DIR/none: No such file or directory" ]
    run -1 "$control" -d --config "$DIR"
    [ "$output" = "gmux-control: $DIR: no file" ]
    mkfifo "$DIR/fifo"
    run -1 "$control" -d --config "$DIR/fifo"
    [ "$output" = "gmux-control: $DIR/fifo: no file" ]
    write 'default-share = 3'
    chmod 666 "$file"
    run -1 "$control" -d --config "$file"
    [ "$output" = "gmux-control: $file: it is not root's or one's own, or others may write it" ]
    chmod 644 "$file"
    if [ "$(id -u)" = 0 ]; then
        chown 12345 "$file"
        run -1 "$control" -d --config "$file"
        [[ $output == *"it is not root's or one's own"* ]]
    fi
    [ ! -e "$DIR/pipe" ]
}

@test "what is left in the pipe directory of what commands have set: only one's own file counts" {
    start_daemon
    "$control" set_default_active_thread_percentage 30 >/dev/null
    [ "$(stat -c %a "$DIR/pipe/control_state")" = 600 ]
    kill -9 "$daemon"
    until_true 100 gone "$daemon"
    echo 'set_default_active_thread_percentage 5' > "$DIR/elsewhere"
    state=$DIR/pipe/control_state
    # A link, a directory, a pipe, another's file, one that others may write, one with another name: ignored, not followed.
    for kind in link directory fifo other open second; do
        rm -rf "$state"
        case $kind in
        link) ln -s "$DIR/elsewhere" "$state" ;;
        directory) mkdir "$state" ;;
        fifo) mkfifo "$state" ;;
        second) ln "$DIR/elsewhere" "$state" ;;
        *) cp "$DIR/elsewhere" "$state" ;;
        esac
        [ "$kind" != open ] || chmod 622 "$state"
        if [ "$kind" = other ]; then
            [ "$(id -u)" = 0 ] || continue
            chown 12345 "$state"
        fi
        start_daemon
        [ "$("$control" get_default_active_thread_percentage)" = 100.0 ]
        wait_log control "control_state is not an earlier daemon's: it is ignored"
        kill -9 "$daemon"
        until_true 100 gone "$daemon"
        rm -f "$DIR/log/control.log"
    done
    [ "$(cat "$DIR/elsewhere")" = 'set_default_active_thread_percentage 5' ]
    # Lines that are none.
    rm -f "$state"
    printf 'quit\nset_default_active_thread_percentage 44\n\xff\xfe\nfrob 3\n\nset_default_active_thread_percentage -1\n' > "$state"
    chmod 600 "$state"
    start_daemon
    [ "$("$control" get_default_active_thread_percentage)" = 44.0 ]
    [ "$(count_lines control 'no line of control_state')" = 4 ]
    # Links where it is written: they are replaced, not written through.
    ln -sf "$DIR/elsewhere" "$DIR/pipe/control_state.new"
    "$control" set_default_active_thread_percentage 50 >/dev/null
    [ -f "$state" ] && [ ! -L "$state" ] && [ ! -e "$DIR/pipe/control_state.new" ]
    [ "$(cat "$DIR/elsewhere")" = 'set_default_active_thread_percentage 5' ]
}
