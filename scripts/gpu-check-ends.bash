# Sections of gpu-check.sh about limits, and about programs that end badly or do not end: what it costs the others.
# shellcheck disable=SC2154 # gpu-check.sh has the names, and start_program makes some

mib=1024 # of device memory that programs have when they are ended
[ "$device" = cuda ] || mib=64

# --- limits -----------------------------------------------------------------------------------------------------------

# What is free is the limit but for a little, more than that is refused with error 2, half of it is granted, and then more than
# the other half is refused.
is_limited_to() { # KIB
    local free total over within again left
    run_gmux "$misbehave" limit || return
    read -r free total over within again left <"$DIR/out"
    [ "$free" -le "$1" ] && [ "$free" -gt $(($1 * 9 / 10)) ] && [ "$total" -gt "$1" ] &&
        [ "$over $within $again" = "2 0 2" ] && [ "$left" -le $((free - free / 2)) ]
}
begun() { # each has printed something
    local i
    for i in "$@"; do
        [ -s "$DIR/many_$i.out" ] || return
    done
}
serves_another() {
    start_program more "$misbehave" free
    until_true 100 test -s "$DIR/more.out" && last_line_is more ready
}
limits() {
    echo "== limits"
    local i n=40 served=0 refused=0
    CUDA_MPS_PINNED_DEVICE_MEM_LIMIT=0=1G is_limited_to 1048576
    verdict "gmux a device memory limit of 1 GiB" $? "$DIR/out"

    # How many clients a server takes follows from how many descriptors it may have (src/server/server.c).
    "$control" quit -t 5 >"$DIR/out" 2>&1
    (ulimit -n 512 && exec "$control" -d) >"$DIR/out" 2>&1
    verdict "the daemon starts with 512 descriptors" $? "$DIR/out"
    for ((i = 1; i <= n; i++)); do
        start_program "many_$i" "$misbehave" free
    done
    # shellcheck disable=SC2046 # numbers
    until_true 300 begun $(seq $n)
    for ((i = 1; i <= n; i++)); do
        ! last_line_is "many_$i" ready || served=$((served + 1))
        ! last_line_is "many_$i" "cuInit(0): 808" || refused=$((refused + 1))
    done
    tail -qn 1 "$DIR"/many_*.out | sort | uniq -c >"$DIR/out"
    [ "$served" -gt 0 ] && [ "$refused" -gt 0 ] && [ $((served + refused)) -eq "$n" ]
    verdict "gmux of $n clients $served are served, $refused get error 808" $? "$DIR/out"
    for ((i = 1; i <= n; i++)); do
        local fd=many_${i}_in
        echo end >&"${!fd}"
    done
    until_true 100 serves_another
    verdict "gmux then another one is served" $? "$DIR/more.out"
    end_program more >"$DIR/out"
    verdict "gmux it ends" $? "$DIR/out"
    restart_daemon
}

# --- faults -----------------------------------------------------------------------------------------------------------

last_line() {
    tail -n 1 "$DIR/$1.out"
}
logged() { # PATTERN
    grep -qE -- "$1" "$DIR/log/server.log"
}
same_codes() { # KIND
    local results
    results=$(timeout 60 "${directly[@]}" "$misbehave" fault "$1") || return
    run_gmux "$misbehave" fault "$1" || return
    echo "directly $results" >>"$DIR/out"
    [ -n "$results" ] && [ "$(head -n 1 "$DIR/out")" = "$results" ]
}
faults() {
    echo "== faults"
    local kind begin got status
    for kind in trap misaligned; do
        same_codes "$kind"
        verdict "gmux a $kind kernel: as directly: $(head -n 1 "$DIR/out")" $? "$DIR/out"
    done

    start_program idle_one "$misbehave" idle
    program_says idle_one 41
    verdict "gmux one that will be idle" $? "$DIR/idle_one.out"
    start_program culprit "$misbehave" wait null
    program_says culprit ready
    verdict "gmux one that will fault" $? "$DIR/culprit.out"
    start_program busy "$misbehave" hold 16 2000
    program_says busy running
    verdict "gmux one in mid-kernel" $? "$DIR/busy.out"
    begin=$EPOCHREALTIME
    echo >&"$culprit_in"
    program_says culprit "700 700 700 700"
    verdict "gmux the fault is its program's error" $? "$DIR/culprit.out"
    echo >&"$idle_one_in"
    program_says idle_one 42
    status=$?
    verdict "gmux the idle one's next launch has worked $(ms_since "$begin") ms after the one that faulted" \
        $status "$DIR/idle_one.out"
    until_true 100 gone "$busy"
    got=$(last_line busy)
    if [ "$device" = cuda ]; then
        [ "$got" = 700 ] || [ "$got" = 719 ]
    else
        [ "$got" = 0 ]
    fi
    verdict "gmux the one in mid-kernel gets $got" $? "$DIR/busy.out"
    gmux "its next process works" "$misbehave" hold 16 10
    until_true 20 logged "PID: $culprit, .* gets error 700"
    verdict "gmux the server's log names the culprit" $?
    end_program idle_one >"$DIR/out"
    verdict "gmux the idle one ends" $? "$DIR/out"
}

