# A mutating script of an earlier run may still be running, orphaned by a lost connection. Wait for
# it, since the result of its work is the state to detect.
if [ -e "$LOCK" ]; then
	exec 9<"$LOCK"
	flock -s -w 300 9 || { echo "a script of another paictl run is still at work on this host" >&2; exit 75; }
fi

# d_files: lines "path<TAB>sha256<TAB>p|s" on standard input, p for public. Prints
# "file path mode sha [base64]", with the content only for public files that differ.
d_files() {
	set --
	asked=
	while IFS=$TAB read -r p want kind; do
		if [ -f "$R$p" ]; then
			set -- "$@" "$R$p"
			asked="$asked$p$TAB$want$TAB$kind
"
		else
			printf 'file\t%s\tabsent\n' "$p"
		fi
	done
	[ $# -gt 0 ] || return 0
	# Both programs print one line for each file, in this order. A file that can't be read,
	# for example on a bad disk, counts as one that differs.
	sums=$(sha256sum "$@" 2>/dev/null) || sums=$(for f; do sha256sum <"$f" 2>/dev/null || echo unreadable; done)
	stats=$(stat -c '%a %s' "$@") || exit 1
	while IFS=$TAB read -r p want kind && read -r have _ <&3 && read -r mode size <&4; do
		body=
		if [ "$have" != "$want" ] && [ "$kind" = p ] && [ "$size" -lt 65536 ]; then
			body=$(base64 -w 0 <"$R$p" 2>/dev/null) || body=
		fi
		printf 'file\t%s\t%s\t%s\t%s\n' "$p" "$mode" "$have" "$body"
	done 3<<SUMS 4<<STATS <<ASKED
$sums
SUMS
$stats
STATS
${asked%?}
ASKED
}

# sha_of PATH: sets sha to the file's hash.
sha_of() {
	sha=$(stamped "$1")
	sha=${sha#*"$TAB"}
	sha=${sha%%"$TAB"*}
	[ "$sha" != - ] || sha_in "$R$1"
}

# d_artifacts: paths on standard input. Prints "art path mode sha".
d_artifacts() {
	set --
	while read -r p; do
		if [ -f "$R$p" ]; then set -- "$@" "$p"; else printf 'art\t%s\tabsent\n' "$p"; fi
	done
	[ $# -gt 0 ] || return 0
	rows=$(stamped "$@") || exit 1
	while IFS=$TAB read -r mode sha p; do
		[ "$sha" != - ] || sha_in "$R$p"
		printf 'art\t%s\t%s\t%s\n' "$p" "$mode" "$sha"
	done <<ROWS
$rows
ROWS
}

# d_kubernetes PATH SHA: prints the Kubernetes version that a member of a cluster runs, "kubernetes program
# version". The kubelet at PATH is only run if it differs from the bundle's.
d_kubernetes() {
	[ -f "$S/member" ] || return 0
	if [ -x "$R$1" ]; then
		sha_of "$1"
		if [ "$sha" != "$2" ]; then
			v=$(timeout -k 5 30 "$R$1" --version 2>/dev/null | sed -n 's/^Kubernetes \(v[0-9][^ ]*\)$/\1/p') || v=
			printf 'kubernetes\tkubelet\t%s\n' "$v"
		fi
	fi
	f=$R/etc/kubernetes/manifests/kube-apiserver.yaml
	if [ -r "$f" ]; then
		printf 'kubernetes\tAPI server\t%s\n' "$(sed -n 's/^ *image: .*:\(v[0-9][^@"]*\).*/\1/p' "$f" | head -n 1)"
	fi
}

# d_block PATH: prints the managed block of a file.
d_block() {
	body=
	if [ -f "$R$1" ]; then
		body=$(awk '/^# BEGIN paictl$/ { on = 1; next } /^# END paictl$/ { on = 0 } on' "$R$1" | base64 -w 0)
	fi
	printf 'block\t%s\t%s\n' "$1" "$body"
}

# d_module NAME PROBE: a module counts as loaded if it is built into the kernel or if the file
# that it creates exists.
d_module() {
	if [ -d "$R/sys/module/$1" ] || { [ -n "$2" ] && [ -e "$R$2" ]; } || grep -qs "[[:space:]]$1\$" "$R/proc/filesystems"; then
		printf 'module\t%s\tloaded\n' "$1"
	else
		printf 'module\t%s\tabsent\n' "$1"
	fi
}

# d_sysctl KEY
d_sysctl() {
	sysctl_file "$1"
	v=absent
	if [ -r "$f" ]; then sysctl_in "$f"; fi
	printf 'sysctl\t%s\t%s\n' "$1" "$v"
}

# d_sysctl_later FILE KEY...: prints "later key value file" if a file that systemd-sysctl reads after
# FILE sets the key too. A file in /etc hides one of the same name in /run and /usr.
d_sysctl_later() {
	ours=$1
	shift
	for d in /etc /run /usr/local/lib /usr/lib /lib; do
		for f in "$R$d"/sysctl.d/*.conf; do
			if [ -e "$f" ] || [ -L "$f" ]; then printf '%s\t%s\n' "${f##*/}" "$f"; fi
		done
	done | awk -F '\t' -v ours="${ours##*/}" '!seen[$1]++ && $1 > ours' | sort | while IFS=$TAB read -r _ f; do
		[ ! -f "$f" ] || { printf '@ %s\n' "${f#"$R"}"; cat "$f"; echo; }
	done | awk -v keys="$*" '
		# As systemd parses names: the first separator determines the notation.
		function path(k) {
			match(k, /[.\/]/)
			if (substr(k, RSTART, 1) == ".") { gsub(/\//, "\001", k); gsub(/\./, "/", k); gsub(/\001/, ".", k) }
			return k
		}
		function trim(s) { gsub(/^[ \t]+|[ \t]+$/, "", s); return s }
		BEGIN { n = split(keys, names, " "); for (i = 1; i <= n; i++) want[path(names[i])] = names[i] }
		/^@ / { file = substr($0, 3); next }
		/^[ \t]*[#;]/ || !/=/ { next }
		{
			i = index($0, "=")
			key = trim(substr($0, 1, i - 1))
			sub(/^-/, "", key)
			key = path(trim(key))
			if (key in want) { last[key] = file; value = trim(substr($0, i + 1)); gsub(/[ \t]+/, " ", value); set[key] = value }
		}
		END { for (k in last) printf "later\t%s\t%s\t%s\n", want[k], set[k], last[k] }' | sort
}

# d_gone PATH: prints "gone path there" for a file that paictl has created or replaced, and recorded.
d_gone() {
	if on_record file "$1"; then
		printf 'gone\t%s\tthere\n' "$1"
	fi
}

# d_unit NAME PATH... prints "unit name enabled active fresh|stale"; stale is a unit that was started from other files than the present ones. It prints
# "looping name count" if systemd has just restarted a program that had ended by itself more than once: between two ends such a unit looks active.
d_unit() {
	u=$1 e= a= n=0 since=0
	shift
	state=$(systemctl show -p UnitFileState -p ActiveState -p NRestarts -p ActiveEnterTimestampMonotonic "$u" 2>/dev/null) || state=
	while IFS='=' read -r k v; do
		case $k in
		UnitFileState) e=$v ;;
		ActiveState) a=$v ;;
		NRestarts) n=${v:-0} ;;
		ActiveEnterTimestampMonotonic) since=${v:-0} ;; # in microseconds
		esac
	done <<STATE
