# Installs NVIDIA's driver from packages, as one step that is done or undone: $S/driver-change lists what was there
# before ("name version", with "-" for nothing), from the moment before the first package changes to when the
# driver works. The caller has set RELEASE, the driver's, and ASKED, the names of packages that are asked for, with a blank
# before and after each.

# driver_apt ARGS...: nothing asks, and settings that were changed stay. It runs as root, since the folder into which it
# downloads is root's alone.
driver_apt() {
	DEBIAN_FRONTEND=noninteractive
	NEEDRESTART_SUSPEND=1
	export DEBIAN_FRONTEND NEEDRESTART_SUSPEND
	if [ -n "$repository" ]; then
		set -- -o Dir::State::lists="$repository/lists" -o Dir::Etc::sourceparts="$repository/sources" -o Dir::Cache::pkgcache= -o Dir::Cache::srcpkgcache= "$@"
	fi
	apt -q -o DPkg::Lock::Timeout=120 -o Acquire::Retries=2 -o APT::Sandbox::User=root -o Dpkg::Use-Pty=0 \
		-o Dpkg::Options::=--force-confdef -o Dpkg::Options::=--force-confold "$@" </dev/null
}

# driver_stop WHY REMEDY: ends the phase.
driver_stop() {
	printf '%s -> %s\n' "$1" "$2" | tr '\n\t' '  ' >&2
	echo >&2
	exit 1
}

# why FILE: what of apt's, dpkg's or modprobe's words says most, in one line. dpkg names the package in one and the cause in the next.
why() {
	awk '
		/^E: (Sub-process|Unable to correct)/ { next }
		take { print; exit }
		/^(E:|dpkg: error|Error!|modprobe: )/ || / : (Depends|PreDepends|Conflicts): / { said = 1; print; if (/:$/) take = 1; else exit }
		{ last = $0 }
		END { if (!said) print last }
	' "$1" | tr '\t\n' '  ' | sed 's/^ *//; s/  */ /g; s/ $//' | cut -c1-300
}

archive=$S/packages
# repository is the folder of packages that were brought, where there are some.
repository=

