# A package manager of a fake host: $F/dpkg/NAME holds "version letters" of what is there, $F/repository lines "name
# version dependency..." of what may be had, the newest first; dependencies are of the same version. Without the
# file apt knows nothing. Formats were recorded from apt 2.6 and dpkg 1.21.
D=$F/dpkg

# installed NAME: sets have and letters, to nothing where the package isn't there.
installed() {
	have= letters=
	[ -f "$D/$1" ] || return 1
	read -r have letters <"$D/$1"
}

# state NAME VERSION LETTERS: dpkg's record.
state() {
	mkdir -p "$D"
	printf '%s %s\n' "$2" "$3" >"$D/$1.new"
	/bin/mv -f "$D/$1.new" "$D/$1" # a power cut doesn't lose it: dpkg syncs its records
	hit
}

# unpack NAME VERSION
unpack() {
	want=i
	if installed "$1"; then case $letters in h*) want=h ;; esac; fi
	case $1 in
	libnvidia-ml1)
		lib=$R/usr/lib/x86_64-linux-gnu
		mkdir -p "$lib"
		rm -f "$lib"/libnvidia-ml.so.*
		: >"$lib/libnvidia-ml.so.${2%%-*}"
		ln -s "libnvidia-ml.so.${2%%-*}" "$lib/libnvidia-ml.so.1"
		;;
	nvidia-persistenced)
		mkdir -p "$R/lib/systemd/system"
		echo '[Service]' >"$R/lib/systemd/system/nvidia-persistenced.service"
		;;
	nvidia-fabricmanager)
		mkdir -p "$R/lib/systemd/system" "$R/usr/bin"
		echo '[Service]' >"$R/lib/systemd/system/nvidia-fabricmanager.service"
		printf '#!/bin/sh\necho "Fabric Manager version is : %s"\n' "${2%%-*}" >"$R/usr/bin/nv-fabricmanager"
		chmod 755 "$R/usr/bin/nv-fabricmanager"
		;;
	nvlsm)
		mkdir -p "$R/opt/nvidia/nvlsm/sbin"
		: >"$R/opt/nvidia/nvlsm/sbin/nvlsm"
		chmod 755 "$R/opt/nvidia/nvlsm/sbin/nvlsm"
		;;
	esac
	# dpkg, too, counts a package as unpacked only when its files are there.
	state "$1" "$2" "${want}U"
}

# configure NAME: what its maintainer script does. DKMS builds the module.
configure() {
	installed "$1"
	case $letters in ?i) return 0 ;; esac
	if [ -e "$F/fail/postinst-$1-$have" ]; then
		state "$1" "$have" "${letters%?}F"
		echo "dpkg: error processing package $1 (--configure):"
		echo " installed $1 package post-installation script subprocess returned error exit status 10"
		return 1
	fi
	case $1 in
	nvidia-kernel-dkms | nvidia-kernel-open-dkms)
		mkdir -p "$F/modules"
		echo "${have%%-*}" >"$F/modules/nvidia"
		;;
	esac
	state "$1" "$have" "${letters%?}i"
}

# purge NAME
purge() {
	installed "$1" || return 0
	case $1 in
	libnvidia-ml1) rm -f "$R"/usr/lib/x86_64-linux-gnu/libnvidia-ml.so.* ;;
	nvidia-persistenced) rm -f "$R/lib/systemd/system/nvidia-persistenced.service" ;;
	nvidia-fabricmanager) rm -f "$R/lib/systemd/system/nvidia-fabricmanager.service" "$R/usr/bin/nv-fabricmanager" ;;
	nvlsm) rm -rf "$R/opt/nvidia" ;;
	nvidia-kernel-dkms | nvidia-kernel-open-dkms) rm -f "$F/modules/nvidia" ;;
	esac
	rm -f "$D/$1"
	hit
}

# configure_all: whatever is unpacked and not configured.
configure_all() {
	code=0
	for f in "$D"/*; do
		[ -f "$f" ] || continue
		installed "${f##*/}"
		case $letters in ?[UF]) configure "${f##*/}" || code=1 ;; esac
	done
	return $code
}

# of_file FILE: sets name and version.
of_file() {
	name=${1##*/}
	version=${name#*_}
	version=${version%_*}
	name=${name%%_*}
}
