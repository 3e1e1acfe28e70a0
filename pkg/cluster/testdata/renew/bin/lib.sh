# A control plane machine whose kubelet restarts what has ended, for the program that renews
# certificates. A certificate is the line "crt NAME NUMBER LEFT" with the seconds that it has
# left, its key "key NAME NUMBER": with different numbers they are no pair. A component that
# runs is the file $F/run/NAME with its container's number; $F/holds/NAME is what it has read.
. "$FAKE_STUBS/lib.sh"
K=$R/etc/kubernetes
ALL="admin.conf apiserver apiserver-etcd-client apiserver-kubelet-client controller-manager.conf etcd-healthcheck-client
	etcd-peer etcd-server front-proxy-client scheduler.conf super-admin.conf"
files_of() {
	case $1 in
	*.conf) echo "$1 $1" ;;
	etcd-*) echo "pki/etcd/${1#etcd-}.key pki/etcd/${1#etcd-}.crt" ;;
	*) echo "pki/$1.key pki/$1.crt" ;;
	esac
}
left_of() { sed -n 's/^crt [^ ]* [^ ]* //p' "$1"; }
next() {
	n=$(($(cat "$F/next" 2>/dev/null || echo 0) + 1))
	echo "$n" >"$F/next"
	echo "$n"
}
# held_by COMPONENT: its certificates.
held_by() {
	case $1 in
	etcd) echo etcd-server etcd-peer etcd-healthcheck-client ;;
	kube-apiserver) echo apiserver apiserver-etcd-client apiserver-kubelet-client front-proxy-client ;;
	*) echo "${1#kube-}.conf" ;;
	esac
}
# pair CERTIFICATE: its number, where certificate and key belong together.
pair() {
	set -- $(files_of "$1")
	k=$(sed -n 's/^key [^ ]* //p' "$K/$1")
	c=$(sed -n 's/^crt [^ ]* \([^ ]*\) .*/\1/p' "$K/$2")
	[ -n "$k" ] && [ "$k" = "$c" ] && echo "$k"
}
