# down MODE: walks through everything that paictl and the cluster have left on this host, in reverse
# order. With MODE "list" each step is only printed, with "run" it is printed and done, so
# the two can't differ. A step that is already done isn't printed, so a run after an interrupted
# one does the remaining steps.
#
# The caller sets ETCD_DIR, POD_CIDR, and DATA_DIR ("" keeps the services' data).
down() {
	mode=$1 ours_runtime=0 ours_kube=0
	note() { :; }
	[ -e "$S" ] || [ -n "$DATA_DIR" ] || return 0
	if recorded file "$R_BIN/containerd" created; then ours_runtime=1; fi
	if recorded file "$R_BIN/kubelet" created || [ -e "$S/member" ]; then ours_kube=1; fi
	u_stop_units
	if [ "$ours_kube" = 1 ]; then
		u_pods
		u_links
		u_packet_filter
		u_kube_files
	fi
	if [ "$ours_runtime" = 1 ]; then u_runtime_files; fi
	u_trees
	u_packages
	u_records
	u_initramfs
	u_dirs
	u_data
	u_state
}

R_BIN=/usr/local/bin

# step ACTION TARGET [DETAIL]: prints the step, and succeeds if it is to be done.
step() {
	printf 'undo\t%s\t%s\t%s\n' "$1" "$2" "${3:-}"
	[ "$mode" = run ]
}

recorded() {
	[ -f "$S/owned" ] && awk -F '\t' -v k="$1" -v w="$2" -v h="$3" '$1 == k && $2 == w && $3 == h { f = 1 } END { exit !f }' "$S/owned"
}

# records KIND: prints the records of a kind, the last first: "name<TAB>value".
records() {
	[ -f "$S/owned" ] || return 0
	awk -F '\t' -v k="$1" '$1 == k { l[++n] = $2 FS $3 } END { for (; n > 0; n--) print l[n] }' "$S/owned"
}

# forget KIND NAME: deletes a record after its change was undone.
forget() {
	awk -F '\t' -v k="$1" -v w="$2" '!($1 == k && $2 == w)' "$S/owned" >"$S/owned.new"
	mv -f "$S/owned.new" "$S/owned"
}

# u_stop_units stops the units that paictl has enabled, and its own units that others start, so that
# none of them recreates the files that the next steps remove.
u_stop_units() {
	{
		records unit | cut -f 1
		records file | sed -n "s|^/etc/systemd/system/\([^/]*\)${TAB}created\$|\1|p"
	} | awk '!seen[$0]++' | while read -r u; do
		if systemctl is-active --quiet "$u" 2>/dev/null; then
			if step stop "$u"; then systemctl stop "$u"; fi
		fi
	done
}

# pod_pids: prints the processes of pods, which their cgroup identifies, and the shims above them. On a
# host that is itself a pod, all processes have one such cgroup, so two are required there. The brackets
# keep grep from finding itself.
pod_pids() {
	cg='/kubepods'
	if grep -qs "$cg" "$R/proc/1/cgroup"; then cg='/kubepods.*/kubepods'; fi
	{
		grep -ls "$cg" "$R"/proc/[0-9]*/cgroup || true
		grep -lsa 'containerd[-]shim' "$R"/proc/[0-9]*/cmdline | while read -r f; do
			if tr '\000' ' ' <"$f" 2>/dev/null | grep -q -e '-namespace k8s[.]io '; then echo "$f"; fi
		done
	} | sed "s|^$R/proc/||; s|/.*||" | sort -un
}

u_pods() {
	n=$(pod_pids | wc -l | tr -d ' ')
	if [ "$n" -gt 0 ] && step stop pods "$n processes"; then
		i=0
		while p=$(pod_pids | tr '\n' ' ') && [ -n "$p" ]; do
			i=$((i + 1))
			[ "$i" -le 100 ] || { echo "processes of pods do not end: $p -> restart the host, then run the same command again" >&2; exit 1; }
			# shellcheck disable=SC2086
			kill -9 $p 2>/dev/null || true
			sleep 0.1
		done
	fi
	for f in "$R"/run/netns/cni-*; do
		if [ -e "$f" ] && step delete "/run/netns/${f##*/}"; then
			umount "$f" 2>/dev/null || umount -l "$f" 2>/dev/null || true
			rm -f "$f"
		fi
	done
	if [ -n "$(pod_cgroups | head -n 1)" ] && step delete "cgroups of pods"; then
		systemctl stop kubepods.slice 2>/dev/null || true
		pod_cgroups | while read -r d; do rmdir "$d" 2>/dev/null || true; done
	fi
}

