#!/bin/sh
# Runs every libFuzzer target for T seconds from its checked-in corpus. New inputs stay in build-fuzz/corpus.
set -eu
cd "$(dirname "$0")/.."
seconds=${1:-60}
[ -d build-fuzz ] || CC=clang meson setup build-fuzz -Dfuzz=true -Db_sanitize=address,undefined -Db_lundef=false \
    -Dtests=disabled --buildtype=debugoptimized >/dev/null
ninja -C build-fuzz --quiet
for target in build-fuzz/fuzz/fuzz_*; do
    [ -x "$target" ] && [ -f "$target" ] || continue
    name=${target##*/fuzz_}
    mkdir -p "build-fuzz/corpus/$name"
    dict=
    [ -f "fuzz/$name.dict" ] && dict="-dict=fuzz/$name.dict"
    echo "== $name, $seconds s"
    # shellcheck disable=SC2086 # absent or one word
    "$target" $dict -max_total_time="$seconds" -timeout=10 -print_final_stats=1 "build-fuzz/corpus/$name" \
        "fuzz/corpus/$name"
done
