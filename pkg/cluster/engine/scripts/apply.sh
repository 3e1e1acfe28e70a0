# Only one mutating script runs on a host at a time. The lock also makes the scripts of a second run
# wait while a script that a lost connection orphaned is still running.
[ -d "$S" ] && [ -d "$R/run" ] || mkdir -p "$S" "$R/run"
chmod 700 "$S"
KUBECACHEDIR=$S/kubectl-cache
exec 9>>"$LOCK"
flock -w 300 9 || { echo "a script of another paictl run is still at work on this host" >&2; exit 75; }
reload=0

# begin RUN PHASE, finish: write to the journal, whose lines are time, run, phase, word, rest.
begin() {
	run=$1 phase=$2
	[ -e "$S/journal" ] || (umask 077; : >>"$S/journal")
	[ -e "$S/before" ] || remember_before
	note begin
}
note() {
	printf '%s\t%s\t%s\t%s\t%s\n' "$(date -u +%Y-%m-%dT%H:%M:%SZ)" "$run" "$phase" "$1" "${2:-}" >>"$S/journal"
}
finish() { note "done"; }

# own KIND NAME VALUE: records the state before paictl's first change, for "cluster down". The first
# record stays: later ones would describe paictl's own changes.
own() {
	if on_record "$1" "$2"; then return 0; fi
	printf '%s\t%s\t%s\n' "$1" "$2" "$3" >>"$S/owned"
}

# remember_before runs before the first change. It records the files and settings that the programs
# installed by paictl will create or change themselves.
remember_before() {
	for d in /var/lib/containerd /var/lib/kubelet /var/lib/cni /var/log/pods /var/log/containers \
		/opt/containerd /opt/nri /run/nri /etc/nri; do
		own_tree "$d"
	done
	[ ! -d "$R/etc/kubernetes" ] || own_tree /etc/kubernetes
	for d in /opt /opt/cni /etc/cni /etc/cni/net.d /etc/cdi /usr/libexec /usr/libexec/kubernetes \
		/lib/modules /run/netns; do
		[ -e "$R$d" ] || own dir "$d" created
	done
	[ -e "$R/run/xtables.lock" ] || own file /run/xtables.lock created
	# The kubelet's unit starts it, and it stays active.
	if ! systemctl is-active --quiet network-online.target 2>/dev/null; then own target network-online.target started; fi
	for k in vm.overcommit_memory vm.panic_on_oom kernel.panic kernel.panic_on_oops \
		kernel.keys.root_maxkeys kernel.keys.root_maxbytes net.ipv4.ip_forward \
		net.ipv4.conf.all.route_localnet net.ipv6.conf.all.forwarding net.netfilter.nf_conntrack_max \
		net.netfilter.nf_conntrack_tcp_be_liberal net.netfilter.nf_conntrack_tcp_timeout_established \
		net.netfilter.nf_conntrack_tcp_timeout_close_wait; do
		sysctl_file "$k"
		if [ -r "$f" ]; then
			sysctl_in "$f"
			own sysctl "$k" "$v"
		fi
	done
	if command -v nft >/dev/null 2>&1; then nft list tables >"$S/nft-tables" 2>/dev/null || true; fi
	: >"$S/before"
}

# own_tree FOLDER: records whether a folder of the cluster's programs already exists, and its files, four levels deep. It may
# be a disk or a link of the operator, or have disks mounted below it. "cluster down" keeps the recorded files and removes
# all others.
own_tree() {
	if on_record tree "$1"; then return 0; fi
	if [ ! -d "$R$1" ]; then
		own tree "$1" created
		return 0
	fi
	{ mounts_below "$1"; printf '%s\n' "$1"; } | while IFS= read -r d; do
		find "$R$d/" -xdev -mindepth 1 -maxdepth 4 -printf '%P\n' | D=$d awk '{ print ENVIRON["D"] "\t" $0 }' >>"$S/kept"
		own tree "$d" kept
	done
}