# pod_cgroups: prints the cgroups of pods, the deepest first.
pod_cgroups() {
	for d in "$R"/sys/fs/cgroup/kubepods* "$R"/sys/fs/cgroup/*/kubepods*; do
		[ ! -d "$d" ] || find "$d" -depth -type d 2>/dev/null
	done
}

# u_links removes the bridge, the tunnel and the pods' ends of the bridge.
u_links() {
	command -v ip >/dev/null 2>&1 || return 0
	for l in $(pod_links); do
		# The kernel deletes a pod's end itself once its namespace is gone.
		if step delete "interface $l"; then ip link delete "$l" 2>/dev/null || true; fi
	done
	if [ -n "$POD_CIDR" ] && [ -n "$(ip -4 route show root "$POD_CIDR" 2>/dev/null)" ]; then
		if step delete "routes to $POD_CIDR"; then ip -4 route flush root "$POD_CIDR" 2>/dev/null || true; fi
	fi
}

u_packet_filter() {
	if command -v nft >/dev/null 2>&1; then
		nft list tables 2>/dev/null | while read -r _ family name; do
			case "$family $name" in
			"ip kube-proxy" | "ip6 kube-proxy" | "ip flannel-ipv4" | "ip6 flannel-ipv6" | \
				"inet cni_hostport" | "inet cni_plugins_masquerade")
				if step delete "nft table $family $name"; then nft delete table "$family" "$name"; fi
				;;
			esac
		done
	fi
	for t in iptables ip6tables iptables-legacy ip6tables-legacy; do
		command -v "$t-save" >/dev/null 2>&1 || continue
		chains=$("$t-save" 2>/dev/null | awk "$OWN_CHAINS")
		[ -n "$chains" ] || continue
		if step delete "$t chains of the cluster"; then printf '%s\n' "$chains" | "$t-restore" --noflush; fi
	done
	u_empty_tables
}

# Reads the output of iptables-save, and prints input for iptables-restore that deletes the
# chains of kubelet, kube-proxy, flannel and portmap and the rules that lead to them.
OWN_CHAINS='
function own(c) { return c ~ /^(KUBE|FLANNEL)-/ || c ~ /^CNI-(HOSTPORT-|DN-)/ }
/^\*/ { table = $0; n = m = 0; next }
/^:/ { c = substr($1, 2); if (own(c)) chain[++n] = c; next }
/^-A / {
	if (own($2)) next
	for (i = 3; i < NF; i++)
		if (($i == "-j" || $i == "-g") && own($(i + 1))) { rule[++m] = "-D" substr($0, 3); break }
	next
}
/^COMMIT/ && n + m > 0 {
	print table
	for (i = 1; i <= m; i++) print rule[i]
	for (i = 1; i <= n; i++) print "-F " chain[i]
	for (i = 1; i <= n; i++) print "-X " chain[i]
	print "COMMIT"
}'

# u_empty_tables removes the tables that iptables created for those chains, if they are empty
# and didn't exist before paictl.
u_empty_tables() {
	[ -f "$S/nft-tables" ] && command -v nft >/dev/null 2>&1 || return 0
	nft list tables 2>/dev/null | while read -r _ family name; do
		case "$family $name" in
		"ip filter" | "ip nat" | "ip mangle" | "ip raw" | "ip6 filter" | "ip6 nat" | "ip6 mangle" | "ip6 raw") ;;
		*) continue ;;
		esac
		if grep -qxF "table $family $name" "$S/nft-tables"; then continue; fi
		if nft list table "$family" "$name" 2>/dev/null |
			grep -vE '^[[:space:]]*(table .*\{|chain .*\{|type .*policy accept;|\}|#.*)?[[:space:]]*$' | grep -q .; then
			continue
		fi
		if step delete "nft table $family $name" empty; then nft delete table "$family" "$name"; fi
	done
}

