# Repairs of "--fix". Each is safe to repeat. They make a host what any host should be, and
# so stay when the cluster goes; the journal tells of them.

# apt ARGS...: apt-get with the configured proxy, whose variables the caller has set. They
# go by the environment: a command line would show them to everyone on the machine.
apt() {
	(
		[ -z "${APT_HTTP_PROXY:-}" ] || export http_proxy="$APT_HTTP_PROXY"
		[ -z "${APT_HTTPS_PROXY:-}" ] || export https_proxy="$APT_HTTPS_PROXY"
		[ -z "${APT_NO_PROXY:-}" ] || export no_proxy="$APT_NO_PROXY"
		exec apt-get "$@"
	)
}

# p_packages NAME...: by the system's own apt. The lists of packages are fetched only where
# it does not go without. Another apt may be at work, such as the daily upgrade: wait for it.
p_packages() {
	DEBIAN_FRONTEND=noninteractive
	export DEBIAN_FRONTEND
	set -- -o DPkg::Lock::Timeout=120 -o Acquire::Retries=2 -y --no-install-recommends install "$@"
	if ! apt "$@" >/dev/null 2>&1 </dev/null; then
		apt -o DPkg::Lock::Timeout=120 update >/dev/null </dev/null
		apt "$@" >/dev/null </dev/null
	fi
}

# p_service UNIT
p_service() { systemctl enable --now --quiet "$1"; }

# p_hostname NAME
p_hostname() { hostnamectl set-hostname "$1"; }
