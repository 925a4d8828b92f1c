# Groups and guarantees: programs of the software device that have a share and memory together, and what each has at least.

load helper

setup() {
    real_setup
    gmux=$GMUX_BUILD/src/cli/gmux
    export GMUX_SOFT_WORKERS=2
    start_daemon
}

teardown() {
    common_teardown
}

# field PID NAME: of `gmux ls`, by the heading.
field() {
    "$gmux" ls -f csv | awk -F, -v pid="$1" -v name="$2" \
        'NR == 1 { for (i = 1; i <= NF; i++) if ($i == name) column = i } $1 == pid { print $column; exit }'
}

is_active() {
    [ "$(field "$1" STATE)" = active ]
}

# busy NAME OPTION...: n-body under `gmux run`, active.
busy() {
    local name=$1
    shift
    start_program "$name" "$gmux" run "$@" -- "$GMUX_BUILD/examples/nbody" -benchmark -numbodies=4096 -iterations=1000000
    until_true 200 is_active "${!name}"
}

@test "run --group, ls, set GROUP: what is set holds for all who are in it, and for who comes" {
    busy one --group train
    busy two --group train --guarantee 10
    [ "$(field "$one" GROUP) $(field "$one" GUARANTEE) $(field "$one" SHARE)" = "train 0.0 100.0" ]
    [ "$(field "$two" GROUP) $(field "$two" GUARANTEE)" = "train 10.0" ]
    run -0 "$gmux" ls --groups -f csv,noheader
    [ "$output" = "train,$(id -un),2,100.0,0.0,-" ]
    run -0 "$gmux" set train share=40 guarantee=20% memory=1G
    run -0 "$gmux" ls --groups -f csv,noheader
    [ "$output" = "train,$(id -un),2,40.0,20.0,1G" ]
    [ "$(field "$one" SHARE) $(field "$two" SHARE) $(field "$one" LIMIT)" = "40.0 40.0 $((1 << 30))" ]
    busy three --group train
    [ "$(field "$three" SHARE) $(field "$three" LIMIT)" = "40.0 $((1 << 30))" ]
    # Out of the group, and into another.
    run -0 "$gmux" set "$one" group= guarantee=5
    [ "$(field "$one" GROUP) $(field "$one" SHARE) $(field "$one" GUARANTEE)" = "- 100.0 5.0" ]
    run -0 "$gmux" set "$one" group=other
    run -0 "$gmux" set group:other share=7
    [ "$(field "$one" GROUP) $(field "$one" SHARE)" = "other 7.0" ]
    run -0 "$gmux" set train share= guarantee= memory=
    [ "$(field "$two" SHARE)" = 100.0 ]
    # What nothing is set for ends with its last program.
    for name in two three; do
        kill -9 "${!name}"
        until_true 100 gone "${!name}"
    done
    left() { [ "$("$gmux" ls --groups -f csv,noheader)" = "other,$(id -un),1,7.0,0.0,-" ]; }
    until_true 100 left
}

# How many MiB a program gets before it is refused, in steps of 16.
fills() {
    local name=$1
    shift
    start_program "$name" "$gmux" run "$@" "$misbehave" fill
    is_full() { grep -q '^2 after' "$DIR/$name.out"; }
    until_true 200 is_full
    mib=$(sed -n 's/^2 after \([0-9]*\) MiB/\1/p' "$DIR/$name.out")
}

@test "a group's memory is for all of its programs together" {
    run -0 "$gmux" set group:train memory=104M
    fills one --group train --memory 70M
    [ "$mib" = 64 ]
    fills two --group train
    [ "$mib" = 32 ]
    fills three --memory 134M
    [ "$mib" = 128 ]
    run -0 "$gmux" set train memory=168M
    fills four --group train
    [ "$mib" = 64 ]
    kill -9 "$one"
    until_true 100 gone "$one"
    fills five --group train --memory 54M
    [ "$mib" = 48 ]
}

