# Makes a repository in the layout of NVIDIA's for Debian 12 at /srv/nvidia, of tiny packages. What their scripts do was seen
# of Debian's packages of the driver: DKMS builds a module where the running kernel has headers and else goes on without; the
# persistence daemon is started, and fails where no module is loaded, which fails no installation.
set -eu
kernel=$(uname -r)
mkdir -p /srv/nvidia /tmp/pkg
cd /tmp/pkg

# package NAME VERSION DEPENDS: packs ./root; scripts lie in ./root/DEBIAN.
package() {
	mkdir -p root/DEBIAN
	cat >root/DEBIAN/control <<EOF
Package: $1
Version: $2
Architecture: amd64
Maintainer: paictl's tests <tests@example.org>
Description: stands for a package of NVIDIA's driver
EOF
	[ -z "$3" ] || echo "Depends: $3" >>root/DEBIAN/control
	[ -z "${4:-}" ] || printf '%s\n' "$4" >>root/DEBIAN/control
	chmod -R go-w root
	dpkg-deb -Znone --build root "/srv/nvidia/$1_$2_amd64.deb" >/dev/null
	rm -rf root
}
script() { # NAME: of standard input
	mkdir -p root/DEBIAN
	{ echo '#!/bin/sh'; echo 'set -e'; cat; } >"root/DEBIAN/$1"
	chmod 755 "root/DEBIAN/$1"
}
service() { # UNIT PROGRAM
	mkdir -p root/lib/systemd/system root/usr/bin
	printf '[Unit]\nDescription=%s\n[Service]\nExecStart=/usr/bin/%s\n[Install]\nWantedBy=multi-user.target\n' "$1" "$2" >"root/lib/systemd/system/$1"
	printf '#!/bin/sh\n[ -e /proc/driver/nvidia/version ] || exit 1\nexec sleep infinity\n' >"root/usr/bin/$2"
	chmod 755 "root/usr/bin/$2"
	script postinst <<EOF
systemctl daemon-reload
systemctl enable -q $1
systemctl restart $1 || true
EOF
	script prerm <<EOF
[ "\$1" != remove ] || systemctl disable -q --now $1 || true
EOF
}

for v in 570.133.20-1 570.172.08-1 580.65.06-1; do
	release=${v%-*}
	mkdir -p root/usr/lib/x86_64-linux-gnu
	echo "$release" >"root/usr/lib/x86_64-linux-gnu/libnvidia-ml.so.$release"
	ln -s "libnvidia-ml.so.$release" root/usr/lib/x86_64-linux-gnu/libnvidia-ml.so.1
	package libnvidia-ml1 $v ""
	script postinst <<EOF
[ ! -e /fake/broken-$release ] || { echo "libcuda1: cannot be configured" >&2; exit 1; }
EOF
	package libcuda1 $v ""
	mkdir -p root/usr/bin
	printf '#!/bin/sh\n[ -e /proc/driver/nvidia/version ] || { echo "NVIDIA-SMI has failed because it couldn'"'"'t communicate with the NVIDIA driver." ; exit 9; }\n' >root/usr/bin/nvidia-smi
	chmod 755 root/usr/bin/nvidia-smi
	package nvidia-smi $v "libnvidia-ml1 (= $v)"
	package nvidia-driver-cuda $v "nvidia-smi (= $v), libcuda1 (= $v)"
	service nvidia-persistenced.service nvidia-persistenced
	package nvidia-persistenced $v ""
	# The name lost its branch with 580.
	service nvidia-fabricmanager.service nv-fabricmanager
	case $v in
	580*) package nvidia-fabricmanager $v "" "Conflicts: nvidia-fabricmanager-570" ;;
	*) package nvidia-fabricmanager-570 $v "" "Conflicts: nvidia-fabricmanager" ;;
	esac
	script postinst <<EOF
echo "Loading new nvidia-$release DKMS files..."
if [ ! -e /lib/modules/$kernel/build ]; then
	echo "Module build for kernel $kernel was skipped since the kernel headers for this kernel do not seem to be installed."
	exit 0
fi
mkdir -p /lib/modules/$kernel/updates/dkms
echo $release >/lib/modules/$kernel/updates/dkms/nvidia.ko
EOF
	script prerm <<EOF
rm -f /lib/modules/$kernel/updates/dkms/nvidia.ko
rm -rf /lib/modules/$kernel/updates
EOF
	package nvidia-kernel-open-dkms $v "build-tools, build-helper"
done
package build-tools 1.0 ""
package build-helper 1.0 ""
mkdir -p "root/lib/modules/$kernel/build"
: >"root/lib/modules/$kernel/build/Makefile"
package "linux-headers-$kernel" 6.18-1 ""

cd /srv/nvidia
for f in *.deb; do
	dpkg-deb -f "$f"
	echo "Filename: ./$f"
	echo "Size: $(stat -c %s "$f")"
	echo "SHA256: $(sha256sum <"$f" | cut -c1-64)"
	echo
done >Packages
# Only this repository is known, and no list is there yet.
mkdir -p /srv/sources
mv /etc/apt/sources.list.d/* /srv/sources/
echo 'deb [trusted=yes] file:/srv/nvidia ./' >/etc/apt/sources.list.d/nvidia.list
rm -rf /var/lib/apt/lists/* /tmp/pkg
