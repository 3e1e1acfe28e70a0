# Installs NVIDIA's driver from packages, as one step that is done or undone: $S/driver-change lists the earlier packages
# ("name version marks", with "-" for a package that wasn't installed), from before the first package changes until the
# driver works. The caller has set RELEASE to the driver's release, and ASKED to the names of the requested packages, with
# a blank before and after each.

# driver_apt ARGS...: runs apt, which asks no questions and keeps changed settings. It runs as root, since only root can
# use the folder into which it downloads.
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

# driver_stop WHY REMEDY: ends the phase with an error.
driver_stop() {
	printf '%s -> %s\n' "$1" "$2" | tr '\n\t' '  ' >&2
	echo >&2
	exit 1
}

# why FILE: prints, on one line, the main message of apt, dpkg or modprobe. dpkg names the package on one line and the cause on the next.
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
# repository is the folder of the packages from the bundle, or "".
repository=

# p_driver_brought: from here on, driver_apt also finds the packages in $S/driver-repository. No other apt process does: the folder
# has its own lists and sources, with links to the machine's. Of the sources, only the folder's own is read again.
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
		driver_stop "apt can't read the packages from the bundle: $(why "$S/driver.log")" "see whether the machine's disk is full, then run the same command again; no package was changed"
}

# deb_of NAME VERSION: sets deb to the path of the package's file, if paictl has kept it.
deb_of() {
	v=$2 native=${native:-$(dpkg --print-architecture)}
	case $v in *:*) v=${v%%:*}%3a${v#*:} ;; esac
	for deb in "$archive/$1_${v}_$native.deb" "$archive/$1_${v}_all.deb" "$S/backup/packages/$1_${v}_$native.deb" "$S/backup/packages/$1_${v}_all.deb"; do
		if [ -f "$deb" ]; then return 0; fi
	done
	deb=
	return 1
}

