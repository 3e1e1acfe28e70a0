set -eu
LC_ALL=C
export LC_ALL
PATH=${PATH:-}:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
umask 022
# A proxy of the machine's /etc/environment is for its users: kubectl would ask it for the
# cluster's own addresses, and kubeadm would write it into the control plane's pods.
unset http_proxy https_proxy ftp_proxy all_proxy no_proxy HTTP_PROXY HTTPS_PROXY FTP_PROXY ALL_PROXY NO_PROXY
# R is empty on a host and the root of a pretended one in tests.
R=${PAICTL_ROOT:-}
S=$R/var/lib/paictl
TAB=$(printf '\t')
LOCK=$R/run/paictl-host.lock
KUBECONFIG=$R/etc/kubernetes/admin.conf
# kubectl would leave a cache in the home of whoever it runs as. A script that only reads
# gets none: kubectl can't make a folder there, and goes on without.
KUBECACHEDIR=/dev/null/kubectl
export KUBECONFIG KUBECACHEDIR

# unit_hash PATH...: stands for the content of the files that a unit reads at its start.
unit_hash() {
	for p; do
		[ ! -f "$R$p" ] || sha256sum <"$R$p"
	done | sha256sum | cut -c1-64
}
