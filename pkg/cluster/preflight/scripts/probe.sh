# Prints the data of a host that preflight needs beyond the facts: one line per answer, its kind
# first. It removes its own temporary folder. The lines before this script set want_ports ("HEX=PORT ..."),
# want_paths, want_store, want_modules, want_commands, want_files, time_services and reach_targets ("IP:PORT ...").

have() { command -v "$1" >/dev/null 2>&1; }

word() { # FILE: its first line, or nothing
	w=
	[ ! -r "$1" ] || read -r w <"$1" || :
	printf %s "$w"
}

probe_system() {
	printf 'init\t%s\n' "$(word "$R/proc/1/comm")"
	printf 'boot\t%s\n' "$(word "$R/proc/sys/kernel/random/boot_id")"
	for c in $want_commands; do
		have "$c" || printf 'missing\t%s\n' "$c"
	done
	have iptables || have nft || printf 'missing\t%s\n' iptables
	for c in apt-get dnf yum zypper; do
		if have "$c"; then
			printf 'packages\t%s\n' "$c"
			break
		fi
	done
	for f in $time_services; do
		if [ -e "$R/usr/lib/systemd/system/$f.service" ] || [ -e "$R/lib/systemd/system/$f.service" ]; then printf 'timesync\t%s\n' "$f"; fi
	done
}

