# Many clients come and go, and the daemon is killed again and again: nothing grows. `make endure` does it ten thousand and a hundred
# times.

load helper

setup() {
    real_setup
}

teardown() {
    common_teardown
}

@test "400 clients and 5 dead daemons: memory, descriptors and files are as before" {
    [ "${GMUX_SANITIZE:-none}" = none ] || skip "a sanitizer keeps freed memory"
    [ "$(id -u)" = 0 ] || skip "needs root"
    run -0 "$GMUX_SOURCE/bench/operate.py" "$GMUX_BUILD" --cycles 400 --kills 5
    echo "$output"
}
