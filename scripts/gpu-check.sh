#!/bin/sh
# On a machine with a GPU and its driver: examples, API tests, sharing, a client killed in mid-kernel, and what launches
# cost, natively (the library passes calls through), under gmux and, with MPS=1, under NVIDIA's MPS: gpu-check.sh BUILD
# Prints one line per check, then a table. Exit status: the number of checks that failed.
set -u
build=$(cd "$1" && pwd)
control=$build/src/control/gmux-control
dir=$(mktemp -d "${TMPDIR:-/tmp}/gmux-gpu.XXXXXX")
export CUDA_MPS_PIPE_DIRECTORY="$dir/pipe" CUDA_MPS_LOG_DIRECTORY="$dir/log" GMUX_DEVICE=cuda
export LD_LIBRARY_PATH="$build/src/client${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}"
nowhere="env CUDA_MPS_PIPE_DIRECTORY=/nonexistent"
mkdir "$dir/pipe" "$dir/log"
failed=0
passed=0
trap '"$control" quit -t 1 >/dev/null 2>&1; [ -n "${OUT:-}" ] && cat "$dir"/log/*.log >"$OUT/gmux.log" && cp "$dir"/*.tap "$OUT"; rm -rf "$dir"' EXIT

verdict() { # NAME STATUS FILE
    if [ "$2" -eq 0 ]; then
        passed=$((passed + 1))
        echo "ok      $1"
    else
        failed=$((failed + 1))
        echo "FAILED  $1 (status $2)"
        grep -v '^ok' "$3" | tail -n "${LINES_SHOWN:-12}" | sed 's/^/        /'
    fi
}
check() { # NAME COMMAND...
    name=$1
    shift
    timeout 60 "$@" >"$dir/out" 2>&1
    verdict "$name" $? "$dir/out"
}
examples() { # HOW PREFIX...
    how=$1
    shift
    check "$how vecadd" "$@" "$build/examples/vecadd"
    check "$how reduction" "$@" "$build/examples/reduction"
    check "$how matmul" "$@" "$build/examples/matmul"
    check "$how nbody" "$@" "$build/examples/nbody" -benchmark -compare -numbodies=16384 -iterations=10
}
api() { # HOW PREFIX...
    how=$1
    shift
    # Those that end a context, and with it an executor, last.
    for t in $(cd "$build/tests/api" && ls -d api-*[a-z] | sed 's/^api-//' | grep -vx 'bystander\|fault\|print') print fault; do
        [ -x "$build/tests/api/api-$t" ] && [ -f "$build/tests/api/api-$t" ] || continue
        check "$how api-$t" "$@" "$build/tests/api/api-$t"
        { echo "# api-$t" && cat "$dir/out"; } >>"$dir/$how.tap"
    done
}

examples native $nowhere
api native $nowhere

"$control" -d || exit 1
examples gmux
[ "$failed" -le "${FAILED_MAX:-4}" ] || exit "$failed" # nothing else will work either
api gmux env PRINT_NO_ASSERT=1 # the text of an assertion goes to the server's log

check "gmux api-bystander" env BYSTANDER_CULPRIT="$build/tests/api/api-fault >/dev/null" "$build/tests/api/api-bystander"

echo "== shares: numbers of multiprocessors, and which ones"
notes() { grep '^# ' "$dir/out" | grep -v '^# TAP' | sed 's/^# /        /'; }
for pct in 100 50 33 10 1; do
    check "gmux share of $pct %" env CUDA_MPS_ACTIVE_THREAD_PERCENTAGE=$pct "$build/tests/api/api-share"
    notes
    check "gmux green contexts in $pct %" env CUDA_MPS_ACTIVE_THREAD_PERCENTAGE=$pct "$build/tests/api/api-green"
done
mkfifo "$dir/hold"
SHARE_HOLD=1 CUDA_MPS_ACTIVE_THREAD_PERCENTAGE=33 timeout 60 "$build/tests/api/api-share" <"$dir/hold" >"$dir/first" 2>&1 &
exec 9>"$dir/hold"
for _ in $(seq 200); do grep -q '^# [0-9]*:' "$dir/first" && break || sleep 0.1; done
check "gmux a second one beside it" env CUDA_MPS_ACTIVE_THREAD_PERCENTAGE=33 "$build/tests/api/api-share"
multiprocessors() { sed -n 's/^# [0-9]*: //p' "$1" | tr ' ' '\n' | sort -u; }
both=$( (multiprocessors "$dir/first" && multiprocessors "$dir/out") | sort | uniq -d | wc -l)
[ "$both" -eq 0 ]
verdict "gmux two shares of 33 % overlap in $both multiprocessors" $? "$dir/first"
exec 9>&-
wait
check "gmux a share changed while the program runs" \
    env SHARE_CHANGE="$control set_active_thread_percentage \$($control get_server_list) 25" "$build/tests/api/api-share"
