# A control plane machine whose kubelet restarts what has ended, for the program that renews
# certificates. A certificate is the line "crt NAME NUMBER LEFT" with the seconds that it has
# left, its key "key NAME NUMBER": with different numbers they are no pair. A component that
# runs is the file $F/run/NAME with its container's number; $F/holds/NAME is what it has read.
. "$FAKE_STUBS/lib.sh"
K=$R/etc/kubernetes
ALL="admin.conf apiserver apiserver-etcd-client apiserver-kubelet-client controller-manager.conf etcd-healthcheck-client
	etcd-peer etcd-server front-proxy-client scheduler.conf super-admin.conf"
# files_of CERTIFICATE: sets key and crt. Like the others here it starts no program: a test that
# kills the machine everywhere calls them some thousand times.
files_of() {
	case $1 in
	*.conf) key=$1 crt=$1 ;;
	etcd-*) key=pki/etcd/${1#etcd-}.key crt=pki/etcd/${1#etcd-}.crt ;;
	*) key=pki/$1.key crt=pki/$1.crt ;;
	esac
}
# numbers_in FILE: sets left and certified by its line "crt", keyed by its line "key".
numbers_in() {
	left= certified= keyed=
	while read -r what _ number rest; do
		case $what in
		crt) certified=$number left=$rest ;;
		key) keyed=$number ;;
		esac
	done <"$1"
}
# next: sets n.
next() {
	line=0
	[ ! -e "$F/next" ] || first "$F/next"
	n=$((line + 1))
	echo "$n" >"$F/next"
}
# held_by COMPONENT: sets held to its certificates.
held_by() {
	case $1 in
	etcd) held="etcd-server etcd-peer etcd-healthcheck-client" ;;
	kube-apiserver) held="apiserver apiserver-etcd-client apiserver-kubelet-client front-proxy-client" ;;
	*) held=${1#kube-}.conf ;;
	esac
}
# pair CERTIFICATE: sets k to its number, where certificate and key belong together.
pair() {
	files_of "$1"
	numbers_in "$K/$key"
	k=$keyed
	numbers_in "$K/$crt"
	[ -n "$k" ] && [ "$k" = "$certified" ]
}
