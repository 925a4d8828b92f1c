# Programs in the background, as the tests of the daemon and scripts/gpu-check.sh need them. Nothing here waits for time to pass, only
# for things to happen, with a bound; but for span, in which something is measured. DIR: a directory of one's own; CLIENTS: an array, which gets their process ids.

# until_true TENTHS COMMAND...: true as soon as the command is, false after that many tenths of a second; GMUX_PATIENCE
# times as many on a machine that has much else to do.
until_true() {
    local end=$((${EPOCHREALTIME//[!0-9]/} + $1 * 100000 * ${GMUX_PATIENCE:-1}))
    shift
    until "$@"; do
        [ "${EPOCHREALTIME//[!0-9]/}" -lt "$end" ] || return 1
        read -rt 0.02 <> <(:) || true
    done
}

# span TENTHS: lets so many tenths of a second pass.
span() {
    read -rt "$(($1 / 10)).$(($1 % 10))" <> <(:) || true
}

# A process that has ended, whether or not its parent has looked.
gone() {
    ! grep -q '^State:[[:space:]]*[^ZX[:space:]]' "/proc/$1/status" 2>/dev/null
}

# start_program NAME PROGRAM [ARGUMENT]...: in the background; its process id in the variable NAME, its output in
# $DIR/NAME.out, a descriptor to write to it in NAME_in.
start_program() {
    local name=$1 fd
    shift
    rm -f "$DIR/$name.in"
    mkfifo "$DIR/$name.in"
    exec {fd}<>"$DIR/$name.in"
    : > "$DIR/$name.out"
    "$@" < "$DIR/$name.in" > "$DIR/$name.out" 2>&1 3>&- &
    printf -v "$name" %s $!
    printf -v "${name}_in" %s "$fd"
    CLIENTS+=($!)
}

# The program's last line is this, within 20 s.
last_line_is() {
    [ "$(tail -n 1 "$DIR/$1.out")" = "$2" ]
}

program_says() {
    until_true 200 last_line_is "$1" "$2" || {
        echo "$1 says: $(cat "$DIR/$1.out")"
        return 1
    }
}

# Asks it to end, with a line. (Its input does not end: programs started later have our end of it, too.)
end_program() {
    local fd=${1}_in
    echo end >&"${!fd}"
    ends_well "$1"
}

# It ends by itself, with status 0, within 30 s.
ends_well() {
    until_true 300 gone "${!1}" || {
        echo "$1 does not end"
        return 1
    }
    wait "${!1}"
}
