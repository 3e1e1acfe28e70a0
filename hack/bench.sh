#!/bin/sh
# Runs the benchmarks that docs/performance.md records, after a line that names the machine.
# As root on Linux with a bundle (PAICTL_BUNDLE, or the one of "make test-more") those on sandbox
# hosts run too.
set -eu
cd "$(dirname "$0")/.."

cache=${XDG_CACHE_HOME:-${HOME:-/root}/.cache}/paictl
bundle=${PAICTL_BUNDLE:-$cache/bundle}
case $bundle in /*) ;; *) bundle=$PWD/$bundle ;; esac

memory=$(awk '/^MemTotal:/ { printf "%.0f GiB", $2 / 1048576 }' /proc/meminfo 2>/dev/null || echo "? memory")
model=$(sed -n 's/^model name[^:]*: //p' /proc/cpuinfo 2>/dev/null | head -n 1)
echo "machine: $(nproc 2>/dev/null || echo '?') cores${model:+ ($model)}, $memory, $(uname -sr), $(go env GOVERSION)"

e2e=$(go list ./... | grep '/test/e2e' || true)
# shellcheck disable=SC2046 # a list of words
go test -run '^$' -bench . -benchmem -timeout 30m $(go list ./... | grep -v '/test/e2e')
[ -n "$e2e" ] || exit 0
if ! why=$(sh hack/sandboxable.sh); then
	echo "skip	benchmarks on sandbox hosts: $why"
elif [ ! -f "$bundle/manifest.yaml" ]; then
	echo "skip	benchmarks on sandbox hosts: no bundle in $bundle; make bundle BUNDLE=$bundle makes it"
else
	PAICTL_E2E=1 PAICTL_BUNDLE="$bundle" go test -run '^$' -bench BenchmarkCopies -benchtime 1x -timeout 60m ./pkg/cluster
	# shellcheck disable=SC2086
	PAICTL_E2E=1 PAICTL_BUNDLE="$bundle" go test -run '^$' -bench . -p 1 -timeout 60m $e2e
fi
