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
TAB='	'
NL='
'
LOCK=$R/run/paictl-host.lock
KUBECONFIG=$R/etc/kubernetes/admin.conf
# kubectl would leave a cache in the home of whoever it runs as. A script that only reads
# gets none: kubectl can't make a folder there, and goes on without.
KUBECACHEDIR=/dev/null/kubectl
export KUBECONFIG KUBECACHEDIR

# A host runs these scripts often, and starting a program is what takes their time. So one program
# looks at many files, and the shell does by itself what it can.

# sha_in FILE: sets sha to its hash.
sha_in() {
	sha=$(sha256sum <"$1") || sha=
	sha=${sha%% *}
}

# line_in FILE: sets line to its first one, or to nothing.
line_in() {
	line=
	[ ! -f "$1" ] || read -r line <"$1" || :
}

# on_record KIND WHAT: whether paictl has noted that it made, or changed, this on the host.
on_record() {
	[ -f "$S/owned" ] || return 1
	while IFS=$TAB read -r kind_ what_ _; do
		if [ "$kind_" = "$1" ] && [ "$what_" = "$2" ]; then return 0; fi
	done <"$S/owned"
	return 1
}

# real_of PATH: sets real to the path without links: the kernel lists mounts by it.
real_of() {
	real=$(readlink -f "$R$1") || real=$R$1
	real=${real#"$R"}
}

# mounts_below PATH: what is mounted below it, the last mounted first.
mounts_below() {
	[ -r "$R/proc/self/mountinfo" ] || return 0
	real_of "$1"
	REAL=$real awk '{ m = $5; gsub(/\\040/, " ", m); gsub(/\\011/, "\t", m); if (index(m, ENVIRON["REAL"] "/") == 1) l[++n] = m } END { for (; n > 0; n--) print l[n] }' "$R/proc/self/mountinfo"
}

# package_row NAME: what dpkg knows of a package, "name version letters" with a tab before the version. Of those that are there for several
# architectures it is the machine's own, and the name says so where dpkg wants that.
package_row() {
	native=${native:-$(dpkg --print-architecture)}
	dpkg-query -W -f '${Architecture}\t${binary:Package}\t${Version} ${db:Status-Abbrev}\n' "$1" 2>/dev/null |
		awk -F '\t' -v native="$native" '$1 == native || $1 == "all" { print $2 "\t" $3 }'
}

# sysctl_file KEY: sets f to where the kernel keeps it. A dot in a key is a slash there.
sysctl_file() {
	f=$1
	while :; do
		case $f in
		*.*) f=${f%%.*}/${f#*.} ;;
		*) break ;;
		esac
	done
	f=$R/proc/sys/$f
}

# sysctl_in FILE: sets v to the value, in one line without tabs and blanks at its end. A shell would
# get no more than the first byte of a number: it reads byte by byte, and the kernel says it once.
sysctl_in() {
	v=$(cat "$1") || v=
	while :; do
		case $v in
		*"$TAB"*) v="${v%%"$TAB"*} ${v#*"$TAB"}" ;;
		*"$NL"*) v="${v%%"$NL"*} ${v#*"$NL"}" ;;
		*" ") v=${v% } ;;
		*) break ;;
		esac
	done
}

# stamped PATH...: prints "mode sha path" of each, with tabs between. The hash comes from the stamp
# that apply left, while size, change time and inode are still the same; else it is "-".
stamped() {
	for p; do
		shift
		set -- "$@" "$R$p"
	done
	stamps=$S/stamps
	[ -f "$stamps" ] || stamps=/dev/null
	live=$(stat -c "%a$TAB%s %.9Z %i$TAB%n" "$@") || exit 1
	printf '%s\n' "$live" | awk -F '\t' -v skip="${#R}" '
		!live { sha[$1 FS $3] = $2; next }
		{ p = substr($3, skip + 1); k = p FS $2; print $1 FS (k in sha ? sha[k] : "-") FS p }' live=0 "$stamps" live=1 -
}

# unit_hash PATH...: stands for the content of the files that a unit reads at its start. Its program is the
# largest of them, and has a stamp.
unit_hash() {
	for p; do
		shift
		[ ! -f "$R$p" ] || set -- "$@" "$p"
	done
	known=
	if [ $# -gt 0 ]; then
		rows=$(stamped "$@") || exit 1
		set --
		while IFS=$TAB read -r _ sha p; do
			if [ "$sha" = - ]; then set -- "$@" "$R$p"; else known="$known$sha$NL"; fi
		done <<ROWS
$rows
ROWS
	fi
	# Sorted: a file may have lost its stamp.
	h=$({
		printf %s "$known"
		[ $# -eq 0 ] || sha256sum "$@"
	} | cut -c 1-64 | sort | sha256sum)
	printf '%s\n' "${h%% *}"
}

# is_member: whether this machine was taken into a cluster.
is_member() { [ -f "$S/member" ] && [ -f "$R/etc/kubernetes/kubelet.conf" ]; }

# unit_cause UNIT: what the kubelet or containerd said last about why it ended, or the last line of another program, in one line.
unit_cause() {
	journalctl -u "$1" -n 60 -o cat --no-pager 2>/dev/null | awk '
		{ any = $0 }
		/^containerd: / { last = $0 }
		/^[EF][0-9]+ / {
			sub(/^[^]]*\] /, "")
			last = $0
			if (sub(/^"command failed" err="/, "")) {
				sub(/"$/, "")
				gsub(/\\"/, "\"")
				failed = $0
			}
		}
		END { print failed != "" ? failed : last != "" ? last : any }' | tr '\t' ' ' | cut -c1-400
}

# pod_links: the interfaces of the pods' network that are there: the pods' ends of the bridge,
# the bridge, the tunnel.
pod_links() {
	command -v ip >/dev/null 2>&1 || return 0
	for l in $(ip -o link show master cni0 2>/dev/null | sed 's/^[0-9]*: \([^@:]*\).*/\1/') cni0 flannel.1 flannel-v6.1; do
		if ip link show "$l" >/dev/null 2>&1; then echo "$l"; fi
	done
}

# flannel_was_given NAME: NETWORK, or SUBNET, as flannel has written it down.
flannel_was_given() { sed -n "s/^FLANNEL_$1=//p" "$R/run/flannel/subnet.env" 2>/dev/null || true; }

# pod_network: prints "podnet address subnet": what the pods' bridge has, and what flannel has.
pod_network() {
	printf 'podnet\t%s\t%s\n' "$(ip -o -4 addr show dev cni0 2>/dev/null | awk '{ print $4; exit }')" "$(flannel_was_given SUBNET)"
}
