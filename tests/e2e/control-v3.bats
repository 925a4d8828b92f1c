# Protocol 3 of MPS (r615): modules, verbs and lists, as documented. What the documents leave open is refused in plain words.

load helper

setup() {
    common_setup
    me=uid_$(id -u)
    classic=${control%/*}/nvidia-cuda-mps-control
}

teardown() {
    common_teardown
}

# says COMMAND TEXT: this is what it prints, and the status is 0.
says() {
    # shellcheck disable=SC2086 # words of a command
    run -0 "$control" $1
    [ "$output" = "$2" ] || {
        printf '%s: %q, not %q\n' "$1" "$output" "$2"
        false
    }
}

# The server has told the daemon of a client's context.
listed() {
    [ -n "$("$control" client list --format=csv,noheader)" ]
}

one_client() {
    start_daemon -p 3
    start_client one command="python train.py"
    [[ $(answered one) == served* ]]
    server=$(the_server)
    until_true 200 listed
    uuid=GPU-00010203-0405-0607-0809-0a0b0c0d0e0f
}

@test "which protocol: -p, CUDA_MPS_PROTOCOL_VERSION, which wins, and what is neither" {
    says_two() {
        says "server list" 'Unknown command "server"'
        "$control" quit
    }
    says_three() {
        says "server list --format=csv" "name,uid,pid,status,pipe-directory,allowed-devices,context-ids"
        "$control" quit
    }
    start_daemon
    says_two
    start_daemon -p 2
    says_two
    start_daemon --protocol=3
    # A command follows the daemon, whatever the environment says here.
    CUDA_MPS_PROTOCOL_VERSION=2 says_three
    CUDA_MPS_PROTOCOL_VERSION=3 start_daemon
    says_three
    CUDA_MPS_PROTOCOL_VERSION=3 start_daemon -p 2
    says_three
    CUDA_MPS_PROTOCOL_VERSION=2 start_daemon -p 3
    says_two
    for bad in "" 1 4 -3 33 99999999999999999999 three $'\xff'; do
        run -1 "$control" -d -p "$bad"
        [ "$output" = "gmux-control: --protocol $bad: it is 2 or 3" ]
        [ -n "$bad" ] || continue
        CUDA_MPS_PROTOCOL_VERSION=$bad run -1 "$control" -d
        [ "$output" = "gmux-control: CUDA_MPS_PROTOCOL_VERSION=$bad: it is 2 or 3" ]
    done
    run -1 "$control" -d -p
}

@test "protocol 3: -m, --multiuser, -q and --quit" {
    for option in -m --multiuser; do
        start_daemon -p 3 "$option"
        says "server create uid_4711" "server create: all users share one server"
        run -0 "$control" --quit
        [ "$output" = "" ]
        gone "$daemon"
    done
    start_daemon -q -p 3
    run -0 "$control" -q -p 3
    gone "$daemon"
    start_daemon
    # In protocol 2 that is another option: what follows is a command.
    says "-q get_default_active_thread_percentage" 100.0
    CUDA_MPS_PROTOCOL_VERSION=3 run -0 "$control" -q
    gone "$daemon"
    run -1 "$control" --quit
    [ "$output" = "Cannot find MPS control daemon process" ]
    for option in -d -f --check; do
        run -1 "$control" --quit "$option"
        [ "$output" = "gmux-control: --quit and an option that starts a daemon exclude each other" ]
    done
    run -1 "$control" get_server_list
}

@test "protocol 3: lists and fields of one client" {
    one_client
    row="$me,$(id -u),$server,Ready,$DIR/pipe,$uuid,-"
    says "server list --format=csv" "name,uid,pid,status,pipe-directory,allowed-devices,context-ids"$'\n'"$row"
    says "server list --format=csv,noheader" "$row"
    says "server list format=csv,noheader" "$row"
    says "server list --format=table,noheader" "${row//,/  }"
    run -0 "$control" server list
    [[ ${lines[0]} == "name "*"  pid "*"  context-ids" && ${lines[1]} == "$me "*" $server "*"  -" ]]
    says "server get $me pid" "$server"
    says "server get $me status" Ready
    says "server get $me allowed-devices" "$uuid"

    says "client list --format=csv,noheader" "$one,$me,0,default,python train.py"
    says "client list --server=$me --all --format=csv,noheader" "$one,$me,0,default,python train.py"
    says "client get $one server" "$me"
    says "client get $one device" 0
    says "client get $one pci-id" 0000:06:00.0
    says "client get $one linux-ns" 4026531836
    says "client get $one maws-ns" default
    says "client get $one cmd" "python train.py"
    says "device list --format=csv,noheader" "0,$me,0000:06:00.0,$uuid,Fake Device,-,-,N/A"
    run -0 "$control" device list
    [[ ${lines[0]} == "Ordinal  Server "*"Total SMs  Total Chunks  Attributes" ]]
    grep -q "set CUDA_MPS_PIPE_DIRECTORY=$DIR/pipe" "$DIR/log/control.log"
    # The commands of protocol 2 are there as well.
    says get_server_list "$server"
}

@test "protocol 3: what a program is called is quoted where it has to be" {
    start_daemon -p 3
    start_client one command='a,"b"'
    [[ $(answered one) == served* ]]
    until_true 200 listed
    says "client get $one cmd" 'a,"b"'
    says "client list --all --format=csv,noheader" "$one,$me,0,default,\"a,\"\"b\"\"\""
}

@test "protocol 3: server set and get" {
    one_client
    says "server get $me active-thread-percentage" 100
    says "server get $me pinned-memory-limit" -
    says "server set $me --active-thread-percentage=33 client-priority=1 --pinned-memory-limit=2G" ""
    says "server get $me active-thread-percentage" 33
    says "server get $me client-priority" 1
    says "server get $me pinned-memory-limit" 2G
    wait_log server "limits share 33.0 priority 1 memory \*=2G running 1"
    says "server set $me --pinned-memory-limit=0=1G,1=512M" ""
    says "server get $me pinned-memory-limit" "*=2G,0=1G,1=512M"
    # All of it or nothing.
    for bad in active-thread-percentage={0,-5,101,abc,,nan,99999999999999999999} client-priority={2,-1,,x} \
        pinned-memory-limit={,abc,-1G,5,99999999999999999999G,0=,x=y} locality-domains=1; do
        run -0 "$control" server set "$me" --active-thread-percentage=50 "--$bad"
        [[ ${#lines[@]} == 1 && $output == "server set: "* ]] || {
            echo "$bad: $output"
            false
        }
    done
    says "server get $me active-thread-percentage" 33
    says "server get $me client-priority" 1
    says "server get $me pinned-memory-limit" "*=2G,0=1G,1=512M"
}

@test "protocol 3: server create and delete, client terminate" {
    start_daemon -p 3
    says "server create $me --uid=$(id -u)" ""
    until_true 100 one_server
    server=$(the_server)
    wait_log control "NEW SERVER $server: Ready"
    says "server get $me status" Ready
    says "server create $me" ""
    says get_server_list "$server"
    says "server delete $me" ""
    until_true 100 gone "$server"
    start_client one
    [[ $(answered one) == served* ]]
    says "server delete $me" "server delete: $me has clients; --force ends it in any case"
    says "client terminate $one" 0
    wait_log server "Client process $one disconnected"
    start_client two
    [[ $(answered two) == served* ]]
    server=$(the_server)
    says "server delete $me --force" ""
    until_true 100 gone "$server"
    says "server create uid_99999999999999999999" "server create: a name that begins with uid_ goes on with its user's number"
    says "server create $me --uid=77" "server create: a name that begins with uid_ goes on with its user's number"
    says "server create $me --uid=-1" "server create: --uid is no user's number, or neither it nor a name is there"
    says "server create" "server create: --uid is no user's number, or neither it nor a name is there"
    says "server create Training" "server create: a name has lowercase letters, digits and '_', up to 64"
    run -0 "$control" server create "$me" --allowed-devices=0
    [[ $output == "server create: --allowed-devices: "* ]]
    run -0 "$control" server create "$me" --locality-domains=1
    [[ $output == "server create: --locality-domains: "* ]]
}

@test "protocol 3: what is not served is refused in plain words" {
    start_daemon -p 3
    for module in namespace feature memacct context-share; do
        for verb in "" help list "create a --server=b" $'\xff'; do
            # shellcheck disable=SC2086 # words of a command
            run -0 "$control" $module $verb
            [[ ${#lines[@]} == 1 && $output == "$module: "*" "* ]]
        done
    done
}

@test "protocol 3: a server with a name of its own, which the next daemon knows" {
    uid=$(id -u)
    start_daemon -p 3
    says "server create training --uid=$uid" ""
    until_true 100 one_server
    server=$(the_server)
    wait_log control "NEW SERVER $server: Ready"
    run -0 "$control" server list --format=csv,noheader
    [[ $output == "training,$uid,$server,Ready,"* ]]
    says "server get training uid" "$uid"
    says "server get $me uid" "Server $me not found"
    says "server create another --uid=$uid" "server create: its user's server has another name, and each user has one server"
    says "server create --uid=$uid" "" # is there
    start_client one
    [[ $(answered one) == served* ]]
    says "client get $one server" training
    kill -9 "$daemon"
    starts() { "$control" -d -p 3 3>&- 2>/dev/null; }
    until_true 100 starts
    daemon=$(cat "$DIR/pipe/nvidia-cuda-mps-control.pid")
    until_true 100 grep -q "^name_server $uid training$" "$DIR/pipe/control_state"
    says "server delete training --force" "Server training not found" # the stand-in ends with its daemon
    says "server create training --uid=$uid" ""
    says "server delete training --force" ""
    run ! grep -q training "$DIR/pipe/control_state"
}

@test "protocol 3: -a begins with the servers of a file; mistakes: file, line, key, and nothing is applied" {
    uid=$(id -u)
    cat >"$DIR/good.toml" <<END
schema_version = "1.0"
[servers.training]
uid                      = $uid
active_thread_percentage = "50"
pinned_memory_limit      = "10G"
client_priority          = 1
locality_domains         = false
[features.memacct]
enabled = false
END
    run -1 "$control" -d -a "$DIR/good.toml"
    [ "$output" = "gmux-control: --apply $DIR/good.toml: is for protocol 3: -p 3 is missing" ]
    run -0 "$control" --check -p 3 -a "$DIR/good.toml"
    start_daemon -p 3 -a "$DIR/good.toml"
    until_true 100 one_server
    says "server get training active-thread-percentage" 50
    says "server get training pinned-memory-limit" 10G
    says "server get training client-priority" 1
    says "server get training uid" "$uid"
    "$control" quit -t 0
    while read -r line where text; do
        { printf 'schema_version = "1.0"\n' && printf '%b\n' "$text"; } >"$DIR/bad.toml"
        run -1 "$control" -d -p 3 -a "$DIR/bad.toml"
        [ "${#lines[@]}" = 1 ] && [[ $output == "gmux-control: $DIR/bad.toml:$line: $where: "* ]] || {
            echo "$text: $output"
            false
        }
    done <<'END'
2 frob frob = 1
3 servers.a.frob [servers.a]\nfrob = 1
3 servers.A.uid [servers.A]\nuid = 1
3 servers.a.uid [servers.a]\nuid = -1
3 servers.a.uid [servers.a]\nuid = "root"
3 servers.a.active_thread_percentage [servers.a]\nactive_thread_percentage = 0
3 servers.a.active_thread_percentage [servers.a]\nactive_thread_percentage = "101"
3 servers.a.pinned_memory_limit [servers.a]\npinned_memory_limit = "much"
3 servers.a.client_priority [servers.a]\nclient_priority = 2
3 servers.a.allowed_devices [servers.a]\nallowed_devices = "GPU-0"
3 servers.a.locality_domains [servers.a]\nlocality_domains = true
3 servers.a.locality_domains [servers.a]\nlocality_domains = 1
3 servers.a.namespaces.b.client_priority [servers.a.namespaces.b]\nclient_priority = 1
3 servers.a.devices.0.uuid [[servers.a.devices]]\nuuid = 7
3 servers.a.devices.0.frob [[servers.a.devices]]\nfrob = 7
5 servers.a.devices.0.sm_partitions.0.chunks [[servers.a.devices]]\nuuid = "GPU-0"\n[[servers.a.devices.sm_partitions]]\nchunks = 0
5 servers.a.devices.0.sm_partitions.0.include_remainder [[servers.a.devices]]\nuuid = "GPU-0"\n[[servers.a.devices.sm_partitions]]\ninclude_remainder = true
3 features.memacct.enabled [features.memacct]\nenabled = true
END
    echo '[servers.a]' >"$DIR/bad.toml"
    run -1 "$control" -d -p 3 -a "$DIR/bad.toml"
    [ "$output" = "gmux-control: $DIR/bad.toml: schema_version is missing" ]
    run -1 "$control" -d -p 3 -a "$DIR/nothing.toml"
    [ "$output" = "gmux-control: $DIR/nothing.toml: No such file or directory" ]
    [ ! -e "$DIR/pipe/nvidia-cuda-mps-control.pid" ]
}

@test "protocol 3: missing, extra, huge, negative, non-numeric and non-UTF-8 words" {
    one_client
    before=$("$control" server list; "$control" client list; "$control" server get "$me" active-thread-percentage)
    says "server get" "Usage: server get NAME FIELD"
    says "server get $me" "Usage: server get NAME FIELD"
    says "server get $me pid extra" "Usage: server get NAME FIELD"
    says "server list x" "Usage: server list [--format=table|csv[,noheader]]"
    says "server set $me" "Usage: server set NAME FIELD=VALUE..."
    says "client terminate" "Usage: client terminate PID"
    says "server list --format=xml" "--format is table or csv, with ,noheader for no header"
    says "server list --format=csv,header" "--format is table or csv, with ,noheader for no header"
    says "server list --format" "server list: unknown option --format"
    says "server delete $me --force=1" "server delete: unknown option --force=1"
    says "server frob" 'Unknown command "server frob"'
    says "server get $me frob" "server get: there is no field frob"
    says "client get $one frob" "client get: there is no field frob"
    for module in server client device; do
        run -0 "$control" $module
        [ "${lines[0]%% *}" = $module ]
        run -0 "$control" $module help
        [ "${lines[0]%% *}" = $module ]
    done
    says "client terminate help" $'client terminate PID\n    Takes the device away from a client; prints 0 or a CUDA error'
    for bad in -1 0 99999999999999999999 1e400 0x10 abc -- --= = -f "*" '%s%n' "'" '"' $'\xff\xfe' $'\xc3' \
        "$(printf 'x%.0s' {1..3000})"; do
        for command in "server" "server create" "server delete" "server list" "server get" "server set" "client list" \
            "client list --server=" "client get" "client terminate" "device list" "server get $me" "client get $one"; do
            printf '%s %s\n' "$command" "$bad"
        done
    done > "$DIR/commands"
    # Each has one line for an answer.
    run -0 "$classic" < "$DIR/commands"
    [ "${#lines[@]}" = "$(wc -l < "$DIR/commands")" ] || {
        echo "$output"
        false
    }
    [ "$before" = "$("$control" server list; "$control" client list; "$control" server get "$me" active-thread-percentage)" ]
    kill -0 "$one"
}

@test "protocol 3: who may not" {
    [ "$(id -u)" = 0 ] || skip "needs root"
    one_client
    stranger=(setpriv --reuid 12345 --regid 12345 --clear-groups "$control")
    "${stranger[@]}" -v > /dev/null || skip "user 12345 cannot reach the program"
    for command in "create uid_12345" "delete $me --force" "set $me --active-thread-percentage=1"; do
        # shellcheck disable=SC2086 # words of a command
        run -0 "${stranger[@]}" server $command
        [[ $output == "Only root may use server" ]]
    done
    run -0 "${stranger[@]}" client terminate "$one"
    [ "$output" = "Client $one is another user's" ]
    run -0 "${stranger[@]}" client list --format=csv,noheader
    [ "$output" = "$one,$me,0,default,-" ]
    kill -0 "$one"
}