# fetch_deb NAME VERSION: fetches the package's file. A file that a full disk or the end of apt has truncated isn't kept.
fetch_deb() {
	if deb_of "$1" "$2"; then return 0; fi
	rm -rf "$archive/new"
	mkdir -p "$archive/new"
	v=$2 native=${native:-$(dpkg --print-architecture)}
	case $v in *:*) v=${v%%:*}%3a${v#*:} ;; esac
	# The bundle's files were compared with their checksums.
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

# keep_deb: keeps the fetched file if it can be read to its end.
keep_deb() {
	for f in "$archive/new"/*.deb; do
		if dpkg-deb --fsys-tarfile "$f" >/dev/null 2>"$S/driver.log" && mv -f "$f" "$archive/"; then continue; fi
		rm -f "$f"
		return 1
	done
	rmdir "$archive/new"
}

version_of() { package_row "$1" | cut -f 2; }

# driver_lock: waits until no other program installs packages, so that the next steps don't stop halfway.
driver_lock() {
	n=0
	until dpkg --set-selections </dev/null 2>"$S/driver.log"; do
		n=$((n + 1))
		[ $n -lt 24 ] || driver_stop "another program installs packages: $(why "$S/driver.log")" "wait until it is done (ps shows apt or dpkg), then run the same command again"
		sleep 5
	done
}

# driver_reload: loads the modules and starts the services that were stopped for a change that was abandoned.
driver_reload() {
	if modprobe nvidia >/dev/null 2>&1; then modprobe nvidia-uvm >/dev/null 2>&1 || :; fi
	driver_services start
}

# p_driver_dpkg: finishes packages that dpkg has left unfinished.
p_driver_dpkg() {
	# An interrupted undo may have marked them as unwanted.
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
	driver_stop "dpkg can't finish packages of an earlier installation: $(why "$S/driver.log")" "repair them on the machine (dpkg --configure -a), then run the same command again"
}

# p_driver_undo: undoes an interrupted installation that is no longer wanted.
p_driver_undo() {
	rm -rf "$S/driver-repository"
	if [ -s "$S/driver-change" ]; then driver_undo; else rm -f "$S/driver-change"; fi
}

# driver_new: prints the packages that are installed now, and weren't before the change.
driver_new() {
	while read -r name before _; do
		[ "$before" = - ] || continue
		case $(version_of "$name") in *" "?[nc]*|'') ;; *) package_row "$name" | cut -f 1 ;; esac
	done <"$S/driver-change"
}

# driver_undo: restores the packages on the list. dpkg does it, since apt refuses to work on broken packages. If a new package conflicts
# with an earlier one, dpkg removes the new one for it, provided that it is marked as unwanted.
driver_undo() {
	driver_lock
	: >"$S/driver-hold"
	driver_new | sed 's/$/ purge/' | dpkg --set-selections
	set --
	: >"$S/driver-auto-before"
	while read -r name before marks; do
		[ "$before" != - ] || continue
		deb_of "$name" "$before" || driver_stop "$name $before can't be restored: its file is gone" "install it on the machine, remove $S/driver-change, then run again"
		set -- "$@" "$deb"
		case " $marks " in *" hold "*) echo "$name hold" >>"$S/driver-hold" ;; esac
		case " $marks " in *" auto "*) echo "$name" >>"$S/driver-auto-before" ;; esac
	done <"$S/driver-change"
	if [ $# -gt 0 ]; then
		DEBIAN_FRONTEND=noninteractive dpkg --force-confdef --force-confold --force-downgrade --force-remove-reinstreq --force-breaks --force-depends --auto-deconfigure -i "$@" >"$S/undo.log" 2>&1 </dev/null ||
			driver_stop "the earlier packages can't be restored: $(why "$S/undo.log")" "see $S/undo.log on the machine; the files are in $archive"
	fi
	# shellcheck disable=SC2046
	set -- $(driver_new)
	if [ $# -gt 0 ]; then
		DEBIAN_FRONTEND=noninteractive dpkg --force-remove-reinstreq --purge "$@" >"$S/undo.log" 2>&1 </dev/null ||
			driver_stop "the driver's packages can't be removed again: $(why "$S/undo.log")" "see $S/undo.log on the machine, then run the same command again"
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

# disown_package NAME: deletes the record of a package that is gone.
disown_package() {
	[ -f "$S/owned" ] || return 0
	awk -F '\t' -v w="$1" '!($1 == "package" && $2 == w && $3 == "created")' "$S/owned" >"$S/owned.new"
	mv -f "$S/owned.new" "$S/owned"
}

# driver_services VERB: stops or starts the services that keep the module in use.
driver_services() {
	for u in nvidia-persistenced.service nvidia-fabricmanager.service; do
		case $1 in
		stop) if systemctl is-active --quiet "$u" 2>/dev/null; then systemctl stop "$u"; fi ;;
		start) if systemctl is-enabled --quiet "$u" 2>/dev/null; then systemctl start "$u" 2>/dev/null || :; fi ;;
		esac
	done
}

# driver_unload: unloads the module, unless it is in use. The agent's own program pai-nvml, which watches the GPUs, is started again by
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

# driver_watcher: ends the agent's program, and reports whether it was running.
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

# driver_simulate SPEC...: writes apt's plan to $S/driver.sim. For a dependency, apt considers the newest version only, unless
# its preferences put the packages of this release first. Holds are ignored, since apt doesn't remove packages on hold, as ours
# are, even for one that conflicts with them; driver_judge checks the plan's effects on other packages.
driver_simulate() {
	{
		# apt accepts no version pattern that starts with a star, and only a regular expression finds the release behind an epoch.
		printf 'Package: *nvidia* libcuda1\nPin: version /^([0-9]+:)?%s-/\nPin-Priority: 1001\n\n' "$(printf '%s' "$RELEASE" | sed 's/[.]/[.]/g')"
		# Packages from the bundle come before those from repositories that the machine may not be able to reach.
		[ -z "$repository" ] || printf 'Package: *\nPin: origin ""\nPin-Priority: 995\n\n'
		cat "$R/etc/apt/preferences" 2>/dev/null || :
	} >"$S/driver.preferences"
	driver_apt -o Dir::Etc::preferences="$S/driver.preferences" -o APT::Ignore-Hold=true -s --no-install-recommends --allow-downgrades --allow-change-held-packages install "$@" >"$S/driver.sim" 2>"$S/driver.log" && return 0
	cat "$S/driver.sim" >>"$S/driver.log"
	return 1
}

# p_driver_packages NAME[=VERSION]...: installs these packages. The first change waits until everything that is needed has been fetched.
p_driver_packages() {
	if ! driver_simulate "$@" && [ -s "$S/driver-change" ]; then
		# apt refuses to work after an interrupted run that has replaced some packages, but not others that need them.
		driver_undo
	fi
	if ! driver_simulate "$@"; then
		[ -z "$repository" ] || driver_stop "apt can't install the driver from the bundle and the machine's repositories: $(why "$S/driver.log")" "add what is missing with paictl bundle add-driver, then run the same command again; no package was changed"
		# The unreadable source may not be the driver's.
		driver_apt -o APT::Update::Error-Mode=any update >/dev/null 2>"$S/update.log" && read_=1 || read_=0
		if ! driver_simulate "$@"; then
			[ "$read_" = 1 ] || driver_stop "the packages' repository can't be read: $(why "$S/update.log")" "run apt-get update on the machine and check its messages; no package was changed"
			driver_stop "apt can't install the driver: $(why "$S/driver.log")" "run apt-get -s install $* on the machine and check its messages; no package was changed"
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
				# The lists may name packages that the repository has replaced since: with new lists, the next run plans with the current packages.
				[ -n "$repository" ] || driver_apt update >/dev/null 2>&1 || :
				fetch_deb "$name" "$new" || driver_stop "the package $name $new can't be fetched: $cause" "run the same command again: apt's lists are new; if that doesn't help, see what apt-get download $name=$new says on the machine; no package was changed"
			fi
		fi
		if [ "$old" != - ]; then
			fetch_deb "$name" "$old" || driver_stop "$name $old would be replaced, and could not be restored: its file is no longer available" "remove the driver's packages on the machine first, or set gpu-driver: {policy: keep}; no package was changed"
		fi
	done <"$S/driver.plan"
	driver_lock
	driver_loaded
	if [ -n "$module" ] && [ "$module" != "$RELEASE" ]; then
		driver_unload || driver_stop "a reboot is needed: the kernel module $module is in use, and can't be replaced: $cause" "stop the programs that use GPUs (fuser -v /dev/nvidia*), or reboot the machine (paictl node driver upgrade --reboot does it); then run the same command again; no package was changed"
	fi
	driver_change
}

# driver_judge: refuses a plan of apt's that changes packages outside the driver.
driver_judge() {
	awk '$1 == "Remv" { sub(/:.*/, "", $2); print $2 }' "$S/driver.sim" >"$S/driver.names"
	while read -r name; do
		on_record package "$name" || driver_stop "apt would remove $name, which paictl hasn't installed" "remove it on the machine if it is an old driver, or set gpu-driver: {policy: keep}; no package was changed"
	done <"$S/driver.names"
	# Ubuntu keeps the names of ended branches for packages that only depend on those of the next branch.
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

