# Static partitions: -S with NVIDIA's commands and variable, and sm-partition of protocol 3, on the software device.

load helper

setup() {
    real_setup
    gmux=$GMUX_BUILD/src/cli/gmux
    export LD_LIBRARY_PATH=$GMUX_BUILD/src/client
}

teardown() {
    common_teardown
}

says() {
    run -0 "$control" $1
    [ "$output" = "$2" ]
}

# The device's row of lspart, in `free` and `used` (chunks) and `sms`; its UUID in `uuid`.
look() {
    run -0 "$control" lspart
    [[ ${lines[0]} == "GPU "*"Partition "*" clients" ]]
    read -r gpu free used free_sms used_sms <<<"${lines[2]}"
    uuid=$("$control" device_query --csv | sed -n 's/.*\(GPU-[-0-9a-f]*\).*/\1/p')
    [[ $uuid == "$gpu"* ]]
}

# add CHUNKS: the new partition, as a program names it.
add() {
    "$control" sm_partition add "$gpu" "$1" | sed -n "s|^Partition \($uuid/[-_A-Za-z0-9]*\) created$|\1|p" | grep .
}

busy() {
    start_program "$1" env CUDA_MPS_SM_PARTITION="$2" "$GMUX_BUILD/examples/nbody" -benchmark -numbodies=4096 -iterations=1000000
    is_active() { [[ $("$gmux" ls --format=csv,noheader | grep "^${!1},") == *",active,"* ]]; }
    until_true 200 is_active "$1"
}

@test "-S: partitions come and go, and have no chunk in common" {
    start_daemon -S
    look # which starts a server: the daemon opens no device
    [ "$used" = 0 ] && [ "$free" -ge 1 ]
    all=$free sms=$((free_sms / free))
    first=$(add 1)
    look
    [ "$free $used $used_sms" = "$((all - 1)) 1 $sms" ]
    says "sm_partition add $gpu $all" \
        "Failed to fulfill the requested SM partition of $all chunks, error CUDA_ERROR_INVALID_RESOURCE_CONFIGURATION"
    if [ "$all" -gt 1 ]; then
        second=$(add $((all - 1)))
        [ "$first" != "$second" ]
        look
        [ "$free" = 0 ]
        says "sm_partition rm $uuid ${second#*/}" "Partition $second removed"
    fi
    says "sm_partition rm $gpu ${first#*/}" "Partition $first removed"
    look
    [ "$used" = 0 ]
}

@test "-S: words that are missing, wrong, huge, negative or no text change nothing" {
    start_daemon -S
    look
    usage="Usage: sm_partition add DEVICE CHUNKS | rm DEVICE PARTITION"
    for words in "" add "add $gpu" "add $gpu 0" "add $gpu -1" "add $gpu x" "add $gpu 1 2" "add $gpu 99999999999999999999" rm \
        "rm $gpu" "keep $uuid 2 1 2 1" $'\xff'; do
        says "sm_partition $words" "$usage"
    done
    says "sm_partition add GPU-zz 1" "Device GPU-zz not found"
    says "sm_partition add 1000 1" "Device 1000 not found"
    says "sm_partition rm $gpu nothing" "Partition nothing not found"
    before=$free
    look
    [ "$free $used" = "$before 0" ]
}

@test "-S: a program lives in its partition, and has no context without one" {
    start_daemon -S
    look
    partition=$(add 1)
    run -1 "$misbehave" limit
    [[ $output == "gmux: devices are partitioned, and CUDA_MPS_SM_PARTITION is not set"*": 915"* ]]
    for wrong in "$uuid/nothing" "${partition#*/}" "GPU-01234567/${partition#*/}" "/" $'\xff' "$(printf 'x%.0s' {1..3000})"; do
        CUDA_MPS_SM_PARTITION=$wrong run -1 "$misbehave" limit
        [[ $output == "gmux: CUDA_MPS_SM_PARTITION=${wrong:0:200} is no partition of device 0"*": 915"* ]]
    done
    for right in "$partition" "$gpu/${partition#*/}"; do # a beginning of the UUID will do
        CUDA_MPS_SM_PARTITION=$right CUDA_MPS_ACTIVE_THREAD_PERCENTAGE=1 run -0 "$GMUX_BUILD/examples/vecadd"
    done
    busy one "$partition"
    share=$("$gmux" ls --format=csv,noheader | cut -d, -f6)
    awk -v share="$share" -v all="$free_sms" 'BEGIN { d = share - 100 / all; exit !(d * d < 0.01) }'
    says "sm_partition rm $gpu ${partition#*/}" "Partition ${partition#*/} in use. Terminate all clients before removing."
    run -0 "$control" lspart
    [[ ${lines[3]} == "$gpu  ${partition#*/} "*" Yes" ]]
    says "terminate_client $(the_server) $one" 0
    is_free() { [[ $("$control" sm_partition rm "$gpu" "${partition#*/}") == "Partition $partition removed" ]]; }
    until_true 100 is_free
}

