# The repairs of "--fix". Each can safely be repeated. They make settings that suit any host, so
# they stay when the cluster is removed; the journal records them.

# apt ARGS...: runs apt-get with the configured proxy, whose variables the caller has set. They are
# passed in the environment: a command line would show them to everyone on the machine.
apt() {
	(
		[ -z "${APT_HTTP_PROXY:-}" ] || export http_proxy="$APT_HTTP_PROXY"
		[ -z "${APT_HTTPS_PROXY:-}" ] || export https_proxy="$APT_HTTPS_PROXY"
		[ -z "${APT_NO_PROXY:-}" ] || export no_proxy="$APT_NO_PROXY"
		exec apt-get "$@"
	)
}

# p_packages NAME...: installs them with the system's apt. The package lists are fetched only if the
# installation fails with the present ones. If another apt runs, such as the daily upgrade, wait for it.
p_packages() {
	DEBIAN_FRONTEND=noninteractive
	export DEBIAN_FRONTEND
	set -- -o DPkg::Lock::Timeout=120 -o Acquire::Retries=2 -y --no-install-recommends install "$@"
	if ! apt "$@" >/dev/null 2>&1 </dev/null; then
		apt -o DPkg::Lock::Timeout=120 update >/dev/null </dev/null
		apt "$@" >/dev/null </dev/null
	fi
}

# p_hostname NAME
p_hostname() { hostnamectl set-hostname "$1"; }