# p_driver_brought: from here on apt knows the packages in $S/driver-repository, too, and no one else's apt does: the folder
# has lists and sources of its own, with links to the machine's. Of the sources only our own is read again.
p_driver_brought() {
	repository=$S/driver-repository
	rm -rf "$repository/lists" "$repository/sources"
	mkdir -p "$repository/lists/partial" "$repository/lists/auxfiles" "$repository/sources"
	for f in "$R"/var/lib/apt/lists/*; do
		[ -f "$f" ] || continue
		case $f in */lock) ;; *) ln -s "$f" "$repository/lists/" ;; esac
	done
	for f in "$R"/etc/apt/sources.list.d/*.list "$R"/etc/apt/sources.list.d/*.sources; do
		if [ -f "$f" ]; then ln -s "$f" "$repository/sources/"; fi
	done
	# It is trusted because paictl has compared each file in it with its checksum.
	printf 'deb [trusted=yes] file:%s ./\n' "$repository" >"$repository/sources/paictl-driver.list"
	driver_apt -o Dir::Etc::sourcelist="$repository/sources/paictl-driver.list" -o Dir::Etc::sourceparts=/dev/null \
		-o APT::Get::List-Cleanup=0 -o Acquire::Languages=none -o APT::Update::Error-Mode=any update >/dev/null 2>"$S/driver.log" ||
		driver_stop "apt can't read the packages that were brought: $(why "$S/driver.log")" "see whether the machine's disk is full, then run the same command again; no package was changed"
}

# deb_of NAME VERSION: sets deb to where its file lies, kept by us.
deb_of() {
	v=$2 native=${native:-$(dpkg --print-architecture)}
	case $v in *:*) v=${v%%:*}%3a${v#*:} ;; esac
	for deb in "$archive/$1_${v}_$native.deb" "$archive/$1_${v}_all.deb" "$S/backup/packages/$1_${v}_$native.deb" "$S/backup/packages/$1_${v}_all.deb"; do
		if [ -f "$deb" ]; then return 0; fi
	done
	deb=
	return 1
}

# fetch_deb NAME VERSION: sees to its file. One that is cut off, by a full disk or since apt was killed, is none.
fetch_deb() {
	if deb_of "$1" "$2"; then return 0; fi
	rm -rf "$archive/new"
	mkdir -p "$archive/new"
	v=$2 native=${native:-$(dpkg --print-architecture)}
	case $v in *:*) v=${v%%:*}%3a${v#*:} ;; esac
	# What was brought was compared with its checksum.
	for f in "$repository/$1_${v}_$native.deb" "$repository/$1_${v}_all.deb"; do
		if [ -n "$repository" ] && [ -f "$f" ] && ln -f "$f" "$archive/"; then
			rmdir "$archive/new"
			return 0
		fi
	done
	for f in "$R/var/cache/apt/archives/$1_${v}_$native.deb" "$R/var/cache/apt/archives/$1_${v}_all.deb"; do
		if [ -f "$f" ] && cp "$f" "$archive/new/" && keep_deb; then return 0; fi
	done
	(cd "$archive/new" && driver_apt download "$1=$2") >"$S/driver.log" 2>&1 && keep_deb
}

# keep_deb: keeps the file that was fetched, if it can be read to its end.
keep_deb() {
	for f in "$archive/new"/*.deb; do
		if dpkg-deb --fsys-tarfile "$f" >/dev/null 2>"$S/driver.log" && mv -f "$f" "$archive/"; then continue; fi
		rm -f "$f"
		return 1
	done
	rmdir "$archive/new"
}

version_of() { package_row "$1" | cut -f 2; }

# driver_lock: waits until no one else installs packages. What follows isn't to stop in the middle for that.
driver_lock() {
	n=0
	until dpkg --set-selections </dev/null 2>"$S/driver.log"; do
		n=$((n + 1))
		[ $n -lt 24 ] || driver_stop "another program installs packages: $(why "$S/driver.log")" "wait until it is done (ps shows apt or dpkg), then run the same command again"
		sleep 5
	done
}

# driver_reload: what was taken out for a change that doesn't come about works again.
driver_reload() {
	if modprobe nvidia >/dev/null 2>&1; then modprobe nvidia-uvm >/dev/null 2>&1 || :; fi
	driver_services start
}

# p_driver_dpkg: finishes what dpkg hasn't.
p_driver_dpkg() {
	# An undoing that was cut off may have marked them as unwanted.
	if [ -s "$S/driver-change" ]; then
		driver_new | while read -r name; do
			case $(version_of "$name") in *" "[pr]*) echo "$name install" ;; esac
		done | dpkg --set-selections
	fi
	if DEBIAN_FRONTEND=noninteractive dpkg --force-confdef --force-confold --configure -a >"$S/driver.log" 2>&1 </dev/null; then
		note change "dpkg --configure -a"
		return 0
	fi
	if [ -s "$S/driver-change" ]; then
		cause=$(why "$S/driver.log")
		driver_undo
		echo "an interrupted installation of the driver could not be completed ($cause), and was undone" >&2
		return 0
	fi
	driver_stop "dpkg can't finish packages that were there before: $(why "$S/driver.log")" "repair them on the machine (dpkg --configure -a), then run the same command again"
}

# p_driver_undo: takes an installation back that was cut off and isn't wanted any more.
p_driver_undo() {
	rm -rf "$S/driver-repository"
	if [ -s "$S/driver-change" ]; then driver_undo; else rm -f "$S/driver-change"; fi
}

# driver_new: the packages that are here, and weren't before the change.
driver_new() {
	while read -r name before _; do
		[ "$before" = - ] || continue
		case $(version_of "$name") in *" "?[nc]*|'') ;; *) package_row "$name" | cut -f 1 ;; esac
	done <"$S/driver-change"
}

# driver_undo: gives back what the list says. dpkg does it, since apt refuses to work on packages that are broken. Where a new package conflicts
# with one that was there, dpkg takes it away for that, provided that it isn't wanted.
driver_undo() {
	driver_lock
	: >"$S/driver-hold"
	driver_new | sed 's/$/ purge/' | dpkg --set-selections
	set --
	: >"$S/driver-auto-before"
	while read -r name before marks; do
		[ "$before" != - ] || continue
		deb_of "$name" "$before" || driver_stop "$name $before can't be put back: its file is gone" "install it on the machine, remove $S/driver-change, then run again"
		set -- "$@" "$deb"
		case " $marks " in *" hold "*) echo "$name hold" >>"$S/driver-hold" ;; esac
		case " $marks " in *" auto "*) echo "$name" >>"$S/driver-auto-before" ;; esac
	done <"$S/driver-change"
	if [ $# -gt 0 ]; then
		DEBIAN_FRONTEND=noninteractive dpkg --force-confdef --force-confold --force-downgrade --force-remove-reinstreq --force-breaks --force-depends --auto-deconfigure -i "$@" >"$S/undo.log" 2>&1 </dev/null ||
			driver_stop "the packages that were there can't be put back: $(why "$S/undo.log")" "see $S/undo.log on the machine; the files are in $archive"
	fi
	# shellcheck disable=SC2046
	set -- $(driver_new)
	if [ $# -gt 0 ]; then
		DEBIAN_FRONTEND=noninteractive dpkg --force-remove-reinstreq --purge "$@" >"$S/undo.log" 2>&1 </dev/null ||
			driver_stop "the packages of the driver can't be taken away again: $(why "$S/undo.log")" "see $S/undo.log on the machine, then run the same command again"
	fi
	while read -r name before _; do
		if [ "$before" = - ]; then disown_package "$name"; fi
	done <"$S/driver-change"
	while read -r name _; do apt-mark hold "$name" >/dev/null 2>&1 || :; done <"$S/driver-hold"
	while read -r name; do apt-mark auto "$name" >/dev/null 2>&1 || :; done <"$S/driver-auto-before"
	rm -f "$S/driver-hold" "$S/driver-auto-before" "$S/driver-auto" "$S/driver-change"
	note change "the driver's packages are as before"
	driver_reload
}

# disown_package NAME: takes away the record of one that is gone.
disown_package() {
	[ -f "$S/owned" ] || return 0
	awk -F '\t' -v w="$1" '!($1 == "package" && $2 == w && $3 == "created")' "$S/owned" >"$S/owned.new"
	mv -f "$S/owned.new" "$S/owned"
}

# driver_services VERB: what keeps the module busy by itself.
driver_services() {
	for u in nvidia-persistenced.service nvidia-fabricmanager.service; do
		case $1 in
		stop) if systemctl is-active --quiet "$u" 2>/dev/null; then systemctl stop "$u"; fi ;;
		start) if systemctl is-enabled --quiet "$u" 2>/dev/null; then systemctl start "$u" 2>/dev/null || :; fi ;;
		esac
	done
}

# driver_unload: takes the loaded module out, unless something uses it. Our agent's own program, which looks at the GPUs, is begun again by
# the agent a second later.
driver_unload() {
	[ -e "$R/proc/driver/nvidia/version" ] || return 0
	driver_services stop
	for m in nvidia_uvm nvidia_drm nvidia_modeset nvidia_peermem nvidia; do
		[ -d "$R/sys/module/$m" ] || [ "$m" = nvidia ] || continue
		n=0
		until rmmod "$m" 2>"$S/driver.log"; do
			n=$((n + 1))
			if [ $n -gt 5 ] || ! driver_watcher; then
				cause=$(tail -n 1 "$S/driver.log")
				driver_reload
				return 1
			fi
		done
	done
}

# driver_watcher: ends our agent's program where it runs.
driver_watcher() {
	found=1
	for d in "$R"/proc/[0-9]*; do
		line_in "$d/comm"
		if [ "$line" = pai-nvml ]; then
			kill -9 "${d##*/}" 2>/dev/null || :
			found=0
		fi
	done
	return $found
}

