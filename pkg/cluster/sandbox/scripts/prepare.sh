#!/bin/sh
# Runs inside a full host at every boot, before sshd and containerd: makes the files writable that
# systemd-nspawn mounts read-only and that kubelet or runc must write.
set -eu

# cgroup v1: remount every controller that is read-only.
while read -r _ point type options _; do
	case "$type,$options" in
	cgroup,ro | cgroup,ro,*) mount -o remount,bind,rw "$point" ;;
	esac
done </proc/mounts

# kubelet requires these values, and would write them. The machine's own settings don't change: a file
# covers each of them.
cover() {
	file=/run/paictl-sandbox/$(echo "$1" | tr / .)
	[ ! -e "$file" ] || return 0
	echo "$2" >"$file"
	mount --bind "$file" "/proc/sys/$1"
}
mkdir -p /run/paictl-sandbox
cover vm/overcommit_memory 1
cover vm/panic_on_oom 0
cover kernel/panic 10
cover kernel/panic_on_oops 1
