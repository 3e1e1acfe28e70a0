#!/bin/sh
# Runs golangci-lint in the version that hack/tools pins, built once per version and Go.
# Status 75 means that it can't be built here, for want of a module proxy for example.
set -eu
cd "$(dirname "$0")/.."

cache=${XDG_CACHE_HOME:-${HOME:-/root}/.cache}/paictl/tools
version=$(sed -n 's|.*github.com/golangci/golangci-lint/v2 \(v[^ ]*\).*|\1|p' hack/tools/go.mod)
# The switches of hack/tier: the linter reads the packages that the tests have compiled.
export CGO_ENABLED=0 GOFLAGS="${GOFLAGS:+$GOFLAGS }-trimpath -gcflags=all=-dwarf=false"
tool=$cache/golangci-lint-$version-$(go env GOVERSION)
if [ ! -x "$tool" ]; then
	echo "building golangci-lint $version, once" >&2
	mkdir -p "$cache"
	(cd hack/tools && go build -o "$tool.new" github.com/golangci/golangci-lint/v2/cmd/golangci-lint) || exit 75
	mv "$tool.new" "$tool"
fi
exec "$tool" run "$@" ./...