# driver_simulate SPEC...: leaves what apt would do in $S/driver.sim. For what a package depends on apt takes the newest version and
# no other, unless it is told that those of this release go first. It doesn't take a package away that is on hold, as ours are, even
# for one that conflicts with it; what it would do to packages of others driver_judge sees.
driver_simulate() {
	{
		# apt takes no pattern that begins with a star: with an epoch before it the release is found by this alone.
		printf 'Package: *nvidia* libcuda1\nPin: version /^([0-9]+:)?%s-/\nPin-Priority: 1001\n\n' "$(printf '%s' "$RELEASE" | sed 's/[.]/[.]/g')"
		# What was brought goes before what the machine may not be able to reach.
		[ -z "$repository" ] || printf 'Package: *\nPin: origin ""\nPin-Priority: 995\n\n'
		cat "$R/etc/apt/preferences" 2>/dev/null || :
	} >"$S/driver.preferences"
	driver_apt -o Dir::Etc::preferences="$S/driver.preferences" -o APT::Ignore-Hold=true -s --no-install-recommends --allow-downgrades --allow-change-held-packages install "$@" >"$S/driver.sim" 2>"$S/driver.log" && return 0
	cat "$S/driver.sim" >>"$S/driver.log"
	return 1
}

# p_driver_packages NAME[=VERSION]...: makes these be there. Nothing changes before all that is needed is here.
p_driver_packages() {
	if ! driver_simulate "$@" && [ -s "$S/driver-change" ]; then
		# apt refuses to work where some packages were replaced by a run that was cut off, and others that need them weren't.
		driver_undo
	fi
	if ! driver_simulate "$@"; then
		[ -z "$repository" ] || driver_stop "apt can't install the driver from the bundle and from what it knows: $(why "$S/driver.log")" "add what is missing with paictl bundle add-driver, then run the same command again; no package was changed"
		# Of the sources that can't be read the driver's may be none.
		driver_apt -o APT::Update::Error-Mode=any update >/dev/null 2>"$S/update.log" && read_=1 || read_=0
		if ! driver_simulate "$@"; then
			[ "$read_" = 1 ] || driver_stop "the packages' repository can't be read: $(why "$S/update.log")" "run apt-get update on the machine and check its messages; no package was changed"
			driver_stop "apt can't install the driver: $(why "$S/driver.log")" "see what apt-get -s install $* says on the machine; no package was changed"
		fi
	fi
	driver_judge
	awk '$1 == "Inst" { old = "-"; v = $3; if ($3 ~ /^\[/) { old = substr($3, 2, length($3) - 2); v = $4 } print $2, substr(v, 2), old }' "$S/driver.sim" >"$S/driver.plan"
	awk '$1 == "Remv" { print $2, "-", substr($3, 2, length($3) - 2) }' "$S/driver.sim" | sed 's/:[a-z0-9]* / /' >>"$S/driver.plan"
	if [ ! -s "$S/driver.plan" ]; then return 0; fi
	while read -r name new old; do
		if [ "$new" != - ]; then
			if ! fetch_deb "$name" "$new"; then
				cause=$(why "$S/driver.log")
				# Its lists may name what the repository has replaced meanwhile: the next run decides by what there is.
				[ -n "$repository" ] || driver_apt update >/dev/null 2>&1 || :
				fetch_deb "$name" "$new" || driver_stop "the package $name $new can't be had: $cause" "run the same command again: apt's lists are new; if that doesn't help, see what apt-get download $name=$new says on the machine; no package was changed"
			fi
		fi
		if [ "$old" != - ]; then
			fetch_deb "$name" "$old" || driver_stop "$name $old would be replaced, and could not be put back: its file is no longer available" "remove the driver's packages on the machine first, or set gpu-driver: {policy: keep}; no package was changed"
		fi
	done <"$S/driver.plan"
	driver_lock
	driver_loaded
	if [ -n "$module" ] && [ "$module" != "$RELEASE" ]; then
		driver_unload || driver_stop "a reboot is needed: the kernel module $module is in use, and can't be replaced: $cause" "stop what uses GPUs (fuser -v /dev/nvidia*), or reboot the machine (paictl node driver upgrade --reboot does it); then run the same command again; no package was changed"
	fi
	driver_change
}

