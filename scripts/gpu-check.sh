#!/bin/bash
# On a machine with a GPU and its driver: scripts/gpu-check.sh BUILD [SECTION]...
#
# Prints a line for each check and ends with "N passed, N failed, N skipped"; status 0 if none failed. Without names all
# sections, in this order: examples api shares partitions print idle nbody limits faults killed users launches endless
# liar.
#
# "direct" is without a daemon: our library passes each call on to NVIDIA's driver. "gmux" is under a daemon of the
# check's own; there a check also fails if its program never came to the daemon, and an API test if it leaves out
# anything that it passes directly (may_differ, below). DEVICE=soft tries the script out where there is no GPU: a
# private server stands for the driver then, and some expectations are the software device's. OUT: a folder for the logs and
# the results of the API tests.
set -u
here=$(dirname "$(readlink -f "$0")")
if ! [ -x "${1:-/nonexistent}/src/control/gmux-control" ] || ! [ -x "$1/tests/e2e/misbehave" ]; then
    echo "usage: $0 BUILD [SECTION]...: BUILD is a build tree, with -Dbench=true for the section launches" >&2
    exit 2
fi
build=$(cd "$1" && pwd)
shift
sections=${*:-examples api shares partitions print idle nbody limits faults killed users launches endless liar}
device=${DEVICE:-cuda}
control=$build/src/control/gmux-control
misbehave=$build/tests/e2e/misbehave
DIR=$(mktemp -d "${TMPDIR:-/tmp}/gmux-gpu.XXXXXX")
CLIENTS=()
export CUDA_MPS_PIPE_DIRECTORY="$DIR/pipe" CUDA_MPS_LOG_DIRECTORY="$DIR/log" GMUX_DEVICE=$device
export LD_LIBRARY_PATH="$build/src/client${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}"
directly=(env CUDA_MPS_PIPE_DIRECTORY=/nonexistent)
[ "$device" = cuda ] || export GMUX_GENUINE_LIBCUDA=none
mkdir "$DIR/pipe" "$DIR/log"
chmod 755 "$DIR" # tests have processes of other users
failed=0
passed=0

# Tests that pass directly and are left out under gmux, and why.
declare -A may_differ=(
    ["virtual kernels_keep_to_the_access"]="its fault would end the context that others are in"
    ["print a_failed_assertion_says_where"]="the same (PRINT_NO_ASSERT)"
)

# shellcheck source=tests/e2e/programs.bash
source "$here/../tests/e2e/programs.bash"
# shellcheck source=scripts/gpu-check-ends.bash
source "$here/gpu-check-ends.bash"

