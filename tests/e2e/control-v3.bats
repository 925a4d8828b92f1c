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
    row="$me,$(id -u),$server,Ready,$DIR/pipe/$me,$uuid,-"
    says "server list --format=csv" "name,uid,pid,status,pipe-directory,allowed-devices,context-ids"$'\n'"$row"
    says "server list --format=csv,noheader" "$row"
    says "server list format=csv,noheader" "$row"
    says "server list $me --format=csv,noheader" "$row"
    says "server list another --format=csv,noheader" "Server another not found"
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
    says "device list --server=$me --format=csv,noheader" "0,$me,0000:06:00.0,$uuid,Fake Device,-,-,N/A"
    says "device list --server=another" "Server another not found"
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
    says "server get $me active-thread-percentage" -
    says "server get $me pinned-memory-limit" -
    says "server set $me --active-thread-percentage=33 client-priority=1 --pinned-memory-limit=2G" ""
    says "server get $me active-thread-percentage" 33
    says "server get $me client-priority" 1
    says "server get $me pinned-memory-limit" 2G
    # They are those of its namespace default, and hold for clients that run.
    wait_log "$me/server" "client space $one $me/default memory \*=2G most none"
    wait_log "$me/server" "client limits $one share 33.0 priority 1"
    says "namespace get default $me pinned-memory-limit" 2G
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
    wait_log "$me/server" "Client process $one disconnected"
    start_client two
    [[ $(answered two) == served* ]]
    server=$(the_server)
    says "server delete $me --force" ""
    until_true 100 gone "$server"
    says "server create uid_99999999999999999999" "server create: a name that begins with uid_ goes on with its user's number"
    [ "$(id -u)" != 0 ] || says "server create $me --uid=77" "server create: a name that begins with uid_ goes on with its user's number"
    says "server create $me --uid=-1" "server create: --uid is no user's number, or neither it nor a name is there"
    says "server create" "server create: --uid is no user's number, or neither it nor a name is there"
    says "server create Training" "server create: a name has lowercase letters, digits and '_', up to 64, and does not begin with control"
}

@test "protocol 3: what is not served is refused in plain words" {
    start_daemon -p 3
    for verb in "" help list "create a --server=b" $'\xff'; do
        # shellcheck disable=SC2086 # words of a command
        run -0 "$control" context-share $verb
        [ "$output" = "context-share: contexts are not shared between programs" ]
    done
    says "feature enable context-share" "context-share: contexts are not shared between programs"
    says "server create --locality-domains=true $me" "server create: --locality-domains: devices are not divided"
    says "server create --locality-domains=false $me" ""
    says "server set $me --uid=7" "server set: --uid: whose a server is is said when it is created"
}

@test "protocol 3: features and memacct" {
    start_daemon -p 3
    says "feature describe --format=csv" "FEATURE,STATE,MODULE,COVERS
memacct,enabled (default),memacct,-
context-share,disabled (default),context-share,-"
    says "feature disable memacct" ""
    says "feature describe memacct --format=csv,noheader" "memacct,disabled,memacct,-"
    says "feature describe frob" "Feature frob not found"
    says "feature enable frob" "Feature frob not found"
    says "feature enable" "Usage: feature enable memacct"
    says "memacct set audit_log=true" ""
    for bad in "" audit_log= audit_log=1 audit_log=TRUE; do
        says "memacct set $bad" "memacct set: audit_log=true or audit_log=false is needed"
    done
    run -0 "$control" memacct describe --format=csv,noheader
    [[ ${lines[0]} == audit_log,true && ${lines[1]} == "software device,"* && ${lines[2]} == GPU,* ]]
    kill -9 "$daemon"
    restart_daemon
    says "feature describe memacct --format=csv,noheader" "memacct,disabled,memacct,-"
    run -0 "$control" feature enable memacct
    # Where the kernel has no accounting that is said.
    controllers=$(cat /sys/fs/cgroup/cgroup.controllers /sys/fs/cgroup/unified/cgroup.controllers 2> /dev/null || true)
    if [[ " $controllers " == *" dmem "* ]]; then
        [ -z "$output" ]
    else
        [[ $output == "memacct: "* ]]
    fi
}

