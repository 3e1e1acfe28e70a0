# Prints the state of NVIDIA's driver on this machine and of its environment. It only reads: if the package
# lists are too old, new ones are fetched into a temporary folder, which is then removed.

# driver_loaded: sets module to the release of the loaded kernel module, and flavour to open or closed.
driver_loaded() {
	module= flavour=
	line_in "$R/proc/driver/nvidia/version"
	case $line in
	*'Open Kernel Module'*) flavour=open ;;
	?*) flavour=closed ;;
	esac
	for w in $line; do
		case $w in
		[0-9]*.*[0-9])
			module=$w
			break
			;;
		esac
	done
}

# driver_unified: reports whether the module for unified memory is loaded, which is loaded separately.
driver_unified() { [ -d "$R/sys/module/nvidia_uvm" ]; }

# driver_fabric_modules: reports whether the fabric manager can reach NVLink 5 switches.
driver_fabric_modules() { [ -d "$R/sys/module/mlx5_ib" ] && [ -d "$R/sys/module/ib_umad" ]; }

# driver_fabric: prints the programs and modules for NVSwitches. The fabric manager prints its release as "Fabric Manager version is : 570.86.15".
driver_fabric() {
	if driver_fabric_modules; then printf 'fabric-modules\tyes\n'; fi
	[ -x "$R/usr/bin/nv-fabricmanager" ] || return 0
	timeout -k 5 20 "$R/usr/bin/nv-fabricmanager" --version 2>/dev/null | awk '{ for (i = 1; i <= NF; i++) if ($i ~ /^[0-9]+[.][0-9.]+$/) { print "fabric-manager\t" $i; exit } }' || :
	if systemctl is-active --quiet nvidia-fabricmanager.service 2>/dev/null; then printf 'fabric-manager-active\tyes\n'; fi
	if [ -x "$R/opt/nvidia/nvlsm/sbin/nvlsm" ]; then printf 'subnet-manager\tyes\n'; fi
}

# driver_userland: sets userland to the release of the libraries that programs load.
driver_userland() {
	userland=
	for f in "$R/usr/lib/$(uname -m)-linux-gnu/libnvidia-ml.so.1" "$R"/usr/lib64/libnvidia-ml.so.1 "$R"/usr/lib/libnvidia-ml.so.1; do
		[ -e "$f" ] || continue
		f=$(readlink -f "$f") || continue
		userland=${f##*.so.}
		return 0
	done
}

# driver_gpus: sets gpus to the number of NVIDIA GPUs on the PCI bus, without those that are passed through to virtual machines: they
# have another driver.
driver_gpus() {
	gpus=0
	for d in "$R"/sys/bus/pci/devices/*; do
		line_in "$d/vendor"
		[ "$line" = 0x10de ] || continue
		of=$(readlink "$d/driver") || of=
		case ${of##*/} in vfio* | pci-stub | pciback | xen-pciback) continue ;; esac
		line_in "$d/class"
		case $line in 0x03* | 0x12*) gpus=$((gpus + 1)) ;; esac
	done
}

# driver_users: prints "user program pid" for each process that has a GPU open, and "display program pid" for those
# that use a screen. The processes that paictl stops itself aren't users.
driver_users() {
	{
		ls -l /dev/null "$R"/proc/[0-9]*/fd 2>/dev/null || :
	} | awk '
		/\/fd:$/ { k = split($0, a, "/"); pid = a[k - 1]; next }
		$NF ~ /^\/dev\/nvidia/ { user[pid] = 1 }
		$NF ~ /^\/dev\/dri\// { display[pid] = 1 }
		END { for (p in user) print "user", p; for (p in display) print "display", p }' | sort | while read -r kind pid; do
		line_in "$R/proc/$pid/comm"
		case $kind:$line in
		user:nvidia-persiste* | user:nv-fabricmanag* | user:pai-nvml) ;;
		*) printf '%s\t%s\t%s\n' "$kind" "$line" "$pid" ;;
		esac
	done
}

# driver_packages NAME...: prints "package name version status" for these and all NVIDIA packages, with dpkg's letters for
# the desired and the actual state; "broken name status" for any package that dpkg hasn't finished; "ours name record".
driver_packages() {
	dpkg-query -W -f '${Package}\t${Version}\t${db:Status-Abbrev}\n' 2>/dev/null | awk -F '\t' -v names="$*" '
		BEGIN { n = split(names, a, " "); for (i = 1; i <= n; i++) want[a[i]] = 1 }
		{ state = substr($3, 2, 1); err = substr($3, 3, 1) }
		state ~ /[HUFWt]/ || err == "R" { printf "broken\t%s\t%s\n", $1, $3 }
		($1 in want || $1 ~ /nvidia|^libcuda1/) && state !~ /[nc]/ { printf "package\t%s\t%s\t%s\n", $1, $2, $3 }'
	[ ! -f "$S/owned" ] || awk -F '\t' '$1 == "package" { printf "ours\t%s\t%s\n", $2, $3 }' "$S/owned"
}

