package e2e

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// driverHost is a host with real apt and dpkg. Its GPUs are only simulated by files, and no kernel module is ever loaded; see
// testdata/driver-machine.sh.
type driverHost struct {
	*lab
	t    *testing.T
	host string
}

// packages returns all packages in dpkg's database, with their versions and holds.
func (d *driverHost) packages() string {
	d.t.Helper()
	return d.on(d.host, `dpkg-query -W -f '${Package} ${Version} ${db:Status-Abbrev}\n'`)
}

// driver returns the release of the loaded module, and the state of the driver's programs and libraries in dpkg.
func (d *driverHost) driver() string {
	d.t.Helper()
	return d.on(d.host, `sed -n 's/.*x86_64  \([0-9.]*\) .*/\1/p' /proc/driver/nvidia/version 2>/dev/null; dpkg-query -W -f '${Version} ${db:Status-Abbrev}' nvidia-driver-cuda 2>/dev/null || true`)
}

// wants writes settings of the driver to the configuration.
func (d *driverHost) wants(settings string) {
	d.t.Helper()
	file := filepath.Join(d.cluster, "kubernetes-configuration.yaml")
	text := regexp.MustCompile(`(?m)^  gpu-driver: .*\n`).ReplaceAllString(read(d.t, file), "")
	text = strings.Replace(text, "\nkubernetes:\n", "\nkubernetes:\n  gpu-driver: "+settings+"\n", 1)
	require.NoError(d.t, os.WriteFile(file, []byte(text), 0o600))
}

// phase runs only the phase for the driver, which must exit with a given code.
func (d *driverHost) phase(code int, more ...string) (summary, string) {
	d.t.Helper()
	r := run(d.t, append([]string{"cluster", "up", "-p", d.cluster, "-o", "json", "--phases", "nvidia-driver"}, more...)...)
	require.Equal(d.t, code, r.code, "%s", r)
	return lastSummary(d.t, r.stdout), r.stdout + r.stderr
}

// newDriverHost creates a host. scripts are run on it, for example to create a repository in NVIDIA's layout.
func newDriverHost(t *testing.T, name string, scripts ...string) *driverHost {
	t.Helper()
	d := &driverHost{lab: newLab(t, name, 1), t: t}
	d.host = d.names[0]
	for _, s := range append([]string{"driver-machine.sh"}, scripts...) {
		d.on(d.host, read(t, filepath.Join("testdata", s)))
	}
	edit(t, filepath.Join(d.dir, "quick-start.yaml"), "gpu: none", "gpu: auto")
	d.generate()
	assert.Contains(t, read(t, filepath.Join(d.cluster, "layout.yaml")), "NVIDIA-H100-80GB-HBM3")
	return d
}

const nvidia570 = "{policy: install, source: nvidia, version: 570.133.20}"

