#!/bin/bash
# make deb-try: installs the packages in a new Debian 12 that is thrown away, and uses, upgrades, removes and purges them:
# deb-try.sh BUILD. Needs root and mmdebstrap; MIRROR: as mmdebstrap has it, by default what this machine uses.
set -euo pipefail
if [ "${1:-}" != --inside ]; then
    debs=$(cd "$1/deb" && pwd)
    self=$(readlink -f "$0")
    for mirror in ${MIRROR:-/etc/apt/sources.list.d/debian.sources /etc/apt/sources.list http://deb.debian.org/debian}; do
        [ ! -e "$mirror" ] || break
    done
    # shellcheck disable=SC2016 # $1 is mmdebstrap's: the new root
    mmdebstrap --quiet --variant=apt --include=ca-certificates,gcc,libc6-dev,procps \
        --customize-hook="mkdir \"\$1/debs\" && cp '$debs'/*.deb \"\$1/debs\" && cp '$self' \"\$1/debs/try\"" \
        --customize-hook='chroot "$1" /debs/try --inside' bookworm /dev/null "$mirror"
    exit
fi

# --- inside the new system, which has no service manager ---------------------------------------------------------------------

cd /debs
export DEBIAN_FRONTEND=noninteractive
library=/usr/lib/x86_64-linux-gnu/gmux
trap 'echo "deb-try: failed at line $LINENO" >&2' ERR

step() {
    echo "== $*"
}
install() {
    apt-get install -y -qq --no-install-recommends "$@" >/dev/null
}
# Which libcuda.so.1 a program gets that nobody told anything.
found() {
    ldconfig -p | sed -n 's/.*libcuda.so.1 .*=> //p' | head -n 1
}

step "install, and a program built with the header"
install ./gmux_*.deb ./gmux-soft_*.deb ./libcuda-gmux_*.deb ./libcudart-gmux_*.deb ./gmux-dev_*.deb ./gmux-cc_*.deb ./gmux-doc_*.deb ./gmux-mps_*.deb
cp -r /usr/share/doc/gmux/examples .
find examples -name '*.gz' -exec gunzip {} +
for example in vecadd nbody; do
    cat >ptx.c <<END
__asm__(".section .rodata\n.global ex_ptx\nex_ptx: .incbin \"examples/$example/kernel.ptx\"\n.byte 0\n");
END
    gcc -O2 -I/usr/include/gmux -Iexamples/common examples/$example/*.c examples/common/*.c ptx.c -L$library -lcuda -lm -o $example
done
step "gmux run, without a daemon of the system"
gmux run ./vecadd | grep "all correct"
step "CUDA C++ without a toolkit"
cat >square.cu <<'END'
#include <cstdio>
__global__ void square(int *v) { v[threadIdx.x] *= v[threadIdx.x]; }
int main()
{
    int *v;
    cudaMallocManaged(&v, 3 * sizeof(int));
    for (int i = 0; i < 3; i++)
        v[i] = i + 2;
    square<<<1, 3>>>(v);
    cudaDeviceSynchronize();
    printf("%d %d %d\n", v[0], v[1], v[2]);
}
END
gmux-cc square.cu -o square
gmux run ./square | grep -x "4 9 16"
gmux stop
step "the daemon, and the administrator's choice who finds the library"
/usr/bin/nvidia-cuda-mps-control -d
gmux run --share 33 ./vecadd | grep "all correct"
[ "$(found)" = "" ]
update-alternatives --quiet --set libcuda-gmux /usr/share/libcuda-gmux/for-all-programs.conf
ldconfig
[ "$(found)" = $library/libcuda.so.1 ]
./vecadd | grep "all correct"
update-alternatives --quiet --auto libcuda-gmux
ldconfig
[ "$(found)" = "" ]

step "upgrade under a program that runs"
LD_LIBRARY_PATH=$library ./nbody -benchmark -numbodies=1024 -iterations=1000000 >nbody.out &
until gmux ls | grep nbody; do :; done
daemon=$(cat /tmp/nvidia-mps/nvidia-cuda-mps-control.pid)
mkdir newer
for deb in gmux gmux-soft libcuda-gmux libcudart-gmux gmux-mps gmux-dev gmux-cc; do
    dpkg-deb -R ${deb}_*_amd64.deb tree
    sed -i -E "s/(0\.1\.0)/\1+1/g" tree/DEBIAN/control
    dpkg-deb -b tree newer/${deb}.deb >/dev/null
    rm -r tree
done
install ./newer/*.deb
[ "$(cat /tmp/nvidia-mps/nvidia-cuda-mps-control.pid)" = "$daemon" ]
readlink "/proc/$daemon/exe" | grep -x /usr/bin/gmux-control # not the deleted one
until gmux ls | grep nbody; do :; done
LD_LIBRARY_PATH=$library ./vecadd | grep "all correct"
kill %1
echo quit | gmux-control

step "remove and purge"
apt-get remove -y -qq gmux gmux-soft gmux-mps gmux-cc gmux-dev gmux-doc libcudart-gmux libcuda-gmux >/dev/null
[ ! -e /usr/bin/gmux ] && [ ! -e $library ]
apt-get purge -y -qq gmux libcuda-gmux >/dev/null
left=$(find / -xdev \( -path /proc -o -path /sys -o -path /debs -o -path /var/lib -o -path /var/log -o -path /var/cache -o -path /tmp -o -path /root \) -prune -o \
    -name '*gmux*' -print)
[ -z "$left" ] || {
    echo "left behind: $left"
    exit 1
}
echo "packages: all well"
