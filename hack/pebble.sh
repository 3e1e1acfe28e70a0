#!/bin/sh
# Prints where the ACME authority of the tests is, Pebble, built once from the version that hack/tools/pebble pins.
# Status 75 means that it can't be built here.
set -eu
cd "$(dirname "$0")/tools/pebble"

cache=${XDG_CACHE_HOME:-${HOME:-/root}/.cache}/paictl/tools
version=$(sed -n 's|.*github.com/letsencrypt/pebble/v2 \(v[^ ]*\).*|\1|p' go.mod)
tool=$cache/pebble-$version-$(go env GOVERSION)
if [ ! -x "$tool" ]; then
	echo "building pebble $version, once" >&2
	mkdir -p "$cache"
	CGO_ENABLED=0 go build -trimpath -o "$tool.new" github.com/letsencrypt/pebble/v2/cmd/pebble || exit 75
	mv "$tool.new" "$tool"
fi
printf '%s\n' "$tool"
