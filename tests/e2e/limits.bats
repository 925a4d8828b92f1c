# Limits as programs meet them, and what the software device does without its compiler or with a bad cache.

load helper

setup() {
    real_setup
}

teardown() {
    common_teardown
}

# What is free, in MiB: all of the limit, but for what the module's globals took.
limited_to() {
    run -0 "$misbehave" limit
    read -r free _ over within again left <<<"$output"
    [ $(((free + 1023) / 1024)) = "$1" ] && [ "$over $within $again" = "2 0 2" ] &&
        [ $(((left + 1023) / 1024)) = $(($1 / 2)) ] || {
        echo "$output"
        false
    }
}

@test "CUDA_MPS_PINNED_DEVICE_MEM_LIMIT holds" {
    start_daemon
    CUDA_MPS_PINNED_DEVICE_MEM_LIMIT=0=64M limited_to 64
    # The default of the daemon is for everyone who does not ask for less.
    "$control" set_default_device_pinned_mem_limit 0 96M
    server=$(the_server)
    "$control" shutdown_server "$server"
    until_true 100 gone "$server"
    limited_to 96
    CUDA_MPS_PINNED_DEVICE_MEM_LIMIT=0=1G limited_to 96
}

@test "protocol 3: a namespace has limits for each of its programs, which change under one that runs" {
    start_daemon -p 3
    "$control" server create training
    "$control" namespace create batch --server=training
    "$control" namespace set batch --server=training --pinned-memory-limit=96M --active-thread-percentage=30
    export CUDA_MPS_PIPE_DIRECTORY=$DIR/pipe/training/batch
    limited_to 96
    CUDA_MPS_PINNED_DEVICE_MEM_LIMIT=0=64M limited_to 64 # the lower one
    CUDA_MPS_PINNED_DEVICE_MEM_LIMIT=0=1G limited_to 96
    CUDA_MPS_ACTIVE_THREAD_PERCENTAGE=80 start_program one "$misbehave" idle
    program_says one 41
    row() { "$control" clients "$("$control" server get training pid)" | cut -f 5,8; }
    [ "$(row)" = "30.0"$'\t'"$((96 << 20))" ] # in place of the program's
    "$control" namespace set batch --server=training --pinned-memory-limit=128M --active-thread-percentage=20
    changed() { [ "$(row)" = "20.0"$'\t'"$((128 << 20))" ]; }
    until_true 100 changed
    # The daemon's death changes nothing of it.
    kill -9 "$daemon"
    unset CUDA_MPS_PIPE_DIRECTORY
    export CUDA_MPS_PIPE_DIRECTORY=$DIR/pipe
    starts() { "$control" -d -p 3 3>&- 2>/dev/null; }
    until_true 100 starts
    daemon=$(cat "$DIR/pipe/nvidia-cuda-mps-control.pid")
    is_back() { [ "$("$control" client get "$one" maws-ns)" = batch ]; }
    until_true 100 is_back
    [ "$("$control" client get "$one" server)" = training ]
    until_true 100 changed
    CUDA_MPS_PIPE_DIRECTORY=$DIR/pipe/training/batch limited_to 128
    end_program one
}

# A control group of this test's own, with so many bytes; its files are version 2's or 1's.
control_group() {
    [ "$(id -u)" = 0 ] || skip "needs root"
    if grep -qw memory /sys/fs/cgroup/cgroup.subtree_control 2>/dev/null; then
        group=/sys/fs/cgroup/gmux-e2e-$$
        file=memory.max
    else
        group=/sys/fs/cgroup/memory/gmux-e2e-$$
        file=memory.limit_in_bytes
    fi
    mkdir "$group" 2>/dev/null || skip "no control group can be made here"
    echo "$1" >"$group/$file"
}

in_group() {
    bash -c 'echo $$ >"$1/cgroup.procs" && shift && exec "$@"' - "$group" "$@"
}

@test "protocol 3: a control group limits what its programs may have of the software device" {
    control_group $((640 << 20))
    start_daemon -p 3
    "$control" memacct set audit_log=true
    run -0 in_group "$misbehave" limit
    read -r free _ over within _ <<<"$output"
    group_output=$output
    "$control" feature disable memacct
    run -0 in_group "$misbehave" limit
    read -r free_without _ <<<"$output"
    rmdir "$group"
    echo "$group_output / $output"
    [ $(((free + 1023) / 1024)) = 640 ]
    [ "$over" = 2 ]
    [ $((free_without / 1024)) -gt 640 ]
    wait_log control "memacct: client [0-9]+: its control groups allow $((640 << 20)) bytes"
}

