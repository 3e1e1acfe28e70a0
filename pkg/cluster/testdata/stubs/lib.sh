# What the stubs of a fake host's programs have in common. They keep the host's state under
# $PAICTL_ROOT/.fake and the cluster's, which all hosts share, under $FAKE_CLUSTER.
set -eu
R=$PAICTL_ROOT
F=$R/.fake
C=$FAKE_CLUSTER
me=${0##*/}
log() { printf '%s\n' "$me $*" >>"$F/calls"; }

# hit is a point at which a crash test may end everything: at the FAKE_BREAKth and all after. What kind it is lies in a file:
# the program, and the first word that says what it does.
point=$me
if [ -n "${FAKE_BREAK:-}" ]; then
	for word in "$@"; do
		case $word in
		-* | *[!a-z-]*) ;;
		?*) point="$me $word" && break ;;
		esac
	done
fi
hit() {
	[ -n "${FAKE_BREAK:-}" ] || return 0
	printf '%s\n' "$point" >>"$C/points"
	printf x >>"$C/hits"
	read -r hits <"$C/hits" || :
	if [ "${#hits}" -ge "$FAKE_BREAK" ]; then kill -KILL 0; fi
}

# refuse ends a call that no test has thought of, and the test with it.
refuse() {
	printf '%s\n' "$me $*" >>"$F/refused"
	echo "fake $me: unexpected call: $*" >&2
	exit 97
}

# No program is to see the proxy that the machine gives to its users. Tools for files and waiting, which
# the transport calls too, ask no network.
case $me:${http_proxy-}${https_proxy-}${all_proxy-}${no_proxy-}${HTTP_PROXY-}${HTTPS_PROXY-}${ALL_PROXY-}${NO_PROXY-} in
chmod:* | cp:* | date:* | mv:* | rm:* | sleep:*) ;;
*:?*) refuse "$@" "(sees the machine's proxy)" ;;
esac

# first FILE: sets line to its first line, without a program; so are the others here, since a test
# runs hundreds of them.
first() { read -r line <"$1" || :; }

# map STRING A B: sets mapped to the string with each A as B.
map() {
	mapped= rest=$1
	while :; do
		case $rest in
		*"$2"*) mapped=$mapped${rest%%"$2"*}$3 rest=${rest#*"$2"} ;;
		*) break ;;
		esac
	done
	mapped=$mapped$rest
}

unit_is() { [ -e "$F/units/$1.$2" ]; }

# effect ends a program that a test wants to end right after its effect.
effect() {
	hit
	if [ -e "$F/cut/$me" ]; then exit 9; fi
}

# kubelet_certificate is what the kubelet does while others wait: it asks for its server's certificate, and gets it where the approver knows the machine.
kubelet_certificate() {
	unit_is kubelet.service active && [ ! -e "$R/var/lib/kubelet/pki/kubelet-server-current.pem" ] && [ ! -e "$F/fail/serving" ] || return 0
	grep -qs '^serverTLSBootstrap: true' "$R"/etc/paictl/kubelet.conf.d/* || return 0
	first "$R/proc/sys/kernel/hostname"
	[ -e "$C/objects/approver" ] && grep -qs "^  $line: " "$C/objects/machines" || return 0
	mkdir -p "$R/var/lib/kubelet/pki"
	echo signed >"$R/var/lib/kubelet/pki/kubelet-server-current.pem"
}
