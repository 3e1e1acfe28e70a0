# The steps of a rotation of the cluster's authorities on a machine: certificates are replaced, keys stay in place except for the authorities' own.
# On masters, the caller defines self().
P=$R/etc/kubernetes/pki
A=$P/paictl-rotation
DUE=$R/var/lib/paictl/certificates/due
KCM=$R/etc/kubernetes/manifests/kube-controller-manager.yaml

# a_certs FILE: prints its certificates as base64, without a key.
a_certs() { awk '/^-----BEGIN CERTIFICATE-----/ { on = 1 } on { print } /^-----END CERTIFICATE-----/ { on = 0 }' "$1" | base64 | tr -d '\n'; }

a_sum() { sha256sum <"$1" | cut -c1-64; }

# a_as FILE SUM: fails if the file has changed since it was read: the daily renewal or the kubelet may have written another certificate and key.
a_as() {
	if [ "$2" = - ] || [ "$(a_sum "$1")" = "$2" ]; then return 0; fi
	echo "${1#"$R"} has changed since this run read it -> run the same command again" >&2
	exit 1
}

# a_real PATH: sets real to the file that a link points to.
a_real() {
	real=$(readlink "$R$1") || real=$1
	case $real in /*) ;; *) real=${1%/*}/$real ;; esac
}

# a_read: prints all certificates of the cluster on this machine, and the components that an earlier run didn't restart.
a_read() {
	[ -f "$S/member" ] || [ -f "$R/etc/kubernetes/kubelet.conf" ] || return 0
	printf 'member\tyes\nnow\t%s\n' "$(date +%s)"
	for f in "$P"/*.crt "$P"/etcd/*.crt "$A"/*.crt "$A"/*/*.crt; do
		[ ! -f "$f" ] || printf 'cert\t%s\t%s\t%s\n' "${f#"$R"}" "$(a_certs "$f")" "$(a_sum "$f")"
	done
	for f in "$P/ca.key" "$P/etcd/ca.key" "$P/front-proxy-ca.key" "$A"/*.key "$A"/*/*.key; do
		[ ! -f "$f" ] || printf 'key\t%s\t%s\n' "${f#"$R"}" "$(a_sum "$f")"
	done
	for f in /var/lib/kubelet/pki/kubelet-client-current.pem /var/lib/kubelet/pki/kubelet-server-current.pem; do
		[ ! -e "$R$f" ] || { a_real "$f" && printf 'pem\t%s\t%s\t%s\n' "$f" "$(a_certs "$R$real")" "$(a_sum "$R$real")"; }
	done
	for f in "$R"/etc/kubernetes/*.conf; do
		[ ! -f "$f" ] || awk -v f="${f#"$R"}" -v sum="$(a_sum "$f")" '$1 == "certificate-authority-data:" { ca = $2 } $1 == "client-certificate-data:" { cert = $2 }
			END { if (ca != "") printf "conf\t%s\t%s\t%s\t%s\n", f, ca, cert, sum }' "$f"
	done
	[ ! -f "$KCM" ] || printf 'signer\t%s\n' "$(sed -n 's/^ *- --cluster-signing-cert-file=//p' "$KCM")"
	for c in etcd kube-apiserver kube-controller-manager kube-scheduler; do
		[ ! -f "$DUE/$c" ] || printf 'due\t%s\n' "$c"
	done
	[ ! -f "$S/authority-kubelet" ] || printf 'due\tkubelet\n'
}

# a_keys: prints the authorities' keys as base64. They leave the machine over the run's own connection, for the other masters.
a_keys() {
	for f in "$P/ca.key" "$P/etcd/ca.key" "$P/front-proxy-ca.key" "$A"/*.key "$A"/*/*.key; do
		[ ! -f "$f" ] || printf 'secret\t%s\t%s\n' "${f#"$R"}" "$(base64 <"$f" | tr -d '\n')"
	done
}

# a_due COMPONENT...: records the components to restart, before the first file changes.
a_due() {
	for c; do
		case $c in
		kubelet) : >"$S/authority-kubelet" ;;
		*)
			(umask 077; mkdir -p "$DUE")
			printf '0\n' >"$DUE/$c"
			;;
		esac
	done
	sync
}

# a_put FILE: replaces FILE with FILE.paictl-new, atomically.
a_put() {
	sync "$1.paictl-new"
	mv -f "$1.paictl-new" "$1"
	note change "${1#"$R"}"
}

# a_file PATH MODE SUM: writes the content on standard input (base64) if the file has that checksum; with "-" it may have any, or not exist.
a_file() {
	a_as "$R$1" "$3"
	(umask 077; mkdir -p "$R${1%/*}"; base64 -d >"$R$1.paictl-new")
	chmod "$2" "$R$1.paictl-new"
	a_put "$R$1"
}

