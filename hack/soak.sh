#!/bin/sh
# Runs the random stories, the crashes at every point and the large jobs for an hour or more;
# the other tiers run a few of each. A variable that is already set keeps its value.
# Each failing test prints its seed.
set -eu
cd "$(dirname "$0")/.."

# soak PACKAGE TEST VARIABLE=VALUE...
status=0
soak() {
	package=$1 tests=$2
	shift 2
	for pair; do
		eval "value=\${${pair%%=*}:-${pair#*=}}"
		export "${pair%%=*}=$value"
		printf '== %s: %s=%s\n' "$package" "${pair%%=*}" "$value"
	done
	# The folders below research/ are separate modules.
	module=.
	case $package in research/*) module=$package package=. ;; esac
	# -count=1: the variables may be those of a run that has passed.
	go test -C "$module" -count=1 -timeout 0 -run "$tests" "./$package" || status=$?
}

soak pkg/scheduler/cell . PAICTL_CELL_STEPS=10000000 PAICTL_CELL_HISTORIES=10000 PAICTL_CELL_PACKINGS=10000 PAICTL_CELL_SAFETY=2000 PAICTL_CELL_TWINS=1000
soak pkg/scheduler/sim TestRandom PAICTL_SIM_SEEDS=10000
soak research/bound . PAICTL_BOUND=1
soak pkg/job/controller/machine TestNoStory PAICTL_TEST_STORIES=200000
soak pkg/job/controller 'TestKilling|TestALarge|TestMany|TestTheAddresses|TestTwoWriters' PAICTL_TEST_WRITERS=2000 PAICTL_TEST_JOBS=500 PAICTL_TEST_TASKS=10000 PAICTL_TEST_MANY=2000 PAICTL_TEST_GANG=1000
soak pkg/cluster 'Crash|CutOff|Interrupted|Killed|Recreate' PAICTL_TEST_CRASH=all
soak test/scale . PAICTL_SCALE_NODES=256 PAICTL_SCALE_JOBS=1000 PAICTL_SCALE_TASKS=3000 PAICTL_SCALE_FRAMEWORKS=3000
# All tests on sandbox hosts; the usual run has the most important ones.
if why=$(sh hack/sandboxable.sh); then
	bundle=${PAICTL_BUNDLE:-${XDG_CACHE_HOME:-${HOME:-/root}/.cache}/paictl/bundle}
	make --no-print-directory bundle BUNDLE="$bundle"
	soak test/e2e . PAICTL_E2E=1 PAICTL_TEST_BASE=1 PAICTL_BUNDLE="$bundle"
else
	echo "skip	all tests on sandbox hosts: $why"
fi
exit "$status"
