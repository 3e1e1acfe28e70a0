#!/bin/sh
# One light host: sshd on an overlay, in separate network, UTS, PID and mount namespaces, where
# this script is PID 1. All of it ends with the script.
# Environment: HOST_DIR, BASE, HOST_NAME, HOST_ADDRESS (with prefix length), GATEWAY.
# Standard input: one line once the network interface host0 exists. If the input ends before that,
# the process that started this script is gone.
set -eu

read -r _ || exit 0
mount --make-rslave /
hostname "$HOST_NAME"
root=$HOST_DIR/merged
mkdir -p "$root"
mount -t overlay -o "lowerdir=$BASE,upperdir=$HOST_DIR/upper,workdir=$HOST_DIR/work" \
	paictl-sandbox "$root" || {
	echo "the file system of $HOST_DIR can't be the upper layer of an overlay; choose a --dir on another" >&2
	exit 1
}
mount -t proc proc "$root/proc"
mount -t sysfs -o ro sysfs "$root/sys"
mount -t devpts -o newinstance,ptmxmode=0666,mode=0620,gid=5 devpts "$root/dev/pts"
mount --bind "$root/dev/pts/ptmx" "$root/dev/ptmx"
ip -batch - <<BATCH
link set lo up
addr add $HOST_ADDRESS dev host0
link set host0 up
route add default via $GATEWAY
BATCH

sshd=
trap 'kill -TERM "$sshd" 2>/dev/null; exit 0' TERM INT
# Without PAM, sshd doesn't read /etc/environment: the search path is its default.
chroot "$root" /usr/sbin/sshd -D -o UsePAM=no </dev/null &
sshd=$!
wait "$sshd"