finish() {
    local status=$? skipped
    [ "$status" -eq 0 ] || [ "$failed" -ne 0 ] || failed=1 # it did not come to its end
    {
        kill -9 "${CLIENTS[@]}"
        wait
    } 2>/dev/null
    "$control" quit -t 1 >/dev/null 2>&1
    skipped=$(cat "$DIR"/*.tap 2>/dev/null | grep -c '^ok.*# SKIP')
    if [ -n "${OUT:-}" ]; then
        cat "$DIR"/log/*.log >"$OUT/gmux.log"
        cp "$DIR"/*.tap "$OUT"
    fi 2>/dev/null
    rm -rf "$DIR"
    echo "$passed passed, $failed failed, $skipped skipped"
    exit $((failed != 0))
}
trap finish EXIT
trap 'exit 130' INT TERM

# --- verdicts ---------------------------------------------------------------------------------------------------------

verdict() { # NAME STATUS [FILE]
    if [ "$2" -eq 0 ]; then
        passed=$((passed + 1))
        echo "ok      $1"
    else
        failed=$((failed + 1))
        echo "FAILED  $1 (status $2)"
        [ -z "${3:-}" ] || grep -v '^ok' "$3" | tail -n "${LINES_SHOWN:-12}" | sed 's/^/        /'
    fi
}
sessions() { # how many clients have come to the daemon's servers
    grep -c 'Client {PID: [0-9]*, Context ID: 0} connected' "$DIR/log/server.log" 2>/dev/null
}
more_sessions() {
    [ "$(sessions)" -gt "$1" ]
}
# What the program printed is in $DIR/out. NVIDIA's library, 580.159, dies in api-pool now and then: who crashes has three goes.
direct() { # NAME COMMAND...
    local name=$1 status=128 goes
    shift
    for ((goes = 0; goes < 3 && status >= 128; goes++)); do
        timeout 60 "${directly[@]}" "$@" >"$DIR/out" 2>&1
        status=$?
    done
    verdict "direct $name" "$status" "$DIR/out"
}
run_gmux() { # COMMAND...: its status; 99 if no program of it came to the daemon
    local before status
    before=$(sessions)
    timeout 60 "$@" >"$DIR/out" 2>&1
    status=$?
    if [ "$status" -eq 0 ] && ! until_true 20 more_sessions "${before:-0}"; then
        echo "no program came to the daemon" >>"$DIR/out"
        status=99
    fi
    return "$status"
}
gmux() { # NAME COMMAND...
    local name=$1
    shift
    run_gmux "$@"
    verdict "gmux $name" $? "$DIR/out"
}
start_daemon() { # OPTION...
    "$control" -d "$@" >"$DIR/out" 2>&1 && return
    verdict "the daemon starts" 1 "$DIR/out"
    exit 1
}
restart_daemon() {
    "$control" quit -t 5 >"$DIR/out" 2>&1
    start_daemon "$@"
}
the_executor() {
    pgrep -P "$("$control" get_server_list | head -n 1)" gmux-executor
}
ms_since() { # EPOCHREALTIME
    echo $(((${EPOCHREALTIME//[!0-9]/} - ${1//[!0-9]/}) / 1000))
}
notes() {
    grep '^# ' "$DIR/out" | grep -v '^# TAP' | sed 's/^# /        /'
}

# --- the same binaries, directly and under gmux ------------------------------------------------------------------------

examples() { # direct|gmux
    "$1" vecadd "$build/examples/vecadd"
    "$1" reduction "$build/examples/reduction"
    "$1" matmul "$build/examples/matmul"
    "$1" nbody "$build/examples/nbody" -benchmark -compare -numbodies="$bodies" -iterations=10
    [ ! -x "$build/tests/cudart/vecadd" ] || # made by gmux-cc, with our runtime library
        "$1" "vecadd in CUDA C" env LD_LIBRARY_PATH="$build/src/cudart/v12:$LD_LIBRARY_PATH" "$build/tests/cudart/vecadd"
}
api_tests() { # those that end a context, and with it an executor, last
    local t
    for t in "$build"/tests/api/api-*[a-z]; do
        t=${t##*/api-}
        case $t in bystander | fault | print) continue ;; esac
        [ -f "$build/tests/api/api-$t" ] && [ -x "$build/tests/api/api-$t" ] && echo "$t"
    done
    echo print
    echo fault
}
left_out() { # TEST: what it passes directly and neither passes under gmux nor may leave out there
    local name
    while read -r name; do
        grep -qxE "ok [0-9]+ - $name" "$DIR/out" && continue
        [ -n "${may_differ["$1 $name"]:-}" ] ||
            echo "passes directly, not under gmux: $name: $(grep -E -- "- $name( |$)" "$DIR/out" || echo missing)"
    done < <(sed -nE 's/^ok [0-9]+ - ([^ ]+)$/\1/p' "$DIR/api-$1.direct")
}
api_directly() {
    local t
    for t in $(api_tests); do
        : >"$DIR/api-$t.direct"
        [ "$t" != wrong ] || continue # NVIDIA's driver follows pointers that are none
        direct "api-$t" "$build/tests/api/api-$t"
        cp "$DIR/out" "$DIR/api-$t.direct"
        { echo "# api-$t" && cat "$DIR/out"; } >>"$DIR/direct.tap"
    done
}
api_under_gmux() {
    local t status
    for t in $(api_tests); do
        local env=(PRINT_NO_ASSERT=1) # the text of an assertion goes to the server's log
        [ "$t" != memory ] || env+=(TAP_ALONE=1)
        run_gmux env "${env[@]}" "$build/tests/api/api-$t"
        status=$?
        { echo "# api-$t" && cat "$DIR/out"; } >>"$DIR/gmux.tap"
        left_out "$t" >"$DIR/left-out"
        [ ! -s "$DIR/left-out" ] || status=98
        cat "$DIR/left-out" >>"$DIR/out"
        verdict "gmux api-$t: as directly" "$status" "$DIR/out"
    done
    gmux api-bystander env BYSTANDER_CULPRIT="$build/tests/api/api-fault >/dev/null" "$build/tests/api/api-bystander"
}

# --- together ---------------------------------------------------------------------------------------------------------

