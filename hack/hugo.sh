#!/bin/sh
# Prints the path of Hugo, built once from the version that hack/tools/hugo pins.
# Status 75 means that it can't be built here.
set -eu
cd "$(dirname "$0")/tools/hugo"

cache=${XDG_CACHE_HOME:-${HOME:-/root}/.cache}/paictl/tools
version=$(sed -n 's|.*github.com/gohugoio/hugo \(v[^ ]*\).*|\1|p' go.mod)
tool=$cache/hugo-$version-$(go env GOVERSION)
if [ ! -x "$tool" ]; then
	echo "building Hugo $version, once" >&2
	mkdir -p "$cache"
	CGO_ENABLED=0 go build -trimpath -o "$tool.new" github.com/gohugoio/hugo || exit 75
	mv "$tool.new" "$tool"
fi
printf '%s\n' "$tool"