// TestDriverPackages installs, changes and removes the packages of a driver, and tests failures of these changes. Packages and dpkg are real, but
// the contents of the packages aren't, and no kernel module is loaded.
func TestDriverPackages(t *testing.T) {
	d := newDriverHost(t, "e2edrv", "driver-repository.sh")
	before := d.packages()
	whole := func(release string) string { return release + "\n" + release + "-1 hi" }

	step := func(name string, f func()) {
		t.Helper()
		if t.Failed() {
			t.FailNow() // the steps build on each other
		}
		t.Log(name)
		f()
	}
	step("the default warns, and changes nothing", func() {
		_, out := d.phase(0)
		assert.Contains(t, out, "2 NVIDIA GPUs but no driver")
		assert.Contains(t, out, "policy: install")
		assert.Equal(t, before, d.packages())
	})
	step("no headers: their package is not in the repository", func() {
		d.wants(nvidia570)
		d.on(d.host, "mkdir /srv/away; mv /srv/nvidia/linux-headers* /srv/away; cp /srv/nvidia/Packages /srv/away; awk -v RS= -v ORS='\\n\\n' '!/Package: linux-headers/' /srv/away/Packages >/srv/nvidia/Packages")
		_, out := d.phase(4)
		assert.Contains(t, out, "the headers of its running kernel are not available: linux-headers-")
		d.on(d.host, "mv /srv/away/* /srv/nvidia/; rmdir /srv/away")
		assert.Equal(t, before, d.packages())
	})
	step("the repository is unavailable", func() {
		d.on(d.host, "mv /srv/nvidia /srv/gone")
		_, out := d.phase(4)
		assert.Contains(t, out, "the packages' repository can't be read")
		d.on(d.host, "mv /srv/gone /srv/nvidia")
		assert.Equal(t, before, d.packages())
	})
	step("a release that the repository doesn't have", func() {
		d.wants("{policy: install, source: nvidia, version: 570.99}")
		_, out := d.phase(4)
		assert.Contains(t, out, "apt on the machine has no packages of the driver 570.99")
	})
	step("Secure Boot refuses what is built on the machine", func() {
		d.wants(nvidia570)
		d.on(d.host, `mkdir -p /sys/firmware/efi/efivars; printf '\006\000\000\000\001' >/sys/firmware/efi/efivars/SecureBoot-8be4df61-93ca-11d2-aa0d-00e098032b8c`)
		_, out := d.phase(4)
		assert.Contains(t, out, "Secure Boot is on")
		assert.Contains(t, out, "mokutil")
		d.on(d.host, "rm /sys/firmware/efi/efivars/SecureBoot-*")
	})
	step("a package that was left half-configured is finished first, and nouveau in use needs a reboot", func() {
		d.on(d.host, "mkdir /tmp/half /tmp/half/DEBIAN; printf 'Package: half\\nVersion: 1\\nArchitecture: all\\nMaintainer: x <x@example.org>\\nDescription: x\\n' >/tmp/half/DEBIAN/control; printf '#!/bin/sh\\n[ ! -e /fake/half ]\\n' >/tmp/half/DEBIAN/postinst; chmod 755 /tmp/half/DEBIAN /tmp/half/DEBIAN/postinst; touch /fake/half; dpkg-deb --build /tmp/half /tmp/half.deb >/dev/null; dpkg -i /tmp/half.deb >/dev/null 2>&1 || true")
		assert.Contains(t, d.packages(), "half 1 iF")
		s, _ := d.phase(1)
		require.Len(t, s.Failed, 1)
		assert.Contains(t, s.Failed[0].Error, "dpkg can't finish packages of an earlier installation: dpkg: error processing package half")
		assert.NotContains(t, d.packages(), "nvidia-driver-cuda")

		d.on(d.host, "rm /fake/half; mkdir /sys/module/nouveau; touch /fake/nouveau-busy")
		s, _ = d.phase(1)
		require.Len(t, s.Failed, 1)
		assert.Contains(t, s.Failed[0].Error, "a reboot is needed: the kernel's own driver nouveau is in use")
		assert.Contains(t, d.packages(), "half 1 ii")
		assert.Contains(t, d.packages(), "nvidia-driver-cuda 570.133.20-1 hi")
		assert.Contains(t, d.on(d.host, "cat /etc/modprobe.d/paictl-nvidia.conf"), "blacklist nouveau")

		d.on(d.host, "rmdir /sys/module/nouveau; rm /fake/nouveau-busy") // as after a reboot
		s, _ = d.phase(0)
		assert.NotZero(t, s.Changes)
		assert.Equal(t, whole("570.133.20"), d.driver())
		assert.Equal(t, "active\nactive", d.on(d.host, "systemctl is-active nvidia-persistenced nvidia-fabricmanager"))
		d.on(d.host, "dpkg --purge half >/dev/null")
	})
	step("a second run changes nothing, and no one else does", func() {
		s, _ := d.phase(0)
		assert.Zero(t, s.Changes)
		d.on(d.host, "apt-get -q update >/dev/null 2>&1; DEBIAN_FRONTEND=noninteractive apt-get -y -q upgrade >/dev/null 2>&1")
		assert.Equal(t, whole("570.133.20"), d.driver())
	})
	step("a broken release is rolled back to the one that was there", func() {
		d.wants("{policy: install, source: nvidia, version: '580'}")
		d.on(d.host, "touch /fake/broken-580.65.06")
		s, _ := d.phase(1)
		require.Len(t, s.Failed, 1)
		assert.Contains(t, s.Failed[0].Error, "the driver 580.65.06 can't be installed: dpkg: error processing package libcuda1")
		assert.Contains(t, s.Failed[0].Error, "the earlier ones are restored")
		assert.Equal(t, whole("570.133.20"), d.driver())
		assert.Equal(t, "active\nactive", d.on(d.host, "systemctl is-active nvidia-persistenced nvidia-fabricmanager"))
		assert.Empty(t, d.on(d.host, "dpkg --audit"))
		assert.Equal(t, "nvidia\nnvidia_uvm", d.on(d.host, "ls /sys/module"))
		d.on(d.host, "rm /fake/broken-580.65.06")
	})
	step("a module that doesn't load is rolled back, too", func() {
		d.on(d.host, "touch /fake/rejected")
		s, _ := d.phase(1)
		require.Len(t, s.Failed, 1)
		assert.Contains(t, s.Failed[0].Error, "the kernel module 580.65.06 can't be loaded: modprobe: ERROR: could not insert 'nvidia': Key was rejected by service")
		assert.Contains(t, s.Failed[0].Hint, "mokutil")
		d.on(d.host, "rm /fake/rejected")
		assert.Contains(t, d.packages(), "nvidia-fabricmanager-570 570.133.20-1 hi")
	})
	step("a module in use is not replaced", func() {
		d.on(d.host, "modprobe nvidia; touch /fake/module-busy")
		s, _ := d.phase(1)
		require.Len(t, s.Failed, 1)
		assert.Contains(t, s.Failed[0].Error, "the kernel module 570.133.20 is in use")
		assert.Equal(t, whole("570.133.20"), d.driver())
		assert.Equal(t, "nvidia\nnvidia_uvm", d.on(d.host, "ls /sys/module"))
		d.on(d.host, "rm /fake/module-busy")
	})
	step("upgrade to another branch, whose fabric manager has another name", func() {
		// A program with the name of the agent's program uses the GPUs. The cache of apt contains a file for another architecture, and a file that
		// was truncated because the disk was full.
		d.on(d.host, `cp /bin/sleep /tmp/pai-nvml; nohup /tmp/pai-nvml 1000 >/dev/null 2>&1 </dev/null &
cd /var/cache/apt/archives; echo x >libcuda1_580.65.06-1_i386.deb; head -c 300 /srv/nvidia/nvidia-smi_580.65.06-1_amd64.deb >nvidia-smi_580.65.06-1_amd64.deb`)
		d.phase(0)
		d.on(d.host, "! pgrep -x pai-nvml; rm /tmp/pai-nvml")
		assert.Equal(t, whole("580.65.06"), d.driver())
		assert.NotContains(t, d.packages(), "nvidia-fabricmanager-570")
		assert.Equal(t, "active\nactive", d.on(d.host, "systemctl is-active nvidia-persistenced nvidia-fabricmanager"))
	})
	step("downgrade", func() {
		d.wants("{policy: install, source: nvidia, version: 570.172.08}")
		d.phase(0)
		assert.Equal(t, whole("570.172.08"), d.driver())
		s, _ := d.phase(0)
		assert.Zero(t, s.Changes)
	})
	step("an installation that was cut off is completed", func() {
		d.wants(nvidia570)
		// A killed run has left packages that are unpacked but not configured, and the list of the packages from before the change.
		d.on(d.host, "awk '$4 ~ /package/ || 1' /dev/null; printf 'nvidia-smi 570.172.08-1 hold\\nlibnvidia-ml1 570.172.08-1 hold\\n' >/var/lib/paictl/driver-change; dpkg --force-depends --unpack /srv/nvidia/libnvidia-ml1_570.133.20-1_amd64.deb /srv/nvidia/nvidia-smi_570.133.20-1_amd64.deb >/dev/null 2>&1")
		s, _ := d.phase(0)
		assert.NotZero(t, s.Changes)
		assert.Equal(t, whole("570.133.20"), d.driver())
		assert.Empty(t, d.on(d.host, "dpkg --audit; ls /var/lib/paictl/driver-change 2>/dev/null || true"))
	})
	step("an installation that was cut off is undone where none is wanted any more", func() {
		d.wants("{policy: none}")
		d.on(d.host, "printf 'libcuda1 570.133.20-1 hold\\n' >/var/lib/paictl/driver-change; dpkg --force-depends --force-downgrade --unpack /srv/nvidia/libcuda1_580.65.06-1_amd64.deb >/dev/null 2>&1")
		s, _ := d.phase(0)
		assert.Equal(t, 1, s.Changes)
		assert.Contains(t, d.packages(), "libcuda1 570.133.20-1 hi")
	})
	step("cluster down leaves no package that wasn't there, but for what something else needs by now", func() {
		d.on(d.host, "mkdir -p /tmp/mine/DEBIAN; printf 'Package: mine\\nVersion: 1\\nArchitecture: all\\nDepends: build-tools\\nMaintainer: x <x@example.org>\\nDescription: x\\n' >/tmp/mine/DEBIAN/control; dpkg-deb --build /tmp/mine /tmp/mine.deb >/dev/null; dpkg -i /tmp/mine.deb >/dev/null")
		ok(t, "cluster", "down", "-p", d.cluster, "--yes")
		d.on(d.host, "dpkg --purge mine build-tools >/dev/null")
		assert.Equal(t, before, d.packages())
		assert.Empty(t, d.on(d.host, "dpkg --audit; ls /var/lib/paictl /etc/modprobe.d/paictl-nvidia.conf /proc/driver/nvidia/version 2>/dev/null || true; find /etc/systemd -name '*nvidia*'"))
	})
}

