#!/bin/sh
# Checks the workflows of the public CI, by the actionlint that hack/tools pins. Status 75 means that it can't be built here.
set -eu
cd "$(dirname "$0")/.."

cache=${XDG_CACHE_HOME:-${HOME:-/root}/.cache}/paictl/tools
version=$(sed -n 's|.*github.com/rhysd/actionlint \(v[^ ]*\).*|\1|p' hack/tools/actionlint/go.mod)
tool=$cache/actionlint-$version-$(go env GOVERSION)
if [ ! -x "$tool" ]; then
	echo "building actionlint $version, once" >&2
	mkdir -p "$cache"
	(cd hack/tools/actionlint && CGO_ENABLED=0 go build -trimpath -o "$tool.new" github.com/rhysd/actionlint/cmd/actionlint) || exit 75
	mv "$tool.new" "$tool"
fi
exec "$tool" .github/workflows/*.yml