@test "-S: programs of one partition share it, beside those of another" {
    start_daemon -S
    look
    [ "$free" -ge 2 ] || skip "needs two processors"
    a=$(add 1) b=$(add 1)
    # The one in B has as much as the two in A together; each without limits would have a third.
    python3 - "$GMUX_BUILD/bench/steady" "$a" "$a" "$b" <<'END'
import os, subprocess, sys, time
programs = []
for partition in sys.argv[2:]:
    p = subprocess.Popen([sys.argv[1]], env={**os.environ, "CUDA_MPS_SM_PARTITION": partition}, text=True,
                         stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert p.stdout.readline() == "ready\n"
    programs.append(p)
def done(p):
    p.stdin.write("\n")
    p.stdin.flush()
    return int(p.stdout.readline())
first = [done(p) for p in programs]
begin = time.monotonic()
while done(programs[2]) - first[2] < 150 and time.monotonic() - begin < 20:
    pass
a1, a2, b = (done(p) - n for p, n in zip(programs, first))
print(a1, a2, b)
for p in programs:
    p.kill()
assert b >= 0.42 * (a1 + a2 + b), "B has less than its part"
assert min(a1, a2) >= 0.3 * (a1 + a2), "A is not shared evenly"
END
}

@test "-S: the next daemon has the partitions, and knows who is in them" {
    start_daemon -S
    look
    partition=$(add 1)
    busy one "$partition"
    kill -9 "$daemon"
    starts() { "$control" -d -S 3>&- 2>/dev/null; }
    until_true 100 starts
    until_true 100 one_server
    says "sm_partition rm $gpu ${partition#*/}" "Partition ${partition#*/} in use. Terminate all clients before removing."
    kill -9 "$one"
    wait "$one" || true
    is_free() { [[ $("$control" sm_partition rm "$gpu" "${partition#*/}") == "Partition $partition removed" ]]; }
    until_true 100 is_free
}

@test "protocol 3: -a begins with the partitions of a file" {
    uid=$(id -u)
    start_daemon -p 3
    "$control" server create "uid_$uid"
    knows() { "$control" device list --format=csv,noheader | grep -q '^0,'; }
    until_true 100 knows
    uuid=$("$control" device list --format=csv,noheader | cut -d, -f4)
    "$control" quit -t 0
    cat >"$DIR/apply.toml" <<END
schema_version = "1.0"
[servers.training]
uid = $uid
[[servers.training.devices]]
uuid = "$uuid"
  [[servers.training.devices.sm_partitions]]
  name = "large"
  chunks = 1
  include_remainder = false
END
    start_daemon -p 3 -a "$DIR/apply.toml"
    there() { "$control" sm-partition list --format=csv,noheader | grep -q "^training,$uuid,large,"; }
    until_true 100 there
    partition=$uuid/$("$control" sm-partition list --format=csv,noheader | cut -d, -f8)
    export CUDA_MPS_PIPE_DIRECTORY=$DIR/pipe/training
    run -1 "$GMUX_BUILD/examples/vecadd"
    CUDA_MPS_SM_PARTITION=$partition run -0 "$GMUX_BUILD/examples/vecadd"
}

@test "-S: others look, and do not touch" {
    two_users "$control"
    start_daemon -S
    look
    partition=$(add 1)
    run -0 "${a[@]}" "$control" lspart
    [[ $output == *"${partition#*/}"* ]]
    run -0 "${a[@]}" "$control" sm_partition rm "$gpu" "${partition#*/}"
    [[ $output == "Only "*" may use sm_partition" ]]
    run -0 "${a[@]}" "$control" sm_partition add "$gpu" 1
    [[ $output == "Only "*" may use sm_partition" ]]
    run -0 "${a[@]}" env CUDA_MPS_SM_PARTITION="$partition" "$GMUX_BUILD/examples/vecadd"
}

@test "protocol 3: sm-partition create, list, delete" {
    start_daemon -p 3
    "$control" server create "uid_$(id -u)"
    knows() { "$control" device list --format=csv,noheader | grep -q '^0,'; }
    until_true 100 knows
    uuid=$("$control" device list --format=csv,noheader | cut -d, -f4)
    run -0 "$GMUX_BUILD/examples/vecadd" # nothing is partitioned
    run -0 "$control" sm-partition create large "--server=uid_$(id -u)" "--device=${uuid:0:12}" --chunks=1
    [[ ${lines[0]} == "SM partition 'large' created on device $uuid (sm-count="*")" ]]
    [[ ${lines[1]} == "CUDA_MPS_SM_PARTITION=$uuid/"* ]]
    partition=${lines[1]#*=}
    run -1 "$GMUX_BUILD/examples/vecadd" # now it is
    CUDA_MPS_SM_PARTITION=$partition run -0 "$GMUX_BUILD/examples/vecadd"
    run -0 "$gmux" run --partition "$partition" -- "$GMUX_BUILD/examples/vecadd"
    run -0 "$control" sm-partition list --format=csv
    [ "${lines[0]}" = "server,device,name,chunks,sm-count,include-remainder,status,visible-uuid" ]
    [[ ${lines[1]} == "uid_$(id -u),$uuid,large,1,"*",false,created,${partition#*/}" ]]
    says "sm-partition list --server=another --format=csv,noheader" ""
    # What is in none, where there is anything.
    run -0 "$control" sm-partition list --all --format=csv,noheader
    [ ${#lines[@]} = 1 ] || [[ ${lines[1]} == "-,$uuid,-,"*",-,unallocated,-" ]]
    says "sm-partition delete large --server=another" "SM partition 'large' not found"
    says "sm-partition delete small" "SM partition 'small' not found"
    says "sm-partition delete large --server=uid_$(id -u) --device=${uuid:0:12}" "SM partition 'large' deleted from device $uuid"
    run -0 "$GMUX_BUILD/examples/vecadd"
    says "sm-partition create" "Usage: sm-partition create NAME --server=SERVER --device=DEVICE --chunks=NUMBER"
    says "sm-partition create a" "sm-partition create: --server=, --device= and --chunks= are needed"
    for words in "A --server=uid_0 --device=0 --chunks=1" "a --server=b --device=0 --chunks=1" \
        "a --server=uid_0 --device=0 --chunks=-1" "a --server=uid_0 --device=0 --chunks=1 --include-remainder=1"; do
        run -0 "$control" sm-partition create $words
        [[ $output == "sm-partition create: "* ]]
    done
    says "sm-partition list --format=csv,noheader" ""
}
