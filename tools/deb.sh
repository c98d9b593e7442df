#!/bin/sh
# Writes a Debian package of the command, with its manual page and completions; prints its name.
#   sh tools/deb.sh COMMAND ARCHITECTURE VERSION FOLDER [RUNNER]
# COMMAND is static, so the package depends on nothing. RUNNER starts a command of another architecture.
set -eu
command=$1 architecture=$2 version=$3 folder=$4 runner=${5:-}
here=$(cd "$(dirname "$0")/.." && pwd)
package=$(mktemp -d)
trap 'rm -rf "$package"' EXIT
share=$package/usr/share
mkdir -p "$package/DEBIAN" "$package/usr/bin" "$share/doc/servecast" "$share/man/man1" \
  "$share/bash-completion/completions" "$share/zsh/vendor-completions" "$share/fish/vendor_completions.d"
chmod 755 "$package"
cp "$command" "$package/usr/bin/servecast"
chmod 755 "$package/usr/bin/servecast"
cat "$here/LICENSE" "$here/NOTICE" >"$share/doc/servecast/copyright"
says() { $runner "$package/usr/bin/servecast" "$@"; }
says man | gzip -9n >"$share/man/man1/servecast.1.gz"
says completion bash >"$share/bash-completion/completions/servecast"
says completion zsh >"$share/zsh/vendor-completions/_servecast"
says completion fish >"$share/fish/vendor_completions.d/servecast.fish"
cat >"$package/DEBIAN/control" <<EOF
Package: servecast
Version: $version
Architecture: $architecture
Maintainer: The Servecast authors
Section: utils
Priority: optional
Installed-Size: $(du -sk "$package/usr" | cut -f 1)
Description: forecast how an LLM serving deployment behaves
 Simulates the scheduler, the KV cache and every step of an inference server,
 and says whether a deployment meets its latency targets, how much load it
 takes, what limits it and what it costs.
EOF
dpkg-deb --root-owner-group -Zxz --build "$package" "$folder/servecast_${version}_$architecture.deb" >/dev/null
echo "$folder/servecast_${version}_$architecture.deb"
