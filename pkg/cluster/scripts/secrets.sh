# The steps of a rotation of the key for secrets at rest, on a master.
# The caller sets NODE, and defines self().

# s_read: prints the key file as base64, whether the API server reads it again when it changes, and the cluster's masters.
s_read() {
	f=$R/etc/paictl/encryption.yaml
	[ -f "$S/member" ] && [ -s "$f" ] || { echo "it is no master of the cluster yet -> paictl cluster up" >&2; exit 1; }
	printf 'file\t%s\n' "$(base64 <"$f" | tr -d '\n')"
	if grep -q -e '--encryption-provider-config-automatic-reload=true' "$R/etc/kubernetes/manifests/kube-apiserver.yaml"; then printf 'reloads\tyes\n'; fi
	self get nodes -l node-role.kubernetes.io/control-plane --request-timeout=15s -o 'go-template={{range .items}}master{{"\t"}}{{.metadata.name}}{{"\n"}}{{end}}'
}

# s_loaded SHA256: waits until the API server on this machine uses the file with that checksum. It checks the file once a minute.
s_loaded() {
	i=0
	until self get --raw /metrics --request-timeout=30s 2>/dev/null | grep '^apiserver_encryption_config_controller_last_config_info{' | grep -q "$1"; do
		i=$((i + 1))
		[ "$i" -lt 60 ] || { echo "the API server hasn't read /etc/paictl/encryption.yaml again within three minutes -> see its log in /var/log/pods on the host, and run the same command again" >&2; exit 1; }
		sleep 3
	done
}

# s_put: writes the key file from standard input (base64). It is on the disk before another master may use its keys.
s_put() {
	f=$R/etc/paictl/encryption.yaml
	own_file /etc/paictl/encryption.yaml
	(umask 077; base64 -d >"$f.paictl-new")
	sync "$f.paictl-new"
	mv -f "$f.paictl-new" "$f"
	sync "${f%/*}"
	note change /etc/paictl/encryption.yaml
}

# s_etcd ARGS...: runs etcdctl in etcd's own pod.
s_etcd() {
	self -n kube-system exec "etcd-$NODE" -- etcdctl --endpoints=https://127.0.0.1:2379 --cacert=/etc/kubernetes/pki/etcd/ca.crt \
		--cert=/etc/kubernetes/pki/etcd/server.crt --key=/etc/kubernetes/pki/etcd/server.key --command-timeout=2m "$@"
}

# s_page FROM KEY: prints "secret KEY" for each of the next Secrets, and "new" for each that is encrypted with the key.
s_page() {
	s_etcd get "$1" /registry/secrets0 --limit=200 | LC_ALL=C grep -aoE "^/registry/secrets/[a-z0-9.-]+/[a-z0-9.-]+\$|^k8s:enc:secretbox:v1:$2:" |
		awk '/^\// { print "secret " $0 } /^k/ { print "new" }' || true
}

# s_count KEY: sets all to the number of Secrets in etcd, seen to the number that it listed and new to the number of those that are encrypted with the
# key. The output of an exec may end early without an error, so etcd first returns the number.
s_count() {
	all=$(s_etcd get /registry/secrets/ --prefix --count-only --write-out=fields | sed -n 's/^"Count" : //p')
	all=${all:-0} seen=0 new=0 from=/registry/secrets/
	while :; do
		page=$(s_page "$from" "$1")
		n=$(printf '%s\n' "$page" | grep -c '^secret ' || true)
		seen=$((seen + n)) new=$((new + $(printf '%s\n' "$page" | grep -c '^new$' || true)))
		[ "$n" -gt 0 ] || return 0
		# No key sorts between a key and this: names have no byte below "-".
		from=$(printf '%s\n' "$page" | sed -n 's/^secret //p' | tail -n 1),
	done
}

# s_rewrite KEY: makes the API server write all Secrets again with the key, until etcd has no others. An empty patch makes it write a Secret
# that is encrypted with another key. A Secret that is changed or deleted at the same time no longer needs it.
s_rewrite() {
	for _ in 1 2 3 4 5; do
		: >"$S/secrets.said"
		self get secrets -A --chunk-size=200 --request-timeout=5m -o 'go-template={{range .items}}{{.metadata.namespace}}{{"\t"}}{{.metadata.name}}{{"\n"}}{{end}}' |
			awk -F '\t' '$1 != ns || n == 100 { if (n) print line; ns = $1; n = 0; line = $1 } { line = line " " $2; n++ } END { if (n) print line }' |
			while read -r ns names; do
				# shellcheck disable=SC2086 # one word each
				self -n "$ns" patch secrets $names --type merge -p '{}' --request-timeout=5m </dev/null >/dev/null 2>>"$S/secrets.said" || true
			done
		s_count "$1"
		if [ "$new" -eq "$seen" ] && [ "$seen" -ge "$all" ]; then
			rm -f "$S/secrets.said"
			printf 'secrets\t%s\n' "$seen"
			return 0
		fi
	done
	why=$(tail -n 1 "$S/secrets.said" | cut -c1-300)
	rm -f "$S/secrets.said"
	echo "$((all > seen ? all - new : seen - new)) of $all Secrets are not encrypted with the new key, or were not seen, so the old one stays: ${why:-no reason given} -> run the same command again" >&2
	exit 1
}