is_mount() {
	[ -r "$R/proc/self/mountinfo" ] || return 1
	real_of "$1"
	REAL=$real awk '{ m = $5; gsub(/\\040/, " ", m); gsub(/\\011/, "\t", m); if (m == ENVIRON["REAL"]) f = 1 } END { exit !f }' "$R/proc/self/mountinfo"
}

# stays FOLDER: reports whether the folder existed before paictl, or is a mount point or a link.
stays() { [ -d "$R$1" ] && { recorded tree "$1" kept || [ -L "$R$1" ] || is_mount "$1"; }; }

# surplus FOLDER: prints the files that own_tree has not recorded in a folder that stays. Without a record these are all but lost+found.
surplus() {
	list=$S/kept
	[ -f "$list" ] || list=/dev/null
	find "$R$1/" -xdev -mindepth 1 -maxdepth 4 -printf '%P\n' | DIR=$1 ROOT=$R awk -F '\t' '
		list { if ($1 == ENVIRON["DIR"]) kept[substr($0, length($1) + 2)] = 1; next }
		{ up = $0; if (!sub("/[^/]*$", "", up)) up = "" }
		!($0 in kept) && $0 != "lost+found" && (up == "" || up in kept) { print ENVIRON["ROOT"] ENVIRON["DIR"] "/" $0 }' list=1 "$list" list=0 -
}

# unmount_below FOLDER: unmounts all but the recorded disks of the operator.
unmount_below() {
	mounts_below "$1" | while IFS= read -r m; do
		if on_record tree "$m"; then continue; fi
		umount "$R$m" 2>/dev/null || umount -l "$R$m" 2>/dev/null || true
	done
	mounts_below "$1" | while IFS= read -r m; do
		if on_record tree "$m"; then continue; fi
		echo "$m cannot be unmounted -> see what uses it with: fuser -vm $m" >&2
		exit 1
	done
}

# erase FOLDER: unmounts the cluster's mounts below it, and deletes the folder, or the cluster's files if the folder stays.
erase() {
	unmount_below "$1"
	if stays "$1"; then
		surplus "$1" | while IFS= read -r p; do rm -rf --one-file-system "$p"; done
	else
		rm -rf --one-file-system "$R$1"
	fi
}

# u_erase FOLDER [DETAIL]: erases the folder as a step.
u_erase() {
	if [ ! -e "$R$1" ]; then
		if [ -L "$R$1" ] && [ "$mode" = run ]; then echo "$1 is a link to $(readlink "$R$1"), which doesn't exist, so the cluster's files there stay" >&2; fi
		return 0
	fi
	detail=${2:-}
	if stays "$1"; then
		[ -n "$(surplus "$1" | head -n 1)" ] || return 0
		detail="${detail:+$detail, }the folder itself stays"
	fi
	if step delete "$1" "$detail"; then erase "$1"; fi
}

# u_kube_files removes the files of kubeadm, the kubelet and the static pods, above all the cluster's keys. paictl has
# not recorded them.
u_kube_files() {
	for p in /etc/kubernetes /var/lib/kubelet "$ETCD_DIR" /run/flannel /var/log/kubernetes; do
		u_erase "$p"
	done
	p=/run/paictl-resolv.conf
	if [ -L "$R$p" ] || [ -e "$R$p" ]; then if step delete "$p"; then rm -f "$R$p"; fi; fi
	p=/etc/cni/net.d/10-paictl-flannel.conflist
	if [ -e "$R$p" ] && step delete "$p"; then rm -f "$R$p" "$R$p.new"; fi
}

u_runtime_files() { u_erase /run/containerd; }

