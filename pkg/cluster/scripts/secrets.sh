# What the rotation of the key for secrets at rest runs on a master.
# Given by the caller: NODE, and self().

# s_read: the key file as base64, whether the API server reads it again when it changes, and the cluster's masters.
s_read() {
	f=$R/etc/paictl/encryption.yaml
	[ -f "$S/member" ] && [ -s "$f" ] || { echo "it is no master of the cluster yet -> paictl cluster up" >&2; exit 1; }
	printf 'file\t%s\n' "$(base64 <"$f" | tr -d '\n')"
	if grep -q -e '--encryption-provider-config-automatic-reload=true' "$R/etc/kubernetes/manifests/kube-apiserver.yaml"; then printf 'reloads\tyes\n'; fi
	self get nodes -l node-role.kubernetes.io/control-plane --request-timeout=15s -o 'go-template={{range .items}}master{{"\t"}}{{.metadata.name}}{{"\n"}}{{end}}'
}

# s_loaded SHA256: waits until the API server on this machine works by the file of that checksum. It looks once a minute.
s_loaded() {
	i=0
	until self get --raw /metrics --request-timeout=30s 2>/dev/null | grep '^apiserver_encryption_config_controller_last_config_info{' | grep -q "$1"; do
		i=$((i + 1))
		[ "$i" -lt 60 ] || { echo "the API server hasn't read /etc/paictl/encryption.yaml again within three minutes -> see its log in /var/log/pods on the host, and run the same command again" >&2; exit 1; }
		sleep 3
	done
}

# s_count KEY: how many Secrets etcd has, and how many of them are encrypted by the key.
s_count() {
	self -n kube-system exec "etcd-$NODE" -- etcdctl --endpoints=https://127.0.0.1:2379 --cacert=/etc/kubernetes/pki/etcd/ca.crt \
		--cert=/etc/kubernetes/pki/etcd/server.crt --key=/etc/kubernetes/pki/etcd/server.key get /registry/secrets/ --prefix >"$S/secrets.etcd"
	LC_ALL=C grep -aoE "^/registry/secrets/[a-z0-9.-]+/[a-z0-9.-]+\$|^k8s:enc:secretbox:v1:$1:" "$S/secrets.etcd" |
		awk '/^\// { all++ } /^k/ { new++ } END { printf "secrets\t%d\nnew\t%d\n", all, new }'
	rm -f "$S/secrets.etcd"
}

# s_rewrite KEY: has the API server write all Secrets again, by the key, as long as etcd has others. Kubernetes writes what doesn't change only
# where it was encrypted otherwise. A Secret that is changed or deleted meanwhile is refused, and needs it no longer.
s_rewrite() {
	for _ in 1 2 3; do
		: >"$S/secrets.said"
		for ns in $(self get namespaces --request-timeout=60s -o 'jsonpath={.items[*].metadata.name}'); do
			self -n "$ns" get secrets -o json --request-timeout=5m | self -n "$ns" replace --request-timeout=5m -f - >/dev/null 2>>"$S/secrets.said" || true
		done
		said=$(s_count "$1")
		all=$(printf '%s\n' "$said" | sed -n 's/^secrets\t//p') new=$(printf '%s\n' "$said" | sed -n 's/^new\t//p')
		if [ "$all" -gt 0 ] && [ "$new" -ge "$all" ]; then
			rm -f "$S/secrets.said"
			printf 'secrets\t%s\n' "$all"
			return 0
		fi
	done
	why=$(grep -v 'no objects passed' "$S/secrets.said" | tail -n 1 | cut -c1-300)
	rm -f "$S/secrets.said"
	echo "$((all - new)) of $all Secrets are not encrypted by the new key, so the old one stays: ${why:-no reason given} -> run the same command again" >&2
	exit 1
}
