# Two software devices behind one daemon: who sees which, who is where, limits of each, and what an executor's death means.

load helper

setup() {
    real_setup
    export GMUX_SOFT_DEVICES=2
}

teardown() {
    common_teardown
}

# uuid ORDINAL
uuid() {
    "$control" device_query --csv | sed -n "s/^$1,[^,]*,\(GPU-[^,]*\),.*/\1/p"
}

# device_of PROCESS: as ps has it, the beginning of a UUID
device_of() {
    "$control" ps | awk -v pid="$1" '$1 == pid && $2 != 0 { print $4 }'
}

@test "two programs on two devices: ps, get_device_client_list, device_query and the log say which" {
    start_daemon
    start_program first "$misbehave" idle
    program_says first 41
    export CUDA_VISIBLE_DEVICES=1
    start_program second "$misbehave" idle
    program_says second 41
    unset CUDA_VISIBLE_DEVICES
    [ "$("$control" device_query --csv | wc -l)" = 4 ]
    [ "$(uuid 0)" != "$(uuid 1)" ]
    [ "$(device_of "$first")" = "$(uuid 0 | cut -c1-22)" ]
    [ "$(device_of "$second")" = "$(uuid 1 | cut -c1-22)" ]
    run -0 "$control" get_device_client_list
    [[ ${lines[0]} == "[0] 00:00.0, gmux soft device" ]]
    [ "${lines[1]}" = "$first.1" ]
    [[ ${lines[2]} == "[1] 01:00.0, gmux soft device" ]]
    [ "${lines[3]}" = "$second.1" ]
    wait_log server "Creating server context on device 1 \(gmux soft device\)"
    wait_log server "Device gmux soft device \(uuid $(uuid 1)\) is associated"
    end_program first
    end_program second
}

@test "CUDA_VISIBLE_DEVICES: by number and by UUID, in its order, up to what is none" {
    start_daemon
    start_program one "$misbehave" idle
    program_says one 41
    for list in 1 1,0 "$(uuid 1)" "$(uuid 1 | cut -c1-12),0" 1,5,0; do
        CUDA_VISIBLE_DEVICES=$list start_program two "$misbehave" idle
        program_says two 41
        [ "$(device_of "$two")" = "$(uuid 1 | cut -c1-22)" ] || {
            echo "with $list"
            false
        }
        end_program two
    done
    for list in 2 -1 "" GPU-none 0,0; do
        CUDA_VISIBLE_DEVICES=$list run "$misbehave" limit
        [ "$status" = 1 ]
        [[ $output == *"cuInit(0): 100"* ]]
    done
    end_program one
}

@test "--allowed-devices, and the daemon's own CUDA_VISIBLE_DEVICES: what a server offers, numbered from 0" {
    start_daemon -p 3
    "$control" server create all
    "$control" server create second --allowed-devices=1
    devices_of() { "$control" device list "--server=$1" --format=csv,noheader; }
    are_there() { [ "$(devices_of all | wc -l)" = 2 ] && [ "$(devices_of second | wc -l)" = 1 ]; }
    until_true 200 are_there
    [[ $(devices_of second) == "0,second,0000:01:00.0,$(uuid 1),gmux soft device,"* ]]
    CUDA_MPS_PIPE_DIRECTORY=$DIR/pipe/second start_program one "$misbehave" idle
    program_says one 41
    [ "$(device_of "$one")" = "$(uuid 1 | cut -c1-22)" ]
    [ "$("$control" client get "$one" pci-id)" = 0000:01:00.0 ]
    CUDA_VISIBLE_DEVICES=$(uuid 1) CUDA_MPS_PIPE_DIRECTORY=$DIR/pipe/second run -0 "$misbehave" limit
    CUDA_VISIBLE_DEVICES=$(uuid 0) CUDA_MPS_PIPE_DIRECTORY=$DIR/pipe/second run -1 "$misbehave" limit
    [ "$("$control" server get second allowed-devices)" = "$(uuid 1)" ]
    end_program one
    first=$(uuid 0)
    "$control" quit -t 0
    CUDA_VISIBLE_DEVICES=1 start_daemon
    start_program one "$misbehave" idle
    program_says one 41
    [ "$("$control" device_query --csv | wc -l)" = 3 ]
    [ "$(uuid 0)" != "$first" ]
    end_program one
}

# The first number is what is free, in KiB.
free_mib() {
    run -0 "$misbehave" limit
    read -r free _ <<<"$output"
    echo $(((free + 1023) / 1024))
}

@test "memory limits are a device's, by number or UUID" {
    start_daemon
    start_program one "$misbehave" idle
    program_says one 41
    second=$(uuid 1)
    export CUDA_MPS_PINNED_DEVICE_MEM_LIMIT=0=64M,$second=96M
    [ "$(free_mib)" = 64 ]
    [ "$(CUDA_VISIBLE_DEVICES=1 free_mib)" = 96 ]
    unset CUDA_MPS_PINNED_DEVICE_MEM_LIMIT
    [ "$(CUDA_MPS_PINNED_DEVICE_MEM_LIMIT=1=32M free_mib)" -gt 96 ]
    "$control" set_device_pinned_mem_limit "$(the_server)" 1 48M
    [ "$(free_mib)" -gt 96 ]
    [ "$(CUDA_VISIBLE_DEVICES=1 free_mib)" = 48 ]
    end_program one
}

@test "a fault on one device is its program's; the executor's death leaves idle programs of both" {
    start_daemon
    start_program first "$misbehave" idle
    program_says first 41
    CUDA_VISIBLE_DEVICES=1 start_program second "$misbehave" idle
    program_says second 41
    executor=$(the_executor)
    CUDA_VISIBLE_DEVICES=1 run "$misbehave" fault null
    [ "$(the_executor)" = "$executor" ]
    kill -9 "$executor"
    echo more >&"$first_in"
    program_says first 42
    echo more >&"$second_in"
    program_says second 42
    [ "$(the_executor)" != "$executor" ]
    [ "$(device_of "$second")" = "$(uuid 1 | cut -c1-22)" ]
    wait_log server "takes over device 1"
    end_program first
    end_program second
}
