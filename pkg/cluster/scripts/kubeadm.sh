CRI=unix:///run/containerd/containerd.sock

# k_left: whether kubeadm has been at work here.
k_left() {
	[ -e "$R/etc/kubernetes/kubelet.conf" ] || [ -e "$R/etc/kubernetes/bootstrap-kubelet.conf" ] ||
		[ -e "$R/etc/kubernetes/manifests/kube-apiserver.yaml" ] || [ -d "$R/etc/kubernetes/pki" ] ||
		[ -e "$R/var/lib/kubelet/config.yaml" ]
}

# k_clear takes away what an attempt of ours that was cut off has left. Preflight has made
# sure that there is no Kubernetes of somebody else.
k_clear() {
	if k_left; then
		note change "kubeadm reset"
		kubeadm reset -f --cri-socket "$CRI" >&2
		rm -rf "$R/etc/kubernetes/pki"
	fi
	k_pod_network
}

# k_pod_network takes away the pods' network of an earlier node, whose pods "kubeadm reset" has
# ended. The next node has another subnet, and with the bridge's old address no pod would start.
# The configuration goes last: it says that there is something to take away.
k_pod_network() {
	conf=$R/etc/cni/net.d/10-paictl-flannel.conflist
	[ -e "$conf" ] || return 0
	net=$(flannel_was_given NETWORK)
	[ -z "$net" ] || ip -4 route flush root "$net" 2>/dev/null || true
	for l in $(pod_links); do ip link delete "$l" 2>/dev/null || true; done
	rm -rf "$R/run/flannel" "$R/var/lib/cni/networks/paictl-flannel"
	rm -f "$conf.new" "$conf"
	note change "pod network"
}

# p_encryption makes the key that encrypts secrets at rest. It never leaves the control
# plane machines.
p_encryption() {
	f=$R/etc/paictl/encryption.yaml
	[ ! -s "$f" ] || return 0
	own_file /etc/paictl/encryption.yaml
	key=$(head -c 32 /dev/urandom | base64 | tr -d '\n')
	(
		umask 077
		cat >"$f.paictl-new" <<EOF
apiVersion: apiserver.config.k8s.io/v1
kind: EncryptionConfiguration
resources:
  - resources: [secrets]
    providers:
      - secretbox:
          keys:
            - name: paictl-1
              secret: $key
      - identity: {}
EOF
	)
	mv -f "$f.paictl-new" "$f"
}

# k_applied HASH: remembers which configuration the control plane runs with.
k_applied() { printf '%s\n' "$1" >"$S/kubeadm-applied"; }

# k_init IGNORED-CHECKS HASH
k_init() {
	k_clear
	kubeadm init --config "$R/etc/paictl/kubeadm.yaml" --skip-token-print ${1:+--ignore-preflight-errors="$1"} >&2
	k_applied "$2"
	: >"$S/member"
}

# k_reconfigure FIRST HASH: static pods are written again, and with them the API server's
# certificate, whose names may have changed. The first machine also brings the stored
# configuration and kube-proxy up to date.
k_reconfigure() {
	c=$R/etc/paictl/kubeadm.yaml
	rm -f "$R/etc/kubernetes/pki/apiserver.crt" "$R/etc/kubernetes/pki/apiserver.key"
	kubeadm init phase certs apiserver --config "$c" >&2
	kubeadm init phase control-plane all --config "$c" >&2
	if [ "$1" = 1 ]; then
		i=0
		until kubectl get --raw /readyz >/dev/null 2>&1; do
			i=$((i + 1))
			[ "$i" -lt 240 ] || { echo "the API server did not come back with the new settings -> see /var/log/pods on the host" >&2; exit 1; }
			sleep 0.5
		done
		kubeadm init phase upload-config all --config "$c" >&2
		kubeadm init phase addon all --config "$c" >&2
		kubectl -n kube-system rollout restart daemonset/kube-proxy >&2
	fi
	k_applied "$2"
}

# k_join IGNORED-CHECKS HASH: the configuration with its token comes on standard input (base64).
k_join() {
	k_clear
	f=$S/join.yaml
	(umask 077; base64 -d >"$f")
	code=0
	kubeadm join --config "$f" ${1:+--ignore-preflight-errors="$1"} >&2 || code=$?
	rm -f "$f"
	[ "$code" = 0 ] || exit "$code"
	[ -z "$2" ] || k_applied "$2"
	: >"$S/member"
}

# k_ticket MORE: what machines need to join. The token lives for an hour. With MORE the
# certificates are put into the cluster, encrypted, for further control plane machines.
k_ticket() {
	c=$R/etc/paictl/kubeadm.yaml
	printf 'token\t%s\n' "$(kubeadm token create --ttl 1h --description 'made by paictl for one run')"
	printf 'ca\t%s\n' "$(base64 <"$R/etc/kubernetes/pki/ca.crt" | tr -d '\n')"
	if [ "$1" = 1 ]; then
		key=$(head -c 32 /dev/urandom | od -An -tx1 | tr -d ' \n')
		# The key stays off the command line, which all users of the machine can read.
		(umask 077; sed "s/^kind: InitConfiguration\$/&\ncertificateKey: $key/" "$c" >"$S/certificate-key.yaml")
		code=0
		kubeadm init phase upload-certs --upload-certs --config "$S/certificate-key.yaml" >/dev/null || code=$?
		rm -f "$S/certificate-key.yaml"
		[ "$code" = 0 ] || exit "$code"
		printf 'certificate-key\t%s\n' "$key"
		printf 'encryption\t%s\n' "$(base64 <"$R/etc/paictl/encryption.yaml" | tr -d '\n')"
	fi
}
