#!/bin/sh
# Compiles the example kernels to PTX, beside their sources (checked in, so that building needs no clang 19).
set -eu
cd "$(dirname "$0")/.."
clang=${CLANG:-clang-19}
for cu in ${*:-examples/*/kernel.cu}; do
    "$clang" -x cuda --cuda-device-only --cuda-gpu-arch=sm_75 -nocudainc -nocudalib -Wno-unknown-cuda-version \
        -O3 -ffp-contract=fast -S "$cu" -o "${cu%.cu}.ptx"
    echo "${cu%.cu}.ptx"
done