# Of the processors' time, what the executor has had since the last call.
executor_part() {
    local now=${EPOCHREALTIME//[!0-9]/} ticks
    ticks=$(awk '{ print $14 + $15 }' "/proc/$1/stat")
    part=$(((ticks - ${last_ticks:-0}) * 1000000 / $(getconf CLK_TCK) * 1000 / (now - ${last_time:-0}) / $(nproc)))
    last_ticks=$ticks last_time=$now
}

@test "set_active_thread_percentage takes effect on a running program within a second" {
    start_daemon
    start_program nbody "$GMUX_BUILD/examples/nbody" -benchmark -numbodies=4096 -iterations=1000000
    wait_log server "Status of client \{PID: $nbody, Context ID: 1\} is ACTIVE" 200
    server=$(the_server)
    executor=$(the_executor)
    # On a busy machine a program may get less than its share. More it seems to get by what the executor does besides
    # the program's blocks, and by how the kernel counts ticks.
    for share in 10 40 5; do
        [[ $("$control" set_active_thread_percentage "$server" $share) == "$share.0" ]]
        executor_part "$executor"
        span 10
        executor_part "$executor" # the second in which it takes effect
        span 10
        executor_part "$executor"
        echo "share $share %: $part per mille" >&2
        [ "$part" -le $((share * 12 + 40)) ]
        [ "$part" -ge $((share * 2)) ]
    done
}

four_right() {
    run -0 "$GMUX_BUILD/examples/vecadd"
    [[ $output == *"all correct"* ]]
    run -0 "$GMUX_BUILD/examples/reduction"
    run -0 "$GMUX_BUILD/examples/matmul" -n=64
    run -0 "$GMUX_BUILD/examples/nbody" -numbodies=256 -iterations=2 -compare
    [[ $output == *"compare: device and CPU agree"* ]]
}

@test "without gmux-jit: interpreted, which is said once, and right" {
    GMUX_JIT=/nonexistent/gmux-jit start_daemon
    four_right
    [ "$(count_lines server 'no gmux-jit.*interpreter only')" = 1 ]
}

@test "an installation without gmux-jit: the same" {
    mkdir "$DIR/libexec"
    for f in server/gmux-server executor/gmux-executor device/soft/gmux-dev-soft.so; do
        cp "$GMUX_BUILD/src/$f" "$DIR/libexec/"
    done
    GMUX_LIBEXECDIR=$DIR/libexec start_daemon
    run -0 "$GMUX_BUILD/examples/vecadd"
    [ "$(count_lines server 'no gmux-jit.*interpreter only')" = 1 ]
    "$control" quit
    # A program's private server says it as well, to the program's standard error.
    unset CUDA_MPS_PIPE_DIRECTORY
    CUDA_MPS_PIPE_DIRECTORY=/nonexistent GMUX_LIBEXECDIR=$DIR/libexec GMUX_LOG=warn run -0 "$GMUX_BUILD/examples/vecadd"
    [ "$(grep -c "interpreter only" <<<"$output")" = 1 ]
    export CUDA_MPS_PIPE_DIRECTORY=$DIR/pipe
}

@test "a cache directory that cannot be used, or that others may write: said once, compiled, and right" {
    mkdir -m 777 "$DIR/open" && chmod 777 "$DIR/open"
    mkdir "$DIR/target" && ln -s "$DIR/target" "$DIR/link"
    touch "$DIR/file"
    for cache in /proc/nothing "$DIR/open" "$DIR/link" "$DIR/file" ""; do
        GMUX_CACHE_DIR=$cache start_daemon
        four_right
        [ "$(count_lines server "GMUX_CACHE_DIR=$cache: .*: compiled kernels are not kept")" = "$([ -z "$cache" ]; echo $?)" ]
        "$control" quit -t 5
    done
    [ -z "$(ls "$DIR/open" "$DIR/target")" ] || [ "$(ls -A "$DIR/open" "$DIR/target" | grep -c '\.o$')" = 0 ]
}

@test "a cache whose files are damaged: compiled again, and right" {
    cached() { [ -n "$(ls "$objects"/*.o 2>/dev/null)" ]; }
    for damage in empty cut flipped noise; do
        rm -f "$objects"/*.o
        start_daemon
        # Compiling goes on behind the program, and ends with it.
        start_program nbody "$GMUX_BUILD/examples/nbody" -numbodies=256 -iterations=1000000000
        until_true 600 cached
        kill -9 "$nbody"
        "$control" quit
        for f in "$objects"/*.o; do
            case $damage in
            empty) : >"$f" ;;
            cut) truncate -s $(($(stat -c %s "$f") / 2)) "$f" ;;
            flipped) printf 'X' | dd of="$f" bs=1 seek=$(($(stat -c %s "$f") - 700)) conv=notrunc status=none ;;
            noise) head -c 4096 /dev/urandom >"$f" ;;
            esac
        done
        start_daemon
        four_right
        "$control" quit
    done
}