# driver_judge: refuses a plan of apt's that touches what isn't the driver's.
driver_judge() {
	awk '$1 == "Remv" { sub(/:.*/, "", $2); print $2 }' "$S/driver.sim" >"$S/driver.names"
	while read -r name; do
		on_record package "$name" || driver_stop "apt would remove $name, which paictl hasn't installed" "remove it on the machine if it is an old driver, or set gpu-driver: {policy: keep}; no package was changed"
	done <"$S/driver.names"
	# Ubuntu keeps names of branches that are over, for packages that only need those of the next.
	branch=${RELEASE%%.*}
	other=$(awk -v b="$branch" '$1 == "Inst" && $2 ~ /nvidia/ && match($2, /-[0-9][0-9][0-9](-|:|$)/) && substr($2, RSTART + 1, 3) != b { print substr($2, RSTART + 1, 3); exit }' "$S/driver.sim")
	[ -z "$other" ] || driver_stop "the packages of the driver $RELEASE are those of the branch $other under another name" "write version: \"$other\" under gpu-driver in kubernetes-configuration.yaml; no package was changed"
	awk '$1 == "Inst" && $3 ~ /^\[/ { print $2 }' "$S/driver.sim" >"$S/driver.names"
	others=
	while read -r name; do
		case $name in
		*nvidia* | libcuda1 | libcuda1:*) ;;
		*) on_record package "$name" || others="$others $name" ;;
		esac
	done <"$S/driver.names"
	rm -f "$S/driver.names"
	[ -z "$others" ] || [ -z "$repository" ] || driver_stop "the driver's packages need newer versions of packages that aren't the driver's:$others" "add packages of the machine's own state to the bundle, or install the newer ones on the machine by dpkg -i, then run the same command again; no package was changed"
	[ -z "$others" ] || driver_stop "the driver's packages need newer versions of packages that aren't the driver's:$others" "apt-get install --only-upgrade$others on the machine, then run the same command again; no package was changed"
}