@test "protocol 3: who connects and leaves that to another program has no memory, whatever its control group" {
    start_daemon -p 3
    "$client" left >"$DIR/out" 2>&1 3>&- &
    left=$!
    wait "$left"
    until_true 100 has_output "$DIR/out"
    read -r word child <"$DIR/out"
    [ "$word" = served ]
    CLIENTS+=("$child")
    wait_log "$me/server" "client space $left $me/default memory none most 0"
    start_client two
    [[ $(answered two) == served* ]]
    wait_log "$me/server" "client space $two $me/default memory none most none"
}

# A daemon after one that was killed.
restart_daemon() {
    starts() { "$control" -d -p 3 3>&- 2>/dev/null; }
    until_true 100 starts
    daemon=$(cat "$DIR/pipe/nvidia-cuda-mps-control.pid")
}

# ready NAME PID-VARIABLE: the server of that name is.
ready() {
    is_ready() { [ "$("$control" server get "$1" status)" = Ready ]; }
    until_true 100 is_ready "$1"
    printf -v "$2" %s "$("$control" server get "$1" pid)"
}

@test "protocol 3: servers with names are processes of their own, and programs choose by the directory" {
    uid=$(id -u)
    start_daemon -p 3
    says "server create training --uid=$uid" ""
    says "server create other" ""
    ready training server
    ready other second
    [ "$server" != "$second" ]
    run -0 "$control" server list --format=csv,noheader
    [[ ${lines[0]} == "training,$uid,$server,Ready,$DIR/pipe/training,"* ]]
    says "server get training uid" "$uid"
    says "server get training pipe-directory" "$DIR/pipe/training"
    says "server get $me uid" "Server $me not found"
    says "server create training" "" # is there
    [ "$(stat -c %a "$DIR/pipe/training" "$DIR/pipe/training/control" "$DIR/pipe/training/default/control" | paste -sd,)" = 755,666,666 ]
    start_client one env CUDA_MPS_PIPE_DIRECTORY="$DIR/pipe/training" --
    [[ $(answered one) == served* ]]
    start_client two env CUDA_MPS_PIPE_DIRECTORY="$DIR/pipe/other/default" --
    [[ $(answered two) == served* ]]
    start_client three
    [[ $(answered three) == served* ]]
    says "client get $one server" training
    says "client get $two server" other
    says "client get $three server" "$me"
    says get_server_list "$server"$'\n'"$second"$'\n'"$("$control" server get "$me" pid)"
    grep -q "Client process $one\|PID: $one," "$DIR/log/training/server.log"
    run ! grep -q "PID: $one," "$DIR/log/other/server.log"
    # Commands work there, too.
    CUDA_MPS_PIPE_DIRECTORY=$DIR/pipe/training says "client get $one server" training
    says "server delete training" "server delete: training has clients; --force ends it in any case"
    says "server delete training --force" ""
    until_true 100 gone "$server"
    [ ! -e "$DIR/pipe/training" ]
    says "server get training pid" "Server training not found"
    kill -0 "$two" "$three" "$second"
    "$control" quit -t 0
    [ -z "$(find "$DIR/pipe" -mindepth 1 -type d)" ]
}

