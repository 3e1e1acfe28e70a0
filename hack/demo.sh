#!/bin/sh
# Builds a cluster and runs jobs in it, as a user would type it: each command is printed before its
# output. The demo can be run again, and doesn't repeat finished steps. If real hosts
# can't run here, it uses simulated ones, and says which parts it leaves out.
#
#   PAICTL_DEMO_HOSTS=3   how many hosts
#   PAICTL_DEMO_DIR=DIR   where the configuration and the kubeconfig go (dist/demo)
#   PAICTL_BUNDLE=DIR     the bundle, built there if it is missing
set -eu
cd "$(dirname "$0")/.."

hosts=${PAICTL_DEMO_HOSTS:-3}
work=${PAICTL_DEMO_DIR:-dist/demo}
PAICTL_BUNDLE=${PAICTL_BUNDLE:-${XDG_CACHE_HOME:-${HOME:-/root}/.cache}/paictl/bundle}
started=$(date +%s)

title() { printf '\n# %s\n' "$*"; }
run() {
	printf '$ %s\n' "$*"
	"$@"
}
fail() {
	echo "demo: $*" >&2
	exit 1
}
# shows PATTERN COMMAND...: runs a command that must print a line with the pattern.
shows() {
	pattern=$1
	shift
	printf '$ %s\n' "$*"
	{
		rc=0
		"$@" || rc=$?
		echo "$rc" >"$work/status"
	} 2>&1 | tee "$work/shown"
	[ "$(cat "$work/status")" -eq 0 ] || fail "it ended with status $(cat "$work/status"): $*"
	grep -q -e "$pattern" "$work/shown" || fail "the output has no \"$pattern\": $*"
}
# within SECONDS TEXT COMMAND...: tries a command each second until it succeeds.
within() {
	left=$1 what=$2
	shift 2
	until "$@"; do
		[ "$left" -gt 0 ] || fail "$what: it did not happen in time"
		left=$((left - 1))
		sleep 1
	done
}
seconds() { echo "$(($(date +%s) - started)) s"; }

