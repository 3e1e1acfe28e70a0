package sandbox

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// prepareUnit is a systemd unit that runs prepare.sh at every boot, before the units that need its results.
const prepareUnit = `[Unit]
Description=Make the files of kubelet and runc writable
DefaultDependencies=no
After=local-fs.target
Before=ssh.service ssh.socket containerd.service kubelet.service

[Service]
Type=oneshot
RemainAfterExit=yes
ExecStart=/bin/sh /usr/local/lib/paictl-sandbox/prepare.sh

[Install]
WantedBy=multi-user.target
`

// boot adds the files that only a host with systemd needs: for the network, apt, and prepareUnit.
func (r *root) boot(h Host, st state) {
	prepare, err := script("prepare.sh")
	if err != nil {
		r.err = err
		return
	}
	// With this number, the file sorts before Debian's 80-container-host0.network.
	r.put("etc/systemd/network/10-host0.network", fmt.Sprintf("[Match]\nName=host0\n\n[Network]\nAddress=%s/%d\nGateway=%s\nLinkLocalAddressing=no\nIPv6AcceptRA=no\n",
		h.Address, st.Subnet.Bits(), st.gateway()), 0o644)
	r.put("usr/local/lib/paictl-sandbox/prepare.sh", string(prepare), 0o755)
	r.put("etc/systemd/system/paictl-sandbox.service", prepareUnit, 0o644)
	wants := "etc/systemd/system/multi-user.target.wants/"
	r.link(wants+"paictl-sandbox.service", "/etc/systemd/system/paictl-sandbox.service")
	r.link(wants+"systemd-networkd.service", "/lib/systemd/system/systemd-networkd.service")
	// Disable these timers, because they take apt's lock at unpredictable times.
	for _, unit := range []string{"apt-daily.timer", "apt-daily-upgrade.timer", "e2scrub_all.timer", "fstrim.timer"} {
		r.link("etc/systemd/system/"+unit, "/dev/null")
	}
	r.aptSources(st.Foreign)
}

// aptSources copies the machine's apt configuration to the host. A host with a foreign release uses the packages and keys of that release, and only
// the machine's settings for access to the mirror.
func (r *root) aptSources(f *foreignRelease) {
	patterns := []string{"/etc/apt/apt.conf", "/etc/apt/apt.conf.d/*", "/etc/apt/auth.conf", "/etc/apt/auth.conf.d/*"}
	sources := "" // debootstrap's entry duplicates one of the machine's
	if f != nil {
		sources = fmt.Sprintf("deb %s %s %s\n", f.Mirror, f.Release, strings.Join(f.Components, " "))
	} else {
		patterns = append(patterns, "/etc/apt/sources.list", "/etc/apt/sources.list.d/*.list", "/etc/apt/sources.list.d/*.sources", "/etc/apt/preferences",
			"/etc/apt/preferences.d/*", "/etc/apt/trusted.gpg", "/etc/apt/trusted.gpg.d/*", "/etc/apt/keyrings/*", "/usr/share/keyrings/*")
	}
	r.put("etc/apt/sources.list", sources, 0o644)
	for _, pattern := range patterns {
		paths, err := filepath.Glob(pattern)
		if err != nil {
			r.err = err
		}
		for _, path := range paths {
			r.copy(path)
		}
	}
}

// copy copies a regular file of this machine to the same path on the host. It ignores files that don't exist.
func (r *root) copy(path string) {
	fi, err := os.Stat(path)
	if err != nil || !fi.Mode().IsRegular() || r.err != nil {
		return
	}
	b, err := os.ReadFile(path)
	if err != nil {
		r.err = err
		return
	}
	r.put(strings.TrimPrefix(path, "/"), string(b), fi.Mode().Perm())
}
