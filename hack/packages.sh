#!/bin/sh
# Usage: packages.sh gate|test|demo
# Installs the missing Debian packages that "make test" (gate), the later tiers (test) or "make demo" need, if it runs as root.
# Otherwise it prints the one command that installs them, and exits with status 1.
set -eu

# Two columns: a program or file that the package installs, and the package's name.
# A word without a slash is a program; a word with one is the pattern of a file.
needs() {
	cat <<-'LIST'
		gcc gcc
		/usr/include/stdio.h libc6-dev
		git git
		bash bash
		dash dash
		busybox busybox
		openssl openssl
	LIST
	[ "$1" != gate ] || return 0
	cat <<-'LIST'
		pkg-config pkg-config
		/usr/include/seccomp.h libseccomp-dev
	LIST
	# Hosts are only made by root.
	[ "$(id -u)" -eq 0 ] || return 0
	cat <<-'LIST'
		debootstrap debootstrap
		systemd-nspawn systemd-container
		ip iproute2
		nft nftables
		ssh openssh-client
		ssh-keygen openssh-client
		unshare util-linux
	LIST
	# The transport, the archive of jobs, sign-ins and pages are tested with the real things, too.
	[ "$1" != test ] || printf '%s\n' "sshd openssh-server" "sudo sudo" "curl curl" "wget wget" "minisign minisign" "/usr/lib/postgresql/*/bin/postgres postgresql" "slapd slapd" "node nodejs" "npm npm" "chromium chromium" "python3 python3" "qemu-aarch64-static qemu-user-static"
}

present() {
	case $1 in
	/*)
		# shellcheck disable=SC2086 # a pattern, of which any match will do
		set -- $1
		[ -e "$1" ]
		;;
	# /usr/sbin is not on everyone's PATH.
	*) command -v "$1" >/dev/null || [ -x "/usr/sbin/$1" ] || [ -x "/sbin/$1" ] ;;
	esac
}

missing=$(needs "${1:-test}" | while read -r sign package; do
	present "$sign" || echo "$package"
done | sort -u | tr '\n' ' ')
[ -n "$missing" ] || exit 0

if ! command -v apt-get >/dev/null; then
	echo "packages: not a Debian or Ubuntu machine; install what these packages hold: $missing" >&2
	exit 1
fi
if [ "$(id -u)" -ne 0 ]; then
	echo "packages: as root, run: apt-get update && apt-get install -y --no-install-recommends $missing" >&2
	exit 1
fi
echo "packages: installing $missing" >&2
# Packages must not start their services: policy-rc.d is the distribution's own way to prevent
# that; the exit status 101 means "not allowed".
policy=/usr/sbin/policy-rc.d
if [ ! -e "$policy" ]; then
	printf '#!/bin/sh\nexit 101\n' >"$policy"
	chmod 755 "$policy"
	trap 'rm -f "$policy"' EXIT
	trap 'exit 130' INT TERM
fi
export DEBIAN_FRONTEND=noninteractive
apt-get update -q >&2
# shellcheck disable=SC2086 # a list of words
apt-get install -q -y --no-install-recommends $missing >&2
