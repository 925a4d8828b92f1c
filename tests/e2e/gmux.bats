# gmux, the command that people type: programs on the software device, a daemon of one's own, limits that change.

load helper

setup() {
    real_setup
    gmux=$GMUX_BUILD/src/cli/gmux
    unset CUDA_MPS_PIPE_DIRECTORY CUDA_MPS_LOG_DIRECTORY LD_LIBRARY_PATH
    export XDG_RUNTIME_DIR=$DIR/run
    mkdir "$XDG_RUNTIME_DIR"
}

teardown() {
    export CUDA_MPS_PIPE_DIRECTORY=$DIR/run/gmux CUDA_MPS_LOG_DIRECTORY=$DIR/run/gmux/log
    "$control" quit -t 0 >/dev/null || true
    export CUDA_MPS_PIPE_DIRECTORY=$DIR/pipe
    common_teardown
}

# row PID: the fields of a client's row, in `f`.
row() {
    local line
    line=$("$gmux" ls --format=csv,noheader | grep "^$1,")
    IFS=, read -ra f <<<"$line"
    [ "${#f[@]}" -ge 10 ]
}

is_active() {
    row "$1" && [ "${f[4]}" = active ]
}

busy() {
    start_program nbody "$gmux" run "$@" -- "$GMUX_BUILD/examples/nbody" -benchmark -numbodies=4096 -iterations=1000000
    until_true 200 is_active "$nbody"
}

@test "run starts a daemon of one's own, ls shows the program, set changes it at once, stop ends it" {
    busy --share 33 --memory=2G -p low
    [ -S "$DIR/run/gmux/control" ]
    [ "${f[1]}" = "$(id -un)" ]
    [ "${f[5]} ${f[6]} ${f[8]}" = "33.0 low $((2 << 30))" ]
    has_memory() { row "$nbody" && [ "${f[7]}" -gt 0 ]; }
    until_true 100 has_memory
    [[ ${f[11]} == *"/nbody -benchmark"* ]]
    run -0 "$gmux" ls
    [ "${#lines[@]}" = 2 ]
    [[ ${lines[0]} == "CLIENT "*" COMMAND" && ${lines[1]} == "$nbody "*" 2.0G "* ]]
    run -0 "$gmux" set "$nbody" share=20.5 memory=512M
    row "$nbody"
    [ "${f[5]} ${f[6]} ${f[8]}" = "20.5 low $((512 << 20))" ]
    run -0 "$gmux" set "$nbody" share= priority=normal # back to what the daemon allows
    row "$nbody"
    [ "${f[5]} ${f[6]}" = "100.0 normal" ]
    run -0 "$gmux" stop "$nbody"
    until_true 100 grep -q MPS_CLIENT_TERMINATED "$DIR/nbody.out"
    run -0 "$gmux" stop
    run -1 "$gmux" ls
    [[ $output == "gmux ls: no daemon runs in $DIR/run/gmux: "* ]]
}

@test "the limits of a user hold for his programs, those to come too, and only lower theirs" {
    busy --share 50
    run -0 "$gmux" set "$(id -un)" share=30 memory=1G
    row "$nbody"
    [ "${f[5]} ${f[8]}" = "30.0 $((1 << 30))" ]
    run -0 "$gmux" set "$nbody" share=80
    row "$nbody"
    [ "${f[5]}" = 30.0 ]
    kill -9 "$nbody"
    busy --share 10
    row "$nbody"
    [ "${f[5]} ${f[8]}" = "10.0 $((1 << 30))" ]
    run -0 "$gmux" set "user:$(id -u)" share= memory=
    run -0 "$gmux" set "$nbody" share=80
    row "$nbody"
    [ "${f[5]} ${f[8]}" != "10.0 $((1 << 30))" ]
    [ "${f[5]}" = 80.0 ]
}