// TestDriverFromDebian installs Debian's real packages as far as possible. The headers of the host's kernel are missing. With an empty folder in
// place of the headers, DKMS can't build the module.
func TestDriverFromDebian(t *testing.T) {
	d := newDriverHost(t, "e2edeb")
	d.on(d.host, "rm -r /fake/pci/0000:05:00.0") // Debian has no fabric manager
	d.wants("{policy: install}")
	_, out := d.phase(4)
	assert.Contains(t, out, "apt on the machine has no packages of the driver")
	assert.Contains(t, out, "non-free")
	d.on(d.host, "sed -i 's/^Components: main$/Components: main contrib non-free non-free-firmware/' /etc/apt/sources.list.d/*.sources")
	_, out = d.phase(4)
	assert.Contains(t, out, "the headers of its running kernel are not available: linux-headers-")

	// DKMS tries to build the module and fails, so all packages are removed again.
	d.on(d.host, "mkdir -p /lib/modules/$(uname -r)/build/include")
	s, out := d.phase(1)
	require.Len(t, s.Failed, 1, out)
	if strings.Contains(s.Failed[0].Error, "need newer versions of packages that aren't the driver's") {
		d.on(d.host, "DEBIAN_FRONTEND=noninteractive "+strings.Split(s.Failed[0].Hint, " on the machine")[0]+" -y -q >/dev/null 2>&1")
	}
	before := d.packages()
	s, out = d.phase(1)
	require.Len(t, s.Failed, 1, out)
	assert.Regexp(t, `^nvidia-driver/apply on e2edeb-1: exit status 1: the driver 535\.[0-9.]+ can't be installed: Error! Bad return status for module build on kernel: .*; its packages were removed again`, s.Failed[0].Error)
	assert.Equal(t, before, d.packages())

	// If DKMS finds no headers, the installation succeeds, but the module is missing.
	d.on(d.host, "rmdir /lib/modules/$(uname -r)/build/include")
	s, out = d.phase(1)
	require.Len(t, s.Failed, 1, out)
	assert.Regexp(t, `the kernel module 535\.[0-9.]+ can't be loaded: modprobe: FATAL: Module nvidia not found`, s.Failed[0].Error)
	assert.Regexp(t, `(?m)^nvidia-kernel-dkms 535.* hi`, d.packages())
	assert.Regexp(t, `^/usr/lib/x86_64-linux-gnu/nvidia/current/libnvidia-ml.so.535`, d.on(d.host, "readlink -f /usr/lib/x86_64-linux-gnu/libnvidia-ml.so.1"))
	s, _ = d.phase(1)
	require.Len(t, s.Failed, 1)
	assert.Contains(t, s.Failed[0].Error, "can't be loaded")

	ok(t, "cluster", "down", "-p", d.cluster, "--yes")
	assert.Equal(t, before, d.packages())
	assert.Empty(t, d.on(d.host, "dpkg --audit; ls /etc/nvidia /usr/lib/nvidia 2>/dev/null || true; find /etc/modprobe.d -name '*nvidia*'"))
}