# own_dirs PATH: records each folder above PATH that paictl is about to create, and creates them.
own_dirs() {
	d=${1%/*}
	[ ! -d "$R$d/" ] || return 0
	todo=
	while [ ! -d "$R$d/" ]; do
		todo="$todo$d
"
		d=${d%/*}
	done
	printf %s "$todo" | while read -r d; do own dir "$d" created; done
	mkdir -p "$R${1%/*}"
}

# own_file PATH: before PATH is written, backs up the existing file, and records the change.
own_file() {
	own_dirs "$1"
	if on_record file "$1"; then return 0; fi
	if [ -e "$R$1" ]; then
		mkdir -p "$S/backup$(dirname "$1")"
		cp -a "$R$1" "$S/backup$1"
		printf 'file\t%s\treplaced\n' "$1" >>"$S/owned"
	else
		printf 'file\t%s\tcreated\n' "$1" >>"$S/owned"
	fi
}

# p_file PATH MODE: writes base64 from standard input.
p_file() {
	own_file "$1"
	t=$R$1.paictl-new
	umask 077
	base64 -d >"$t"
	umask 022
	chmod "$2" "$t"
	mv -f "$t" "$R$1"
	case $1 in /etc/systemd/system/*) reload=1 ;; esac
	note change "$1"
}

# p_gone PATH: removes a file that paictl wrote, or restores the file that it replaced. The record is
# removed last: after an interruption, a rerun finds it and does the rest.
p_gone() {
	rm -f "$R$1.paictl-new"
	if [ -e "$S/backup$1" ]; then
		cp -a "$S/backup$1" "$R$1.paictl-new"
		mv -f "$R$1.paictl-new" "$R$1"
	else
		rm -f "$R$1"
	fi
	awk -F '\t' -v w="$1" '!($1 == "file" && $2 == w)' "$S/owned" >"$S/owned.new"
	mv -f "$S/owned.new" "$S/owned"
	note change "$1"
}

# p_artifact PATH MODE SHA: moves a staged upload into place and stamps it, so that the next
# detect needs no hash. The upload was hashed when it arrived, so it isn't hashed again. A
# rerun finds the upload gone and the file already in place, and hashes that file.
p_artifact() {
	own_file "$1"
	st=$S/staging/$3
	if [ -f "$st" ]; then
		chmod "$2" "$st"
		# mv copies between file systems, which isn't atomic, so move to a name beside the target first.
		mv -f "$st" "$R$1.paictl-new"
		mv -f "$R$1.paictl-new" "$R$1"
	else
		chmod "$2" "$R$1"
		sha_in "$R$1"
		[ "$sha" = "$3" ] || { echo "$1: content differs from the bundle's: has $sha, want $3" >&2; exit 1; }
	fi
	# An earlier stamp is for a file with another change time, so it no longer matches.
	printf '%s\t%s\t%s\n' "$1" "$3" "$(stat -c '%s %.9Z %i' "$R$1")" >>"$S/stamps"
	note change "$1"
}

# p_block PATH: replaces the managed block of a file with standard input (base64).
p_block() {
	t=$R$1.paictl-new
	[ -e "$R$1" ] || own_file "$1"
	own block "$1" added
	{
		[ ! -f "$R$1" ] || awk '/^# BEGIN paictl$/ { on = 1 } !on { print } /^# END paictl$/ { on = 0 }' "$R$1"
		echo '# BEGIN paictl'
		base64 -d
		echo '# END paictl'
	} >"$t"
	[ ! -f "$R$1" ] || chmod --reference="$R$1" "$t"
	# /etc/hosts may be a mount point, onto which no file can be renamed.
	mv -f "$t" "$R$1" 2>/dev/null || { cat "$t" >"$R$1"; rm -f "$t"; }
	note change "$1"
}

# p_module NAME
p_module() {
	own module "$1" loaded
	modprobe "$1" || { echo "kernel module $1 cannot be loaded" >&2; exit 1; }
	note change "module $1"
}

# p_sysctl KEY VALUE
p_sysctl() {
	sysctl_file "$1"
	sysctl_in "$f"
	own sysctl "$1" "$v"
	printf '%s\n' "$2" >"$f"
	note change "sysctl $1"
}

# enable_unit NAME: reloads systemd if unit files have changed, and enables the unit.
enable_unit() {
	if [ "$reload" = 1 ]; then systemctl daemon-reload; reload=0; fi
	systemctl is-enabled --quiet "$1" 2>/dev/null || {
		own unit "$1" enabled
		systemctl enable --quiet "$1"
	}
}

# restart_unit NAME: restarts the unit and resets its restart count. systemd keeps the count of a unit
# that is restarted while it waits for its next try, so the new program would get the blame.
restart_unit() {
	systemctl reset-failed "$1" 2>/dev/null || true
	systemctl restart "$1"
}

# p_unit NAME PATH...: enables the unit, and starts it, or restarts it if one of the
# paths has changed since paictl last started the unit.
p_unit() {
	u=$1
	shift
	enable_unit "$u"
	# A file that was written after the unit started requires a restart, even if the script that
	# wrote it was interrupted before the restart: the unit's stamp shows that.
	stamp=$S/units/$u
	mkdir -p "$S/units"
	want=$(unit_hash "$@")
	line_in "$stamp"
	if systemctl is-active --quiet "$u" && [ "$line" = "$want" ]; then
		return 0
	fi
	restart_unit "$u" || {
		why=$(unit_cause "$u")
		[ -z "$why" ] || echo "$u does not start: $why -> see journalctl -u $u on the host" >&2
		exit 1
	}
	printf '%s\n' "$want" >"$stamp"
	note change "unit $u"
}

# p_unit_later NAME PATH...: enables a unit that something else starts, and restarts it if it
# already runs with files other than the current ones.
p_unit_later() {
	u=$1
	shift
	enable_unit "$u"
	mkdir -p "$S/units"
	want=$(unit_hash "$@")
	line_in "$S/units/$u"
	if systemctl is-active --quiet "$u" && [ "$line" != "$want" ]; then
		restart_unit "$u"
	fi
	printf '%s\n' "$want" >"$S/units/$u"
	note change "unit $u"
}

# p_swapoff comments out the swap entries in fstab, and then switches swap off. The order matters: once
# swap is off, no later run does the rest. "cluster down" removes the mark again.
p_swapoff() {
	own swap fstab off
	f=$R/etc/fstab
	if [ -f "$f" ] && grep -Eq '^[^#[:space:]]+[[:space:]]+[^[:space:]]+[[:space:]]+swap[[:space:]]' "$f"; then
		sed -E 's/^([^#[:space:]]+[[:space:]]+[^[:space:]]+[[:space:]]+swap[[:space:]])/#paictl-swap# \1/' "$f" >"$f.paictl-new"
		chmod --reference="$f" "$f.paictl-new"
		mv -f "$f.paictl-new" "$f"
	fi
	swapoff -a
	note change swapoff
}

p_timesync() {
	if ! systemctl is-enabled --quiet systemd-timesyncd.service 2>/dev/null; then
		own unit systemd-timesyncd.service enabled
	fi
	systemctl enable --quiet --now systemd-timesyncd.service
	note change timesync
}

# in_subnet SUBNET: prints the lines "address rest" whose address is in the subnet. Both may have a prefix length.
in_subnet() {
	awk -v s="$1" '
		function number(a, b) { split(a, b, /[.\/]/); return ((b[1] * 256 + b[2]) * 256 + b[3]) * 256 + b[4] }
		BEGIN { split(s, p, "/"); size = 2 ^ (32 - p[2]); net = int(number(s) / size) }
		int(number($1) / size) == net'
}

# p_pod_network SUBNET FLANNEL(0 or 1): gives the pods' bridge the node's subnet, after flannel
# has taken it; with FLANNEL 1, flannel is restarted first. Pods with an address in another subnet
# are no longer reachable: their sandboxes are killed, and the kubelet creates them again. The bridge
# is deleted last: while it exists, a run after an interrupted one finds the work unfinished.
# Prints "restarted COUNT".
p_pod_network() {
	if [ "$2" = 1 ]; then
		for c in $(ctr -n k8s.io containers ls -q 'labels."io.kubernetes.container.name"==flannel'); do
			ctr -n k8s.io tasks kill -s SIGKILL "$c" 2>/dev/null || true
		done
		note change flannel
	fi
	i=0
	until flannel_was_given SUBNET | in_subnet "$1" | grep -q .; do
		i=$((i + 1))
		[ "$i" -le 240 ] || { echo "flannel has not taken the node's subnet $1 within two minutes -> see the log of its pod on this machine: kubectl -n kube-flannel get pods -o wide" >&2; exit 1; }
		sleep 0.5
	done
	# paictl-cni.service runs when flannel writes its file, but it may not have run yet.
	systemctl start paictl-cni.service
	n=0
	for f in "$R"/var/lib/cni/networks/paictl-flannel/*.*.*.*; do
		[ -f "$f" ] || continue
		if echo "${f##*/}" | in_subnet "$1" | grep -q .; then continue; fi
		if ctr -n k8s.io tasks kill -s SIGKILL "$(head -n 1 "$f" | tr -d '\r')" 2>/dev/null; then n=$((n + 1)); fi
	done
	if ip link show cni0 >/dev/null 2>&1; then ip link delete cni0; fi
	note change "interface cni0"
	printf 'restarted\t%s\n' "$n"
}