# u_trees removes the folders of the cluster's programs. The store of an earlier containerd stays: its database names the images of both.
# The records stay until u_state, since a run after an interrupted one must know the operator's folders.
u_trees() {
	records tree | while IFS=$TAB read -r p how; do
		if grep -qsxF "$p${TAB}io.containerd.metadata.v1.bolt" "$S/kept"; then
			if [ "$mode" = run ]; then echo "$p had images of another containerd before, so the cluster's stay there too, in the namespace k8s.io" >&2; fi
		else
			u_erase "$p"
		fi
	done
}

# u_records undoes paictl's own changes, the last first.
u_records() {
	[ -f "$S/owned" ] || return 0
	awk -F '\t' '$1 != "dir" && $1 != "tree" { l[++n] = $0 } END { for (; n > 0; n--) print l[n] }' "$S/owned" |
		while IFS=$TAB read -r kind what how; do
			case $kind in
			unit) u_unit "$what" ;;
			file) u_file "$what" "$how" ;;
			block) u_block "$what" ;;
			sysctl) u_sysctl "$what" "$how" ;;
			module) u_module "$what" ;;
			swap) u_swap ;;
			target) u_target "$what" ;;
			package | initramfs) continue ;; # have their own steps
			*)
				echo "the record of $what is of an unknown kind: $kind -> use the paictl that set this host up, or a newer one" >&2
				exit 1
				;;
			esac
			if [ "$mode" = run ]; then forget "$kind" "$what"; fi
		done
}

# package_state NAME: sets now to dpkg's "version letters", or to "" if the package isn't installed, and full to the name that dpkg requires.
package_state() {
	now=$(package_row "$1")
	full=${now%%"$TAB"*} now=${now#*"$TAB"}
	case $now in *" "?n*) now= ;; esac
}

# u_packages removes the packages that paictl has installed, and restores the versions and holds of those that it has replaced. The
# kernel module is unloaded first if it isn't in use. Packages that were installed along with the driver stay if something else needs them
# by now, or if a user has asked for them.
u_packages() {
	[ -n "$(records package | head -n 1)" ] || return 0
	purge= restore= rest= stay= list=$(records package)
	while IFS=$TAB read -r name how; do
		package_state "$name"
		if [ "$how" = created ]; then
			[ -n "$now" ] || continue
			case $name in
			*nvidia* | libcuda1 | linux-headers-*) purge="$purge $full" ;;
			*) rest="$rest $full" ;;
			esac
			step purge "package $name" || :
		else
			case "$now" in
			"${how%% *} h"*) case "$how " in *" hold "*) continue ;; esac ;;
			"${how%% *} i"*) case "$how " in *" hold "*) ;; *) continue ;; esac ;;
			esac
			restore="$restore $name"
			step restore "package $name" "$how" || :
		fi
	done <<LIST
$list
LIST
	[ "$mode" = run ] || return 0
	if [ -n "$rest" ]; then u_came_along; fi
	if [ -n "$purge$restore" ]; then u_driver; fi
	if [ -n "$stay" ]; then echo "packages that came with the GPU driver stay, since something needs them or someone asked for them:$stay" >&2; fi
	while IFS=$TAB read -r name how; do
		forget package "$name"
	done <<LIST
$list
LIST
	rm -f "$S/driver-change"
}

