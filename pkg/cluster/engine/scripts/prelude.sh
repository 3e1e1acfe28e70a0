set -eu
LC_ALL=C
export LC_ALL
PATH=${PATH:-}:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
umask 022
# A proxy in the machine's /etc/environment is for its users: kubectl would send it requests for the
# cluster's own addresses, and kubeadm would write it into the control plane's pods.
unset http_proxy https_proxy ftp_proxy all_proxy no_proxy HTTP_PROXY HTTPS_PROXY FTP_PROXY ALL_PROXY NO_PROXY
# R is empty on a host. In tests it is the root of a simulated host.
R=${PAICTL_ROOT:-}
S=$R/var/lib/paictl
TAB='	'
NL='
'
LOCK=$R/run/paictl-host.lock
KUBECONFIG=$R/etc/kubernetes/admin.conf
# kubectl would create a cache in the home folder of the user that runs it. A script that only reads
# has no cache: kubectl can't create this folder, and works without one.
KUBECACHEDIR=/dev/null/kubectl
export KUBECONFIG KUBECACHEDIR

# These scripts run often on a host, and spend most of their time starting programs. So one program
# reads many files, and the shell's built-in features do as much as they can.

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

# on_record KIND NAME: reports whether paictl has recorded that it created or changed this on the host.
on_record() {
	[ -f "$S/owned" ] || return 1
	while IFS=$TAB read -r kind_ what_ _; do
		if [ "$kind_" = "$1" ] && [ "$what_" = "$2" ]; then return 0; fi
	done <"$S/owned"
	return 1
}

# real_of PATH: sets real to the path with its links resolved: the kernel lists mounts by it.
real_of() {
	real=$(readlink -f "$R$1") || real=$R$1
	real=${real#"$R"}
}

# mounts_below PATH: prints the mount points below it, the last mounted first.
mounts_below() {
	[ -r "$R/proc/self/mountinfo" ] || return 0
	real_of "$1"
	REAL=$real awk '{ m = $5; gsub(/\\040/, " ", m); gsub(/\\011/, "\t", m); if (index(m, ENVIRON["REAL"] "/") == 1) l[++n] = m } END { for (; n > 0; n--) print l[n] }' "$R/proc/self/mountinfo"
}

# package_row NAME: prints dpkg's entry for a package as "name version letters", with a tab before the version. If a package is installed for
# several architectures, it prints the machine's own, with the architecture in the name if dpkg requires it.
package_row() {
	native=${native:-$(dpkg --print-architecture)}
	dpkg-query -W -f '${Architecture}\t${binary:Package}\t${Version} ${db:Status-Abbrev}\n' "$1" 2>/dev/null |
		awk -F '\t' -v native="$native" '$1 == native || $1 == "all" { print $2 "\t" $3 }'
}

# sysctl_file KEY: sets f to the key's file in /proc/sys. A dot in a key is a slash there.
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

# sysctl_in FILE: sets v to the value, on one line, without tabs or trailing blanks. The shell's read
# would get only the first byte of a number: it reads byte by byte, and the kernel returns the value once.
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

# stamped PATH...: prints "mode sha path" of each, separated by tabs. The hash comes from the stamp that
# apply wrote, if size, change time and inode are still the same; otherwise it is "-".
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

# unit_hash PATH...: prints one hash for the content of the files that a unit reads when it starts. Its program is
# the largest of them, and has a stamp.
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
	# Sort them: a file may have lost its stamp since the last time, which changes the order.
	h=$({
		printf %s "$known"
		[ $# -eq 0 ] || sha256sum "$@"
	} | cut -c 1-64 | sort | sha256sum)
	printf '%s\n' "${h%% *}"
}

# is_member: reports whether this machine has joined a cluster.
is_member() { [ -f "$S/member" ] && [ -f "$R/etc/kubernetes/kubelet.conf" ]; }

# unit_cause UNIT: prints, on one line, the last reason that the kubelet or containerd logged for its end, or the last line of another program.
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

# pod_links: prints the existing interfaces of the pods' network: the pods' ends of the bridge, the
# bridge and the tunnels.
pod_links() {
	command -v ip >/dev/null 2>&1 || return 0
	for l in $(ip -o link show master cni0 2>/dev/null | sed 's/^[0-9]*: \([^@:]*\).*/\1/') cni0 flannel.1 flannel-v6.1; do
		if ip link show "$l" >/dev/null 2>&1; then echo "$l"; fi
	done
}

# flannel_was_given NAME: prints flannel's NETWORK or SUBNET, from the file that flannel writes.
flannel_was_given() { sed -n "s/^FLANNEL_$1=//p" "$R/run/flannel/subnet.env" 2>/dev/null || true; }

# pod_network: prints "podnet address subnet": the address of the pods' bridge, and flannel's subnet.
pod_network() {
	printf 'podnet\t%s\t%s\n' "$(ip -o -4 addr show dev cni0 2>/dev/null | awk '{ print $4; exit }')" "$(flannel_was_given SUBNET)"
}
