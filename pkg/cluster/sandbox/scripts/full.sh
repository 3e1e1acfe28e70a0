#!/bin/sh
# Keeps one full host running: mounts its root in a separate mount namespace, boots it,
# and boots it again when the guest asks for a reboot (exit code 133 of systemd-nspawn).
# Environment: HOST_DIR, BASE, CGROUPS (directories, separated by spaces).
# Arguments: those of systemd-nspawn, without the program's name.
set -eu

mount --make-rslave /
mkdir -p "$HOST_DIR/merged"
mount -t overlay -o "lowerdir=$BASE,upperdir=$HOST_DIR/upper,workdir=$HOST_DIR/work" \
	paictl-sandbox "$HOST_DIR/merged" || {
	echo "the file system of $HOST_DIR can't be the upper layer of an overlay; choose a --dir on another" >&2
	exit 1
}
# systemd-nspawn's records of its guest must end with this mount namespace, too.
mkdir -p /run/systemd/nspawn
mount -t tmpfs -o mode=0755 paictl-sandbox /run/systemd/nspawn

guest=
stopping=
# The next boot may fail if the kernel still removes the network interface or a mount of the last one.
tries=0
stop() {
	stopping=1
	if [ -n "$guest" ]; then
		kill -TERM "$guest" 2>/dev/null || true
	fi
}
trap stop TERM INT

while [ -z "$stopping" ]; do
	for group in $CGROUPS; do
		# Remove the empty groups that the last boot has left, the deepest first.
		find "$group" -mindepth 1 -depth -type d -exec rmdir {} + 2>/dev/null || true
	done
	(
		trap - TERM INT
		for group in $CGROUPS; do
			echo 0 >"$group/cgroup.procs"
		done
		exec systemd-nspawn "$@" </dev/null
	) &
	guest=$!
	status=0
	wait "$guest" || status=$?
	# A trapped signal ends wait before the guest ends.
	while kill -0 "$guest" 2>/dev/null; do
		status=0
		wait "$guest" || status=$?
	done
	[ -z "$stopping" ] || exit "$status"
	case $status in
	133) tries=10 ;;
	1)
		[ "$tries" -gt 0 ] || exit 1
		tries=$((tries - 1))
		echo "the restart failed, and is tried again"
		sleep 2
		;;
	*) exit "$status" ;;
	esac
done
