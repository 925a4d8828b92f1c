#!/bin/sh
# Runs the whole suite and ends with one line that test counters read.
set -u
build=$1
status=0
meson test -C "$build" --print-errorlogs --num-processes 2 --timeout-multiplier 3 || status=$?
exec python3 "$(dirname "$0")/count-tests.py" "$build/meson-logs/testlog.junit.xml=$status"
