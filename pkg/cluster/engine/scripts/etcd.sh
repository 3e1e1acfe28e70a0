# Queries etcd on this control plane machine without the API server, which needs an etcd with a
# quorum. etcd serves the same calls as JSON, so kubectl can make them.
etcd_() {
	e=$R/etc/kubernetes/pki/etcd
	kubectl --kubeconfig=/dev/null --server=https://127.0.0.1:2379 --certificate-authority="$e/ca.crt" \
		--client-certificate="$e/server.crt" --client-key="$e/server.key" --request-timeout=15s "$@"
}

# e_list LINEARIZABLE: prints etcd's members; with "true" it fails unless a majority of them agrees.
e_list() { printf '{"linearizable":%s}\n' "$1" | etcd_ create --raw /v3/cluster/member/list -f - 2>/dev/null; }

# e_members: prints "quorum yes|no", and "members" with the list as base64, or nothing if etcd
# doesn't answer.
e_members() {
	quorum=yes
	list=$(e_list true) || {
		quorum=no
		list=$(e_list false) || return 0
	}
	printf 'quorum\t%s\nmembers\t%s\n' "$quorum" "$(printf %s "$list" | base64 | tr -d '\n')"
}

# e_look: prints the members, the "etcdstatus" of this member and the active "alarms", as base64.
e_look() {
	e_members
	[ "${list:-}" ] || return 0
	printf 'etcdstatus\t%s\n' "$(printf '{}\n' | etcd_ create --raw /v3/maintenance/status -f - 2>/dev/null | base64 | tr -d '\n')"
	printf 'alarms\t%s\n' "$(printf '{"action":"GET"}\n' | etcd_ create --raw /v3/maintenance/alarm -f - 2>/dev/null | base64 | tr -d '\n')"
}