@test "protocol 3: namespaces: create, list, set, get and delete; what holds for whom" {
    start_daemon -p 3
    says "server create training" ""
    says "namespace create high_priority --server=training" ""
    says "namespace create batch --server=training" ""
    says "namespace set high_priority --server=training --pinned-memory-limit=4G" ""
    says "namespace get high_priority training pinned-memory-limit" 4G
    says "namespace get high_priority training active-thread-percentage" -
    says "namespace get high_priority training pipe-directory" "$DIR/pipe/training/high_priority"
    says "namespace set batch --server=training --active-thread-percentage=25 client-priority=1" ""
    ready training server
    says "namespace list --format=csv" "name,server,server-status,pinned-memory-limit,active-thread-percentage,client-priority,pipe-directory
default,training,Ready,-,-,-,$DIR/pipe/training/default
high_priority,training,Ready,4G,-,-,$DIR/pipe/training/high_priority
batch,training,Ready,-,25,1,$DIR/pipe/training/batch"
    says "namespace list batch --server=training --format=csv,noheader" "batch,training,Ready,-,25,1,$DIR/pipe/training/batch"
    # A percentage counts in place of a client's, a priority where it has none; the server takes the lower memory.
    start_client one env CUDA_MPS_PIPE_DIRECTORY="$DIR/pipe/training/batch" -- share=80
    [[ $(answered one) == served* ]]
    wait_log training/server "client limits $one share 25.0 priority 1"
    start_client two env CUDA_MPS_PIPE_DIRECTORY="$DIR/pipe/training/high_priority" -- share=80 priority=0 memory=0=1G
    [[ $(answered two) == served* ]]
    wait_log training/server "client space $two training/high_priority memory \*=4G most none"
    wait_log training/server "client limits $two share 80.0 priority 0"
    says "client get $one maws-ns" batch
    run -0 "$control" client list --server=training --all --format=csv,noheader
    [[ ${lines[0]} == "$one,training,0,batch,"* && ${lines[1]} == "$two,training,0,high_priority,"* ]]
    # For those that run, too.
    says "namespace set batch --server=training --active-thread-percentage=10" ""
    wait_log training/server "client limits $one share 10.0 priority 1"
    # What a command sets for one program can lower it only.
    says "limit_client $server $one share=50" 0
    says "limit_client $server $one share=5" 0
    wait_log training/server "client limits $one share 5.0 priority 1"
    run ! grep -q "client limits $one share 50" "$DIR/log/training/server.log"
    says "namespace delete batch --server=training" "namespace delete: batch has clients; --force deletes it in any case"
    says "namespace delete batch --server=training --force" ""
    says "client get $one maws-ns" default
    [ ! -e "$DIR/pipe/training/batch" ]
    says "namespace delete default --server=training" "namespace delete: default goes with its server"
    says "namespace get batch training pipe-directory" "Namespace batch not found in server training"
    says "namespace create batch" "namespace create: --server= is needed"
    says "namespace create batch --server=none" "Server none not found"
    says "namespace set batch --server=none client-priority=1" "Server none not found"
    says "namespace create high_priority --server=training" "namespace create: there is one of that name"
    says "namespace set high_priority --server=training" "namespace set: a FIELD=VALUE is needed"
    says "namespace get high_priority training frob" "namespace get: there is no field frob"
    for bad in High a-b ../x control control_lock log "$(printf 'x%.0s' {1..65})" $'\xff'; do
        run -0 "$control" namespace create "$bad" --server=training
        [[ $output == "namespace create: a name has lowercase letters"* ]]
    done
    for bad in active-thread-percentage={0,-5,101,abc,,nan} client-priority={2,-1,,x} pinned-memory-limit={,abc,-1G,0=,x=y}; do
        run -0 "$control" namespace set high_priority --server=training --pinned-memory-limit=1G "--$bad"
        [[ ${#lines[@]} == 1 && $output == "namespace set: "* ]]
    done
    says "namespace get high_priority training pinned-memory-limit" 4G
}

@test "protocol 3: --allowed-devices" {
    CUDA_VISIBLE_DEVICES=3,5 start_daemon -p 3
    says "server create training --allowed-devices=1" ""
    ready training server
    wait_log training/server "devices 5"
    says "server create both --allowed-devices=0,1" ""
    ready both server
    wait_log both/server "devices 3,5"
    says "server create all" ""
    ready all server
    wait_log all/server "devices 3,5"
    says "server create training --allowed-devices=0" "server create: it is there, with other devices"
    for bad in "" , 0, ,0 0,,1 9 -1 x GPU "GPU-*" 99999999999999999999; do
        run -0 "$control" server create bad "--allowed-devices=$bad"
        [[ ${#lines[@]} == 1 && $output == "server create: --allowed-devices"* ]] || {
            echo "$bad: $output"
            false
        }
        [ ! -e "$DIR/pipe/bad" ]
    done
    "$control" quit -t 0
    CUDA_VISIBLE_DEVICES=GPU-aaaa,GPU-bbbb start_daemon -p 3
    says "server create one --allowed-devices=GPU-bbbb-1234" ""
    says "server create two --allowed-devices=GPU-cccc" "server create: --allowed-devices: the daemon's CUDA_VISIBLE_DEVICES leaves it out"
}

@test "protocol 3: what is in the way of a directory stays, and a server of another user takes no programs" {
    start_daemon -p 3
    ln -s /etc "$DIR/pipe/training"
    says "server create training" "server create: training: Not a directory"
    mkdir -p "$DIR/pipe/second/control"
    says "server create second" "server create: $DIR/pipe/second/default: File exists"
    [ -d "$DIR/pipe/second/control" ]
    mkdir "$DIR/pipe/third"
    chmod 777 "$DIR/pipe/third"
    says "server create third" "server create: third: Operation not permitted"
    long=$(printf 'x%.0s' {1..64})
    run -0 "$control" server create "$long"
    [[ $output == "server create: its directory's name would have "*" bytes, for a socket 87 are possible" ]]
    # A dead daemon's sockets are replaced.
    says "server create fourth" ""
    kill -9 "$daemon"
    restart_daemon
    ready_again() { start_client one env CUDA_MPS_PIPE_DIRECTORY="$DIR/pipe/fourth" --; [[ $(answered one) == served* ]]; }
    ready_again
    # What is removed is made again.
    rm -r "$DIR/pipe/fourth"
    is_back() { [ -S "$DIR/pipe/fourth/default/control" ]; }
    until_true 100 is_back
    [ "$(id -u)" = 0 ] || return 0
    says "server create theirs --uid=12345" ""
    start_client two env CUDA_MPS_PIPE_DIRECTORY="$DIR/pipe/theirs" --
    [[ $(answered two) == *"the server theirs is user 12345's"* ]]
}

@test "protocol 3: the next daemon knows servers, namespaces and limits" {
    uid=$(id -u)
    start_daemon -p 3
    says "server create training --uid=$uid --allowed-devices=0" ""
    says "namespace create batch --server=training" ""
    says "namespace set batch --server=training --active-thread-percentage=25 --pinned-memory-limit=0=1G,1=512M" ""
    says "server set training client-priority=1" ""
    before=$("$control" namespace list --format=csv,noheader | cut -d, -f 1,2,4-)
    kill -9 "$daemon"
    restart_daemon
    [ "$before" = "$("$control" namespace list --format=csv,noheader | cut -d, -f 1,2,4-)" ]
    says "server get training status" Stopped # the stand-in ends with its daemon
    says "server get training allowed-devices" 0
    start_client one env CUDA_MPS_PIPE_DIRECTORY="$DIR/pipe/training/batch" --
    [[ $(answered one) == served* ]]
    wait_log training/server "client limits $one share 25.0"
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
allowed_devices          = "0"
[servers.training.namespaces.high_priority]
pinned_memory_limit      = "5G"
active_thread_percentage = "25"
[servers.training.namespaces.default]
client_priority = 0
[features.memacct]
enabled = false
audit_log = true
[features.context-share]
enabled        = false
default_socket = "on"
END
    run -1 "$control" -d -a "$DIR/good.toml"
    [ "$output" = "gmux-control: --apply $DIR/good.toml: is for protocol 3: -p 3 is missing" ]
    run -0 "$control" --check -p 3 -a "$DIR/good.toml"
    start_daemon -p 3 -a "$DIR/good.toml"
    until_true 100 one_server
    says "server get training active-thread-percentage" 50
    says "server get training pinned-memory-limit" 10G
    says "server get training client-priority" 0 # the namespace default's
    says "server get training uid" "$uid"
    says "namespace get high_priority training pinned-memory-limit" 5G
    says "namespace get high_priority training active-thread-percentage" 25
    says "feature describe memacct --format=csv,noheader" "memacct,disabled,memacct,-"
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
3 servers.a.allowed_devices [servers.a]\nallowed_devices = ""
3 servers.a.allowed_devices [servers.a]\nallowed_devices = "0, 1"
3 servers.a.locality_domains [servers.a]\nlocality_domains = true
3 servers.a.locality_domains [servers.a]\nlocality_domains = 1
3 servers.a.namespaces.b.client_priority [servers.a.namespaces.b]\nclient_priority = 2
3 servers.a.namespaces.b.uid [servers.a.namespaces.b]\nuid = 2
3 servers.a.namespaces.B.client_priority [servers.a.namespaces.B]\nclient_priority = 1
3 servers.a.devices.0.uuid [[servers.a.devices]]\nuuid = 7
3 servers.a.devices.0.frob [[servers.a.devices]]\nfrob = 7
5 servers.a.devices.0.sm_partitions.0.chunks [[servers.a.devices]]\nuuid = "GPU-0"\n[[servers.a.devices.sm_partitions]]\nchunks = 0
5 servers.a.devices.0.sm_partitions.0.include_remainder [[servers.a.devices]]\nuuid = "GPU-0"\n[[servers.a.devices.sm_partitions]]\ninclude_remainder = true
3 features.memacct.enabled [features.memacct]\nenabled = 1
3 features.memacct.frob [features.memacct]\nfrob = true
3 features.frob.enabled [features.frob]\nenabled = true
3 features.context-share.enabled [features.context-share]\nenabled = true
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
    says "server list x y" "Usage: server list [NAME] [--format=table|csv[,noheader]]"
    says "server set $me" "server set: a FIELD=VALUE is needed"
    says "client terminate" "Usage: client terminate PID"
    says "server list --format=xml" "--format is table or csv, with ,noheader for no header"
    says "server list --format=csv,header" "--format is table or csv, with ,noheader for no header"
    says "server list --format" "server list: unknown option --format"
    says "server delete $me --force=1" "server delete: unknown option --force=1"
    says "server frob" 'Unknown command "server frob"'
    says "server get $me frob" "server get: there is no field frob"
    says "client get $one frob" "client get: there is no field frob"
    for module in server namespace client device sm-partition feature memacct; do
        run -0 "$control" $module
        [ "${lines[0]%% *}" = $module ]
        run -0 "$control" $module help
        [ "${lines[0]%% *}" = $module ]
    done
    says "client terminate help" $'client terminate PID\n    Takes the device away from a client; prints 0 or a CUDA error'
    for bad in -1 0 99999999999999999999 1e400 0x10 abc -- --= = -f "*" '%s%n' "'" '"' $'\xff\xfe' $'\xc3' \
        "$(printf 'x%.0s' {1..3000})"; do
        for command in "server" "server create A" "server delete" "server list" "server get" "server set" "client list" \
            "client list --server=" "client get" "client terminate" "device list" "server get $me" "client get $one" "namespace" "namespace create" \
            "namespace delete" "namespace list" "namespace set" "namespace get" "namespace create x --server=" \
            "namespace get default $me" "feature" "feature enable" "feature disable" "feature describe" "memacct" "memacct set" \
            "device list --server="; do
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
