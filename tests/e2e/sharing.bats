# Real programs on the software device: alone, together, limited, faulting. No stand-ins.

load helper

setup() {
    common_setup
    unset GMUX_LIBEXECDIR # everything from the build tree
    export GMUX_GENUINE_LIBCUDA=none GMUX_DEVICE=soft
    examples=$GMUX_BUILD/examples
}

teardown() {
    common_teardown
}

# within VALUE LOW HIGH
within() {
    awk -v x="$1" -v a="$2" -v b="$3" 'BEGIN { exit !(x >= a && x <= b) }' || {
        echo "$1 is not in [$2, $3]"
        return 1
    }
}

@test "examples without a daemon: a private server each" {
    run -0 --separate-stderr "$examples/vecadd"
    [[ $output == *"all correct" ]]
    run -0 --separate-stderr "$examples/reduction"
    [[ ${lines[0]} == *", correct" ]]
    run -0 --separate-stderr "$examples/matmul" -n=256
    [[ ${lines[0]} == *", correct" ]]
    run -0 --separate-stderr "$examples/nbody" -benchmark -numbodies=1024 -iterations=3 -compare
    [[ ${lines[0]} == "1024 bodies, total time for 3 iterations: "*" ms" ]]
    [[ ${lines[1]} =~ ^"= "[0-9.]+" billion interactions per second"$ ]]
    [[ ${lines[2]} =~ ^"= "[0-9.]+" single-precision GFLOP/s at 20 flops per interaction"$ ]]
    [[ ${lines[3]} == "compare: device and CPU agree"* ]]
}

@test "a program that ends before its kernel is compiled leaves the code for the next one" {
    [ -x "$GMUX_BUILD/src/jit/gmux-jit" ] || skip "needs the compiler"
    export GMUX_CACHE_DIR=$DIR/objects
    # Interpreted in a hundredth of the time that the compiler needs. Where others have the processors, that may be more
    # than it is given at once.
    has_object() { [ -n "$(find "$GMUX_CACHE_DIR" -type f 2>/dev/null)" ]; }
    for ((i = 0; i < 10; i++)); do
        run -0 --separate-stderr "$GMUX_BUILD/tests/ptx/run_driver" "$GMUX_BUILD/tests/ptx/tables/long_block.ptx"
        until_true 30 has_object && break
    done
    has_object
}

@test "a program that gets no private server is told why" {
    run -1 bash -c 'ulimit -f 0; exec "$0"' "$examples/vecadd"
    [[ $output == *"gmux: no session with the private server: "*": File too large: error 2"* ]]
    [ "${GMUX_SANITIZE:-none}" = none ] || skip "the sanitizers want more addresses than that"
    run -1 bash -c 'ulimit -v 2000000; exec "$0"' "$examples/vecadd"
    [[ $output == *"gmux: no session with the private server: no room for "*" of addresses"* ]]
}

@test "n-body in double precision, in pinned host memory, from a TIPSY file" {
    run -0 --separate-stderr "$examples/nbody" -fp64 -hostmem -numbodies=512 -iterations=2 -compare
    [[ ${lines[2]} == *" double-precision GFLOP/s at 30 flops per interaction" ]]
    [[ ${lines[3]} == "compare: device and CPU agree"* ]]
    python3 - "$DIR/stars" <<'PY'
import struct, sys
n = 300
with open(sys.argv[1], "wb") as f:
    f.write(struct.pack("=diiiiii", 0.0, n, 3, 0, n, 0, 0))
    for i in range(n):
        f.write(struct.pack("=8fi", 1 / n, i % 7, i % 11, i % 13, 0, 0, 0, 0.1, 0))
PY
    run -0 --separate-stderr "$examples/nbody" -tipsy="$DIR/stars" -iterations=2 -compare
    [[ ${lines[0]} == "512 bodies"* ]]
    head -c 1000 "$DIR/stars" >"$DIR/cut"
    run -1 "$examples/nbody" -tipsy="$DIR/cut"
    run -2 "$examples/nbody" -numbodies=0
}

@test "mandelbrot writes a PNG" {
    [ -x "$examples/mandelbrot" ] || skip "built without libpng"
    run -0 "$examples/mandelbrot" -size=256 "$DIR/m.png"
    [ "$(head -c 4 "$DIR/m.png" | tail -c 3)" = PNG ]
}

@test "six programs at once under one daemon, all right" {
    start_daemon
    pids=()
    for i in 1 2; do
        "$examples/vecadd" >"$DIR/vecadd.$i" & pids+=($!)
        "$examples/matmul" -n=256 >"$DIR/matmul.$i" & pids+=($!)
        "$examples/nbody" -numbodies=1024 -iterations=5 -compare >"$DIR/nbody.$i" & pids+=($!)
    done
    for p in "${pids[@]}"; do
        wait "$p"
    done
    grep -q "all correct" "$DIR/vecadd.1" "$DIR/vecadd.2"
    [ "$("$control" get_server_list | wc -l)" = 1 ]
    [ -z "$("$control" get_client_list "$("$control" get_server_list)")" ]
}

# Processor time of the executor so far, in clock ticks.
executor_ticks() {
    local server executor
    server=$("$control" get_server_list)
    executor=$(cat "/proc/$server/task/$server/children")
    awk '{ print $14 + $15 }' "/proc/${executor%% *}/stat"
}

@test "a share is a cap: at 25 % the device works a quarter of the time" {
    start_daemon
    "$examples/nbody" -benchmark -numbodies=2048 -iterations=2 >/dev/null # compiles
    before=$(executor_ticks)
    begin=$EPOCHREALTIME
    CUDA_MPS_ACTIVE_THREAD_PERCENTAGE=25 "$examples/nbody" -benchmark -numbodies=4096 -iterations=60 >"$DIR/quarter"
    end=$EPOCHREALTIME
    after=$(executor_ticks)
    # The cap is on the device's time, so it holds however busy the machine is. How exact it is, make bench says.
    within "$(awk -v t=$((after - before)) -v hz="$(getconf CLK_TCK)" -v n="$(nproc)" -v a="${begin/,/.}" \
        -v b="${end/,/.}" 'BEGIN { print t / hz / n / (b - a) }')" 0.02 0.35
}

@test "the demo, with five clients" {
    BODIES=2048 ITERATIONS=5 run -0 "$BATS_TEST_DIRNAME/../../scripts/demo.sh" "$GMUX_BUILD" 5 20
    [[ $output == *"client 5 "* ]]
    [[ $output == *"demo: 5 programs shared the device, every result checked" ]]
    [ "$(grep -c "device and CPU agree" <<<"$output")" -ge 6 ]
}
