# Repairs of "--fix". Each is safe to repeat. They make a host what any host should be, and
# so stay when the cluster goes; the journal tells of them.

# p_packages NAME...: installs what is not installed yet, with the system's own apt.
p_packages() {
	for q; do
		shift
		case $(dpkg-query -W -f '${Status}' "$q" 2>/dev/null) in
			*' installed') ;;
			*) set -- "$@" "$q" ;;
		esac
	done
	[ $# -gt 0 ] || return 0
	DEBIAN_FRONTEND=noninteractive
	export DEBIAN_FRONTEND
	# Another apt may be at work, such as the daily upgrade: wait for it.
	set -- -o DPkg::Lock::Timeout=120 -o Acquire::Retries=2 -y --no-install-recommends install "$@"
	if ! apt-get "$@" >/dev/null 2>&1 </dev/null; then
		apt-get -o DPkg::Lock::Timeout=120 update >/dev/null </dev/null
		apt-get "$@" >/dev/null </dev/null
	fi
}

# p_service UNIT
p_service() { systemctl enable --now --quiet "$1"; }

# p_hostname NAME
p_hostname() { hostnamectl set-hostname "$1"; }
