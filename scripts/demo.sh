#!/bin/sh
# Several unmodified driver-API programs share one device through gmux: demo.sh BUILD CLIENTS SHARE
#
# Starts a daemon in a private directory, runs the n-body example once alone without any daemon, then CLIENTS times at
# once with SHARE % each; shows who runs, what each one reached, whether its result is right, and the log of the life.
# Variables: BODIES, ITERATIONS.
set -eu

build=$(cd "$1" && pwd)
clients=$2
share=$3
bodies=${BODIES:-16384}
iterations=${ITERATIONS:-40}
control=$build/src/control/gmux-control
nbody=$build/examples/nbody
dir=$(mktemp -d "${TMPDIR:-/tmp}/gmux-demo.XXXXXX")

export LD_LIBRARY_PATH="$build/src/client${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}"
export CUDA_MPS_PIPE_DIRECTORY="$dir/pipe" CUDA_MPS_LOG_DIRECTORY="$dir/log"
mkdir "$dir/pipe" "$dir/log"

finish() {
    status=$?
    trap - EXIT INT TERM
    [ -z "${started:-}" ] || "$control" quit -t 1 >/dev/null 2>&1 || true
    rm -rf "$dir"
    exit "$status"
}
trap finish EXIT
trap 'exit 130' INT TERM

rate() { # FILE: billion interactions per second
    awk '/billion interactions per second/ { print $2 }' "$1"
}
verdict() { # FILE
    sed -n 's/^compare: //p' "$1"
}
run() { # ITERATIONS
    "$nbody" -benchmark -compare -numbodies="$bodies" -iterations="$1"
}

echo "== n-body, $bodies bodies, one program alone, no daemon"
run 2 >/dev/null # so that the code is compiled and the alone run measures what the shared ones do
run "$iterations" | tee "$dir/alone"
alone=$(rate "$dir/alone")

echo
echo "== a daemon in $dir"
"$control" -d
started=yes

echo "== $clients programs at once, CUDA_MPS_ACTIVE_THREAD_PERCENTAGE=$share"
pids=
i=1
while [ "$i" -le "$clients" ]; do
    CUDA_MPS_ACTIVE_THREAD_PERCENTAGE=$share "$nbody" -benchmark -compare -numbodies="$bodies" \
        -iterations="$iterations" >"$dir/client.$i" 2>&1 &
    pids="$pids $!"
    i=$((i + 1))
done

tries=0
while [ "$("$control" ps | tail -n +2 | wc -l)" -lt "$clients" ] && [ "$tries" -lt 200 ]; do
    tries=$((tries + 1))
    sleep 0.02
done
echo '$ gmux-control ps'
"$control" ps

failed=0
for pid in $pids; do
    wait "$pid" || failed=$((failed + 1))
done

echo
printf '%-10s %18s %12s   %s\n' program 'G interactions/s' 'of alone' result
printf '%-10s %18s %12s   %s\n' alone "$alone" '100.0 %' "$(verdict "$dir/alone")"
i=1
while [ "$i" -le "$clients" ]; do
    r=$(rate "$dir/client.$i")
    if [ -z "$r" ]; then
        sed 's/^/    /' "$dir/client.$i"
        r=0
    fi
    printf '%-10s %18s %12s   %s\n' "client $i" "$r" \
        "$(awk -v a="$alone" -v r="$r" 'BEGIN { printf "%.1f %%", 100 * r / a }')" "$(verdict "$dir/client.$i")"
    i=$((i + 1))
done
awk -v a="$alone" '/billion interactions per second/ { s += $2 }
    END { printf "%-10s %18.3f %11.1f %%\n", "sum", s, 100 * s / a }' "$dir"/client.*

echo
"$control" quit
started=
echo "== control.log"
cat "$dir/log/control.log"
echo "== server.log"
cat "$dir/log/server.log"

if [ "$failed" -ne 0 ]; then
    echo "demo: $failed of $clients clients failed" >&2
    exit 1
fi
echo
echo "demo: $clients programs shared the device, every result checked"
