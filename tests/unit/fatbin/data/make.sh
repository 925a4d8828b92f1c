#!/bin/sh
# Makes the images again (nvcc 13.0 made those that are checked in).
set -eu
cd "$(dirname "$0")"
for mode in none speed balance size; do
    nvcc -fatbin -Xfatbin --compress-mode=$mode -o $mode.fatbin plain.cu
done
nvcc -fatbin -gencode arch=compute_90,code=sm_90 -Xfatbin --compress-mode=size -o machine.fatbin plain.cu
nvcc -fatbin -gencode arch=compute_75,code=sm_75 -Xfatbin --compress-mode=size -o machine-75.fatbin plain.cu
nvcc -fatbin -Xfatbin --compress-mode=size -gencode arch=compute_75,code=sm_75 -gencode arch=compute_80,code=sm_80 \
    -gencode arch=compute_86,code=sm_86 -gencode arch=compute_90,code=sm_90 -gencode arch=compute_90a,code=sm_90a \
    -gencode arch=compute_100f,code=sm_100f -gencode arch=compute_75,code=compute_75 \
    -gencode arch=compute_90,code=compute_90 -o many.fatbin plain.cu
nvcc -fatbin -rdc=true -Xfatbin --compress-mode=size -arch=compute_75 -o relocatable.fatbin plain.cu
for name in kernels plain tables managed globals; do
    nvcc -cubin -arch=sm_90 -o $name.cubin $name.cu
done
ptxas -arch=sm_90 -o managed-bytes.cubin managed-bytes.ptx
nvcc -cubin -arch=sm_90 -rdc=true -o managed-words.cubin managed.cu # addresses in instructions
