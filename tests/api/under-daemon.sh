#!/bin/sh
# Runs the API tests as clients of a daemon of their own, one after the other and then several at once, and prints TAP:
# one line per program. Usage: under-daemon.sh CONTROL_PROGRAM TEST_PROGRAM...
set -u
control=$1
shift
dir=$(mktemp -d)
export CUDA_MPS_PIPE_DIRECTORY="$dir/pipe" CUDA_MPS_LOG_DIRECTORY="$dir/log"
mkdir -p "$dir/pipe" "$dir/log"
chmod 755 "$dir" # a test has processes of other users
"$control" -d || { echo "Bail out! the daemon does not start"; rm -rf "$dir"; exit 1; }
number=0
failed=0

report() { # STATUS NAME
    number=$((number + 1))
    if [ "$1" -eq 0 ]; then
        echo "ok $number - $2"
    else
        failed=1
        sed 's/^/# /' "$dir/$2.out"
        echo "not ok $number - $2"
    fi
}

echo "1..$(($# * 2))"
for program; do
    name=$(basename "$program")
    timeout 60 "$program" >"$dir/$name.out" 2>&1
    report $? "$name"
done
for program; do
    name=$(basename "$program")-together
    timeout 60 "$program" >"$dir/$name.out" 2>&1 &
    eval "pid_$(echo "$name" | tr -- - _)=$!"
done
for program; do
    name=$(basename "$program")-together
    eval "wait \$pid_$(echo "$name" | tr -- - _)"
    report $? "$name"
done
echo quit | timeout 20 "$control" || failed=1
rm -rf "$dir"
exit $failed