notes
"$control" set_active_thread_percentage "$("$control" get_server_list)" 100 >"$dir/out"
for p in 0 1; do
    check "gmux client priority $p" env CUDA_MPS_CLIENT_PRIORITY=$p "$build/tests/api/api-stream"
done

echo "== programs that print at the same time: each gets its own text"
for i in 1 2 3; do
    PRINT_NO_ASSERT=1 timeout 60 "$build/tests/api/api-print" >"$dir/print.$i" 2>&1 &
    eval "print_$i=$!"
done
for i in 1 2 3; do
    eval "wait \$print_$i"
    verdict "gmux print $i of 3" $? "$dir/print.$i"
done
check "gmux nothing was anybody's" sh -c "! grep 'one of several programs printed' '$dir'/log/*.log"

echo "== four idle clients: what the executor costs"
mkfifo "$dir/idle"
for i in 1 2 3 4; do
    SHARE_HOLD=1 timeout 60 "$build/tests/api/api-share" <"$dir/idle" >"$dir/idle.out.$i" 2>&1 &
done
exec 9>"$dir/idle"
for i in 1 2 3 4; do
    for _ in $(seq 200); do grep -q '^# [0-9]*:' "$dir/idle.out.$i" && break || sleep 0.1; done
done
executor=$(pgrep -n gmux-executor)
ticks() { sed 's/.*) //' "/proc/$executor/stat" | awk '{ print $12 + $13 }'; }
sleep 1
before=$(ticks)
sleep 2
used=$(($(ticks) - before))
[ "$used" -le 1 ]
status=$?
verdict "gmux executor with 4 idle clients: $used ticks of $(getconf CLK_TCK) a second in 2 s" $status "$dir/idle.out.1"
exec 9>&-
wait

echo "== three n-body programs at once"
pids=
for i in 1 2 3; do
    timeout 60 "$build/examples/nbody" -benchmark -compare -numbodies=65536 -iterations=40 >"$dir/nbody.$i" 2>&1 &
    pids="$pids $!"
done
i=0
for pid in $pids; do
    i=$((i + 1))
    wait "$pid"
    status=$?
    verdict "gmux nbody $i of 3: $(grep -h 'billion' "$dir/nbody.$i")" $status "$dir/nbody.$i"
done

echo "== 50 clients, one after the other, are killed in mid-kernel while another works"
used() { nvidia-smi --query-gpu=memory.used --format=csv,noheader,nounits 2>/dev/null | head -n 1; }
timeout 60 "$build/examples/nbody" -benchmark -compare -numbodies=65536 -iterations=600 >"$dir/other" 2>&1 &
other=$!
sleep 1
before=$(used)
for i in $(seq 50); do
    "$build/bench/spin" -us=50000 >/dev/null 2>&1 &
    victim=$!
    sleep 0.1
    kill -9 "$victim"
    wait "$victim" 2>/dev/null
done
sleep 1
after=$(used)
wait "$other"
status=$?
verdict "gmux the other one: $(grep -h 'billion' "$dir/other")" $status "$dir/other"
[ "${after:-0}" -le $((${before:-0} + 4)) ]
verdict "gmux memory a second after them: ${before:-?} MiB before, ${after:-?} MiB after" $? "$dir/other"
check "gmux vecadd after it" "$build/examples/vecadd"
"$control" ps | sed 's/^/        /'

echo "== two users"
if [ "$(id -u)" -eq 0 ]; then
    check "gmux api-users, a server each" "$build/tests/api/api-users"
    for how in "-M" "-M --server-user 12347"; do
        if [ "$how" != -M ] && ! setpriv --reuid 12347 --clear-groups test -x "$build/src/server/gmux-server"; then
            echo "        $how: skipped: user 12347 cannot reach $build"
            continue
        fi
        "$control" quit -t 5 >"$dir/out" 2>&1
        # shellcheck disable=SC2086 # two words
        "$control" -d $how || exit 1
        check "gmux $how api-users" "$build/tests/api/api-users"
        { echo "# api-users $how" && cat "$dir/out"; } >>"$dir/gmux.tap"
        check "gmux $how ipc" "$build/tests/api/api-ipc"
        check "gmux $how nbody" "$build/examples/nbody" -benchmark -compare -numbodies=16384 -iterations=10
        servers=$("$control" get_server_list | wc -l)
        [ "$servers" -eq 1 ]
        verdict "gmux $how: $servers server" $? "$dir/out"
    done
    "$control" quit -t 5 >"$dir/out" 2>&1
    "$control" -d || exit 1