# driver_change: the step itself. What was there before is on the list, and each package is on record, before it changes.
# Of a change that was cut off the first list counts.
driver_change() {
	set --
	# What is installed by its file counts as asked for: apt may not remove any more what came along with something.
	autos=" $(apt-mark showauto 2>/dev/null | tr '\n' ' ') "
	while read -r name new old; do
		marks=
		case $(version_of "$name") in *" h"*) marks=hold ;; esac
		case $autos in *" $name "*) marks="$marks auto" ;; esac
		printf '%s %s %s\n' "$name" "$old" "${marks# }"
	done <"$S/driver.plan" >"$S/driver-change.plan"
	{
		[ ! -e "$S/driver-change" ] || cat "$S/driver-change"
		cat "$S/driver-change.plan"
	} | awk '!seen[$1]++' >"$S/driver-change.new"
	mv -f "$S/driver-change.new" "$S/driver-change"
	while read -r name old marks; do
		if on_record package "$name"; then continue; fi
		if [ "$old" = - ]; then
			own package "$name" created
		else
			mkdir -p "$S/backup/packages"
			deb_of "$name" "$old"
			cp "$deb" "$S/backup/packages/new"
			mv -f "$S/backup/packages/new" "$S/backup/packages/${deb##*/}"
			own package "$name" "$old $marks"
		fi
	done <"$S/driver-change.plan"
	rm -f "$S/driver-change.plan"
	while read -r name new _; do
		if [ "$new" = - ]; then
			set -- "$@" "$name-"
		else
			deb_of "$name" "$new"
			set -- "$@" "$deb"
		fi
	done <"$S/driver.plan"
	# Those that come along are apt's to remove where nothing needs them any more, unless someone asks for them by name. They are
	# written down before they are there: the run that goes on after one that was cut off may ask for none, since all is there.
	{
		[ ! -e "$S/driver-auto" ] || cat "$S/driver-auto"
		while read -r name _ old; do
			case $ASKED in *" $name "*) continue ;; esac
			case $old$autos in "- "* | *" $name "*) echo "$name" ;; esac
		done <"$S/driver.plan"
	} >"$S/driver-auto.new"
	mv -f "$S/driver-auto.new" "$S/driver-auto"
	if ! driver_apt -o APT::Ignore-Hold=true -y --no-install-recommends --allow-downgrades --allow-change-held-packages install "$@" >"$S/driver.log" 2>&1; then
		cause=$(why "$S/driver.log")
		cp "$S/driver.log" "$S/driver-failed.log"
		driver_undo
		driver_stop "the driver $RELEASE can't be installed: $cause; its packages were taken away again, and what was there before is back" "see $S/driver-failed.log on the machine, or write another gpu-driver.version"
	fi
	note change "packages of the driver $RELEASE"
}

