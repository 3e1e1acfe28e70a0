# What a control plane machine gives for a backup. It writes nothing on the machine.

# b_keys: the keys and certificates that can't be made again, as a tar archive of paths from the root. The others are signed by these.
b_keys() {
	set --
	for f in etc/kubernetes/pki/ca.crt etc/kubernetes/pki/ca.key etc/kubernetes/pki/sa.key etc/kubernetes/pki/sa.pub \
		etc/kubernetes/pki/front-proxy-ca.crt etc/kubernetes/pki/front-proxy-ca.key \
		etc/kubernetes/pki/etcd/ca.crt etc/kubernetes/pki/etcd/ca.key etc/paictl/encryption.yaml; do
		[ ! -f "$R/$f" ] || set -- "$@" "$f"
	done
	[ -f "$R/etc/kubernetes/pki/sa.key" ] || { echo "this machine has no key of service accounts: it isn't a member of the control plane" >&2; exit 1; }
	tar -C "$R/" -cf - "$@"
}

# b_etcd: this member's database, as etcd streams it, compressed: JSON with base64 in it is four times as long. How the stream ended is
# told by the checksum in it.
b_etcd() { printf '{}\n' | etcd_ create --raw /v3/maintenance/snapshot --request-timeout=0 -f - | gzip -1; }