holds() { # it has printed which multiprocessors it has
    grep -q '^# [0-9]*:' "$DIR/$1.out"
}
multiprocessors() {
    sed -n 's/^# [0-9]*: //p' "$1" | tr ' ' '\n' | sort -u
}
shares() {
    echo "== shares: numbers of multiprocessors, and which ones"
    local pct both p share=$build/tests/api/api-share
    restart_daemon # with one server: other users had theirs
    for pct in 100 50 33 10 1; do
        gmux "share of $pct %" env CUDA_MPS_ACTIVE_THREAD_PERCENTAGE=$pct "$share"
        notes
        gmux "green contexts in $pct %" env CUDA_MPS_ACTIVE_THREAD_PERCENTAGE=$pct "$build/tests/api/api-green"
    done
    if [ "$device" != cuda ]; then
        echo "        the rest skipped: multiprocessors without numbers"
        return
    fi
    start_program first env SHARE_HOLD=1 CUDA_MPS_ACTIVE_THREAD_PERCENTAGE=33 "$share"
    until_true 200 holds first
    verdict "gmux one with 33 % holds them" $? "$DIR/first.out"
    gmux "a second one beside it" env CUDA_MPS_ACTIVE_THREAD_PERCENTAGE=33 "$share"
    both=$( (multiprocessors "$DIR/first.out" && multiprocessors "$DIR/out") | sort | uniq -d | wc -l)
    [ "$both" -eq 0 ]
    verdict "gmux two shares of 33 % overlap in $both multiprocessors" $? "$DIR/first.out"
    end_program first
    verdict "gmux the first one ends" $? "$DIR/first.out"
    gmux "a share changed while the program runs" \
        env SHARE_CHANGE="$control set_active_thread_percentage \$($control get_server_list) 25" "$share"
    notes
    restart_daemon
    for p in 0 1; do
        gmux "client priority $p" env CUDA_MPS_CLIENT_PRIORITY=$p "$build/tests/api/api-stream"
    done
}
partitions() {
    echo "== static partitions: which multiprocessors"
    local gpu a b both own share=$build/tests/api/api-share
    restart_daemon -S
    gpu=$("$control" lspart | awk 'NR == 3 { print $1 }')
    "$control" lspart
    a=$("$control" sm_partition add "$gpu" 1) a=${a#Partition } a=${a% created}
    b=$("$control" sm_partition add "$gpu" 1) b=${b#Partition } b=${b% created}
    run_gmux "$misbehave" limit
    [ $? -ne 0 ] && grep -q 'CUDA_MPS_SM_PARTITION is not set.*' "$DIR/out"
    verdict "gmux no program without a partition" $? "$DIR/out"
    gmux "green contexts in B" env CUDA_MPS_SM_PARTITION="$b" "$build/tests/api/api-green"
    if [ "$device" != cuda ]; then
        echo "        the rest skipped: multiprocessors without numbers"
        restart_daemon
        return
    fi
    start_program first env SHARE_HOLD=1 CUDA_MPS_SM_PARTITION="$a" "$share"
    until_true 200 holds first
    verdict "gmux one in A holds its multiprocessors" $? "$DIR/first.out"
    own=$(multiprocessors "$DIR/first.out" | wc -l)
    gmux "a second one in A" env CUDA_MPS_SM_PARTITION="$a" "$share"
    notes
    both=$( (multiprocessors "$DIR/first.out" && multiprocessors "$DIR/out") | sort | uniq -d | wc -l)
    [ "$own" -gt 0 ] && [ "$both" -eq "$own" ]
    verdict "gmux two in A have $both multiprocessors of $own together" $? "$DIR/first.out"
    gmux "one in B" env CUDA_MPS_SM_PARTITION="$b" "$share"
    both=$( (multiprocessors "$DIR/first.out" && multiprocessors "$DIR/out") | sort | uniq -d | wc -l)
    [ "$both" -eq 0 ]
    verdict "gmux one in A and one in B have $both together" $? "$DIR/first.out"
    end_program first
    verdict "gmux the first one ends" $? "$DIR/first.out"
    "$control" lspart
    restart_daemon
}
print() {
    echo "== programs that print at the same time: each gets its own text"
    local i
    for i in 1 2 3; do
        start_program "print_$i" env PRINT_NO_ASSERT=1 "$build/tests/api/api-print"
    done
    for i in 1 2 3; do
        ends_well "print_$i" >"$DIR/out"
        verdict "gmux print $i of 3" $? "$DIR/print_$i.out"
    done
    ! grep 'one of several programs printed' "$DIR"/log/*.log >"$DIR/out"
    verdict "gmux nothing was anybody's" $? "$DIR/out"
}
idle() {
    echo "== four idle clients: what the executor costs"
    local i executor before used
    for i in 1 2 3 4; do
        start_program "idle_$i" "$misbehave" idle
    done
    for i in 1 2 3 4; do
        program_says "idle_$i" 41 >"$DIR/out"
        verdict "gmux idle client $i" $? "$DIR/idle_$i.out"
    done
    executor=$(the_executor)
    ticks() { sed 's/.*) //' "/proc/$executor/stat" | awk '{ print $12 + $13 }'; }
    sleep 1
    before=$(ticks)
    sleep 2
    used=$(($(ticks) - before))
    [ "$used" -le 1 ]
    verdict "gmux executor with 4 idle clients: $used ticks of $(getconf CLK_TCK) a second in 2 s" $?
    for i in 1 2 3 4; do
        end_program "idle_$i" >"$DIR/out"
        verdict "gmux idle client $i ends" $? "$DIR/out"
    done
}
nbody() {
    echo "== three n-body programs at once"
    local i
    for i in 1 2 3; do
        start_program "nbody_$i" "$build/examples/nbody" -benchmark -compare -numbodies=$((4 * bodies)) -iterations=40
    done
    for i in 1 2 3; do
        ends_well "nbody_$i" >"$DIR/out"
        verdict "gmux nbody $i of 3: $(grep -h 'billion' "$DIR/nbody_$i.out")" $? "$DIR/nbody_$i.out"
    done
}
users() {
    echo "== two users"
    local how servers
    if [ "$(id -u)" -ne 0 ]; then
        echo "        skipped: only root can be several users"
        return
    fi
    gmux "api-users, a server each" "$build/tests/api/api-users"
    for how in "-M" "-M --server-user 12347"; do
        if [ "$how" != -M ] && ! setpriv --reuid 12347 --clear-groups test -x "$build/src/server/gmux-server"; then
            echo "        $how: skipped: user 12347 cannot reach $build"
            continue
        fi
        # shellcheck disable=SC2086 # two words
        restart_daemon $how
        gmux "$how api-users" "$build/tests/api/api-users"
        { echo "# api-users $how" && cat "$DIR/out"; } >>"$DIR/gmux.tap"
        gmux "$how ipc" "$build/tests/api/api-ipc"
        gmux "$how nbody" "$build/examples/nbody" -benchmark -compare -numbodies="$bodies" -iterations=10
        servers=$("$control" get_server_list | wc -l)
        [ "$servers" -eq 1 ]
        verdict "gmux $how: $servers server" $?
    done
    restart_daemon
}
launches() {
    [ -x "$build/bench/launch" ] || { echo "== launches: skipped: no $build/bench" && return; }
    echo "== launches: name, median ns, 99 % ns"
    local how n i prefix
    for how in direct gmux; do
        prefix=()
        [ "$how" = gmux ] || prefix=("${directly[@]}")
        timeout 60 "${prefix[@]}" "$build/bench/launch" | awk -v how=$how '{ print how, $1, $2, $3 }'
        timeout 60 "${prefix[@]}" "$build/bench/copy" | awk -v how=$how '{ print how, $0 }'
        for n in 1 2 8; do
            for ((i = 0; i < n; i++)); do
                timeout 60 "${prefix[@]}" "$build/bench/rate" 3 &
            done >"$DIR/rate"
            wait
            awk -v how=$how -v n=$n '{ sum += $2 } END { print how, "launches/s of", n, "programs", sum }' "$DIR/rate"
        done
    done
}

# A test links with the toolkit's device runtime, if there is a toolkit.
if [ -z "${CUDADEVRT:-}" ] && nvcc=$(command -v nvcc); then
    CUDADEVRT=$(find "$(dirname "$(readlink -f "$nvcc")")/.." -name libcudadevrt.a -print -quit)
    export CUDADEVRT
fi

wanted() { # SECTION
    [[ " $sections " == *" $1 "* ]]
}
bodies=16384
[ "$device" = cuda ] || bodies=1024
for section in $sections; do
    declare -F "$section" >/dev/null || [ "$section" = api ] || { echo "no section $section" && exit 2; }
done
! wanted examples || examples direct
! wanted api || api_directly
start_daemon
! wanted examples || examples gmux
if [ "$failed" -gt "${FAILED_MAX:-4}" ]; then
    echo "nothing else will work either"
    exit 1
fi
! wanted api || api_under_gmux
for section in shares partitions print idle nbody limits faults killed users launches endless liar; do
    ! wanted "$section" || "$section"
done
