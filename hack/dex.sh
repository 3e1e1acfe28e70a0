#!/bin/sh
# Prints where the issuer of OpenID Connect of the tests is, Dex, built once from the version that hack/tools/dex pins.
# Status 75 means that it can't be built here.
set -eu
cd "$(dirname "$0")/tools/dex"

cache=${XDG_CACHE_HOME:-${HOME:-/root}/.cache}/paictl/tools
version=$(sed -n 's|.*github.com/dexidp/dex \(v[^ ]*\).*|\1|p' go.mod)
tool=$cache/dex-$version-$(cksum <main.go | cut -d' ' -f1)-$(go env GOVERSION)
if [ ! -x "$tool" ]; then
	echo "building dex $version, once" >&2
	mkdir -p "$cache"
	CGO_ENABLED=0 go build -trimpath -o "$tool.new" . || exit 75
	mv "$tool.new" "$tool"
fi
printf '%s\n' "$tool"
