#!/bin/sh
# What every change is checked with:  scripts/check.sh BUILD     (make check; with CHECK=short .ci/run)
#
# Lint, messages of new commits, a build with gcc, the suite; a build with clang, whose warnings differ, with
# AddressSanitizer and UndefinedBehaviorSanitizer, and under these what parses, keeps books or shares memory. The long
# form runs all of the suite under them, and what has threads under ThreadSanitizer. Fuzz corpora are part of the suite.
# Everything runs, whatever fails; the last line counts the steps and the tests of all suites.
set -u
cd "$(dirname "$0")/.." || exit
build=$1
results=

step() { # NAME COMMAND...
    name=$1
    shift
    echo "== $name"
    started=$(date +%s) status=0
    "$@" || status=$?
    echo "== $name: $([ $status = 0 ] && echo passed || echo FAILED), $(($(date +%s) - started)) s"
    results="$results $name=$status"
}

configure() { # DIR CC MESON OPTIONS...
    dir=$1 cc=$2
    shift 2
    [ -f "$dir/build.ninja" ] || CC=$cc meson setup "$dir" "$@" >/dev/null
}

compile() { # the same
    configure "$@" && ninja -C "$1" --quiet
}

suite() { # DIR MESON TEST OPTIONS...
    dir=$1
    shift
    step "$dir" meson test -C "$dir" --print-errorlogs --num-processes 2 --timeout-multiplier 3 "$@"
    results="${results% *} $dir/meson-logs/testlog.junit.xml=$status" # its tests are counted, not the step
}

export ASAN_OPTIONS=detect_stack_use_after_return=0
export LSAN_OPTIONS="suppressions=$PWD/scripts/lsan.supp:print_suppressions=0"
debug=--buildtype=debugoptimized
# What sanitizers find something in; schedulers and containers start programs that are built without them.
asan='--no-suite engines'
if [ "${CHECK:-long}" = short ]; then
    asan=
    for name in client control device fatbin fuzz loader server transport unit wire; do asan="$asan --suite $name"; done
fi

step lint scripts/lint.py
step commits scripts/commits.sh
step gcc compile "$build" gcc
suite "$build"
step clang compile build-asan clang-14 -Db_sanitize=address,undefined -Db_lundef=false -Ddebug=true -Doptimization=1
# shellcheck disable=SC2086 # options
suite build-asan $asan
if [ "${CHECK:-long}" = long ]; then
    step tsan configure build-tsan gcc -Db_sanitize=thread $debug # meson test builds what the suite needs
    suite build-tsan --suite threads
fi
# shellcheck disable=SC2086 # a list of results
exec python3 scripts/count-tests.py $results