@test "a set share holds within a second" {
    busy
    executor=$(pgrep -n -P "${f[2]}")
    used() { awk '{ print $14 + $15 }' "/proc/$executor/stat"; }
    run -0 "$gmux" set "$nbody" share=10
    span 10
    before=$(used) begin=${EPOCHREALTIME//[!0-9]/}
    span 20
    part=$((($(used) - before) * 1000000 / $(getconf CLK_TCK) * 100 / (${EPOCHREALTIME//[!0-9]/} - begin) / $(nproc)))
    echo "$part %" >&2
    [ "$part" -le 16 ]
}

@test "a user sees the command lines of his own programs, and stops and limits only those" {
    two_users "$GMUX_BUILD/examples/vecadd"
    export CUDA_MPS_PIPE_DIRECTORY=$DIR/pipe CUDA_MPS_LOG_DIRECTORY=$DIR/log
    start_daemon
    start_program one "${a[@]}" "$gmux" run -- "$GMUX_BUILD/examples/nbody" -benchmark -numbodies=4096 -iterations=1000000
    until_true 200 is_active "$one"
    server=${f[2]}
    run -0 "${b[@]}" "$gmux" ls --format=csv,noheader
    [[ $output == "$one,12345,$server,"*",-" ]]
    for refused in "set $one share=5" "stop $one"; do
        run -1 "${b[@]}" "$gmux" $refused
        [ "$output" = "gmux ${refused%% *}: Client $one is another user's" ]
    done
    for refused in "set user:12346 share=5" stop; do
        run -1 "${b[@]}" "$gmux" $refused
        [ "${#lines[@]}" = 1 ]
        [[ $output == "gmux ${refused%% *}: Only root may use "* ]]
    done
    run -0 "${a[@]}" "$gmux" set "$one" share=40
    row "$one"
    [ "${f[5]}" = 40.0 ]
    run -0 "${a[@]}" "$gmux" stop "$one"
    until_true 100 gone "$one"
}

@test "run: the program gets our library in front of its own, its arguments and its status" {
    LD_LIBRARY_PATH=/somewhere run -0 "$gmux" run -- sh -c 'echo "$LD_LIBRARY_PATH|$0|$1|$GMUX_REQUIRE"' 'a b' ''
    [ "$output" = "$GMUX_BUILD/src/client:/somewhere|a b||" ]
    run -0 "$gmux" run --require -d 0 sh -c 'echo "$GMUX_REQUIRE $CUDA_VISIBLE_DEVICES"'
    [ "$output" = "1 0" ]
    run -7 "$gmux" run sh -c 'exit 7'
    run -127 "$gmux" run "$DIR/nothing"
    [ "$output" = "gmux run: $DIR/nothing: No such file or directory" ]
    run -126 "$gmux" run /etc/passwd
    run -0 "$gmux" run -s 33.5% sh -c 'echo "$CUDA_MPS_ACTIVE_THREAD_PERCENTAGE"'
    [ "$output" = 33.5 ]
    # A daemon of one's own is one for all: its defaults are not those of the program that it was started for.
    [ "$(CUDA_MPS_PIPE_DIRECTORY=$DIR/run/gmux "$control" get_default_active_thread_percentage)" = 100.0 ]
}

@test "mistakes get one line and status 1, and change nothing" {
    busy
    row "$nbody"
    before=${f[*]:5:2}
    big=$(printf '9%.0s' {1..400})
    for words in frob "ls -x" "ls --format" "ls --format=xml" "ls --format=csv,x" "run" "run --share" "run --share=0 true" \
        "run --share 101 true" "run --share -3 true" "run -s 1e1 true" "run --memory 5 true" "run --memory $big true" \
        "run -p 2 true" "run --require=1 true" "set" "set 1" "set $nbody" "set $nbody share" "set $nbody share=x" \
        "set $nbody share=-1" "set $nbody share=$big" "set $nbody memory=$big" "set $nbody memory=12" "set $nbody priority=9" \
        "set $nbody frob=1" "set $nbody share=5 frob=1" "set 999999999 share=3" "set nobody-there share=3" \
        "set user:$big share=3" "stop 1 2" "stop x" "stop 999999999" "stop --now 3" "stop --frob" "doctor --frob" "ls more" "run -s 33%% true" \
        "run -s % true" "set $nbody share=5%5" "help frob" "--dump-completion ksh"; do
        run -1 "$gmux" $words
        [ "${#lines[@]}" = 1 ] && [[ $output == "gmux"*": "* ]] || {
            echo "gmux $words: $output"
            false
        }
    done
    run -1 "$gmux" set "$nbody" $'share=\xff\xfe'
    run -1 "$gmux" set "$nbody" $'share=5\nquit'
    run -1 "$gmux" set $'root\tx' share=5
    row "$nbody"
    [ "${f[*]:5:2}" = "$before" ]
}

@test "help of a command wherever it is asked for, but not of the program" {
    for words in "help run" "run --help" "run -h" "run --share 3 --help" "--help run"; do
        run -0 "$gmux" $words
        [[ ${lines[0]} == "Usage: gmux run [OPTION]"* ]]
    done
    run -0 "$gmux" run sh -c 'echo "$0"' --help
    [ "$output" = --help ]
    for words in --version -V version; do
        run -0 "$gmux" $words
        [[ $output == "gmux "[0-9]* ]]
    done
}

# complete_bash WORD...: what bash offers for the last one.
complete_bash() {
    bash --norc -c 'source "$1"; shift; COMP_WORDS=("$@") COMP_CWORD=$(($# - 1)); compopt() { :; }
        _gmux gmux "${COMP_WORDS[COMP_CWORD]}" "${COMP_WORDS[COMP_CWORD-1]}"; echo "${COMPREPLY[*]}"' - \
        "$GMUX_BUILD/src/cli/gmux.bash" gmux "$@"
}

@test "completion: commands, options, values and clients, in three shells" {
    PATH=$GMUX_BUILD/src/cli:$PATH
    [ "$(complete_bash s)" = "set stop" ]
    [ "$(complete_bash run --sh)" = --share ]
    [ "$(complete_bash run -p "")" = "normal low" ]
    [ "$(complete_bash run --share 3 sleep "$DIR/ru")" = "$DIR/run" ]
    [ "$(complete_bash help d)" = doctor ]
    busy
    [ "$(complete_bash stop "")" = "$nbody" ]
    [ "$(complete_bash set "$nbody" m)" = memory= ]
    control_words() {
        bash --norc -c 'source "$1"; _gmux_control gmux-control "$2"; echo "${COMPREPLY[*]}"' - "$GMUX_BUILD/src/cli/gmux.bash" "$1"
    }
    [ "$(control_words --excl) $(control_words get_server_l)" = "--exclusive-user get_server_list" ]
    ! command -v zsh || zsh -n "$GMUX_BUILD/src/cli/_gmux"
    if command -v fish; then
        run -0 fish --no-config -c "source $GMUX_BUILD/src/cli/gmux.fish; complete -C 'gmux run --sh'"
        [[ $output == "--share"*"multiprocessors"* ]]
        run -0 fish --no-config -c "source $GMUX_BUILD/src/cli/gmux.fish; complete -C 'gmux set '"
        [[ $output == *"$nbody"* && $output == *"memory="* ]]
    fi
}

@test "doctor says what a program gets and what is wrong" {
    run -0 "$gmux" doctor -- "$GMUX_BUILD/examples/vecadd"
    [[ $output == *"note no daemon runs"* && $output == *"it is linked with libcuda.so.1"* ]]
    [[ $output == *"gets 1 device: gmux soft device"* ]]
    CUDA_MPS_PIPE_DIRECTORY=$DIR/nowhere run -1 "$gmux" doctor
    [[ $output == *"BAD  CUDA_MPS_PIPE_DIRECTORY is $DIR/nowhere, and no daemon is there"* ]]
    CUDA_MPS_PIPE_DIRECTORY=$(printf "/x%.0s" {1..60}) run -1 "$gmux" doctor
    [[ $output == *"BAD  CUDA_MPS_PIPE_DIRECTORY is longer than"* ]]
    printf '#!/usr/bin/env python3\n' >"$DIR/script"
    chmod +x "$DIR/script"
    run -0 "$gmux" doctor "$DIR/script"
    [[ $output == *"it is a script for /usr/bin/env python3"* ]]
    run -1 "$gmux" doctor "$DIR/nothing"
    [[ $output == *"BAD  $DIR/nothing: No such file or directory"* ]]
}

# Bytes of a program at an offset, as octal escapes.
patch() {
    cp "$GMUX_BUILD/examples/vecadd" "$DIR/patched"
    printf "$2" | dd of="$DIR/patched" bs=1 seek="$1" conv=notrunc status=none
}

@test "doctor names the directory that a user may not enter" {
    [ "$(id -u)" = 0 ] || skip "needs root"
    stranger=(setpriv --reuid 12345 --regid 12345 --clear-groups)
    "${stranger[@]}" "$gmux" --version > /dev/null || skip "user 12345 cannot reach the program"
    mkdir -m 700 "$DIR/locked"
    CUDA_MPS_PIPE_DIRECTORY=$DIR/locked/pipe run -1 "${stranger[@]}" "$gmux" doctor
    [[ $output == *"BAD  a daemon in $DIR/locked/pipe cannot be reached: user 12345 may not enter $DIR/locked"* ]]
}

@test "doctor reads any file" {
    patch 4 '\001'
    run -1 "$gmux" doctor "$DIR/patched"
    [[ $output == *"BAD  it is a 32-bit program"* ]]
    patch 18 '\267'
    run -1 "$gmux" doctor "$DIR/patched"
    [[ $output == *"BAD  it is for another processor"* ]]
    for offset in 32 40 54 56; do # where the headers are, how long and how many
        patch "$offset" '\377\377\377\377'
        run "$gmux" doctor "$DIR/patched"
        [ "$status" -le 1 ]
    done
    for size in 1 3 16 63 64 65 200 1000; do
        head -c "$size" "$GMUX_BUILD/examples/vecadd" >"$DIR/patched"
        run "$gmux" doctor "$DIR/patched"
        [ "$status" -le 1 ]
    done
    mkfifo "$DIR/fifo"
    run -1 "$gmux" doctor "$DIR/fifo"
    run -1 "$gmux" doctor "$DIR"
}

# doctor_says WORDS PROGRAM
doctor_says() {
    run -1 "$gmux" doctor -- "$2"
    [[ $output == *"BAD  "*"$1"* ]] || {
        echo "$output"
        return 1
    }
}

@test "doctor: static, run path, set-uid, a runtime library that needs a GPU" {
    command -v cc || skip "needs a C compiler"
    echo 'int main(void) { return 0; }' > "$DIR/empty.c"
    cc -static -o "$DIR/static" "$DIR/empty.c" || skip "needs libc.a"
    doctor_says "statically linked" "$DIR/static"
    run -0 "$gmux" run "$DIR/static"
    [ "$output" = "gmux run: $DIR/static does not share the device: it is statically linked and cannot load our library" ]
    # The loader looks into a DT_RPATH before LD_LIBRARY_PATH, and into a DT_RUNPATH after it.
    mkdir "$DIR/lib"
    cc -shared -o "$DIR/lib/libcuda.so.1" -x c /dev/null
    cc -o "$DIR/rpath" "$DIR/empty.c" -Wl,--disable-new-dtags,-rpath,"$DIR/lib"
    doctor_says "its run path (DT_RPATH) leads to $DIR/lib/libcuda.so.1" "$DIR/rpath"
    cc -o "$DIR/runpath" "$DIR/empty.c" -Wl,--enable-new-dtags,-rpath,"$DIR/lib"
    run -0 "$gmux" doctor -- "$DIR/runpath"
    if [ "$(id -u)" = 0 ]; then
        cp "$DIR/runpath" "$DIR/setuid"
        chown 12345 "$DIR/setuid"
        chmod 4755 "$DIR/setuid"
        doctor_says "it is set-uid or set-gid" "$DIR/setuid"
    fi
    [ ! -e /dev/nvidiactl ] || return 0
    cc -shared -Wl,-soname,libcudart.so.12 -o "$DIR/lib/libcudart.so.12" -x c /dev/null
    cc -o "$DIR/shared" "$DIR/empty.c" -Wl,--no-as-needed "$DIR/lib/libcudart.so.12"
    doctor_says "without a GPU NVIDIA's runtime library" "$DIR/shared"
    # nvcc's default: the runtime library is in the program, and opens the driver by its name.
    echo 'const char *name = "libcuda.so.1"; int main(void) { return 0; }' > "$DIR/opens.c"
    cc -o "$DIR/opens" "$DIR/opens.c"
    doctor_says "without a GPU NVIDIA's runtime library" "$DIR/opens"
}

@test "run: a place for a daemon of one's own that somebody else has made is not used" {
    two_users "$GMUX_BUILD/examples/vecadd"
    local uid=$((20000 + $$ % 40000)) place words
    place=/tmp/gmux-$uid words="gmux run: /tmp/gmux-$uid is no folder of yours that only you may write: remove it, or set CUDA_MPS_PIPE_DIRECTORY"
    [ ! -e "$place" ] || skip "$place is there"
    a=(setpriv --reuid "$uid" --regid "$uid" --clear-groups env -u XDG_RUNTIME_DIR)
    mkdir "$DIR/target"
    chown "$uid" "$DIR/target"
    for kind in theirs link open file; do
        case $kind in
        theirs) "${b[@]}" mkdir -m 777 "$place" ;;
        link) "${b[@]}" ln -s "$DIR/target" "$place" ;;
        open) "${a[@]}" mkdir "$place" && chmod 777 "$place" ;;
        file) "${a[@]}" touch "$place" ;;
        esac
        run -1 "${a[@]}" "$gmux" run true
        [ "$output" = "$words" ] || {
            echo "$kind: $output"
            rm -rf "$place"
            return 1
        }
        [ -z "$(ls -A "$DIR/target")" ]
        rm -rf "$place"
    done
    run -0 "${a[@]}" "$gmux" run echo good
    run -0 "${a[@]}" "$gmux" stop
    rm -rf "$place"
}

@test "run: programs that begin at the same time start one daemon, and nobody is told of the others" {
    local i
    for i in 1 2 3 4 5 6; do
        start_program "together$i" "$gmux" run --require -- "$misbehave" limit
    done
    for i in 1 2 3 4 5 6; do
        n=together$i
        wait "${!n}"
        [[ $(<"$DIR/$n.out") != *gmux* ]]
    done
    [ "$(grep -c "Starting control daemon" "$DIR/run/gmux/log/control.log")" = 1 ]
}

@test "a daemon whose process is stopped: one line, in time, from every command" {
    run -0 "$gmux" run "$misbehave" limit
    daemon=$(cat "$DIR/run/gmux/nvidia-cuda-mps-control.pid")
    kill -STOP "$daemon"
    export GMUX_ANSWER_TIMEOUT=1
    for words in ls "ls --groups" "set $(id -un) share=10" "stop 1"; do
        run -1 "$gmux" $words
        [ "$output" = "gmux ${words%% *}: the daemon in $DIR/run/gmux does not answer: its process is stopped" ]
    done
    run -1 "$gmux" doctor
    [[ $output == *"gmux doctor: the daemon in $DIR/run/gmux does not answer: its process is stopped"* ]]
    CUDA_MPS_PIPE_DIRECTORY=$DIR/run/gmux run -1 "$control" ps
    [ "$output" = "Cannot send command to MPS control daemon process" ]
    kill -CONT "$daemon"
    run -0 "$gmux" ls
}

@test "output that cannot be written is no success; a closed pipe needs no words" {
    run -0 "$gmux" run "$misbehave" limit
    export CUDA_MPS_PIPE_DIRECTORY=$DIR/run/gmux
    run -1 sh -c "'$gmux' ls > /dev/full"
    [ "$output" = "gmux ls: cannot write the output: No space left on device" ]
    run -1 sh -c "'$control' get_default_active_thread_percentage > /dev/full"
    [ "$output" = "gmux-control: cannot write the output: No space left on device" ]
    run -0 sh -c "'$control' get_default_active_thread_percentage 2>&1 | true"
    [ -z "$output" ]
    run -0 sh -c "'$gmux' ls 2>&1 | true"
    [ -z "$output" ]
}
