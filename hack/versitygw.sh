#!/bin/sh
# Prints where the S3 server of the tests is, built once from the version that hack/tools/versitygw pins.
# Status 75 means that it can't be built here.
set -eu
cd "$(dirname "$0")/tools/versitygw"

cache=${XDG_CACHE_HOME:-${HOME:-/root}/.cache}/paictl/tools
version=$(sed -n 's|.*github.com/versity/versitygw \(v[^ ]*\).*|\1|p' go.mod)
tool=$cache/versitygw-$version-$(go env GOVERSION)
if [ ! -x "$tool" ]; then
	echo "building versitygw $version, once" >&2
	mkdir -p "$cache"
	CGO_ENABLED=0 go build -trimpath -o "$tool.new" github.com/versity/versitygw/cmd/versitygw || exit 75
	mv "$tool.new" "$tool"
fi
printf '%s\n' "$tool"