else
    echo "        skipped: only root can be several users"
fi

if [ -x "$build/bench/launch" ]; then
    echo "== launches: name, median ns, 99 % ns"
    for how in native gmux; do
        prefix=
        [ "$how" = native ] && prefix=$nowhere
        timeout 60 $prefix "$build/bench/launch" | awk -v how=$how '{ print how, $1, $2, $3 }'
        timeout 60 $prefix "$build/bench/copy" | awk -v how=$how '{ print how, $0 }'
        for n in 1 2 8; do
            i=0
            while [ "$i" -lt "$n" ]; do
                i=$((i + 1))
                timeout 60 $prefix "$build/bench/rate" 3 &
            done >"$dir/rate"
            wait
            awk -v how=$how -v n=$n '{ sum += $2 } END { print how, "launches/s of", n, "programs", sum }' "$dir/rate"
        done
    done
fi
misbehave=$build/tests/e2e/misbehave
next_executor() { # a kernel that does not end is ended with the context, when its client has been gone for long
    for _ in $(seq 400); do
        now=$(pgrep -f "executor.*--device cuda" | sort)
        [ -n "$now" ] && [ "$now" != "$executor" ] && break || sleep 0.1
    done
}
if [ -x "$misbehave" ]; then
    echo "== programs begin beside an endless kernel"
    "$misbehave" spin >"$dir/endless" 2>&1 &
    endless=$!
    for _ in $(seq 200); do grep -q running "$dir/endless" && break || sleep 0.1; done
    begun=$(date +%s)
    for name in vecadd reduction; do
        check "gmux $name beside it" "$build/examples/$name"
    done
    check "gmux nbody beside it" "$build/examples/nbody" -benchmark -compare -numbodies=16384 -iterations=10
    check "gmux api-launch beside it" "$build/tests/api/api-launch"
    echo "        they took $(($(date +%s) - begun)) s"
    mkfifo "$dir/steady"
    timeout 100 "$misbehave" steady <"$dir/steady" >"$dir/rounds" 2>&1 &
    steady=$!
    exec 9>"$dir/steady"
    for _ in $(seq 200); do grep -q running "$dir/rounds" && break || sleep 0.1; done
    executor=$(pgrep -f "executor.*--device cuda" | sort)
    kill -9 "$endless"
    wait "$endless" 2>/dev/null
    next_executor
    exec 9>&-
    wait "$steady"
    status=$?
    verdict "gmux one that worked on while the kernel was ended with its context: $(tail -n 1 "$dir/rounds")" $status "$dir/rounds"
    check "gmux vecadd after it" "$build/examples/vecadd"
fi
echo "== a program hands over without end behind an endless kernel, and lies about what is done; nobody loads anything meanwhile"
for streams in 1 300; do
    [ -x "$misbehave" ] || break
    mkfifo "$dir/steady.$streams"
    timeout 100 "$misbehave" steady <"$dir/steady.$streams" >"$dir/rounds" 2>&1 &
    steady=$!
    exec 9>"$dir/steady.$streams"
    for _ in $(seq 200); do grep -q running "$dir/rounds" && break || sleep 0.1; done
    "$misbehave" liar $streams >"$dir/liar" 2>&1 9>&- &
    liar=$!
    for _ in $(seq 200); do grep -q running "$dir/liar" && break || sleep 0.1; done
    sleep 3
    exec 9>&-
    wait "$steady"
    status=$?
    verdict "gmux one beside a program with $streams streams: $(tail -n 1 "$dir/rounds")" $status "$dir/rounds"
    executor=$(pgrep -f "executor.*--device cuda" | sort)
    kill -9 "$liar"
    wait "$liar" 2>/dev/null
    next_executor
    check "gmux vecadd after it" "$build/examples/vecadd"
done
skipped=$(cat "$dir"/*.tap | grep -c '^ok.*# SKIP')
echo "$passed passed, $failed failed, $skipped skipped"
exit "$failed"
