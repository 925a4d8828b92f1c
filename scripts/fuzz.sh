#!/bin/sh
# Fuzzes:  scripts/fuzz.sh [SECONDS [TARGET...]]     default: every target of fuzz/ for 60 seconds
#
# With RUNS=N a target ends after N executions, if that comes first.
#
# Builds with clang, AddressSanitizer and UndefinedBehaviorSanitizer in build-fuzz. What is found goes to
# build-fuzz/found/TARGET (new inputs) and build-fuzz/crashes; nothing in the tree changes. Keep the smallest new inputs
# with:  build-fuzz/fuzz/fuzz_TARGET -merge=1 fuzz/corpus/TARGET build-fuzz/found/TARGET
set -eu
cd "$(dirname "$0")/.."
seconds=${1:-60}
[ $# -eq 0 ] || shift
build=build-fuzz
[ -f $build/build.ninja ] || CC="${CC:-clang-14}" meson setup $build -Dfuzz=true -Dtests=disabled -Dbench=false \
    -Db_sanitize=address,undefined -Db_lundef=false --buildtype=debugoptimized >/dev/null
ninja -C $build --quiet fuzzers
[ $# -gt 0 ] || set -- $(ls $build/fuzz/*.args | sed 's:.*/fuzz_\(.*\)\.args:\1:')
mkdir -p $build/crashes $build/cache
export FUZZ_CACHE="$PWD/$build/cache" # of code that fuzz_touch has had compiled
# Shallow stacks of allocations and a small quarantine double the rate; with the entropic schedule, ptx spends most of its
# time on choosing what to mutate.
export LSAN_OPTIONS="suppressions=$PWD/scripts/lsan.supp:print_suppressions=0"
export UBSAN_OPTIONS="${UBSAN_OPTIONS:-halt_on_error=1:print_stacktrace=1}"
export ASAN_OPTIONS="${ASAN_OPTIONS:-detect_stack_use_after_return=0:malloc_context_size=2:quarantine_size_mb=8}"
for target; do
    mkdir -p "$build/found/$target"
    echo "== $target, $seconds s"
    # shellcheck disable=SC2046 # several words, written by fuzz/meson.build
    "$build/fuzz/fuzz_$target" $(cat "$build/fuzz/fuzz_$target.args") -max_total_time="$seconds" -runs="${RUNS:--1}" -timeout=10 -entropic=0 \
        -print_final_stats=1 -artifact_prefix="$build/crashes/$target-" "$build/found/$target" "fuzz/corpus/$target"
done