# a_pem PATH SUM: replaces the certificates in a file that also has their key.
a_pem() {
	a_real "$1"
	a_as "$R$real" "$2"
	(umask 077; { base64 -d; awk '/^-----BEGIN .*PRIVATE KEY-----/ { on = 1 } on { print }' "$R$real"; } >"$R$real.paictl-new")
	grep -q 'PRIVATE KEY' "$R$real.paictl-new" || { echo "$1 has no private key" >&2; exit 1; }
	a_put "$R$real"
}

# a_conf PATH SUM CA CERTIFICATE: sets a kubeconfig's authority, and its certificate if one is given.
a_conf() {
	a_as "$R$1" "$2"
	(umask 077; awk -v ca="$3" -v cert="$4" '
		$1 == "certificate-authority-data:" { sub(/certificate-authority-data:.*/, "certificate-authority-data: " ca) }
		$1 == "client-certificate-data:" && cert != "" { sub(/client-certificate-data:.*/, "client-certificate-data: " cert) }
		{ print }' "$R$1" >"$R$1.paictl-new")
	a_put "$R$1"
}

# a_signer PATH: sets the certificate with which kube-controller-manager signs; that file must have one certificate only.
a_signer() {
	(umask 077; sed "s|^\( *- --cluster-signing-cert-file=\).*|\1$1|" "$KCM" >"$S/kcm.yaml")
	cp "$S/kcm.yaml" "${KCM%/*}/.kube-controller-manager.yaml.paictl-new"
	chmod 600 "${KCM%/*}/.kube-controller-manager.yaml.paictl-new"
	sync "${KCM%/*}/.kube-controller-manager.yaml.paictl-new"
	mv -f "${KCM%/*}/.kube-controller-manager.yaml.paictl-new" "$KCM"
	rm -f "$S/kcm.yaml"
	note change "$KCM"
}

# a_kubelet WAIT: restarts the kubelet if that is due. The caller defines v_kubelet and its dependencies.
a_kubelet() {
	[ -f "$S/authority-kubelet" ] || return 0
	systemctl restart kubelet.service
	v_kubelet "$1"
	rm -f "$S/authority-kubelet"
	note change kubelet.service
}

# a_info CA: sets the authority that joining machines find.
a_info() {
	info=$(self -n kube-public get configmap cluster-info --ignore-not-found --request-timeout=10s -o 'jsonpath={.data.kubeconfig}')
	[ -n "$info" ] || return 0
	if printf '%s\n' "$info" | grep -q "^ *certificate-authority-data: *$1\$"; then return 0; fi
	printf 'data:\n  kubeconfig: |\n' >"$S/cluster-info.yaml"
	printf '%s\n' "$info" | awk -v ca="$1" '$1 == "certificate-authority-data:" { sub(/certificate-authority-data:.*/, "certificate-authority-data: " ca) } { print "    " $0 }' >>"$S/cluster-info.yaml"
	self -n kube-public patch configmap cluster-info --type merge --patch-file "$S/cluster-info.yaml" >&2
	rm -f "$S/cluster-info.yaml"
	note change "configmap cluster-info"
}

# a_nodes: prints the nodes of the cluster, and which of them are masters.
a_nodes() {
	self get nodes --request-timeout=30s -o 'go-template={{range .items}}node{{"\t"}}{{.metadata.name}}{{"\n"}}{{end}}'
	self get nodes -l node-role.kubernetes.io/control-plane --request-timeout=15s -o 'go-template={{range .items}}master{{"\t"}}{{.metadata.name}}{{"\n"}}{{end}}'
}

# a_published: prints the authorities that API servers publish for extensions to trust. They only ever add to them.
a_published() {
	for x in client-ca-file requestheader-client-ca-file; do
		printf 'published\t%s\n' "$(self -n kube-system get configmap extension-apiserver-authentication --ignore-not-found --request-timeout=15s -o "jsonpath={.data.$x}" | base64 | tr -d '\n')"
	done
}

# a_publish: makes API servers write it again. A server that still has the old authorities adds them, so the caller checks again.
a_publish() { self -n kube-system delete configmap extension-apiserver-authentication --ignore-not-found --request-timeout=15s >&2; }

# a_renew_pods: restarts the workloads in the cluster's own namespaces, which read the old authority when they started.
a_renew_pods() {
	for ns in kube-system kube-flannel pai-system; do
		list=$(self -n "$ns" get daemonsets,deployments,statefulsets -o name --request-timeout=30s 2>/dev/null) || continue
		for x in $list; do
			self -n "$ns" rollout restart "$x" >&2 || echo "not restarted: $x in $ns" >&2 # one that is paused, for example
		done
	done
}

# a_end: removes the files of a rotation.
a_end() {
	[ ! -d "$A" ] || mv "$A" "$S/gone.authority.$$"
	rm -rf "$S"/gone.authority.* "$P/ca-signing.crt"
}
