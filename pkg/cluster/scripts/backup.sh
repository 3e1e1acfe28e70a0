# The data of a control plane machine for a backup. These functions don't write on the machine.

# b_keys: prints the keys and certificates that can't be created again, as a tar archive of paths from the root. The others are signed by these.
b_keys() {
	set -- etc/kubernetes/pki/ca.crt etc/kubernetes/pki/ca.key etc/kubernetes/pki/sa.key etc/kubernetes/pki/sa.pub \
		etc/kubernetes/pki/front-proxy-ca.crt etc/kubernetes/pki/front-proxy-ca.key \
		etc/kubernetes/pki/etcd/ca.crt etc/kubernetes/pki/etcd/ca.key etc/paictl/encryption.yaml
	for f; do
		[ -f "$R/$f" ] || { echo "/$f is missing on this machine: without it no cluster can be restored" >&2; exit 1; }
	done
	tar -C "$R/" -cf - "$@"
}

# b_etcd: prints this member's database as etcd streams it, compressed: it is JSON with base64 in it, which is four times as long. The checksum
# in the stream shows whether it is complete, and kubectl's message explains why it failed.
b_etcd() {
	said=$({
		{
			printf '{}\n' | etcd_ create --raw /v3/maintenance/snapshot --request-timeout=0 -f - 2>&3 || echo failed >&3
		} | gzip -1 >&4
	} 3>&1) 4>&1
	case $said in *failed) printf '%s\n' "${said%failed}" >&2; exit 1 ;; esac
}
