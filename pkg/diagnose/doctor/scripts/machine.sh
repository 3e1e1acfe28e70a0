# Prints the doctor's measurements of a machine, besides its facts and its status: one line per answer, its kind first,
# fields separated by tabs. It only reads, and must not wait for a server that doesn't answer. Given by
# the caller: PATHS (folders whose room counts), VOLUMES (folders of volumes), ADDRESS (the machine's).

R=${R:-}

# The file systems of the folders, except for those on a file server: an unavailable one would never answer.
m_disks() {
	servers=$(awk '$2 != "/" && $3 ~ /^(nfs4?|ceph|lustre|cifs|smb3?|beegfs|gpfs|fuse.*)$/ { print $2 }' "$R/proc/self/mounts" 2>/dev/null)
	set --
	for p in $PATHS; do
		for s in $servers; do
			case $p/ in "$s"/*) continue 2 ;; esac
		done
		set -- "$@" "$p"
	done
	filesystems "$@"
}

# "fstab target type options yes|no": whether what is to be mounted at every start is mounted.
m_fstab() {
	[ -r "$R/etc/fstab" ] && [ -r "$R/proc/self/mounts" ] || return 0
	awk '
		mounts { at[$2] = 1; next }
		/^[ \t]*#/ || NF < 4 { next }
		$2 !~ /^\// || $3 == "swap" || $3 == "none" || ("," $4 ",") ~ /,(noauto|x-systemd\.automount|bind),/ { next }
		{ t = $2; if (t != "/") sub(/\/+$/, "", t); printf "fstab\t%s\t%s\t%s\t%s\n", t, $3, $4, (t in at) ? "yes" : "no" }
	' mounts=1 "$R/proc/self/mounts" mounts=0 "$R/etc/fstab"
}

# "netmount target type ok|hangs" of each file system of a server, each source once. After three that hang the rest isn't asked:
# it is likely to be the same server, and each takes five seconds.
m_netmounts() {
	[ -r "$R/proc/self/mounts" ] || return 0
	hanging=0
	awk '$3 ~ /^(nfs4?|ceph|lustre|cifs|smb3|beegfs|gpfs)$/ && !seen[$1]++ { print $2, $3 }' "$R/proc/self/mounts" | head -n 50 | while read -r t k; do
		[ "$hanging" -lt 3 ] || break
		t=$(printf '%b' "$t")
		if timeout -s KILL 5 stat -f "$t" >/dev/null 2>&1; then s=ok; else s=hangs hanging=$((hanging + 1)); fi
		printf 'netmount\t%s\t%s\t%s\n' "$t" "$k" "$s"
	done
}

# "volume path there|absent"
m_volumes() {
	for p in $VOLUMES; do
		if timeout -s KILL 5 test -d "$R$p"; then s=there; else s=absent; fi
		printf 'volume\t%s\t%s\n' "$p" "$s"
	done
}

# "unit name active enabled": systemd's words.
m_units() {
	command -v systemctl >/dev/null 2>&1 || return 0
	for u in kubelet containerd; do
		e=$(systemctl is-enabled "$u.service" 2>/dev/null) || :
		case $e in '' | not-found) continue ;; esac
		a=$(systemctl is-active "$u.service" 2>/dev/null) || :
		printf 'unit\t%s\t%s\t%s\n' "$u" "$a" "$e"
	done
	systemctl list-units --failed --no-legend --plain 'paictl*' 'nvidia*' 2>/dev/null | awk 'NF { print "failed\t" $1 }'
}

# "link name mtu" of the machine's own interface, of the pods' bridge and of the tunnel; "default name".
m_links() {
	command -v ip >/dev/null 2>&1 || return 0
	own=$(ip -o addr show 2>/dev/null | awk -v a="$ADDRESS" '{ split($4, x, "/"); if (x[1] == a) { sub(/@.*/, "", $2); print $2; exit } }')
	[ -z "$own" ] || printf 'own\t%s\n' "$own"
	for l in "$own" flannel.1 flannel-v6.1 cni0; do
		[ -n "$l" ] && [ -r "$R/sys/class/net/$l/mtu" ] || continue
		read -r mtu <"$R/sys/class/net/$l/mtu"
		printf 'link\t%s\t%s\n' "$l" "$mtu"
	done
}

# "toolkit version": NVIDIA's container toolkit.
m_toolkit() {
	command -v nvidia-ctk >/dev/null 2>&1 || return 0
	printf 'toolkit\t%s\n' "$(timeout 10 nvidia-ctk --version 2>/dev/null | awk 'NR == 1 { print $NF }')"
}

# "snapshot path time": the newest copy of etcd's database in the usual places, by its time in seconds.
m_snapshots() {
	for d in /var/lib/etcd-backup /var/backups/etcd /var/lib/paictl/etcd-backup /opt/etcd-backup; do
		[ -d "$R$d" ] || continue
		f=$(find "$R$d" -type f -name '*.db*' 2>/dev/null | head -n 1000 | xargs -r ls -t 2>/dev/null | head -n 1)
		[ -n "$f" ] || continue
		printf 'snapshot\t%s\t%s\n' "${f#"$R"}" "$(stat -c %Y "$f" 2>/dev/null)"
	done
}

m_look() {
	m_disks
	m_fstab
	m_netmounts
	m_volumes
	m_units
	m_links
	m_toolkit
	m_snapshots
	printf 'now\t%s\n' "$(date +%s)"
	printf 'end\tok\n'
}