$state
STATE
	st=stale
	line_in "$S/units/$u"
	if [ "$line" = "$(unit_hash "$@")" ]; then st=fresh; fi
	printf 'unit\t%s\t%s\t%s\t%s\n' "$u" "${e:-absent}" "${a:-inactive}" "$st"
	[ "$n" -gt 1 ] && [ -r "$R/proc/uptime" ] || return 0
	read -r up _ <"$R/proc/uptime"
	if [ $((${up%.*} - since / 1000000)) -lt 10 ]; then printf 'looping\t%s\t%s\n' "$u" "$n"; fi
}

# d_journal: prints the phases that the journal has as begun or finished, with the last word of each.
d_journal() {
	[ -f "$S/journal" ] || return 0
	awk -F '\t' '$4 == "begin" || $4 == "done" { last[$3] = $4 } END { for (p in last) printf "journal\t%s\t%s\n", p, last[p] }' "$S/journal"
}

# d_swap: prints "swap on" if any swap is in use, otherwise "swap off".
d_swap() {
	if [ -r "$R/proc/swaps" ] && { read -r _ && read -r _; } <"$R/proc/swaps"; then
		printf 'swap\ton\n'
	else
		printf 'swap\toff\n'
	fi
}

# d_timesync: prints "off" only if systemd-timesyncd could be enabled: it is installed, no service
# keeps the time, and the machine isn't a container, which has its host's clock.
d_timesync() {
	state=other
	if systemctl cat systemd-timesyncd.service >/dev/null 2>&1 && ! systemd-detect-virt -cq 2>/dev/null; then
		state=off
		# This succeeds if one of them is active.
		if systemctl is-active --quiet systemd-timesyncd.service chrony.service chronyd.service ntp.service ntpd.service \
			ntpsec.service openntpd.service 2>/dev/null; then state=on; fi
	fi
	printf 'timesync\t%s\n' "$state"
}

