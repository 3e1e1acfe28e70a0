#!/bin/sh
# Checks the types of the portal's sources, by the TypeScript and the libraries that pkg/portal/web/package-lock.json pins.
# Status 75 means that they can't be fetched here.
set -eu
cd "$(dirname "$0")/../pkg/portal/web"

command -v node >/dev/null && command -v npm >/dev/null || {
	echo "node and npm are not installed" >&2
	exit 75
}
sum=$(cksum <package-lock.json)
if [ "$(cat node_modules/.fetched 2>/dev/null)" != "$sum" ]; then
	# No script of a package runs.
	npm ci --ignore-scripts --no-audit --no-fund >&2 || exit 75
	echo "$sum" >node_modules/.fetched
fi
exec node_modules/.bin/tsc -p .
