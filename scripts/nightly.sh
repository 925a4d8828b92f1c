#!/bin/bash
# nightly.sh BUILD [CORPUS]: the software device compared with itself at length. Every PTX test, the examples, random
# kernels of many seeds and, with CORPUS, the PTX files of that directory run interpreted, compiled and changing over
# in between; random programs in CUDA C++, whose results the host computes, too; random programs of driver calls.
set -uo pipefail

build=$1 corpus=${2:-}
ptx=$build/tests/ptx
export GMUX_JIT=$(realpath "$build")/src/jit/gmux-jit
failed=0

step() {
    local name=$1
    shift
    echo "== $name"
    "$@" | sed '/^ok/d'
    [ "${PIPESTATUS[0]}" = 0 ] || { failed=$((failed + 1)); echo "== failed: $name"; }
}

step "cases" "$ptx/run" --tier=both tests/ptx/cases "$ptx/tables" "$ptx/matrices"
step "probes" "$ptx/run" --tier=both "$ptx/probes"
for isa in base v3; do
    step "compiled for $isa" "$ptx/run" --tier=both --isa=$isa tests/ptx/cases "$ptx/tables" "$ptx/matrices" "$ptx/probes"
done
step "compiled as large kernels are" "$ptx/run" --tier=both --large tests/ptx/cases "$ptx/tables" "$ptx/matrices" "$ptx/probes"
step "compiled with chains" "$ptx/run" --tier=both --chains tests/ptx/cases "$ptx/tables" "$ptx/matrices" "$ptx/probes"
step "examples" "$ptx/corpus" examples/*/kernel.ptx bench/kernel.ptx bench/kernel_set.ptx
step "random, interpreted" "$ptx/random_cases" --count="${COUNT:-2000}"
step "random, compiled" "$ptx/random_cases" --against=jit --count="${COUNT:-2000}"
step "random, compiled as large kernels are" "$ptx/random_cases" --against=jit --large --count="${COUNT:-2000}"
step "random, compiled with chains" "$ptx/random_cases" --against=jit --chains --count="${COUNT:-2000}"
step "random programs" tests/cudart/random_cuda.py "$build" --count="$((${COUNT:-2000} / 20))"
soft=(env CUDA_MPS_PIPE_DIRECTORY=/nonexistent GMUX_GENUINE_LIBCUDA=none GMUX_DEVICE=soft "$build/tests/api/random/random-calls")
step "random calls" "${soft[@]}" --count="${COUNT:-2000}"
step "random calls, also of what was destroyed" "${soft[@]}" --dead --count="${COUNT:-2000}"
if [ -n "$corpus" ]; then
    for file in "$corpus"/*.ptx; do
        step "$file" "$ptx/corpus" "$file"
    done
fi
echo "$failed steps failed"
[ $failed = 0 ]