# d_images: prints "image name digest" for each image in containerd, with "unpinned" instead of the digest if
# the kubelet may remove it, as after an interrupted import, and "imported name sha digest" for each image that
# paictl imported. If containerd is down, the imported images count as present while its store exists, so that
# they aren't all sent again.
d_images() {
	command -v ctr >/dev/null 2>&1 || return 0
	list=
	if [ -S "$R/run/containerd/containerd.sock" ] || [ -n "$R" ]; then
		list=$(timeout -k 5 30 ctr -n k8s.io images ls 2>/dev/null) || list=
	fi
	if [ -n "$list" ]; then
		printf '%s\n' "$list" | awk 'NR > 1 { printf "image\t%s\t%s\n", $1, $NF ~ /cri-containerd\.pinned=pinned/ ? $3 : "unpinned" }'
	elif [ -f "$S/images" ] && [ -d "$R/var/lib/containerd" ]; then
		awk -F '\t' '{ printf "image\t%s\t%s\n", $1, $3 }' "$S/images"
	fi
	if [ -f "$S/images" ]; then awk -F '\t' '{ printf "imported\t%s\t%s\t%s\n", $1, $2, $3 }' "$S/images"; fi
}

# d_member: prints whether this machine has joined a cluster, its certificate authority, the address at which the
# members reach the API (on control plane machines), and the address that its kubelet uses. "once yes" is a machine
# that was a member and has lost files that a member needs; "etcd there" means that it still has the data of
# etcd. The caller may set ETCD_DIR.
d_member() {
	if is_member; then
		printf 'member\tyes\n'
		sha_in "$R/etc/kubernetes/pki/ca.crt" 2>/dev/null
		printf 'ca\t%s\n' "$sha"
		if [ -f "$KUBECONFIG" ]; then printf 'server\t%s\n' "$(sed -n '/^ *server: */{s///p;q;}' "$KUBECONFIG")"; fi
		if [ -e "$S/kubelet-moves" ]; then printf 'kubelet-moves\tyes\n'; fi
		printf 'kubelet-server\t%s\n' "$(sed -n '/^ *server: */{s///p;q;}' "$R/etc/kubernetes/kubelet.conf")"
	else
		printf 'member\tno\n'
		if [ -f "$S/member" ] || was_member; then
			printf 'once\tyes\n'
			if [ -n "${ETCD_DIR-}" ] && [ -d "$R$ETCD_DIR/member" ]; then printf 'etcd\tthere\n'; fi
		fi
		# After an interrupted attempt to join, the kubelet may still run and register the node.
		for f in /etc/kubernetes/kubelet.conf /etc/kubernetes/bootstrap-kubelet.conf /var/lib/kubelet/config.yaml; do
			if [ -e "$R$f" ]; then printf 'left\t%s\n' "$f"; fi
		done
	fi
}

# was_member: reports whether, by the journal, the machine became a member and hasn't been reset since.
was_member() {
	[ -f "$S/journal" ] && awk -F '\t' '$4 == "change" && $5 == "kubeadm reset" { n = 0 } $4 == "change" && $5 == "member" { n = 1 } END { exit !n }' "$S/journal"
}

# d_applied: prints the hash of the settings with which the control plane runs here, and where etcd keeps
# its data. After an interrupted change, it isn't known which settings are in use.
d_applied() {
	if [ ! -f "$KUBECONFIG" ]; then printf 'admin\tabsent\n'; fi
	if [ -d "$S/manifests" ]; then
		printf 'applied\tinterrupted\n'
	elif [ -f "$S/kubeadm-applied" ]; then printf 'applied\t%s\n' "$(cat "$S/kubeadm-applied")"; fi
	f=$R/etc/kubernetes/manifests/etcd.yaml
	if [ -f "$f" ]; then
		printf 'etcd-data\t%s\n' "$(sed -n '/^ *- --data-dir=/{s///p;q;}' "$f")"
		printf 'etcd-release\t%s\n' "$(sed -n 's/^ *image: .*:\([^:@"]*\).*/\1/p' "$f" | head -n 1)"
	fi
}

