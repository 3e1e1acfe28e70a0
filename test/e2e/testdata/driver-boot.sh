# Has a host whose GPUs are files (driver-machine.sh) have them again after a restart, and load the driver's module then, as a kernel does when it
# finds a card: nouveau where that is not kept out, else NVIDIA's.
set -eu
cat >/fake/boot <<'BOOT'
#!/bin/sh
mountpoint -q /sys/bus/pci/devices || mount --bind /fake/pci /sys/bus/pci/devices
mount -o remount,rw /sys
mkdir -p /sys/module
rm -f /fake/module-busy
if [ -e /fake/nouveau-busy ] && ! grep -qs 'blacklist nouveau' /etc/modprobe.d/*.conf; then
	mkdir -p /sys/module/nouveau
else
	/usr/local/sbin/modprobe nvidia || true
fi
BOOT
chmod +x /fake/boot
cat >/etc/systemd/system/fake-gpus.service <<'UNIT'
[Unit]
DefaultDependencies=no
After=local-fs.target
Before=sysinit.target
[Service]
Type=oneshot
ExecStart=/fake/boot
[Install]
WantedBy=sysinit.target
UNIT
systemctl enable -q fake-gpus.service