# u_driver removes the driver's packages, and restores the earlier ones.
u_driver() {
	DEBIAN_FRONTEND=noninteractive
	export DEBIAN_FRONTEND
	used= active=
	for u in nvidia-persistenced.service nvidia-fabricmanager.service; do
		if systemctl is-active --quiet "$u" 2>/dev/null; then
			active="$active $u"
			systemctl stop "$u"
		fi
	done
	if [ -e "$R/proc/driver/nvidia/version" ]; then
		used=1
		for m in nvidia_uvm nvidia_drm nvidia_modeset nvidia_peermem nvidia; do
			[ -d "$R/sys/module/$m" ] || [ "$m" = nvidia ] || continue
			if rmmod "$m" 2>/dev/null; then continue; fi
			echo "the kernel module $m is in use; it stays until the machine is restarted" >&2
			break
		done
	fi
	if [ -n "$purge" ]; then
		# shellcheck disable=SC2086
		printf '%s purge\n' $purge | dpkg --set-selections # dpkg may then remove those that conflict with restored packages
	fi
	debs=
	for n in $restore; do
		v=$(records package | awk -F '\t' -v n="$n" '$1 == n { split($2, a, " "); print a[1]; exit }')
		case $v in *:*) v=${v%%:*}%3a${v#*:} ;; esac
		debs="$debs $(ls "$S/backup/packages/${n}_${v}_"*.deb)"
	done
	if [ -n "$debs" ]; then
		# shellcheck disable=SC2086
		said=$(dpkg --force-confdef --force-confold --force-downgrade --force-breaks --force-depends --auto-deconfigure -i $debs 2>&1 </dev/null) ||
			{ echo "$said" | tail -n 3 >&2; echo "the earlier packages can't be restored -> check dpkg's messages on the machine, then run the same command again" >&2; exit 1; }
	fi
	if [ -n "$purge" ]; then
		# shellcheck disable=SC2086
		said=$(dpkg --force-remove-reinstreq --purge $purge 2>&1 </dev/null) || {
			# shellcheck disable=SC2086
			printf '%s install\n' $purge | dpkg --set-selections
			echo "packages of the GPU driver can't be removed: $(echo "$said" | grep -E 'depends on|error' | head -n 1) -> remove what needs them on the machine, then run the same command again" >&2
			exit 1
		}
	fi
	for n in $restore; do
		how="$(records package | awk -F '\t' -v n="$n" '$1 == n { print $2; exit }') "
		case $how in
		*" hold "*) apt-mark hold "$n" >/dev/null ;;
		*) apt-mark unhold "$n" >/dev/null ;;
		esac
		case $how in *" auto "*) apt-mark auto "$n" >/dev/null ;; esac
	done
	if [ -n "$restore" ] && [ -n "$used" ]; then
		if modprobe nvidia >/dev/null 2>&1; then modprobe nvidia-uvm >/dev/null 2>&1 || :; fi
		for u in $active; do systemctl start "$u" 2>/dev/null || :; done
	fi
}

# u_came_along adds to purge the packages that only the driver needs, by apt's simulation, and sets stay to the others.
u_came_along() {
	# shellcheck disable=SC2086
	said=$(apt-get -s -o APT::AutoRemove::RecommendsImportant=false -o APT::AutoRemove::SuggestsImportant=false -o APT::Ignore-Hold=true \
		--allow-change-held-packages --auto-remove purge $purge 2>/dev/null </dev/null) || said=
	gone=" $(echo "$said" | awk '$1 == "Remv" || $1 == "Purg" { print $2 }' | tr '\n' ' ')"
	for n in $rest; do
		case $gone in
		*" $n "* | *" ${n%:*} "*) purge="$purge $n" ;;
		*) stay="$stay $n" ;;
		esac
	done
}

# u_initramfs rebuilds the image from which the machine boots: it has a copy of paictl's settings for kernel modules.
u_initramfs() {
	records initramfs | while IFS=$TAB read -r kernel _; do
		if command -v update-initramfs >/dev/null 2>&1 && step update "initramfs of $kernel"; then update-initramfs -u -k "$kernel" >/dev/null 2>&1 || :; fi
		if [ "$mode" = run ]; then forget initramfs "$kernel"; fi
	done
}

u_unit() {
	if systemctl is-enabled --quiet "$1" 2>/dev/null; then
		if step disable "$1"; then systemctl disable --quiet "$1"; fi
	fi
}

u_target() {
	if systemctl is-active --quiet "$1" 2>/dev/null; then
		if step stop "$1"; then systemctl stop "$1"; fi
	fi
}

# u_file PATH created|replaced
u_file() {
	if [ "$2" = replaced ]; then
		[ -e "$S/backup$1" ] || return 0
		if cmp -s "$S/backup$1" "$R$1" && [ "$(stat -c '%a %u %g' "$S/backup$1")" = "$(stat -c '%a %u %g' "$R$1")" ]; then return 0; fi
		if step restore "$1"; then
			cp -a "$S/backup$1" "$R$1.paictl-new"
			mv -f "$R$1.paictl-new" "$R$1"
		fi
		return 0
	fi
	rm_new "$1"
	if { [ -e "$R$1" ] || [ -L "$R$1" ]; } && step delete "$1"; then rm -f "$R$1"; fi
}

