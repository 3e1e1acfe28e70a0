#!/bin/sh
# Installs charts with the plain helm client, all at once, and waits until they are ready.
#   helm-install.sh HELM CHARTS VALUES SERVICE...
set -eu
helm=$1 charts=$2 values=$3
shift 3

pids=
for name in "$@"; do
	"$helm" install "$name" "$charts/$name"-*.tgz -n pai-system -f "$values/$name.yaml" --wait --wait-for-jobs --timeout 5m &
	pids="$pids $!"
done
for pid in $pids; do
	wait "$pid"
done
