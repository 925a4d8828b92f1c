#!/bin/bash
# make test DEVICE=cuda: tests/frameworks/run.py and gpu-check.sh, both whatever the first says; fails if either does. The last line
# has the counts of both: gpu-test.sh BUILD
set -u
here=$(dirname "$(readlink -f "$0")")
# Programs to run instead, to try this script out.
frameworks=${FRAMEWORKS:-$here/../tests/frameworks/run.py}
check=${GPU_CHECK:-$here/gpu-check.sh}
out=$(mktemp)
trap 'rm -f "$out"' EXIT

"$frameworks" "$1" | tee "$out"
status=${PIPESTATUS[0]}
skipped=$(grep -cE '^ok .* # SKIP|^1\.\.0 # SKIP' "$out")
passed=$(($(grep -c '^ok ' "$out") - $(grep -cE '^ok .* # SKIP' "$out")))
failed=$(grep -cE '^not ok |^Bail out!' "$out")
[ "$status" -eq 0 ] || [ "$failed" -gt 0 ] || failed=1 # it died without saying anything

"$check" "$1" | tee "$out"
status=${PIPESTATUS[0]}
read -r -a counts < <(tail -n 1 "$out" | sed -nE 's/^([0-9]+) passed, ([0-9]+) failed, ([0-9]+) skipped$/\1 \2 \3/p')
passed=$((passed + ${counts[0]:-0}))
failed=$((failed + ${counts[1]:-0}))
skipped=$((skipped + ${counts[2]:-0}))
[ "$status" -eq 0 ] || [ "${counts[1]:-0}" -gt 0 ] || failed=$((failed + 1))

echo "$passed passed, $failed failed, $skipped skipped"
[ "$failed" -eq 0 ] && [ "$passed" -gt 0 ]
