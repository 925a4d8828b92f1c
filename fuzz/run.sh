#!/bin/sh
# Fuzzes:  fuzz/run.sh [SECONDS [TARGET...]]     default: every target for 60 seconds
#
# Builds with clang, AddressSanitizer and UndefinedBehaviorSanitizer in build-fuzz. What is found goes to
# build-fuzz/found/TARGET (new inputs worth keeping) and build-fuzz/crashes; nothing in the tree changes. Keep the
# smallest good inputs with:  build-fuzz/fuzz/fuzz_TARGET -merge=1 fuzz/corpus/TARGET build-fuzz/found/TARGET
set -eu
cd "$(dirname "$0")/.."
seconds=${1:-60}
[ $# -gt 0 ] && shift
build=build-fuzz
[ -f $build/build.ninja ] || CC="${CC:-clang}" meson setup $build -Dfuzz=true -Dbuildtype=debugoptimized \
    -Db_sanitize=address,undefined -Db_lundef=false -Dwerror=false >/dev/null
ninja -C $build
[ $# -gt 0 ] || set -- $(ls $build/fuzz/*.args | sed 's:.*/fuzz_\(.*\)\.args:\1:')
mkdir -p $build/crashes
status=0
for target; do
    mkdir -p "$build/found/$target"
    echo "== $target, $seconds s"
    # shellcheck disable=SC2046 # several words
    "$build/fuzz/fuzz_$target" $(cat "$build/fuzz/fuzz_$target.args") -max_total_time="$seconds" -print_final_stats=1 \
        -artifact_prefix="$build/crashes/$target-" "$build/found/$target" "fuzz/corpus/$target" 2>&1 | tail -12
    ls $build/crashes/"$target"-* >/dev/null 2>&1 && status=1
done
exit $status