# driver_change: makes the change. Before a package changes, its earlier state is on the list, and it is on record.
# After an interrupted change, the first list counts.
driver_change() {
	set --
	# A package that is installed from its file counts as requested, so apt would never remove it as unneeded: list the automatic ones.
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
	# apt may remove automatically installed packages once they aren't needed, unless a user asks for them by name. They are recorded
	# before they are installed: a run after an interrupted one may find all of them installed.
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
		driver_stop "the driver $RELEASE can't be installed: $cause; its packages were removed again, and the earlier ones are restored" "see $S/driver-failed.log on the machine, or write another gpu-driver.version"
	fi
	note change "packages of the driver $RELEASE"
}

# driver_marks: marks the packages that were installed along with the driver as automatic.
driver_marks() {
	[ -e "$S/driver-auto" ] || return 0
	set --
	while read -r name; do
		case $(version_of "$name") in *" "?[nc]*|'') ;; *) set -- "$@" "$name" ;; esac
	done <"$S/driver-auto"
	if [ $# -gt 0 ]; then apt-mark auto "$@" >/dev/null; fi
	rm -f "$S/driver-auto"
}

# p_driver_hold: puts the packages of the driver's release that are on record on hold, so that others don't upgrade them.
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

# p_driver_nouveau: unloads the kernel's own driver. If its console keeps it in use, the console is detached.
p_driver_nouveau() {
	[ -d "$R/sys/module/nouveau" ] || return 0
	# The image from which the machine boots also has it.
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
	driver_stop "a reboot is needed: the kernel's own driver nouveau is in use and can't be unloaded; the driver $RELEASE is installed, and nouveau is no longer loaded after the next boot" "reboot the machine (paictl node driver upgrade --reboot does it), then run the same command again"
}

# p_driver_load: loads the module. A driver that replaces another, and whose module does not load, is undone.
p_driver_load() {
	driver_loaded
	if [ "$module" != "$RELEASE" ]; then
		if [ -n "$module" ]; then
			driver_unload || driver_stop "a reboot is needed: the kernel module $module is in use, and the driver $RELEASE is installed" "stop the programs that use GPUs (fuser -v /dev/nvidia*), or reboot the machine (paictl node driver upgrade --reboot does it); then run the same command again"
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

# p_driver_fabric: loads the modules through which the fabric manager reaches NVLink 5 switches, before it is started.
p_driver_fabric() {
	if driver_fabric_modules; then return 0; fi
	for m in mlx5_ib ib_umad; do
		modprobe "$m" 2>"$S/driver.log" || driver_stop "the kernel module $m can't be loaded, without which the fabric manager can't initialise switches of NVLink 5: $(why "$S/driver.log")" "install them on the machine (Ubuntu has them in linux-modules-extra-$(uname -r)), then run the same command again"
	done
	note change "modules mlx5_ib ib_umad"
}

# driver_refused: handles a module that the kernel has refused.
driver_refused() {
	cause=$(why "$S/driver.log")
	remedy="see dmesg and dkms status on the machine, then run the same command again"
	case $cause in
	*"Key was rejected"* | *"Required key"* | *"Operation not permitted"*) remedy="enrol the key with which DKMS signs (mokutil --import /var/lib/dkms/mok.pub, then reboot), or switch Secure Boot off" ;;
	*"not found"*) remedy="the module wasn't built for this kernel: see dkms status and /var/lib/dkms/*/*/build/make.log on the machine" ;;
	esac
	if [ -s "$S/driver-change" ] && awk '$2 != "-" { f = 1 } END { exit !f }' "$S/driver-change"; then
		driver_undo
		driver_stop "the kernel module $RELEASE can't be loaded: $cause; the earlier packages are restored" "$remedy"
	fi
	p_driver_finish
	driver_stop "the kernel module $RELEASE can't be loaded: $cause; the packages stay installed" "$remedy"
}

# p_driver_finish: ends the change. Only the files of installed packages are kept, so that the next change can be undone.
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