# node_row is the template of a row "node name pod-cidr ready version taints owned labels message", taints and labels with a comma after each.
# Texts that a kubelet writes are quoted, so that they can't start a row.
node_row='node{{"\t"}}{{.metadata.name}}{{"\t"}}{{with .spec.podCIDR}}{{.}}{{end}}{{"\t"}}{{range .status.conditions}}{{if eq .type "Ready"}}{{with .status}}{{printf "%q" .}}{{end}}{{end}}{{end}}{{"\t"}}{{with .status.nodeInfo}}{{with .kubeletVersion}}{{printf "%q" .}}{{end}}{{end}}{{"\t"}}{{range .spec.taints}}{{.key}}{{with .value}}={{.}}{{end}}:{{.effect}},{{end}}{{"\t"}}{{with .metadata.annotations}}{{with index . "paictl.openpai.org/owned"}}{{printf "%q" .}}{{else}}""{{end}}{{else}}""{{end}}{{"\t"}}{{range $k, $v := .metadata.labels}}{{$k}}={{$v}},{{end}}{{"\t"}}{{range .status.conditions}}{{if eq .type "Ready"}}{{with .message}}{{printf "%q" .}}{{else}}""{{end}}{{end}}{{end}}{{"\n"}}'

# d_cluster prints the state in this machine's own API server: the nodes; the data of paictl's ConfigMap; "approver HASH" if the cluster has the
# approver, applied from the manifest with that hash; "machine NAME ADDRESSES" of each machine that the approver knows; "vip HASH ADDRESS" if the
# cluster has a virtual address; "lease yes" and "vip-holder" of its lease. It is a single query, since starting is most of kubectl's time. The
# caller defines "self".
d_cluster() {
	[ -f "$KUBECONFIG" ] && [ -f "$S/member" ] || return 0
	rows=$(self get nodes,configmaps,deployments,daemonsets,leases -n kube-system --request-timeout=30s -o "go-template={{range .items}}{{\$name := .metadata.name}}{{if eq .kind \"Node\"}}$node_row{{else if eq .kind \"ConfigMap\"}}"'{{if eq $name "paictl"}}{{range $k, $v := .data}}{{$k}}{{"\t"}}{{printf "%q" $v}}{{"\n"}}{{end}}{{else if eq $name "paictl-machines"}}{{range $k, $v := .data}}machine{{"\t"}}{{$k}}{{"\t"}}{{printf "%q" $v}}{{"\n"}}{{end}}{{end}}{{else if eq $name "pai-csr-approver"}}{{if eq .kind "Deployment"}}approver{{"\t"}}{{with .metadata.annotations}}{{index . "paictl.openpai.org/applied"}}{{end}}{{"\n"}}{{end}}{{else if eq $name "pai-api-vip"}}{{if eq .kind "Lease"}}lease{{"\t"}}yes{{"\n"}}{{with .spec}}{{with .holderIdentity}}vip-holder{{"\t"}}{{printf "%q" .}}{{"\n"}}{{end}}{{end}}{{else if eq .kind "DaemonSet"}}vip{{"\t"}}{{with .metadata.annotations}}{{index . "paictl.openpai.org/applied"}}{{"\t"}}{{index . "paictl.openpai.org/address"}}{{end}}{{"\n"}}{{end}}{{end}}{{end}}' 2>/dev/null) || {
		printf 'api\tdown\n'
		return 0
	}
	printf 'api\tup\n%s\n' "$rows"
}

# d_nodes prints the rows of the nodes.
d_nodes() {
	self get nodes --request-timeout=30s -o "go-template={{range .items}}$node_row{{end}}"
}

# d_renewal: prints the files that an interrupted renewal of certificates has left to restore.
d_renewal() {
	for f in "$R"/etc/kubernetes/renew.*/*.yaml; do
		if [ -f "$f" ]; then printf 'aside\t%s\n' "${f#"$R"}"; fi
	done
	if [ -d "$S/certificates/undo" ]; then printf 'aside\t/var/lib/paictl/certificates/undo\n'; fi
}

# d_restoring: prints "restoring sha" while the files of a restore from a backup exist: the restore hasn't finished. The hash is that of etcd's
# database, or "-" if that is missing.
d_restoring() {
	[ -d "$S/restore" ] || return 0
	sha=-
	[ ! -f "$S/restore/etcd.db" ] || sha_in "$S/restore/etcd.db"
	printf 'restoring\t%s\n' "$sha"
}

# d_rotating: prints "rotating yes" if a rotation of the cluster's authorities was interrupted.
d_rotating() {
	if [ -d "$R/etc/kubernetes/pki/paictl-rotation" ]; then printf 'rotating\tyes\n'; fi
}

# d_recovering: prints "recovering yes" if a recovery of etcd from this member was interrupted, and "forced yes" once this member is etcd's only one.
d_recovering() {
	[ -d "$S/recover" ] || return 0
	printf 'recovering\tyes\n'
	if [ -e "$S/recover/forced" ]; then printf 'forced\tyes\n'; fi
}