sh hack/packages.sh demo || {
	echo "demo: the bundle is built with these packages; install them, then run make demo again" >&2
	exit 1
}
mkdir -p "$work"
work=$(cd "$work" && pwd)
case $PAICTL_BUNDLE in /*) ;; *) PAICTL_BUNDLE=$PWD/$PAICTL_BUNDLE ;; esac
export PAICTL_BUNDLE

title "paictl, one static binary"
run make --no-print-directory build
PATH=$PWD/bin:$PAICTL_BUNDLE/bin:$PATH
export PATH

title "Kubernetes and what belongs to it, from source; the first time takes some ten minutes"
run paictl bundle build -o "$PAICTL_BUNDLE"

# The reason why real hosts can't run here, if any.
if why=$(sh hack/sandboxable.sh); then
	why=
fi

if [ -n "$why" ]; then
	title "No hosts here: $why"
	echo "# The rest is SIMULATED: the API server, scheduler and controllers are real, the nodes are not,"
	echo "# and no container runs. For the real thing run make demo as root on a Debian or Ubuntu machine."
	run paictl sandbox up --api-only --bundle "$PAICTL_BUNDLE" --hosts "$hosts" --dir "$work/sandbox"
	KUBECONFIG=$work/sandbox/kubeconfig
	export KUBECONFIG
	run kubectl get nodes
	run kubectl apply -f examples/demo/netcheck.yaml
	run kubectl -n paictl-demo rollout status daemonset/netcheck --timeout 120s
	shows Running kubectl -n paictl-demo get pods -o wide
	title "Job files can be checked without a cluster; a submission would create this"
	run paictl job validate examples/jobs/*.yaml
	shows "kind: Framework" paictl job render examples/jobs/hello.yaml
	title "Done in $(seconds): pods were placed on $hosts simulated nodes; nothing ran in them"
	echo "# Left out, since no container runs here: the services, and with them the jobs of examples/jobs."
	echo "# It stays up; take it down with: bin/paictl sandbox down --dir $work/sandbox"
	exit 0
fi

# If the hosts were taken down, the folder belongs to a cluster that no longer exists.
[ -f /var/lib/paictl/sandbox/sandbox.json ] || rm -rf "$work/cluster" "$work/kubeconfig"
title "$hosts hosts on this machine, each with its own address, sshd and systemd: ten seconds, a minute the first time"
run paictl sandbox up --hosts "$hosts" --bundle "$PAICTL_BUNDLE"
# Each worker simulates eight GPUs, which the scheduler gives to jobs.
quickstart=$work/quick-start.yaml
sed 's/^gpu: none$/gpu: simulate/' /var/lib/paictl/sandbox/quick-start.yaml >"$quickstart"
run cat "$quickstart"

title "The configuration: the hosts are asked for their hardware"
run paictl config generate -f -i "$quickstart" -o "$work/cluster"

title "The cluster: one to two minutes"
run paictl cluster up -p "$work/cluster" --yes
# The demo uses its own file: yours is not touched.
KUBECONFIG=$work/kubeconfig
export KUBECONFIG
run paictl cluster kubeconfig -p "$work/cluster" --use
run kubectl wait --for=condition=Ready nodes --all --timeout 180s
run kubectl get nodes -o wide
[ "$(kubectl get nodes --no-headers | grep -c ' Ready ')" -eq "$hosts" ] || fail "not all of the $hosts hosts are nodes"

title "A pod on each worker: about ten seconds"
run kubectl apply -f examples/demo/netcheck.yaml
run kubectl -n paictl-demo rollout status daemonset/netcheck --timeout 180s
run kubectl -n paictl-demo get pods -o wide

title "Each pod asks each other one, across hosts"
pods=$(kubectl -n paictl-demo get pods -l app.kubernetes.io/name=netcheck --field-selector status.phase=Running \
	-o 'jsonpath={range .items[*]}{.metadata.name}={.status.podIP}{" "}{end}')
asked=0
for from in $pods; do
	for to in $pods; do
		[ "$from" != "$to" ] || continue
		shows "pod ${to%=*} on node" kubectl -n paictl-demo exec "${from%=*}" -- /netcheck get "http://${to#*=}:8080/"
		asked=$((asked + 1))
	done
done
workers=$(kubectl get nodes -l pai-worker=true --no-headers | wc -l | tr -d ' ')
[ "$asked" -eq $((workers * (workers - 1))) ] || fail "$workers workers, and pods were asked $asked times"

title "The service has a name, and answers"
first=${pods%%=*}
shows "cluster.local is " kubectl -n paictl-demo exec "$first" -- /netcheck resolve netcheck.paictl-demo.svc.cluster.local
shows "pod netcheck-" kubectl -n paictl-demo exec "$first" -- /netcheck get http://netcheck.paictl-demo.svc.cluster.local/

title "The services: the configuration goes into the cluster, each service is a Helm release; about a minute"
run paictl config push -p "$work/cluster" --yes
run paictl service start
run paictl service status
paictl service status --exit-code >/dev/null 2>&1 || fail "not all services are ready"

title "Prometheus knows every machine, and answers only with its password: up to a minute, until it has asked them all"
if command -v curl >/dev/null; then
	nodes='http://localhost:19090/api/v1/query?query=count(up%7Bjob%3D%22node-exporter%22%7D%3D%3D1)'
	kubectl -n pai-system port-forward service/prometheus 19090:9090 >/dev/null &
	forward=$!
	# The password is passed on standard input, since other users can see command lines.
	asked_with_password() {
		password=$(kubectl -n pai-system get secret metrics-access -o 'jsonpath={.data.password}' | base64 -d)
		printf 'user = "pai:%s"\n' "$password" | curl -sS -K - "$nodes"
	}
	knows_all() { asked_with_password 2>/dev/null | grep -q "\"$hosts\""; }
	# The first scrape takes as long as the interval between two.
	within 60 "Prometheus knows the $hosts machines" knows_all
	shows Unauthorized curl -sS "$nodes"
	echo
	shows "\"$hosts\"" asked_with_password
	echo
	kill "$forward"
else
	echo "# left out: curl is not installed here"
fi

title "Jobs: each of the $workers workers has eight GPUs, simulated ones; a few seconds for each"
run paictl job validate examples/jobs/*.yaml
shows "Hello .*, this is main-0" paictl job submit examples/jobs/hello.yaml --replace --watch
if [ "$workers" -gt 1 ]; then
	title "Two roles that find each other; their logs as they come"
	run paictl job submit examples/jobs/two-roles.yaml --replace
	shows "found the server by environment" paictl job logs two-roles -f
fi

title "One machine's GPUs are in use, and another job needs all GPUs: it waits, and says why; about a quarter of a minute"
sed "s/instances: 2/instances: $workers/" examples/jobs/waits.yaml >"$work/waits.yaml"
run paictl job submit examples/jobs/gpu.yaml --replace
# Its first line of output shows that it runs; the job that asks for more must come second.
has_gpus() { paictl job logs gpu 2>/dev/null | grep GPUs; }
within 60 "the job gpu says which GPUs it has" has_gpus
run paictl job submit "$work/waits.yaml" --replace
is_queued() { paictl job list | grep -q queued; }
within 60 "the job waits is queued" is_queued
run paictl job list
shows "root/gpu (8 GPUs)" paictl job why waits
run paictl job stop gpu
run paictl job wait waits
shows "of world size $((workers * 8)), GPUs 0,1,2,3,4,5,6,7" paictl job logs waits
run paictl job list

title "A job without a guarantee uses idle GPUs; a job with a guarantee takes them back: about half a minute"
sed "s/instances: 2/instances: $workers/" examples/jobs/opportunistic.yaml >"$work/opportunistic.yaml"
run paictl job submit "$work/opportunistic.yaml" --replace
works() { paictl job logs opportunistic 2>/dev/null | grep -q "this is attempt 0"; }
within 60 "the job opportunistic runs" works
run paictl job submit examples/jobs/gpu.yaml --replace
within 90 "the job gpu has GPUs again" has_gpus
gave_way() { paictl job list | grep opportunistic | grep -q queued; }
within 60 "the job opportunistic waits again" gave_way
run paictl job list
shows "reempted" paictl job why opportunistic
shows "told to give way" paictl job logs opportunistic --attempt 0
run paictl job stop gpu
run paictl job wait opportunistic
shows "this is attempt 1" paictl job logs opportunistic

title "Once more: nothing is left to change"
shows " 0 changed, 0 changes" paictl cluster up -p "$work/cluster" --yes
shows " 0 changed, 0 changes" paictl service start

title "All of it at a look"
printf '$ paictl status --once --all\n'
rc=0
paictl status --once --all >"$work/shown" || rc=$?
cat "$work/shown"
# 3 means that something is wrong, such as an alert about a busy machine: the demo shows it, but doesn't fail.
[ "$rc" -eq 0 ] || [ "$rc" -eq 3 ] || fail "paictl status ended with $rc"
grep -q '^pai-1 ' "$work/shown" || fail "paictl status shows no pai-1"

title "Done in $(seconds): $hosts hosts, $(echo "$pods" | wc -w | tr -d ' ') pods, $asked times asked across hosts"
cat <<END
# The cluster stays up. To look around:
#   export KUBECONFIG=$KUBECONFIG PATH=$PWD/bin:$PAICTL_BUNDLE/bin:\$PATH
#   paictl status                             (screens of machines, GPUs, queues, services, jobs; q ends it)
#   kubectl get pods -A
#   paictl cluster status -p $work/cluster
#   paictl service status
#   paictl job submit examples/jobs/rendezvous.yaml   (examples/jobs/README.md lists them all)
#   kubectl -n pai-system port-forward service/prometheus 9090
# To take it all down:
#   paictl sandbox down
END
# On a terminal, show the screens; the output above stays.
if [ -t 0 ] && [ -t 1 ] && [ -z "${CI:-}" ]; then
	paictl status || [ $? -eq 3 ]
fi
