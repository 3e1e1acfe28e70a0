#!/bin/sh
# Prints the folder with OpenPAI's JavaScript SDK for the tests, fetched once: the versions and checksums are in
# hack/tools/openpai-js-sdk/package-lock.json. Status 75 means that it can't be fetched here.
set -eu
cd "$(dirname "$0")/tools/openpai-js-sdk"

command -v node >/dev/null && command -v npm >/dev/null || {
	echo "node and npm are not installed" >&2
	exit 75
}
cache=${XDG_CACHE_HOME:-${HOME:-/root}/.cache}/paictl/tools
folder=$cache/openpai-js-sdk-$(cksum <package-lock.json | tr ' ' -)
if [ ! -d "$folder" ]; then
	echo "fetching OpenPAI's JavaScript SDK, once" >&2
	mkdir -p "$cache"
	new=$(mktemp -d "$cache/openpai-js-sdk.XXXXXX")
	trap 'rm -rf "$new"' EXIT
	cp package.json package-lock.json "$new"
	# No script of a package runs.
	(cd "$new" && npm ci --ignore-scripts --no-audit --no-fund >&2) || exit 75
	mv "$new" "$folder"
	trap - EXIT
fi
printf '%s\n' "$folder"