# rm_new PATH: removes the temporary file that an interrupted write has left beside its target.
rm_new() { [ "$mode" != run ] || rm -f "$R$1.paictl-new"; }

u_block() {
	rm_new "$1"
	grep -qxF '# BEGIN paictl' "$R$1" 2>/dev/null || return 0
	if step update "$1" "without the block of paictl"; then
		t=$R$1.paictl-new
		awk '/^# BEGIN paictl$/ { on = 1 } !on { print } /^# END paictl$/ { on = 0 }' "$R$1" >"$t"
		chmod --reference="$R$1" "$t"
		# /etc/hosts may be a mount point, which a file can't replace by a rename.
		mv -f "$t" "$R$1" 2>/dev/null || { cat "$t" >"$R$1"; rm -f "$t"; }
	fi
}

# u_sysctl KEY OLD: the key doesn't exist if its module isn't loaded; a value that can't be written
# belongs to a container's host.
u_sysctl() {
	sysctl_file "$1"
	[ -e "$f" ] || return 0
	sysctl_in "$f"
	[ "$v" != "$2" ] || return 0
	if step set "sysctl $1" "$v -> $2"; then
		(printf '%s\n' "$2" >"$f") 2>/dev/null || echo "sysctl $1 stays $v: it cannot be written" >&2
	fi
}

# u_module NAME: a module that something else uses stays.
u_module() {
	[ -d "$R/sys/module/$1" ] || return 0
	if step unload "module $1" "unless something uses it"; then modprobe -r "$1" 2>/dev/null || true; fi
}

u_swap() {
	f=$R/etc/fstab
	if step enable swap; then
		if grep -q '^#paictl-swap# ' "$f" 2>/dev/null; then
			sed 's/^#paictl-swap# //' "$f" >"$f.paictl-new"
			chmod --reference="$f" "$f.paictl-new"
			mv -f "$f.paictl-new" "$f"
		fi
		swapon -a || echo "swap could not be switched on again; see /etc/fstab" >&2
	fi
}

# u_dirs removes the folders that paictl created, the deepest first, if they are empty. Those that hold
# only paictl's files are removed with their content.
u_dirs() {
	[ -f "$S/owned" ] || return 0
	awk -F '\t' '$1 == "dir" { print length($2) FS $2 }' "$S/owned" | sort -rn | cut -f2 | while IFS= read -r d; do
		if [ -d "$R$d" ] && [ ! -L "$R$d" ]; then
			case $d in
			/etc/paictl | /etc/paictl/* | */libexec/paictl) if step delete "$d"; then rm -rf "$R$d"; fi ;;
			/usr/libexec/kubernetes) if step delete "$d" "if empty"; then find "$R$d" -depth -type d -empty -delete; fi ;;
			*)
				if [ "$mode" = list ] || [ -z "$(find "$R$d" -mindepth 1 -maxdepth 1 | head -n 1)" ]; then
					if step delete "$d" "if empty"; then rmdir "$R$d" 2>/dev/null || true; fi
				fi
				;;
			esac
		fi
		if [ "$mode" = run ]; then forget dir "$d"; fi
	done
}

u_data() {
	[ -n "$DATA_DIR" ] || return 0
	u_erase "$DATA_DIR" "data of the services"
}

# u_state comes last: it removes paictl's records about this host.
u_state() {
	[ -e "$S" ] || return 0
	if stays /var/lib/paictl && [ -z "$(surplus /var/lib/paictl | head -n 1)" ]; then return 0; fi
	if step delete /var/lib/paictl; then
		systemctl daemon-reload 2>/dev/null || true
		for f in "$S"/units/*; do
			[ ! -e "$f" ] || systemctl reset-failed "${f##*/}" 2>/dev/null || true
		done
		rm -f "$S/member" # without the records, this host must not count as a member
		erase /var/lib/paictl
		rm -f "$LOCK"
	fi
}
