#!/bin/sh
# Installs each file of a release by itself in a bare Debian 12, and runs it: the .deb, the wheel, the npm package, the library
# with the example in C++. After tools/release.sh, as root; needs debootstrap. Ends with 1 when one does not give the fingerprint
# of the command that was built.
#   sh tools/installed.sh [MIRROR]
set -eu
cd "$(dirname "$0")/.."
files=$(pwd)/build/release-files
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
debootstrap --variant=minbase bookworm "$work/bare" "$@" >"$work/log" || { tail -n 20 "$work/log" >&2; exit 1; }
cp /etc/resolv.conf "$work/bare/etc/resolv.conf"
what='run llama-3.1-8b-h100-chat --once --fields fingerprint'
# shellcheck disable=SC2086
expected=$(build/static/servecast $what)

# tried NAME FILE COMMANDS: in a root of its own, with FILE there; the last line that they print is the fingerprint.
tried() {
  cp -a "$work/bare" "$work/$1"
  cp -a "$2" "$work/$1/root/"
  said=$(chroot "$work/$1" sh -euc "cd /root; export DEBIAN_FRONTEND=noninteractive; $3" 2>"$work/log" | tail -n 1) ||
    { cat "$work/log" >&2; exit 1; }
  [ "$said" = "$expected" ] || { echo "installed: $1 says $said, expected $expected" >&2; cat "$work/log" >&2; exit 1; }
  echo "ok $1"
  rm -rf "${work:?}/$1"
}
get='apt-get update -qq >/dev/null; apt-get install -y -qq --no-install-recommends'
tried deb "$files"/servecast_*_amd64.deb "dpkg -i ./*.deb >/dev/null; servecast $what"
tried archive "$files"/servecast-*-linux-x86_64.tar.gz "tar xzf ./*.gz; servecast-*/servecast $what"
tried wheel "$files"/servecast-*-manylinux2014_x86_64.whl \
  "$get python3-venv >/dev/null; python3 -m venv v; v/bin/pip install -q --no-index ./*.whl; v/bin/servecast $what"
tried npm "$files"/servecast-*-npm.tar.gz \
  "$get npm >/dev/null; npm install --silent ./*.gz >/dev/null; npx servecast $what"
git archive --prefix=servecast/ -o "$work/source.tar" HEAD
tried library "$work/source.tar" "tar xf source.tar; cd servecast; $get cmake make g++ nlohmann-json3-dev libfmt-dev zlib1g-dev >/dev/null
  cmake --preset release >/dev/null; cmake --build build/release -j 2 --target servecast >/dev/null; cmake --install build/release --prefix /usr/local >/dev/null
  cmake -S docs/examples/cpp -B build/example >/dev/null; cmake --build build/example >/dev/null
  build/example/forecast 40 | sed -n 's/.*\"fingerprint\": *\"\([0-9a-f]*\)\".*/\1/p' | head -n 1"
