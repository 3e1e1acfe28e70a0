# Repairs of "--fix". Each is safe to repeat. They make a host what any host should be, and
# so stay when the cluster goes; the journal tells of them.

# p_packages NAME...: by the system's own apt. The lists of packages are fetched only where
# it does not go without. Another apt may be at work, such as the daily upgrade: wait for it.
p_packages() {
	DEBIAN_FRONTEND=noninteractive
	export DEBIAN_FRONTEND
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
