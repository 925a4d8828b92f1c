#!/bin/bash
# make deb: Debian packages of the tree as it is (packaging/debian), in BUILD/deb: deb.sh BUILD. Fails on what lintian finds.
set -euo pipefail
mkdir -p "$1/deb"
out=$(cd "$1/deb" && pwd)
cd "$(dirname "$(readlink -f "$0")")/.."
source=$out/source
trap 'rm -rf "$source"' EXIT

mkdir -p "$source/gmux"
git ls-files -z | xargs -0 cp --parents --no-dereference -t "$source/gmux"
cp -r packaging/debian "$source/gmux/debian"
(cd "$source/gmux" && dpkg-buildpackage -b -us -uc) >"$out/build.log" 2>&1 || {
    tail -n 40 "$out/build.log"
    exit 1
}
rm -f "$out"/*.deb
mv "$source"/*.deb "$out"
lintian --tag-display-limit 0 --fail-on error,warning "$out"/*.deb
ls -sh "$out"/*.deb