# driver_candidates OPTIONS NAMES: prints "candidate name version..." for the versions that apt could install, newest first.
driver_candidates() {
	# shellcheck disable=SC2086
	apt-cache $1 madison $2 2>/dev/null | awk -F '|' '
		$3 !~ /Packages *$/ { next }
		{ gsub(/ /, "", $1); gsub(/ /, "", $2) }
		!($1 in all) { order[++n] = $1 }
		!(($1, $2) in seen) { seen[$1, $2] = 1; all[$1] = all[$1] "\t" $2 }
		END { for (i = 1; i <= n; i++) printf "candidate\t%s%s\n", order[i], all[order[i]] }'
}

# driver_offered VERSION: reports whether the candidates on standard input include this release, or any if VERSION is "".
driver_offered() {
	awk -F '\t' -v want="$1" '
		$2 !~ /^linux-headers-/ { for (i = 3; i <= NF; i++) { v = $i; sub(/^[0-9]+:/, "", v); if (want == "" || index(v, want ".") == 1 || index(v, want "-") == 1) f = 1 } }
		END { exit !f }'
}

# d_driver POLICY VERSION MODULE NAME...: prints all of it, as far as it matters. If the driver is as wanted, it omits users and candidates.
# If the caller sets OFFLINE, the packages come from the bundle, and no list is fetched.
# In names, %k is the running kernel.
d_driver() {
	policy=$1 version=$2 kind=$3
	shift 3
	driver_gpus
	printf 'gpus\t%s\n' "$gpus"
	[ ! -d "$S/driver-repository" ] || printf 'brought\tyes\n'
	if [ -e "$S/driver-change" ]; then printf 'pending\tyes\n'; elif [ "$gpus" = 0 ]; then return 0; fi
	driver_loaded
	driver_userland
	printf 'module\t%s\t%s\nuserland\t%s\n' "$module" "$flavour" "$userland"
	if driver_unified; then printf 'unified\tyes\n'; fi
	driver_fabric
	if [ "$policy" != install ] && [ ! -e "$S/driver-change" ]; then return 0; fi
	if ! command -v apt-get >/dev/null 2>&1 || ! command -v dpkg-query >/dev/null 2>&1; then return 0; fi
	printf 'apt\tyes\n'
	line_in "$R/proc/sys/kernel/osrelease"
	kernel=$line names=
	for n; do
		case $n in *%k) n=${n%\%k}$kernel ;; esac
		names="$names $n"
	done
	# shellcheck disable=SC2086
	driver_packages $names
	[ "$policy" = install ] || return 0
	case $kind in open | closed) ;; *) kind=$flavour ;; esac
	case $module. in
	.) ;;
	"${version:-$module}".*) if [ "$module" = "$userland" ] && [ "$kind" = "$flavour" ]; then return 0; fi ;;
	esac
	driver_users
	for f in /var/lib/dkms/mok.pub /var/lib/shim-signed/mok/MOK.der; do
		[ -f "$R$f" ] && command -v mokutil >/dev/null 2>&1 || continue
		case $(mokutil --test-key "$R$f" 2>/dev/null || :) in *'already enrolled'*) printf 'key\tenrolled\n' ;; esac
	done
	found=$(driver_candidates "" "$names")
	if [ -z "${OFFLINE:-}" ] && ! printf '%s\n' "$found" | driver_offered "$version"; then
		t=$(mktemp -d) || return 0
		trap 'rm -rf "$t"' EXIT
		mkdir -p "$t/lists/partial" "$t/cache/archives/partial"
		o="-o Dir::State::lists=$t/lists -o Dir::Cache=$t/cache -o Acquire::Languages=none -o Acquire::Retries=1 -o APT::Sandbox::User=root"
		# shellcheck disable=SC2086
		apt $o update >"$t/said" 2>&1 </dev/null || :
		grep -E '^(E:|W: Failed)' "$t/said" | head -n 1 | tr '\t' ' ' | sed "s/^/repository$TAB/"
		found=$(driver_candidates "$o" "$names")
	fi
	printf '%s\n' "$found"
}
