#!/bin/sh
# Runs all that this machine can run, and names what it skips and why. The last lines are
# go test's own; the exit status is that of the first step that failed.
#
#   PAICTL_TEST_E2E=0    leave the tests on sandbox hosts out; 1: run all of the usual ones, however long they take
#   PAICTL_TEST_LINT=0   leave golangci-lint out
#   PAICTL_TEST_ALL=1    also the tests on sandbox hosts that "make soak" runs
#   PAICTL_BUNDLE=DIR    the bundle of the tests; made there when it is missing
#   PAICTL_PROMTOOL=FILE promtool for the tests of alert rules; the bundle's where unset
#   PAICTL_TEST_ACME=FILE Pebble for the tests of certificates by ACME; built from hack/tools where unset
#   PAICTL_TEST_S3=FILE  versitygw for the tests of backups in S3; built from hack/tools where unset
#   PAICTL_TEST_OPENPAI_SDK=DIR  OpenPAI's JavaScript SDK; fetched as hack/tools says where unset
#   PAICTL_TEST_OIDC=FILE  Dex for the tests of sign-ins; built from hack/tools where unset
set -eu
cd "$(dirname "$0")/.."

cache=${XDG_CACHE_HOME:-${HOME:-/root}/.cache}/paictl
bundle=${PAICTL_BUNDLE:-$cache/bundle}
case $bundle in /*) ;; *) bundle=$PWD/$bundle ;; esac
started=$(date +%s)
status=0

say() { printf '== %s  [%ss]\n' "$*" "$(($(date +%s) - started))"; }
skip() { printf 'skip\t%s\n' "$*"; }
# check NAME COMMAND...: a step that must pass; the steps after it run anyway.
check() {
	say "$1"
	shift
	"$@" || {
		rc=$?
		[ "$status" -ne 0 ] || status=$rc
		echo "FAILED with status $rc: $*"
	}
}

formatted() {
	unformatted=$(find ./*.go cmd pkg hack research templates test -name '*.go' -exec gofmt -l {} + 2>/dev/null)
	[ -z "$unformatted" ] || {
		echo "gofmt -w has something to do in:"
		echo "$unformatted"
		return 1
	}
}

shells() {
	for f in hack/*.sh; do sh -n "$f" || return 1; done
}

# plugin runs a go command on pai-scheduler, which has the libraries of its release of Kubernetes: docs/adr/0024.
plugin() {
	command=$1
	shift
	go "$command" -modfile=cmd/pai-scheduler/kubernetes.mod -tags=pai_scheduler "$@" ./cmd/pai-scheduler ./pkg/scheduler/plugin
}

# starts prints the seconds of processor time that 1,000 starts of a program take.
starts() {
	sh -c 'i=0; while [ $i -lt 500 ]; do /bin/true; i=$((i + 1)); done; times' |
		awk '{ for (i = 1; i <= NF; i++) { split($i, t, /[ms]/); s += t[1] * 60 + t[2] } } END { printf "%.1f", s * 2 }'
}

linted() {
	rc=0
	sh hack/lint.sh || rc=$?
	[ "$rc" -ne 75 ] || {
		skip "golangci-lint: it could not be built"
		rc=0
		go vet ./... || rc=$?
	}
	return "$rc"
}

# scanned looks for known weaknesses of libraries, where the database of them can be reached.
scanned() {
	rc=0
	sh hack/vulns.sh || rc=$?
	[ "$rc" -ne 75 ] || {
		skip "govulncheck: it could not be built, or its database can't be reached"
		rc=0
	}
	return "$rc"
}

say "packages"
sh hack/packages.sh test || echo "some tests will be skipped for that"

check "gofmt" formatted
check "sh -n" shells

race=-race
# SQLite is C, translated, and the race detector makes it five times as slow. What our code does with it is still watched.
watched='-gcflags=modernc.org/...=-dwarf=false -race=false'
if ! command -v gcc >/dev/null; then
	race=
	skip "race detector: it needs gcc"
fi

# One compilation of each library serves paictl, the tests, the bundle and the linter: with the switches
# that paictl is built with. The race detector has its own, and needs cgo.
export CGO_ENABLED=0 GOFLAGS="${GOFLAGS:+$GOFLAGS }-trimpath -gcflags=all=-dwarf=false"
# Most of the time goes into compiling, and a sixth of that into the compiler's collection of garbage.
export GOGC="${GOGC:-400}"

mkdir -p bin
go build -buildvcs=false -o bin/ ./hack/gotest ./hack/concurrent
e2e=$(go list ./... | grep '/test/e2e' || true)
rest=$(go list -f '{{.ImportPath}} {{.Dir}}' ./... | grep -v '/test/e2e')
# The race detector makes a package several times as slow: it runs where there may be races. Packages below test/ mostly
# start programs, in which it sees nothing.
concurrent=$(echo "$rest" | bin/concurrent | grep -v '/test/')
# Packages with C are nothing to the go command without its compiler.
withC=$(CGO_ENABLED=1 go list ./... | grep -vxF "$(go list ./...)" || true)
[ -n "$race" ] || skip "packages with C, which need gcc: $(echo $withC)"
# The tests of pkg/cluster take the longest, half an hour and more on slow machines: they run beside the others, with a limit of their own.
longest=$(echo "$concurrent" | grep '/pkg/cluster$')
concurrent=$(echo "$concurrent" | grep -vxF "$longest")
serial=$(echo "$rest" | cut -d ' ' -f 1 | grep -vxF "$longest
$concurrent")

# The tests on sandbox hosts need root, namespaces and a bundle.
why=
[ -n "$e2e" ] || why="there are none"
[ -n "$why" ] || [ "${PAICTL_TEST_E2E:-1}" != 0 ] || why="PAICTL_TEST_E2E=0"
[ -n "$why" ] || why=$(sh hack/sandboxable.sh) || true
if [ -z "$why" ]; then
	export PAICTL_TEST_BASE=1
	check "bundle in $bundle" make --no-print-directory bundle BUNDLE="$bundle"
	[ -f "$bundle/manifest.yaml" ] || why="the bundle could not be built"
fi
[ -z "$why" ] || skip "tests on sandbox hosts (test/e2e): $why"

# Tests with a real API server take it from the bundle. Go's cache of test results doesn't look into
# the bundle, but it goes by the variables that a test reads: a bundle that has changed gets another name.
# Charts and programs of paictl itself don't count: they change with each commit, and only tests on hosts use them.
if [ -f "$bundle/manifest.yaml" ]; then
	mkdir -p "$cache/bundles"
	others=$(awk 'BEGIN { RS = "    - name: " } !/source: github.com\/openpai\/paictl@/ && !/kind: chart/' "$bundle/manifest.yaml")
	named=$cache/bundles/$(printf %s "$others" | cksum | tr ' ' -)
	ln -sfn "$bundle" "$named"
	export PAICTL_TEST_BUNDLE="$named"
fi

# Alert rules are tested by Prometheus' own tool, which is part of the bundle.
if [ -x "${PAICTL_PROMTOOL:-$bundle/tools/promtool}" ]; then
	export PAICTL_PROMTOOL="${PAICTL_PROMTOOL:-${named:-$bundle}/tools/promtool}"
else
	skip "tests of alert rules: $bundle has no tools/promtool (make bundle BUNDLE=$bundle)"
fi

# Backups are written to a real S3 server.
PAICTL_TEST_S3=${PAICTL_TEST_S3:-$(sh hack/versitygw.sh)} && export PAICTL_TEST_S3 || skip "tests of backups in S3: versitygw could not be built"

# OpenPAI's own SDK asks the server.
PAICTL_TEST_OPENPAI_SDK=${PAICTL_TEST_OPENPAI_SDK:-$(sh hack/openpai-js-sdk.sh)} && export PAICTL_TEST_OPENPAI_SDK || skip "tests with OpenPAI's JavaScript SDK: it could not be fetched"
# People sign in at a real issuer of OpenID Connect.
PAICTL_TEST_OIDC=${PAICTL_TEST_OIDC:-$(sh hack/dex.sh)} && export PAICTL_TEST_OIDC || skip "tests of sign-ins at an issuer: Dex could not be built"

# Certificates are got from a real ACME authority.
PAICTL_TEST_ACME=${PAICTL_TEST_ACME:-$(sh hack/pebble.sh)} && export PAICTL_TEST_ACME || skip "tests of ACME: Pebble could not be built"

# It is also a setting of paictl, which must not reach the tests of commands.
unset PAICTL_BUNDLE

# What go vet checks is part of golangci-lint, and of "go test", which is told not to do it again.
if [ "${PAICTL_TEST_LINT:-1}" = 0 ]; then
	skip "golangci-lint: PAICTL_TEST_LINT=0"
	check "go vet" go vet ./...
else
	check "golangci-lint" linted
fi

check "govulncheck" scanned

# From here on only go test speaks: these are the lines that one looks for. What hasn't changed since it
# passed says "(cached)".
say "go test $race"
# Scripts start the program over and over, which takes a second each time with the race detector, and few of them make it do
# two things at once: they run without. So does what reads tens of thousands of objects.
scripted='(TestScripts(OnAServer|WithTasks)?|TestALargeClusterTakesLittleMemory)'
# Where it takes long to start a program, two processors start no more of them than one: the second only waits for the first. So
# the tests that start the most have one processor for themselves, as far as the others leave it to them.
starts=$(starts)
slow=
if awk "BEGIN { exit !($starts > 1.5) }"; then slow=yes; fi
one= others=
if [ -n "$slow" ] && command -v taskset >/dev/null; then one="taskset -c 0" others="nice -n 10"; fi
# Compiled first, with all processors, and once: beside the others both would compile the same libraries.
CGO_ENABLED=${race:+1} go test $race ${race:+"$watched"} -run '^$' -vet=off "$longest" >/dev/null || :
# In a group of processes of its own, so that all of it ends with this script.
# shellcheck disable=SC2086 # a list of words
CGO_ENABLED=${race:+1} setsid $one bin/gotest $race ${race:+"$watched"} -skip "^$scripted\$" -vet=off -timeout 80m "$longest" >bin/longest.log 2>&1 &
beside=$!
trap 'kill -- "-$beside" 2>/dev/null || :' EXIT
trap 'exit 130' INT
trap 'exit 143' TERM
# shellcheck disable=SC2086
CGO_ENABLED=${race:+1} $others bin/gotest $race ${race:+"$watched"} -p 2 -skip "^$scripted\$" -vet=off -timeout 45m $concurrent ${race:+$withC} || status=$?
# golangci-lint doesn't take another go.mod.
check "go vet of pai-scheduler" plugin vet
check "go test of pai-scheduler" plugin test -vet=off -timeout 5m
say "go test, where nothing is concurrent, and scripts"
# shellcheck disable=SC2086
$others bin/gotest -vet=off -p 2 -timeout 30m $serial || status=$?
scripts=$(for package in $longest $concurrent; do
	! grep -qsE "^func $scripted\\(" ".${package#github.com/openpai/paictl}"/*_test.go || echo "$package"
done)
# shellcheck disable=SC2086
[ -z "$scripts" ] || $others bin/gotest -run "^$scripted\$" -vet=off -timeout 30m $scripts || status=$?
say "go test $longest, which ran meanwhile"
wait "$beside" || status=$?
trap - EXIT INT TERM
cat bin/longest.log
# Last, and alone: clusters on a machine that is busy with other tests repeat what took too long, and take several
# times as much of it.
if [ -z "$why" ]; then
	say "go test, on sandbox hosts"
	# Kubernetes starts programs all the time. Where that takes long, two clusters at once exceed kubeadm's limits of time, and all
	# tests one after the other would take hours: so there are two, one after the other, in what is left of the first 45 minutes.
	few=
	# No test begins later than that, so that the whole run ends within the hour.
	[ "${PAICTL_TEST_E2E:-}" = 1 ] || export PAICTL_TEST_UNTIL=$((started + 2700))
	if [ "${PAICTL_TEST_E2E:-}" != 1 ] && [ -n "$slow" ]; then
		export PAICTL_TEST_HOSTS=5
		few='^(TestClusterComesUpAndWorks|TestNoMasterIsSpecial)$'
		skip "tests on sandbox hosts but for $few: to start 1,000 programs takes $starts s of processor time here; PAICTL_TEST_E2E=1 runs them"
	fi
	PAICTL_E2E=1 PAICTL_BUNDLE="$bundle" bin/gotest -vet=off -timeout 15m -count 1 -run '^TestFilesGoBetweenRealHosts$' "$longest" || status=$?
	# shellcheck disable=SC2086 # a list of words
	PAICTL_E2E=1 PAICTL_BUNDLE="$bundle" bin/gotest -vet=off -p 1 -timeout 75m -count 1 ${few:+-run "$few"} $e2e || status=$?
fi
exit "$status"