// TestDriverFromTheBundle installs a driver on a machine that can't reach a repository. The packages were added to a bundle.
func TestDriverFromTheBundle(t *testing.T) {
	d := newDriverHost(t, "e2eair", "driver-repository.sh")
	own, debs := filepath.Join(d.dir, "bundle"), filepath.Join(d.dir, "debs")
	manifest := read(t, filepath.Join(bundle, "manifest.yaml"))
	// The copied bundle consists of hard links. Only its manifest is rewritten, as a new file.
	out, err := exec.CommandContext(t.Context(), "cp", "-al", bundle, own).CombinedOutput()
	require.NoError(t, err, "%s", out)
	require.NoError(t, os.RemoveAll(filepath.Join(own, ".work")))
	require.NoError(t, os.Mkdir(debs, 0o755))
	cmd := exec.CommandContext(t.Context(), "sh", "-c", "base64 -d | tar -x -C "+debs)
	cmd.Stdin = strings.NewReader(d.on(d.host, "tar -c -C /srv/nvidia . | base64"))
	out, err = cmd.CombinedOutput()
	require.NoError(t, err, "%s", out)
	// This port is closed.
	d.on(d.host, "rm -r /srv/nvidia /etc/apt/sources.list.d/nvidia.list; echo 'deb http://127.0.0.1:9/debian bookworm main' >/etc/apt/sources.list.d/away.list")
	before, lists := d.packages(), d.on(d.host, "find /var/lib/apt/lists /etc/apt | sort")
	from := []string{"--bundle", own}
	whole := func(release string) string { return release + "\n" + release + "-1 hi" }

	d.wants("{policy: install, source: bundle, version: 570.133.20}")
	_, said := d.phase(4, from...)
	assert.Contains(t, said, "paictl bundle add-driver DIR --system debian12")

	r := run(t, "bundle", "add-driver", debs, "--bundle", own)
	assert.NotZero(t, r.code)
	assert.Contains(t, r.stderr, "--system")
	r = run(t, "bundle", "add-driver", debs, "--bundle", own, "--system", "debian12")
	require.Zero(t, r.code, "%s", r)
	assert.Contains(t, r.stderr, "debian12: the driver 570.133.20 (nvidia) can be installed, with the open module, also on machines with NVSwitches")
	r = run(t, "bundle", "add-driver", debs, "--bundle", own, "--system", "debian12")
	assert.Contains(t, r.stderr, "nothing to do")

	_, said = d.phase(0, from...)
	assert.Equal(t, whole("570.133.20"), d.driver(), said)
	assert.Equal(t, "active\nactive", d.on(d.host, "systemctl is-active nvidia-persistenced nvidia-fabricmanager"))
	assert.Equal(t, lists, d.on(d.host, "find /var/lib/apt/lists /etc/apt | sort"), "apt has no source and no list more")
	assert.Empty(t, d.on(d.host, "ls -d /var/lib/paictl/driver-repository 2>/dev/null || true"))
	s, _ := d.phase(0, from...)
	assert.Zero(t, s.Changes)

	d.wants("{policy: install, source: bundle, version: '580'}")
	d.on(d.host, "touch /fake/broken-580.65.06")
	s, _ = d.phase(1, from...)
	require.Len(t, s.Failed, 1)
	assert.Contains(t, s.Failed[0].Error, "the driver 580.65.06 can't be installed: dpkg: error processing package libcuda1")
	assert.Contains(t, s.Failed[0].Error, "the earlier ones are restored")
	assert.Equal(t, whole("570.133.20"), d.driver())
	d.on(d.host, "rm /fake/broken-580.65.06")
	d.phase(0, from...)
	assert.Equal(t, whole("580.65.06"), d.driver())
	assert.Equal(t, lists, d.on(d.host, "find /var/lib/apt/lists /etc/apt | sort"))

	ok(t, "cluster", "down", "-p", d.cluster, "--yes")
	assert.Equal(t, before, d.packages())
	assert.Empty(t, d.on(d.host, "dpkg --audit; ls -d /var/lib/paictl /etc/modprobe.d/paictl-nvidia.conf 2>/dev/null || true; find /etc/systemd -name '*nvidia*'"))
	assert.Equal(t, manifest, read(t, filepath.Join(bundle, "manifest.yaml")), "the bundle of the tests is as it was")
}