# --- ended in mid-kernel ----------------------------------------------------------------------------------------------

end_badly() { # PID
    kill -9 "$1" 2>/dev/null
    wait "$1" 2>/dev/null
    [ $? -eq 137 ] # by this, not before
}
# How many MiB are free, as a program says that has been watching outside of gmux. Fails if it does not say.
free_mib() {
    local n
    n=$(wc -l <"$DIR/watch.out")
    echo >&"$watch_in"
    # shellcheck disable=SC2317 # it is called
    answered() { [ "$(wc -l <"$DIR/watch.out")" -gt "$n" ]; }
    until_true 20 answered && free=$(last_line watch) && [[ $free =~ ^[0-9]+$ ]]
}
# A program that has so much and whose kernel has begun is ended; its memory is back after how long? In `took`, in ms. 93: its kernel
# was over before.
end_one() { # hold|leave
    local begin
    start_program victim "$misbehave" "$1" "$mib" 150
    until_true 200 grep -qx running "$DIR/victim.out" || return 90
    begin=$EPOCHREALTIME
    if [ "$1" = hold ]; then
        end_badly "$victim"
        [ "$(last_line victim)" = running ] || return 93
    else
        ends_well victim >>"$DIR/victim.out" || return 94
    fi
    exec {victim_in}>&-
    while took=$(ms_since "$begin"); do
        free_mib || return 91
        [ "$free" -lt $((baseline - slack)) ] || return 0
        [ "$took" -le 1000 ] || return 95
    done
}
end_many() { # hold|leave ROUNDS
    local i=0 late=0 slowest=0 status=0
    while [ "$i" -lt "$2" ] && [ "$late" -lt 20 ]; do
        end_one "$1"
        status=$?
        case $status in
        0) i=$((i + 1)) ;;
        93) late=$((late + 1)) ;; # on a busy machine: does not count
        *) break ;;
        esac
        [ "$took" -le "$slowest" ] || slowest=$took
    done
    case $status in
    0) why="each within a second, the slowest after $slowest ms" ;;
    90) why="after $i: it does not run" ;;
    91) why="after $i: what is free cannot be read" ;;
    93) why="after $i: the kernels are over when they are killed" ;;
    94) why="after $i: it does not end well" ;;
    95) why="after $i: after a second $free MiB are free, $baseline before" ;;
    esac
    return "$status"
}
# It is seen from outside that a program has so much.
is_seen() {
    start_program victim "$misbehave" hold "$mib" 1000
    program_says victim running && free_mib && echo "$free MiB are free meanwhile" >>"$DIR/victim.out" &&
        [ "$free" -le $((baseline - mib + slack)) ]
}
killed() {
    local baseline=0 free=0 took=0 slack=32 why=
    echo "== programs with $mib MiB are ended in mid-kernel, one after the other, while another works"
    if [ "$device" = cuda ]; then
        start_program watch "${directly[@]}" "$misbehave" free
    else
        start_program watch "$misbehave" free
    fi
    program_says watch ready
    verdict "direct one that watches what is free" $? "$DIR/watch.out"
    start_program other "$misbehave" steady
    program_says other running
    verdict "gmux one that works" $? "$DIR/other.out"
    gmux "one of them, until its end" "$misbehave" hold "$mib" 10 # what the driver keeps for them it has from now on
    sleep 1 # this one's memory: how long that takes is measured below
    free_mib && baseline=$free
    verdict "direct $baseline MiB are free" $? "$DIR/watch.out"
    is_seen
    verdict "direct less while a program has $mib MiB" $? "$DIR/victim.out"
    ends_well victim >"$DIR/out"
    verdict "gmux it ends" $? "$DIR/victim.out"
    end_many hold 50
    verdict "gmux memory of 50 killed with SIGKILL: $why" $? "$DIR/victim.out"
    end_many leave 5
    verdict "gmux memory of 5 that exit: $why" $? "$DIR/victim.out"
    end_program other >"$DIR/out"
    verdict "gmux the one that worked: $(last_line other)" $? "$DIR/other.out"
    end_program watch >"$DIR/out"
    verdict "direct the one that watched ends" $? "$DIR/watch.out"
    gmux "vecadd after it" "$build/examples/vecadd"
    "$control" ps | sed 's/^/        /'
}

