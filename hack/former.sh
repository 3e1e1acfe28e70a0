#!/bin/sh
# Builds an older version of paictl and its bundle, for the test of an upgrade:
#
#   hack/former.sh COMMIT DIR
#   PAICTL_UPGRADE_FROM=DIR PAICTL_E2E=1 PAICTL_BUNDLE=BUNDLE go test ./test/e2e -run TestJobsSurviveAnUpgrade -v -timeout 60m
#
# It needs the history of git, and takes a few minutes. It skips parts that are already built. If PAICTL_BUNDLE is a bundle, it starts with a copy of
# that, in which most parts are up to date. "make test-hosts" calls it.
set -eu
cd "$(dirname "$0")/.."
[ $# -eq 2 ] || {
	sed -n '2,/^$/s/^# \{0,1\}//p' "$0" >&2
	exit 2
}
commit=$(git rev-parse --verify "$1^{commit}")
mkdir -p "$2"
dir=$(cd "$2" && pwd)
source=$dir/source
[ -d "$source" ] || git clone --quiet --no-checkout . "$source"
git -C "$source" cat-file -e "$commit^{commit}" 2>/dev/null || git -C "$source" fetch --quiet "$PWD" "$commit"
git -C "$source" checkout --quiet --detach "$commit"
mkdir -p "$dir/bin"
if [ ! -d "$dir/bundle" ] && [ -f "${PAICTL_BUNDLE:-}/manifest.yaml" ]; then
	rm -rf "$dir/bundle.new"
	cp -a "$PAICTL_BUNDLE/." "$dir/bundle.new"
	mv "$dir/bundle.new" "$dir/bundle"
fi
make -C "$source" --no-print-directory bundle BUNDLE="$dir/bundle"
cp "$source/bin/paictl" "$dir/bin/paictl"
echo "$("$dir/bin/paictl" version | head -n 1) is in $dir"
