#!/bin/sh
# What every change is checked with:  scripts/check.sh BUILD     (make check; with SANITIZERS=no .ci/run)
#
# Lint, messages of new commits, a build with clang, the suite, the suite under AddressSanitizer and
# UndefinedBehaviorSanitizer, and what has threads under ThreadSanitizer. Fuzz corpora are replayed by the suite, and so
# by the sanitizers' runs. Everything runs, whatever fails; the last line counts the steps and the tests of all suites.
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

# Two at a time, on two processors: with four, tests that bound how long others wait failed now and then.
suite() { # DIR MESON TEST OPTIONS...
    dir=$1
    shift
    step "$dir" meson test -C "$dir" --print-errorlogs --num-processes 2 --timeout-multiplier 3 "$@"
    results="${results% *} $dir/meson-logs/testlog.junit.xml=$status" # its tests are counted, not the step
}

export ASAN_OPTIONS=detect_stack_use_after_return=0
export LSAN_OPTIONS="suppressions=$PWD/scripts/lsan.supp:print_suppressions=0"
debug=--buildtype=debugoptimized

step lint scripts/lint.py
step commits scripts/commits.sh
step clang compile build-clang clang-14 -Dtests=disabled
step gcc compile "$build" gcc
suite "$build"
if [ "${SANITIZERS:-yes}" = yes ]; then
    step asan compile build-asan gcc -Db_sanitize=address,undefined $debug
    suite build-asan
    step tsan configure build-tsan gcc -Db_sanitize=thread $debug # meson test builds what the suite needs
    suite build-tsan --suite threads
fi
# shellcheck disable=SC2086 # a list of results
exec python3 scripts/count-tests.py $results