# Units that set the clock, use ports or files that paictl needs, or that block the pods' traffic.
probe_units() {
	have systemctl || return 0
	set -- kubelet.service containerd.service docker.service crio.service k3s.service k3s-agent.service \
		rke2-server.service rke2-agent.service snap.microk8s.daemon-kubelite.service firewalld.service
	for f in $time_services; do set -- "$@" "$f.service"; done
	systemctl is-active "$@" 2>/dev/null | while read -r state && [ $# -gt 0 ]; do
		[ "$state" != active ] || printf 'active\t%s\n' "${1%.service}"
		shift
	done
	printf 'selinux\t%s\n' "$(word "$R/sys/fs/selinux/enforce")"
	if grep -qs '^ENABLED=yes' "$R/etc/ufw/ufw.conf"; then printf 'active\tufw\n'; fi
}

# The rows of filesystems; "mount path mountpoint ro|noexec" if such an option is in force; "dangling link target" of links to folders that
# don't exist.
probe_filesystems() {
	mounts=$R/proc/mounts
	[ -r "$mounts" ] || mounts=/dev/null
	# shellcheck disable=SC2086
	filesystems $want_paths
	set --
	for p in $want_paths; do
		nearest "$p"
		if [ -n "$missing" ] && [ -L "$R$missing" ]; then printf 'dangling\t%s\t%s\n' "$missing" "$(readlink "$R$missing")"; fi
		set -- "$@" "$R$d"
	done
	real=$(readlink -f "$@") || real=
	ROOT=$R REAL=$real awk -v paths="$want_paths" -v folders="$*" '
		function under(p, m) { return m == "/" || p == m || index(p, m "/") == 1 }
		BEGIN {
			n = split(paths, path, " "); split(folders, folder, " "); split(ENVIRON["REAL"], real, "\n"); skip = length(ENVIRON["ROOT"]) + 1
			for (i = 1; i <= n; i++) {
				f = substr(folder[i], skip); r = substr(real[i], skip)
				whole[i] = (r == "/" ? "" : r) (f == "/" ? path[i] : substr(path[i], length(f) + 1))
			}
		}
		{ for (i = 1; i <= n; i++) if (under(whole[i], $2) && length($2) >= best[i]) { best[i] = length($2); options[i] = $4; point[i] = $2 } }
		END {
			for (i = 1; i <= n; i++) {
				k = split(options[i], o, ",")
				for (j = 1; j <= k; j++) if (o[j] == "ro" || o[j] == "noexec") printf "mount\t%s\t%s\t%s\n", path[i], point[i], o[j]
			}
		}' "$mounts"
}

# "overlay folder type reason" if the file system of the container store can't carry overlays. The kernel unmounts the overlay with its namespace.
# If this loads the overlay module, it also unloads it: "cluster down" would consider the module the machine's own.
probe_overlay() {
	if ! have unshare || ! have timeout; then return 0; fi
	nearest "$want_store"
	t=$(mktemp -d "$R${d%/}/.paictl-overlay.XXXXXX" 2>/dev/null) || return 0
	loaded=
	[ ! -d "$R/sys/module/overlay" ] || loaded=1
	said=$(cd "$t" && timeout 20 unshare -m sh -c 'mkdir low up work all && : >low/a &&
		mount -t overlay overlay -o lowerdir=low,upperdir=up,workdir=work all && : >all/b && rm all/a && [ "$(ls all)" = b ]' 2>&1) ||
		printf 'overlay\t%s\t%s\t%s\n' "$d" "$(stat -f -c %T "$t")" "$(printf '%s\n' "${said:-deleted files stay visible}" | sed -n '1{s/^mount: [^ ]*: //; s/\t/ /g; p;}')"
	rm -rf "$t"
	if [ -z "$loaded" ] && [ -d "$R/sys/module/overlay" ]; then modprobe -r overlay 2>/dev/null || :; fi
}

# The kernel's configuration, if it can be read.
kernel_config() {
	if [ -r "$R/proc/config.gz" ] && have zcat; then
		zcat <"$R/proc/config.gz"
	elif [ -r "$R/boot/config-$(word "$R/proc/sys/kernel/osrelease")" ]; then
		cat "$R/boot/config-$(word "$R/proc/sys/kernel/osrelease")"
	fi
}

# A module is present if it is loaded, built in or on the disk, and absent only if the kernel's
# modules or its configuration can be read and don't have it; otherwise its state is unknown.
probe_modules() {
	lib=$R/lib/modules/$(word "$R/proc/sys/kernel/osrelease")
	config=
	for m in $want_modules; do
		state=unknown
		if [ -d "$R/sys/module/$m" ] || grep -qs "[[:space:]]$m\$" "$R/proc/filesystems"; then
			state=present
		elif [ "$m" = br_netfilter ] && [ -e "$R/proc/sys/net/bridge/bridge-nf-call-iptables" ]; then
			state=present
		elif [ -d "$lib" ]; then
			state=absent
			if grep -Eqs "/$m\.ko(\.[a-z]+)?(:|\$)" "$lib/modules.builtin" "$lib/modules.dep"; then state=present; fi
		else
			[ -n "$config" ] || config=$(kernel_config | sed -n 's/^\(CONFIG_[A-Z_]*\)=[ym]$/\1/p' | tr '\n' ' ')
			case $m in
				overlay) key=CONFIG_OVERLAY_FS ;;
				br_netfilter) key=CONFIG_BRIDGE_NETFILTER ;;
				nf_tables) key=CONFIG_NF_TABLES ;;
				*) key=CONFIG_$(printf %s "$m" | tr '[:lower:]' '[:upper:]') ;;
			esac
			case " $config " in
				"  ") ;;
				*" $key "*) state=present ;;
				*) state=absent ;;
			esac
		fi
		printf 'module\t%s\t%s\n' "$m" "$state"
	done
	if [ -r "$R/sys/fs/cgroup/cgroup.controllers" ]; then
		printf 'controllers\t%s\n' "$(word "$R/sys/fs/cgroup/cgroup.controllers")"
	elif [ -r "$R/proc/cgroups" ]; then
		printf 'controllers\t%s\n' "$(awk '$1 !~ /^#/ && $4 == 1 { printf "%s ", $1 }' "$R/proc/cgroups")"
	fi
}