# driver_marks: leaves to apt what came along.
driver_marks() {
	[ -e "$S/driver-auto" ] || return 0
	set --
	while read -r name; do
		case $(version_of "$name") in *" "?[nc]*|'') ;; *) set -- "$@" "$name" ;; esac
	done <"$S/driver-auto"
	if [ $# -gt 0 ]; then apt-mark auto "$@" >/dev/null; fi
	rm -f "$S/driver-auto"
}

# p_driver_hold: keeps the driver's packages from being upgraded by others: all that are of its release.
p_driver_hold() {
	set --
	while IFS=$TAB read -r kind_ name _; do
		[ "$kind_" = package ] || continue
		case $(version_of "$name") in
		"$RELEASE"-*" i"* | *":$RELEASE"-*" i"* | "$RELEASE i"*) set -- "$@" "$name" ;;
		esac
	done <"$S/owned"
	if [ $# -gt 0 ]; then
		apt-mark hold "$@" >/dev/null
		note change "hold $*"
	fi
}

# p_driver_nouveau: takes the kernel's own driver out. Its console is taken off it where that keeps it.
p_driver_nouveau() {
	[ -d "$R/sys/module/nouveau" ] || return 0
	# It also lies in the image from which the machine boots.
	if command -v update-initramfs >/dev/null 2>&1; then
		own initramfs "$(uname -r)" updated
		update-initramfs -u -k "$(uname -r)" >/dev/null 2>&1 || :
	fi
	if modprobe -r nouveau 2>"$S/driver.log"; then
		note change "module nouveau"
		return 0
	fi
	for c in "$R"/sys/class/vtconsole/*; do
		line_in "$c/name"
		case $line in *"frame buffer"*) echo 0 >"$c/bind" 2>/dev/null || : ;; esac
	done
	if modprobe -r nouveau 2>"$S/driver.log"; then
		note change "module nouveau"
		return 0
	fi
	for c in "$R"/sys/class/vtconsole/*; do
		line_in "$c/name"
		case $line in *"frame buffer"*) echo 1 >"$c/bind" 2>/dev/null || : ;; esac
	done
	p_driver_finish
	driver_stop "a reboot is needed: the kernel's own driver nouveau is in use and can't be unloaded; the driver $RELEASE is installed, and nouveau stays out from the next boot on" "reboot the machine (paictl node driver upgrade --reboot does it), then run the same command again"
}

# p_driver_load: loads the module. One that replaces another, and does not load, goes again.
p_driver_load() {
	driver_loaded
	if [ "$module" != "$RELEASE" ]; then
		if [ -n "$module" ]; then
			driver_unload || driver_stop "a reboot is needed: the kernel module $module is in use, and the driver $RELEASE is installed" "stop what uses GPUs (fuser -v /dev/nvidia*), or reboot the machine (paictl node driver upgrade --reboot does it); then run the same command again"
		fi
		if ! modprobe nvidia 2>"$S/driver.log"; then driver_refused; fi
		driver_loaded
		[ "$module" = "$RELEASE" ] || driver_stop "the kernel module that is loaded is ${module:-none}, not $RELEASE" "see dkms status and modinfo nvidia on the machine"
		note change "module nvidia"
	fi
	if ! driver_unified; then
		modprobe nvidia-uvm 2>"$S/driver.log" || driver_stop "the kernel module nvidia-uvm can't be loaded, without which CUDA doesn't work: $(why "$S/driver.log")" "see dmesg and dkms status on the machine, then run the same command again"
		note change "module nvidia-uvm"
	fi
	driver_services start
}

# p_driver_fabric: loads the modules through which the fabric manager reaches switches of NVLink 5, before it is started.
p_driver_fabric() {
	if driver_fabric_modules; then return 0; fi
	for m in mlx5_ib ib_umad; do
		modprobe "$m" 2>"$S/driver.log" || driver_stop "the kernel module $m can't be loaded, without which the fabric manager can't initialise switches of NVLink 5: $(why "$S/driver.log")" "install them on the machine (Ubuntu has them in linux-modules-extra-$(uname -r)), then run the same command again"
	done
	note change "modules mlx5_ib ib_umad"
}

# driver_refused: the kernel hasn't taken the module.
driver_refused() {
	cause=$(why "$S/driver.log")
	remedy="see dmesg and dkms status on the machine, then run the same command again"
	case $cause in
	*"Key was rejected"* | *"Required key"* | *"Operation not permitted"*) remedy="enrol the key with which DKMS signs (mokutil --import /var/lib/dkms/mok.pub, then reboot), or switch Secure Boot off" ;;
	*"not found"*) remedy="the module wasn't built for this kernel: see dkms status and /var/lib/dkms/*/*/build/make.log on the machine" ;;
	esac
	if [ -s "$S/driver-change" ] && awk '$2 != "-" { f = 1 } END { exit !f }' "$S/driver-change"; then
		driver_undo
		driver_stop "the kernel module $RELEASE can't be loaded: $cause; the packages that were there before are back" "$remedy"
	fi
	p_driver_finish
	driver_stop "the kernel module $RELEASE can't be loaded: $cause; the packages stay installed" "$remedy"
}

# p_driver_finish: the change is done. Of packages only the files of what is installed are kept, for the next one's undoing.
p_driver_finish() {
	driver_marks
	if [ -f "$S/driver-change" ]; then
		while read -r name _; do
			case $(version_of "$name") in *" "?[nc]*|'') disown_package "$name" ;; esac
		done <"$S/driver-change"
	fi
	rm -rf "$S/driver-repository"
	for f in "$archive"/*.deb; do
		[ -f "$f" ] || continue
		name=${f##*/}
		name=${name%%_*}
		v=$(version_of "$name")
		deb_of "$name" "${v%% *}" || :
		[ "$deb" = "$f" ] || rm -f "$f"
	done
	rm -f "$S/driver-change" "$S/driver.log" "$S/driver.sim" "$S/driver.plan" "$S/driver.preferences" "$S/update.log"
}
