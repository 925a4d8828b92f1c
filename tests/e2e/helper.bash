# What the tests of the control daemon share. Every test has a directory and a daemon of its own; nothing here waits
# for time to pass, only for things to happen, with a bound.

bats_require_minimum_version 1.5.0
# shellcheck source=tests/e2e/programs.bash
source "$(dirname "${BASH_SOURCE[0]}")/programs.bash"

common_setup() {
    DIR=$(mktemp -d "${TMPDIR:-/tmp}/gmux-e2e.XXXXXX")
    # The server's user must be able to get here.
    chmod 755 "$DIR"
    export CUDA_MPS_PIPE_DIRECTORY=$DIR/pipe CUDA_MPS_LOG_DIRECTORY=$DIR/log
    export GMUX_LIBEXECDIR=$DIR/bin FAKE_DIR=$DIR FAKE_SOURCE=$BATS_TEST_DIRNAME
    unset CUDA_MPS_ACTIVE_THREAD_PERCENTAGE CUDA_MPS_PINNED_DEVICE_MEM_LIMIT CUDA_MPS_CLIENT_PRIORITY GMUX_LOG
    control=$GMUX_BUILD/src/control/gmux-control
    client=$BATS_TEST_DIRNAME/fake-client
    mkdir "$GMUX_LIBEXECDIR"
    ln -s "$BATS_TEST_DIRNAME/fake-server" "$GMUX_LIBEXECDIR/gmux-server"
    CLIENTS=()
}

common_teardown() {
    local pid
    for pid in "${CLIENTS[@]}"; do
        kill -9 "$pid" 2>/dev/null || true
    done
    pid=$(cat "$DIR/pipe/nvidia-cuda-mps-control.pid" 2>/dev/null || true)
    # A stale number may be anybody's by now.
    if [ -n "$pid" ] && [ "/proc/$pid/exe" -ef "$control" ]; then
        kill -TERM "$pid" 2>/dev/null || true
        until_true 100 gone "$pid" || kill -9 "$pid"
    fi
    if [ "${BATS_TEST_COMPLETED:-}" != 1 ]; then
        tail -n 50 "$DIR"/log/*.log 2>/dev/null || true
    fi
    rm -rf "$DIR"
}

# descriptors PID...: how many each has open.
descriptors() {
    local pid
    for pid; do
        ls "/proc/$pid/fd" | wc -l
    done
}

# expect_descriptors "COUNTS" PID...: none has more than that, within 10 s. Fewer, maybe: some may have been on their way to being
# closed when they were counted.
expect_descriptors() {
    local before=($1)
    shift
    as_before() {
        local now=($(descriptors "$@")) i
        for i in "${!before[@]}"; do
            [ "${now[i]}" -le "${before[i]}" ] || return 1
        done
    }
    until_true 100 as_before "$@" || {
        echo "descriptors of $*:" "${before[@]}" "before, now" $(descriptors "$@")
        return 1
    }
}

# not COMMAND...: what "! COMMAND" says, but a test that says so fails by it; bash lets that pass.
not() {
    ! "$@"
}

has_line() {
    grep -qE -- "$2" "$DIR/log/$1.log" 2>/dev/null
}

# wait_log control|server PATTERN [TENTHS]
wait_log() {
    until_true "${3:-100}" has_line "$1" "$2" || {
        echo "no line like '$2' in $1.log"
        return 1
    }
}

count_lines() {
    grep -cE -- "$2" "$DIR/log/$1.log" || true
}

has_output() {
    grep -q . "$1"
}

# start_client NAME [PREFIX... --] [FIELD=VALUE]...: a client in the background; its output in $DIR/NAME.out, its
# process id in the variable NAME. It stays until stop_client NAME or the end of the test.
start_client() {
    local name=$1 prefix=()
    shift
    if [[ " $* " == *" -- "* ]]; then
        while [ "$1" != -- ]; do
            prefix+=("$1")
            shift
        done
        shift
    fi
    : > "$DIR/$name.out"
    "${prefix[@]}" "$client" run "$@" > "$DIR/$name.out" 2>&1 < /dev/null 3>&- &
    printf -v "$name" %s $!
    CLIENTS+=($!)
}

answered() {
    until_true "${2:-100}" has_output "$DIR/$1.out"
    cat "$DIR/$1.out"
}

stop_client() {
    kill "${!1}"
    wait "${!1}" 2>/dev/null || true
}

start_daemon() {
    "$control" -d "$@" 3>&-
    daemon=$(cat "$DIR/pipe/nvidia-cuda-mps-control.pid")
}

the_server() {
    "$control" get_server_list
}

one_server() {
    [ -n "$(the_server)" ]
}

# ---- real programs on the software device ----

real_setup() {
    common_setup
    unset GMUX_LIBEXECDIR # everything from the build tree
    export GMUX_GENUINE_LIBCUDA=none GMUX_DEVICE=soft GMUX_CACHE_DIR=${GMUX_CACHE_DIR-$DIR/objects}
    # Whom root's executor becomes, and where it then has its compiled code.
    nobodys=$(id -u gmux 2>/dev/null || echo 65520)
    objects=$GMUX_CACHE_DIR
    [ "$(id -u)" != 0 ] || objects+=/user-$nobodys
    misbehave=$GMUX_BUILD/tests/e2e/misbehave
}

# two_users PROGRAM: ${a[@]} and ${b[@]} run a command as one or the other; skips without root, or where they cannot get at
# the program.
two_users() {
    [ "$(id -u)" = 0 ] || skip "needs root"
    a=(setpriv --reuid 12345 --regid 12345 --clear-groups)
    b=(setpriv --reuid 12346 --regid 12346 --clear-groups)
    "${a[@]}" test -x "$1" || skip "user 12345 cannot reach the tests"
}

# It has used no processor time for half a second, within 20 s.
rests() {
    local used before=-1 same=0
    for ((i = 0; i < 200; i++)); do
        used=$(awk '{ print $14 + $15 }' "/proc/$1/stat")
        same=$((used - before <= 1 ? same + 1 : 0)) before=$used
        [ "$same" -lt 5 ] || return 0
        span 1
    done
    return 1
}

the_executor() {
    local server
    server=$(the_server)
    executor_of() { executor=$(cat "/proc/$1/task/$1/children") && [ -n "$executor" ]; }
    until_true 100 executor_of "$server"
    echo "${executor%% *}"
}

# What the server said last of all that it has.
last_account() {
    awk '/Sessions: / { said = "" } { said = said $0 "\n" } END { printf "%s", said }' "$DIR/log/server.log"
}

# A session is there until what its program had compiled last is done.
sessions_are_gone() {
    kill -USR1 "$(the_server)"
    last_account | grep -q "Sessions: 0, contexts: 0, users: 0," && last_account | grep -q "Charged sessions: 0"
}

nothing_is_charged() {
    until_true 100 sessions_are_gone
    ! last_account | grep -E "Charged .*: [1-9]"
}
