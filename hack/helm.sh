#!/bin/sh
# Prints where the plain helm client is, built once from the version that hack/tools/helm pins.
# Status 75 means that it can't be built here.
set -eu
cd "$(dirname "$0")/tools/helm"

cache=${XDG_CACHE_HOME:-${HOME:-/root}/.cache}/paictl/tools
version=$(sed -n 's|.*helm.sh/helm/v3 \(v[^ ]*\).*|\1|p' go.mod)
tool=$cache/helm-$version-$(go env GOVERSION)
if [ ! -x "$tool" ]; then
	echo "building helm $version, once" >&2
	mkdir -p "$cache"
	CGO_ENABLED=0 go build -trimpath -o "$tool.new" helm.sh/helm/v3/cmd/helm || exit 75
	mv "$tool.new" "$tool"
fi
printf '%s\n' "$tool"
