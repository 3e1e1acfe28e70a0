#!/bin/sh
# Runs revive on all packages, with the rules of .golangci.yml, in the version that hack/tools pins. Tests are left out, as there.
set -eu
cd "$(dirname "$0")/.."

cache=${XDG_CACHE_HOME:-${HOME:-/root}/.cache}/paictl/tools
version=$(sed -n 's|.*github.com/mgechev/revive \(v[^ ]*\).*|\1|p' hack/tools/go.mod)
tool=$cache/revive-$version-$(cksum <hack/tools/revive/main.go | cut -d' ' -f1)-$(go env GOVERSION)
if [ ! -x "$tool" ]; then
	mkdir -p "$cache"
	(cd hack/tools && go build -o "$tool.new" ./revive)
	mv "$tool.new" "$tool"
fi
go list -f '{{.Dir}}{{range .GoFiles}}{{"\t"}}{{.}}{{end}}' ./... | "$tool"
