#!/bin/sh
# Checks ring.pml with Spin: right with the fences, and wrong without them. Skips (77) where there is no Spin.
set -eu
model=$(realpath "$1")
command -v spin >/dev/null || exit 77
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"

# Prints the number of errors found with the given preprocessor options.
errors()
{
    spin "$@" -a "$model" >/dev/null
    cc -O2 -w -DSAFETY -DREACH -o pan pan.c
    ./pan -m100000 | sed -n 's/.*errors: \([0-9]*\).*/\1/p'
}

with=$(errors)
without=$(errors -DNO_FENCE)
echo "with fences: $with errors; without: $without"
[ "$with" = 0 ] && [ "$without" != 0 ]