// TestDriverUpgrade replaces drivers on a working cluster. kubeadm, kubelets, drains, apt and dpkg are real. The contents of the packages aren't,
// and no kernel module is loaded (testdata/driver-machine.sh).
func TestDriverUpgrade(t *testing.T) {
	d := &driverHost{lab: newLab(t, "e2eupg", 2), t: t}
	d.host = d.names[1]
	for _, s := range []string{"driver-machine.sh", "driver-repository.sh", "driver-boot.sh"} {
		d.on(d.host, read(t, filepath.Join("testdata", s)))
	}
	edit(t, filepath.Join(d.dir, "quick-start.yaml"), "gpu: none", "gpu: auto")
	d.generate()
	d.up(0)
	d.kubectl("create deployment work --image=registry.k8s.io/pause:3.10.2 --replicas=2")
	pods := func() string {
		return d.kubectl("get pods -l app=work --field-selector=status.phase=Running,spec.nodeName=" + d.host + " -o jsonpath='{.items[*].metadata.uid}'")
	}
	work := func() (uids string) {
		t.Helper()
		eventually(t, 90*time.Second, "two pods run on the machine", func() bool {
			uids = pods()
			return len(strings.Fields(uids)) == 2
		})
		return uids
	}
	before := work()
	state := func() string {
		return d.kubectl("get node " + d.host + ` -o go-template='{{.spec.unschedulable}} {{index .metadata.annotations "paictl.openpai.org/driver-upgrade"}}'`)
	}
	const inService = "<no value> <no value>"
	upgrade := func(code int, more ...string) string {
		t.Helper()
		r := run(t, append([]string{"node", "driver", "upgrade", "-p", d.cluster}, more...)...)
		require.Equal(t, code, r.code, "%s", r)
		t.Logf("paictl node driver upgrade %s\n%s%s", strings.Join(more, " "), r.stdout, r.stderr)
		return r.stdout + r.stderr
	}

	assert.Contains(t, upgrade(1, "--yes"), "the configuration says gpu-driver.policy keep")
	d.wants(nvidia570)
	assert.Contains(t, upgrade(2), "add --yes")
	plan := upgrade(0, "--dry-run")
	assert.Contains(t, plan, "drain node "+d.host)
	assert.Contains(t, plan, "install NVIDIA driver")
	assert.Equal(t, before, work(), "nothing was changed")

	// The first driver is installed on a machine whose GPUs nouveau doesn't release, so only a reboot helps.
	d.on(d.host, "mkdir /sys/module/nouveau; touch /fake/nouveau-busy")
	assert.Contains(t, upgrade(1, "--yes"), "a reboot is needed: the kernel's own driver nouveau is in use")
	assert.Regexp(t, "^true 20[0-9-]+T", state(), "cordoned, and since when")
	assert.Empty(t, pods())
	assert.Contains(t, upgrade(0, "--yes", "--reboot"), "restart machine "+d.host)
	assert.Equal(t, "570.133.20\n570.133.20-1 hi", d.driver())
	assert.Equal(t, inService, state())
	first := work()
	assert.NotEqual(t, before, first)
	assert.Contains(t, upgrade(0, "--yes"), "0 changes")
	assert.Equal(t, first, work(), "a second run changes nothing")

	// The upgrade installs another release, and writes it to the configuration.
	upgrade(0, "--yes", "--to", "570.172.08")
	assert.Equal(t, "570.172.08\n570.172.08-1 hi", d.driver())
	assert.Contains(t, read(t, filepath.Join(d.cluster, "kubernetes-configuration.yaml")), `version: "570.172.08"`)
	assert.Equal(t, inService, state())
	second := work()
	assert.NotEqual(t, first, second)

	// The old module can't be unloaded, because a hidden user keeps it loaded until the machine reboots.
	d.on(d.host, "touch /fake/module-busy")
	assert.Contains(t, upgrade(1, "--yes", "--to", "570.133.20"), "a reboot is needed: the kernel module 570.172.08 is in use")
	assert.Equal(t, "570.172.08\n570.172.08-1 hi", d.driver())
	assert.Contains(t, upgrade(0, "--yes", "--reboot"), "restart machine "+d.host)
	assert.Equal(t, "570.133.20\n570.133.20-1 hi", d.driver())
	upgrade(0, "--yes", "--to", "570.172.08")
	assert.Equal(t, inService, state())

	// The next run doesn't uncordon a machine if the driver has failed there before.
	d.on(d.host, "cp -r /fake/pci/0000:0a:00.0 /fake/pci/0000:0b:00.0; touch /fake/broken-570.133.20")
	upgrade(1, "--yes", "--to", "570.133.20")
	d.on(d.host, "rm /fake/broken-570.133.20")
	for range 2 {
		assert.Contains(t, upgrade(1, "--yes"), "the driver sees 2 of 3 GPUs")
		assert.Contains(t, state(), "true ")
	}
	d.on(d.host, "rm -r /fake/pci/0000:0b:00.0")
	upgrade(0, "--yes", "--to", "570.172.08")
	assert.Equal(t, inService, state())

	// If the new packages fail, the earlier packages are restored. The machine stays cordoned until an operator has checked it.
	d.on(d.host, "touch /fake/broken-580.65.06")
	assert.Contains(t, upgrade(1, "--yes", "--to", "580.65.06"), "the earlier ones are restored")
	assert.Equal(t, "570.172.08\n570.172.08-1 hi", d.driver())
	assert.Regexp(t, "^true 20[0-9-]+T", state(), "cordoned, and since when")
	d.on(d.host, "rm /fake/broken-580.65.06")
	upgrade(0, "--yes")
	assert.Equal(t, "580.65.06\n580.65.06-1 hi", d.driver())
	assert.Equal(t, inService, state())

	// If a pod can't be evicted, the machine keeps the driver and stays in service.
	work()
	d.kubectl("create poddisruptionbudget all --selector=app=work --min-available=2")
	out := upgrade(1, "--yes", "--to", "570.172.08", "--drain-timeout", "5s")
	assert.Contains(t, out, "held by PodDisruptionBudget all")
	assert.Equal(t, "580.65.06\n580.65.06-1 hi", d.driver())
	assert.Equal(t, inService, state())
	upgrade(0, "--yes", "--force")
	assert.Equal(t, "570.172.08\n570.172.08-1 hi", d.driver())
	work()
	assert.Zero(t, d.up(0).Changes, "cluster up finds all as it should be")
}