# "port number pid program" for each wanted port on which a program listens (state 0A).
probe_ports() {
	taken=$(cat "$R/proc/net/tcp" "$R/proc/net/tcp6" 2>/dev/null | awk -v want="$want_ports" '
		BEGIN { n = split(want, pairs, " "); for (i = 1; i <= n; i++) { split(pairs[i], kv, "="); port[kv[1]] = kv[2] } }
		$4 == "0A" { k = split($2, a, ":"); if (a[k] in port) print port[a[k]] "=" $10 }' | sort -u)
	[ -n "$taken" ] || return 0
	# One pass over all open files finds the owners; only root sees those of other users. With a
	# second operand, ls prints the name of the folder even if it is the only one.
	{
		ls -l /dev/null "$R"/proc/[0-9]*/fd 2>/dev/null || :
	} | awk -v taken="$taken" '
		BEGIN { n = split(taken, pairs, "\n"); for (i = 1; i <= n; i++) { split(pairs[i], kv, "="); inode["socket:[" kv[2] "]"] = kv[1]; all[kv[1]] = 1 } }
		/\/fd:$/ { k = split($0, a, "/"); pid = a[k - 1]; next }
		$NF in inode { p = inode[$NF]; if (!(p in owner)) owner[p] = pid }
		END { for (p in all) print p, owner[p] }' | sort -n | while read -r port pid; do
		name=
		[ -z "$pid" ] || name=$(word "$R/proc/$pid/comm")
		printf 'port\t%s\t%s\t%s\n' "$port" "$pid" "$name"
	done
}

# Files and services that an earlier Kubernetes of paictl or of another tool has left.
probe_kubernetes() {
	for f in $want_files; do
		[ ! -e "$R$f" ] || printf 'exists\t%s\n' "$f"
	done
	for f in "$R"/etc/kubernetes/manifests/*.yaml "$R"/etc/cni/net.d/*.conf "$R"/etc/cni/net.d/*.conflist; do
		[ ! -e "$f" ] || printf 'exists\t%s\n' "${f#"$R"}"
	done
	if [ -r "$R/etc/kubernetes/kubelet.conf" ]; then
		printf 'server\t%s\n' "$(sed -n 's/^ *server: *//p' "$R/etc/kubernetes/kubelet.conf" | head -n 1)"
	fi
	if [ -r "$R/etc/kubernetes/pki/ca.crt" ]; then
		printf 'ca\t%s\n' "$(sha256sum <"$R/etc/kubernetes/pki/ca.crt" | cut -c1-64)"
	fi
}

# "route destination interface" for each route, without default routes.
probe_routes() {
	have ip || return 0
	for family in -4 -6; do
		ip "$family" route show 2>/dev/null | awk '
			$1 == "default" { next }
			$1 ~ /^(blackhole|unreachable|prohibit|throw|local|broadcast|multicast)$/ { next }
			{ dev = ""; for (i = 2; i < NF; i++) if ($i == "dev") dev = $(i + 1); printf "route\t%s\t%s\n", $1, dev }' | head -n 500
	done
}

# A refusal proves that the other machine is reachable: before the cluster exists, no program
# listens there. All targets are tried at once, for three seconds each.
probe_reach() {
	if [ -z "$reach_targets" ] || ! have bash || ! have timeout; then return 0; fi
	for t in $reach_targets; do
		(
			state=open
			why=$(timeout 3 bash -c 'exec 3<>"/dev/tcp/$1/$2"' reach "${t%:*}" "${t##*:}" 2>&1 </dev/null) || {
				case $?:$why in
					124:*) state=timeout ;;
					*refused*) state=refused ;;
					*"No such file"*) exit 0 ;; # a bash without /dev/tcp
					*"No route"*) state='no route' ;;
					*nreachable*) state='network unreachable' ;;
					*) state=failed ;;
				esac
			}
			printf 'reach\t%s\t%s\n' "$t" "$state"
		) &
	done
	wait
}

# "search domain..." in the file from which pods get the machine's DNS settings.
probe_search() {
	f=$R/etc/resolv.conf
	if grep -qs '^nameserver' "$R/run/systemd/resolve/resolv.conf"; then f=$R/run/systemd/resolve/resolv.conf; fi
	[ ! -r "$f" ] || awk '$1 == "search" || $1 == "domain" { $1 = ""; s = $0 } END { if (s != "") print "search\t" substr(s, 2) }' "$f"
}

# cloud-init writes /etc/hosts from its template at each boot if the last of these settings says
# so; with "localhost" it only adds a line.
probe_cloud() {
	[ ! -e "$R/etc/cloud/cloud-init.disabled" ] || return 0
	last=
	for f in "$R"/etc/cloud/cloud.cfg "$R"/etc/cloud/cloud.cfg.d/*.cfg; do
		[ -r "$f" ] || continue
		v=$(sed -n "s/^manage_etc_hosts:[[:space:]]*[\"']\{0,1\}\([A-Za-z]*\).*/\1/p" "$f" | tail -n 1)
		[ -z "$v" ] || last="$v$TAB${f#"$R"}"
	done
	[ -z "$last" ] || printf 'etc-hosts\t%s\n' "$last"
}

probe_system
probe_cloud
probe_search
probe_units
probe_filesystems
probe_modules
probe_ports
probe_kubernetes
[ -e "$R/etc/kubernetes/kubelet.conf" ] || { probe_reach; probe_overlay; }
probe_routes
printf 'end\tok\n'
