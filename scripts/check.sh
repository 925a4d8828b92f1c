#!/bin/sh
# Builds with gcc and clang, then runs the suite under AddressSanitizer + UBSan and the threaded parts under
# ThreadSanitizer. Fuzz corpora are replayed by the ordinary suite, so the sanitizer runs replay them as well.
set -eu
cd "$(dirname "$0")/.."

setup() { # DIR CC OPTIONS...
    dir=$1 cc=$2
    shift 2
    if [ ! -d "$dir" ]; then
        CC=$cc meson setup "$dir" "$@" >/dev/null
    fi
}

echo "== clang build"
setup build-clang clang -Dtests=disabled
ninja -C build-clang --quiet
echo "== ASan + UBSan"
setup build-asan gcc -Db_sanitize=address,undefined --buildtype=debugoptimized
ninja -C build-asan --quiet
ASAN_OPTIONS=detect_stack_use_after_return=0 LSAN_OPTIONS="suppressions=$PWD/scripts/lsan.supp:print_suppressions=0" \
    scripts/test.sh build-asan
echo "== TSan"
setup build-tsan gcc -Db_sanitize=thread --buildtype=debugoptimized # meson test builds what this suite needs
meson test -C build-tsan --suite threads --print-errorlogs
