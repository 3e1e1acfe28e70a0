# Makes a host one with two H100 and an NVSwitch, as far as files go. Its kernel is another machine's, so that no module
# can be loaded: a folder is mounted over the PCI bus, and modprobe and rmmod are programs that do to /proc/driver what
# NVIDIA's module does, with the version of the module that lies where DKMS puts it.
set -eu
mkdir -p /fake/pci
device() { # ADDRESS DEVICE CLASS
	mkdir -p "/fake/pci/$1"
	echo 0x10de >"/fake/pci/$1/vendor"
	echo "$2" >"/fake/pci/$1/device"
	echo "$3" >"/fake/pci/$1/class"
}
device 0000:07:00.0 0x2330 0x030200
device 0000:0a:00.0 0x2330 0x030200
device 0000:05:00.0 0x22a3 0x068000
mount --bind /fake/pci /sys/bus/pci/devices
# The host's /sys has no folder of modules.
mount -o remount,rw /sys
mkdir -p /sys/module

# A folder of modules makes preflight look for the others, which the host's kernel has built in.
mkdir -p "/lib/modules/$(uname -r)"
printf 'kernel/%s.ko:\n' overlay br_netfilter nf_tables vxlan >"/lib/modules/$(uname -r)/modules.dep"

cat >/usr/local/sbin/modprobe <<'STUB'
#!/bin/sh
# Others are the host's own.
case "$*" in
"-r nouveau")
	if [ -e /fake/nouveau-busy ]; then echo "modprobe: FATAL: Module nouveau is in use." >&2; exit 1; fi
	rmdir /sys/module/nouveau
	exit 0
	;;
nvidia | nvidia-uvm) ;;
*) exec /usr/sbin/modprobe "$@" ;;
esac
ko=/lib/modules/$(uname -r)/updates/dkms/nvidia.ko
if [ ! -e "$ko" ]; then
	echo "modprobe: FATAL: Module $1 not found in directory /lib/modules/$(uname -r)" >&2
	exit 1
fi
if [ -e /fake/rejected ]; then
	echo "modprobe: ERROR: could not insert '$1': Key was rejected by service" >&2
	exit 1
fi
if [ ! -e /proc/driver/nvidia/version ]; then
	mount -t tmpfs tmpfs /proc/driver
	mkdir -p /proc/driver/nvidia/gpus/0000:07:00.0 /proc/driver/nvidia/gpus/0000:0a:00.0
	echo "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  $(cat "$ko")  Release Build  (dvs-builder@U22)" >/proc/driver/nvidia/version
	mkdir -p /sys/module/nvidia
fi
[ "$1" = nvidia ] || mkdir -p /sys/module/nvidia_uvm
STUB
cat >/usr/local/sbin/rmmod <<'STUB'
#!/bin/sh
case $1 in
nvidia_uvm) rmdir /sys/module/nvidia_uvm ;;
nvidia)
	if [ -e /fake/module-busy ] || pgrep -x pai-nvml >/dev/null || [ -d /sys/module/nvidia_uvm ]; then echo "rmmod: ERROR: Module nvidia is in use" >&2; exit 1; fi
	umount /proc/driver
	rmdir /sys/module/nvidia
	;;
*) exec /usr/sbin/rmmod "$@" ;;
esac
STUB
chmod +x /usr/local/sbin/modprobe /usr/local/sbin/rmmod
