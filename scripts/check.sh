#!/bin/sh
# What every change is checked with:  scripts/check.sh BUILD     (make check; with LONG=no .ci/run)
#
# Lint, messages of new commits, the suite in a build of gcc's, and the suite in a build of clang's with
# AddressSanitizer and UndefinedBehaviorSanitizer, in which a finding ends the program. With LONG=no that is the part of
# the suite that takes a few minutes; otherwise it is all of it, and what has threads runs under ThreadSanitizer, too.
# Fuzz corpora are replayed by the suites. Everything runs, whatever fails; the last line counts the steps and the tests
# of all suites.
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

# As suite() does with meson's limits: how long the shell's tests wait for what has to happen.
export GMUX_PATIENCE=3

export ASAN_OPTIONS=detect_stack_use_after_return=0
export UBSAN_OPTIONS=halt_on_error=1:print_stacktrace=1
export LSAN_OPTIONS="suppressions=$PWD/scripts/lsan.supp:print_suppressions=0"
# Names for the addresses in clang's reports. LLVM 19 is there for the compiler of kernels, in any case.
export ASAN_SYMBOLIZER_PATH=/usr/lib/llvm-19/bin/llvm-symbolizer
export UBSAN_SYMBOLIZER_PATH=$ASAN_SYMBOLIZER_PATH

# What LONG=no runs under clang's sanitizers. Of the other suites it takes the tests that are in `sanitized`, too:
#   ptx, texture, jit    nearly all of their time is LLVM's, which has no sanitizers, nor has the code that it makes
#   e2e, soak            long, and of code that the others reach
#   cudart               programs without sanitizers cannot load a library with them
#   gen, engines, gpu    Python; other people's programs; a GPU
short=
for name in api cli client control device executor fatbin fault fuzz loader sanitized server soft transport unit wire; do
    short="$short --suite $name"
done

step lint scripts/lint.py
step commits scripts/commits.sh
step gcc compile "$build" gcc
suite "$build"
step clang compile build-sanitized clang-14 -Db_sanitize=address,undefined -Db_lundef=false -Doptimization=1 \
    -Ddebug=false -Dc_args=-gline-tables-only
if [ "${LONG:-yes}" = yes ]; then
    suite build-sanitized
    step tsan configure build-tsan gcc -Db_sanitize=thread --buildtype=debugoptimized # meson test builds what it needs
    suite build-tsan --suite threads
else
    # shellcheck disable=SC2086 # a list of options
    suite build-sanitized $short
fi
# shellcheck disable=SC2086 # a list of results
exec python3 scripts/count-tests.py $results
