#!/bin/sh
# Makes the cluster of "make conformance": three sandbox hosts, a master and two workers, with the bundle in FOLDER. FOLDER then has its kubeconfig.
#
#   hack/conformance.sh up|down FOLDER
set -eu
cd "$(dirname "$0")/.."
[ $# -eq 2 ] || {
	sed -n '2,/^$/s/^# \{0,1\}//p' "$0" >&2
	exit 2
}
mkdir -p "$2"
dir=$(cd "$2" && pwd)
hosts=$dir/hosts
paictl=$PWD/bin/paictl

case $1 in
up)
	# Without its hosts, the configuration belongs to a cluster that no longer exists.
	[ -f "$hosts/sandbox.json" ] || rm -rf "$dir/cluster" "$dir/kubeconfig"
	"$paictl" sandbox up --hosts 3 --name conf --bundle "$dir/bundle" --dir "$hosts"
	[ -d "$dir/cluster" ] || "$paictl" config generate -i "$hosts/quick-start.yaml" -o "$dir/cluster"
	"$paictl" cluster up -p "$dir/cluster" --bundle "$dir/bundle" --yes
	(umask 077 && "$paictl" cluster kubeconfig -p "$dir/cluster" --print >"$dir/kubeconfig.new")
	mv "$dir/kubeconfig.new" "$dir/kubeconfig"
	"$dir/bundle/bin/kubectl" --kubeconfig "$dir/kubeconfig" wait --for=condition=Ready nodes --all --timeout 180s
	;;
down)
	"$paictl" sandbox down --dir "$hosts"
	rm -rf "$dir/cluster" "$dir/kubeconfig"
	;;
*)
	echo "conformance: $1 is neither up nor down" >&2
	exit 2
	;;
esac