@test "a daemon that is killed: groups, guarantees, limits of users and defaults hold under the next one" {
    busy one --group train --guarantee 10
    run -0 "$gmux" set train share=40 memory=1G
    run -0 "$gmux" set "user:$(id -u)" share=70
    run -0 "$gmux" set group:later share=5
    run -0 "$control" set_default_active_thread_percentage 90
    kill -9 "$daemon"
    until_true 100 gone "$daemon"
    start_daemon
    until_true 100 is_active "$one"
    [ "$(field "$one" GROUP) $(field "$one" GUARANTEE) $(field "$one" SHARE)" = "train 10.0 40.0" ]
    run -0 "$gmux" ls --groups -f csv,noheader
    [ "${#lines[@]}" = 2 ]
    [[ $output == *"train,$(id -un),1,40.0,0.0,1G"* && $output == *"later,$(id -un),0,5.0,0.0,-"* ]]
    run -0 "$gmux" set train share=
    [ "$(field "$one" SHARE)" = 70.0 ]
    run -0 "$control" get_default_active_thread_percentage
    [ "$output" = 90.0 ]
    run -0 "$control" restart
    until_true 100 is_active "$one"
    [ "$("$control" get_default_active_thread_percentage)" = 90.0 ]
    # The end of a daemon that is told to end is the end of all that.
    kill -9 "$one"
    run -0 "$gmux" stop
    [ ! -e "$DIR/pipe/control_state" ]
    start_daemon
    [ "$("$control" get_default_active_thread_percentage)" = 100.0 ]
    run -0 "$gmux" ls --groups -f csv,noheader
    [ -z "$output" ]
}

@test "groups are their users': same names, different groups; root's commands name the user" {
    two_users "$GMUX_BUILD/examples/vecadd"
    busy one "--group" train
    start_program two "${a[@]}" "$gmux" run --group train -- "$GMUX_BUILD/examples/nbody" -benchmark -numbodies=4096 -iterations=1000000
    until_true 200 is_active "$two"
    run -0 "${a[@]}" "$gmux" set train share=30
    [ "$(field "$one" SHARE) $(field "$two" SHARE)" = "100.0 30.0" ]
    run -0 "$gmux" set 12345/train share=20
    [ "$(field "$one" SHARE) $(field "$two" SHARE)" = "100.0 20.0" ]
    run -1 "${a[@]}" "$gmux" set root/train share=1
    [ "$output" = "gmux set: Group root/train is another user's" ]
    run -0 "${a[@]}" "$gmux" ls --groups -f csv,noheader
    [ "$output" = "train,12345,1,20.0,0.0,-" ]
    run -0 "${b[@]}" "$gmux" ls -f csv
    [[ $output != *train* ]]
}

@test "-M: guarantees are root's to give" {
    two_users "$GMUX_BUILD/examples/vecadd"
    "$control" quit -t 0
    start_daemon -M
    start_program two "${a[@]}" "$gmux" run -g 90 -- "$GMUX_BUILD/examples/nbody" -benchmark -numbodies=4096 -iterations=1000000
    until_true 200 is_active "$two"
    [ "$(field "$two" GUARANTEE)" = 0.0 ]
    has_line control "Client $two from user 12345 asks for a guarantee, which is root's to give"
    for words in "set $two guarantee=5" "set group:train guarantee=5"; do
        run -1 "${a[@]}" "$gmux" $words
        [ "$output" = "gmux set: Users share one server: guarantees are root's to give" ]
    done
    run -0 "$gmux" set "$two" guarantee=5
    [ "$(field "$two" GUARANTEE)" = 5.0 ]
    run -0 "${a[@]}" "$gmux" set "$two" share=50 # and may be kept
    [ "$(field "$two" GUARANTEE)" = 5.0 ]
}

@test "a device without guarantees: said, not swallowed" {
    "$control" quit -t 0
    export GMUX_DEVICE=null
    start_daemon
    start_program one "$gmux" run -g 30 "$misbehave" fill
    until_true 200 is_active "$one"
    [ "$(field "$one" GUARANTEE)" = 0.0 ]
    wait_log control "Client $one asks for a guarantee, and the device gives none"
    run -1 "$gmux" set "$one" guarantee=40
    [ "$output" = "gmux set: The device gives no guarantees" ]
    kill -9 "$one"
}

@test "mistakes about groups and guarantees" {
    for words in "set train share=3" "set group:train share=0" "set group:train priority=low" "set group:train group=x" "set no-such-user/train share=3" "set / share=3" \
        "set group: share=3" "set a/b/c share=3" "set user:0 guarantee=3" "set -x share=3" "set tr@in share=3" \
        "run --group 12 true" "run --group a/b true" "run --guarantee 101 true" "run -g x true" "run --group -x true"; do
        run -1 "$gmux" $words
        [ "${#lines[@]}" = 1 ] && [[ $output == "gmux "*": "* ]] || {
            echo "gmux $words: $output"
            false
        }
    done
    GMUX_GROUP='a b' run "$gmux" run "$GMUX_BUILD/examples/vecadd"
    [ "$status" != 0 ]
    [[ $output == *"GMUX_GROUP is no name"* ]]
    run -0 "$gmux" ls --groups -f csv,noheader
    [ -z "$output" ]
}