# --- kernels that do not end ------------------------------------------------------------------------------------------

is_replaced() { # EXECUTOR
    local now
    now=$(the_executor) && [ "$now" != "$1" ]
}
# On a GPU a kernel that does not end is ended with the context: soon after its client has gone, or, where somebody always has
# something in flight, after 20 s.
next_executor() { # EXECUTOR
    local begin=$EPOCHREALTIME status
    [ "$device" = cuda ] || return 0
    until_true 400 is_replaced "$1"
    status=$?
    verdict "gmux another executor $(ms_since "$begin") ms after its program was killed" $status
}
endless() {
    local begin executor took
    echo "== programs begin beside an endless kernel"
    start_program endless_one "$misbehave" spin
    program_says endless_one running
    verdict "gmux an endless kernel" $? "$DIR/endless_one.out"
    begin=$EPOCHREALTIME
    gmux "vecadd beside it" "$build/examples/vecadd"
    gmux "reduction beside it" "$build/examples/reduction"
    gmux "nbody beside it" "$build/examples/nbody" -benchmark -compare -numbodies="$bodies" -iterations=10
    gmux "api-launch beside it" "$build/tests/api/api-launch"
    took=$(ms_since "$begin")
    [ "$took" -le 15000 ]
    verdict "gmux they took $took ms, of 15,000" $?
    start_program beside "$misbehave" steady
    program_says beside running
    verdict "gmux one that works beside it" $? "$DIR/beside.out"
    executor=$(the_executor)
    [ "$(last_line endless_one)" = running ] && end_badly "$endless_one"
    verdict "gmux the kernel runs until its program is killed" $? "$DIR/endless_one.out"
    next_executor "$executor"
    end_program beside >"$DIR/out"
    verdict "gmux one that worked on while the kernel was ended with its context: $(last_line beside)" $? "$DIR/beside.out"
    gmux "vecadd after it" "$build/examples/vecadd"
}
liar() {
    local streams executor
    echo "== a program hands over without end behind an endless kernel, and lies about what is done; nobody loads anything"
    for streams in 1 300; do
        start_program "beside_$streams" "$misbehave" steady
        program_says "beside_$streams" running
        verdict "gmux one that works" $? "$DIR/beside_$streams.out"
        start_program liar_one "$misbehave" liar $streams
        program_says liar_one running
        verdict "gmux the one with $streams streams beside it" $? "$DIR/liar_one.out"
        sleep 3 # of being beside it
        end_program "beside_$streams" >"$DIR/out"
        verdict "gmux one beside a program with $streams streams: $(last_line "beside_$streams")" $? \
            "$DIR/beside_$streams.out"
        executor=$(the_executor)
        end_badly "$liar_one"
        next_executor "$executor"
        gmux "vecadd after it" "$build/examples/vecadd"
    done
}