# p_images: lines "sha<TAB>name<TAB>ref" on standard input. All staged images are imported at
# once, since each import decompresses on one core. Then each image gets the name that the nodes
# use and is pinned, its upload is deleted, and the image is recorded with the file that it came
# from. The record of an earlier import is removed first and the new one is written last: after an
# interruption in between, a rerun does all of it again. Nothing is unpacked: containerd does that
# when the first container of an image starts, and a node runs few of the images that it has.
p_images() {
	list=$(cat)
	if [ -f "$S/images" ]; then
		printf '%s\n' "$list" | awk -F '\t' 'here { gone[$3] = 1; next } !($1 in gone)' here=1 - here=0 "$S/images" >"$S/images.new"
		mv -f "$S/images.new" "$S/images"
	fi
	jobs=
	while IFS=$TAB read -r sha name ref; do
		[ -f "$S/staging/$sha" ] || continue
		ctr -n k8s.io images import --no-unpack "$S/staging/$sha" >/dev/null </dev/null &
		jobs="$jobs $!"
	done <<EOF
$list
EOF
	for j in $jobs; do wait "$j"; done
	while IFS=$TAB read -r sha name ref; do
		[ "$name" = "$ref" ] || ctr -n k8s.io images tag --force "$name" "$ref" >/dev/null
		ctr -n k8s.io images label "$ref" io.cri-containerd.pinned=pinned >/dev/null
	done <<EOF
$list
EOF
	have=$(ctr -n k8s.io images ls | awk 'NR > 1 { print $1 "\t" $3 }')
	while IFS=$TAB read -r sha name ref; do
		d=$(printf '%s\n' "$have" | awk -F '\t' -v n="$ref" '$1 == n { print $2 }')
		[ -n "$d" ] || { echo "image $ref is missing after its import" >&2; exit 1; }
		rm -f "$S/staging/$sha"
		printf '%s\t%s\t%s\n' "$ref" "$sha" "$d" >>"$S/images"
		note change "image $ref"
	done <<EOF
$list
EOF
}
