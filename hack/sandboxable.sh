#!/bin/sh
# Reports whether this machine can hold sandbox hosts: status 0, or 1 with the reason on stdout.
set -eu

no() {
	echo "$1"
	exit 1
}

[ "$(uname -s)" = Linux ] || no "hosts need Linux, this is $(uname -s)"
[ "$(id -u)" -eq 0 ] || no "hosts need root"
for program in unshare systemd-nspawn debootstrap ip nft ssh; do
	command -v "$program" >/dev/null || [ -x "/usr/sbin/$program" ] || no "hosts need $program"
done
unshare --mount --net --pid --uts --fork true 2>/dev/null || no "this machine forbids new namespaces (a container without CAP_SYS_ADMIN?)"
unshare --mount --net sh -c 'ip link add paictl-try type bridge' 2>/dev/null || no "this machine can't make a network bridge"
