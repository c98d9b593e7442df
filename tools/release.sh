#!/bin/sh
# Packs a release into build/release-files: the command for Linux on x86-64 and arm64, the site with its documentation,
# Debian packages, Python wheels, the npm package, the changelog's section and checksums. After ./dev docs; needs g++-aarch64-linux-gnu,
# zlib1g-dev:arm64 and qemu-user-static. Ends with 1 when both commands do not say the same bytes.
#   sh tools/release.sh VERSION
set -eu
cd "$(dirname "$0")/.."
version=${1:?VERSION is missing}
stated=$(sed -n 's/^project(.*VERSION \([0-9.]*\).*/\1/p; s/^ *VERSION \([0-9.]*\)$/\1/p' CMakeLists.txt | head -n 1)
[ "$version" = "$stated" ] || { echo "release: found $version, CMakeLists.txt has $stated" >&2; exit 1; }
out=build/release-files
rm -rf "$out" && mkdir -p "$out"

for preset in static static-arm64; do
  cmake --preset "$preset" -DSERVECAST_COMMIT="$(git rev-parse --short=12 HEAD)" >/dev/null
  cmake --build "build/$preset" -j "$(nproc)" --target servecast
done
for file in presets/scenarios/*.json; do
  name=$(basename "$file" .json)
  build/static/servecast run "$name" >build/static/said.json
  qemu-aarch64-static build/static-arm64/servecast run "$name" >build/static-arm64/said.json
  cmp build/static/said.json build/static-arm64/said.json
done

# pack NAME PRESET: a folder with the command, as one file.
pack() {
  folder=build/$2/$1
  rm -rf "$folder" && mkdir -p "$folder"
  cp "build/$2/servecast" LICENSE NOTICE README.md "$folder/"
  "$3" "$folder/servecast"
  tar -C "build/$2" --sort=name --owner=0 --group=0 --numeric-owner --mtime="@$(git log -1 --format=%ct)" -czf "$out/$1.tar.gz" "$1"
}
pack "servecast-$version-linux-x86_64" static strip
pack "servecast-$version-linux-arm64" static-arm64 aarch64-linux-gnu-strip
sh tools/deb.sh "build/static/servecast-$version-linux-x86_64/servecast" amd64 "$version" "$out"
sh tools/deb.sh "build/static-arm64/servecast-$version-linux-arm64/servecast" arm64 "$version" "$out" qemu-aarch64-static
python3 tools/wheel/build.py "build/static/servecast-$version-linux-x86_64/servecast" "$version" manylinux2014_x86_64 "$out"
python3 tools/wheel/build.py "build/static-arm64/servecast-$version-linux-arm64/servecast" "$version" manylinux2014_aarch64 "$out"
tar -C web/dist --sort=name --owner=0 --group=0 --numeric-owner --mtime="@$(git log -1 --format=%ct)" -czf "$out/servecast-$version-site.tar.gz" .
./dev build node-command
node npm/tools/build.mjs
npm pack ./build/npm --pack-destination "$out" >/dev/null && mv "$out/servecast-$version.tgz" "$out/servecast-$version-npm.tar.gz"
awk -v head="## $version" 'index($0, "## ") == 1 { on = ($0 == head); next } on' CHANGELOG.md >"$out/notes.md"
[ -s "$out/notes.md" ] || { echo "release: CHANGELOG.md has no section $version" >&2; exit 1; }
(cd "$out" && sha256sum ./*.tar.gz ./*.deb ./*.whl >SHA256SUMS)
ls -l "$out"
