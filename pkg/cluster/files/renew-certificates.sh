#!/bin/sh
# Written by paictl. Renews the control plane's certificates 60 days before they expire and
# restarts the static pods that hold them. The kubelet rotates its own.
set -eu
PATH=/usr/local/bin:$PATH
days=60
soon=$(kubeadm certs check-expiration -o json 2>/dev/null |
	awk -v limit=$((days * 86400)) 'match($0, /"residualTime": *"?[0-9]+/) {
		v = substr($0, RSTART, RLENGTH); sub(/.*[: "]/, "", v); if (v + 0 < limit) n++ } END { print n + 0 }')
[ "$soon" -gt 0 ] || exit 0
kubeadm certs renew all
d=/etc/kubernetes/manifests
keep=$(mktemp -d /etc/kubernetes/renew.XXXXXX)
# Whatever happens, the manifests return: without them the control plane stays down.
trap 'mv "$keep"/*.yaml "$d"/ 2>/dev/null || true; rmdir "$keep" 2>/dev/null || true' EXIT INT TERM
mv "$d"/kube-apiserver.yaml "$d"/kube-controller-manager.yaml "$d"/kube-scheduler.yaml "$d"/etcd.yaml "$keep"/
# The kubelet looks every 20 seconds.
sleep 25
