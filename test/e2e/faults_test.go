package e2e

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestFaultsAreToldAndChangeNothing breaks the hosts, the configuration or the bundle in different ways, one after the other. Each time, paictl must
// print one clear error with a remedy, and must not change the hosts.
func TestFaultsAreToldAndChangeNothing(t *testing.T) {
	l := newLab(t, "e2eq", 2)
	l.generate()
	first, second := l.names[0], l.names[1]
	layout := filepath.Join(l.cluster, "layout.yaml")
	ssh := func(lines string) {
		edit(t, layout, "  username: root\n", lines)
		edit(t, layout, "  keyfile-path: "+filepath.Join(l.dir, "id_ed25519")+"\n", "")
	}
	key := "  keyfile-path: " + filepath.Join(l.dir, "id_ed25519") + "\n"

	cases := []struct {
		name    string
		prepare func(t *testing.T)
		undo    string // shell for the second host, or for the first after "first:"
		args    []string
		code    int
		want    []string // in the error
	}{
		{
			name:    "a wrong password",
			prepare: func(*testing.T) { ssh("  username: pai\n  password: 'not it'\n") },
			code:    4, want: []string{"authentication refused", "->"},
		},
		{
			name: "a wrong host key",
			prepare: func(t *testing.T) {
				known := filepath.Join(t.TempDir(), "known_hosts")
				var b strings.Builder
				for line := range strings.Lines(read(t, filepath.Join(l.dir, "known_hosts"))) {
					f := strings.Fields(line)
					// Both hosts get the key of the first line, so the key of the second host is wrong.
					if len(f) > 2 {
						fmt.Fprintf(&b, "%s %s\n", f[0], strings.Join(strings.Fields(firstLine(read(t, filepath.Join(l.dir, "known_hosts"))))[1:], " "))
					}
				}
				require.NoError(t, os.WriteFile(known, []byte(b.String()), 0o600))
				edit(t, layout, "known-hosts: "+filepath.Join(l.dir, "known_hosts"), "known-hosts: "+known)
			},
			code: 4, want: []string{"host key", "->"},
		},
		{
			name: "sudo refused",
			prepare: func(t *testing.T) {
				for _, h := range l.names {
					l.on(h, "id plain >/dev/null 2>&1 || useradd -m -s /bin/sh plain; mkdir -p /home/plain/.ssh; cp /root/.ssh/authorized_keys /home/plain/.ssh/; chown -R plain /home/plain/.ssh")
				}
				ssh("  username: plain\n" + key)
			},
			code: 4, want: []string{"sudo", "->"},
		},
		{
			name: "a clock that is off by an hour",
			prepare: func(t *testing.T) {
				l.on(second, "printf '#!/bin/sh\\nexec /bin/date -d \"+1 hour\" \"$@\"\\n' >/usr/local/bin/date; chmod 755 /usr/local/bin/date")
			},
			undo: "rm /usr/local/bin/date",
			code: 4, want: []string{second, "clock", "->"},
		},
		{
			name: "port 6443 taken",
			prepare: func(t *testing.T) {
				l.on(first, `systemd-run --quiet --unit=e2e-port perl -MIO::Socket::INET -e '$$s = IO::Socket::INET->new(Listen => 5, LocalPort => 6443, ReuseAddr => 1) or die; sleep 600'
i=0; until grep -q :192B /proc/net/tcp; do i=$((i + 1)); [ $i -lt 100 ] || exit 1; sleep 0.1; done`)
			},
			undo: "first:systemctl stop e2e-port.service",
			code: 4, want: []string{first, "6443", "->"},
		},
		{
			name: "one gigabyte of disk",
			prepare: func(t *testing.T) {
				l.on(second, "mount -t tmpfs -o size=1g tmpfs /var/lib")
			},
			undo: "umount /var/lib",
			code: 4, want: []string{second, "1024 MiB free", "->"},
		},
		{
			name: "few inodes for images",
			prepare: func(*testing.T) {
				l.on(second, "mkdir /var/lib/containerd && mount -t tmpfs -o nr_inodes=160 tmpfs /var/lib/containerd")
			},
			undo: "umount /var/lib/containerd && rmdir /var/lib/containerd",
			code: 4, want: []string{second, "/var/lib/containerd has ", " inodes free, but needs ", ", for /var/lib/containerd", "-> delete small files there"},
		},
		{
			name: "a corrupted bundle file",
			prepare: func(t *testing.T) {
				out, err := exec.CommandContext(t.Context(), "cp", "-al", bundle, filepath.Join(l.dir, "bundle")).CombinedOutput()
				require.NoError(t, err, "%s", out)
				bad := filepath.Join(l.dir, "bundle", "bin", "kubeadm")
				body, err := os.ReadFile(bad)
				require.NoError(t, err)
				body[len(body)/2] ^= 1
				require.NoError(t, os.Remove(bad)) // the link, not the file behind it
				require.NoError(t, os.WriteFile(bad, body, 0o755))
			},
			args: []string{"--bundle", filepath.Join(l.dir, "bundle")},
			code: 1, want: []string{"kubeadm", "->"},
		},
		{
			name: "a duplicate hostname",
			prepare: func(t *testing.T) {
				l.on(second, "hostname "+first)
			},
			undo: "hostname " + second,
			code: 4, want: []string{first, second, "->"},
		},
	}
	for file, below := range map[string]string{
		"layout.yaml": "machine-list:", "kubernetes-configuration.yaml": "kubernetes:",
		"k8s-role-definition.yaml": "k8s-role:", "services-configuration.yaml": "  common:",
	} {
		cases = append(cases, struct {
			name    string
			prepare func(t *testing.T)
			undo    string
			args    []string
			code    int
			want    []string
		}{
			name:    "an unknown key in " + file,
			prepare: func(t *testing.T) { addKey(t, filepath.Join(l.cluster, file), below) },
			code:    1, want: []string{file + ":", "no-such-key"},
		})
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			kept := keep(t, l.cluster)
			c.prepare(t)
			before := l.snapshots()
			r := run(t, append([]string{"cluster", "up", "-p", l.cluster}, c.args...)...)
			after := l.snapshots()
			t.Logf("paictl said:\n%s", r.stderr)
			assert.Equal(t, c.code, r.code, "%s", r)
			for _, w := range c.want {
				assert.Contains(t, r.stderr, w)
			}
			assert.NotContains(t, r.stderr, "not it")
			for _, n := range l.names {
				same(t, n, before[n], after[n])
			}
			if shell, onFirst := strings.CutPrefix(c.undo, "first:"); onFirst {
				l.on(first, shell)
			} else if c.undo != "" {
				l.on(second, c.undo)
			}
			kept()
		})
	}
	t.Run("an unknown key in the quick-start file", func(t *testing.T) {
		q := filepath.Join(t.TempDir(), "quick-start.yaml")
		require.NoError(t, os.WriteFile(q, []byte(read(t, filepath.Join(l.dir, "quick-start.yaml"))+"no-such-key: 1\n"), 0o600))
		r := run(t, "config", "generate", "-i", q, "-o", filepath.Join(t.TempDir(), "out"))
		assert.Equal(t, 1, r.code, r)
		assert.Contains(t, r.stderr, "quick-start.yaml:")
		assert.Contains(t, r.stderr, "no-such-key")
	})
}

// addKey adds an unknown key below a line of a YAML file, at the nesting level below that line.
func addKey(t *testing.T, path, below string) {
	t.Helper()
	if below == "machine-list:" {
		edit(t, path, below, "no-such-key: 1\n"+below)
		return
	}
	indent := len(below) - len(strings.TrimLeft(below, " ")) + 2
	edit(t, path, below+"\n", below+"\n"+strings.Repeat(" ", indent)+"no-such-key: 1\n")
}

// keep saves a configuration folder, and returns a function that restores the folder.
func keep(t *testing.T, dir string) func() {
	t.Helper()
	files := map[string]string{}
	entries, err := os.ReadDir(dir)
	require.NoError(t, err)
	for _, e := range entries {
		if e.Type().IsRegular() {
			files[e.Name()] = read(t, filepath.Join(dir, e.Name()))
		}
	}
	return func() {
		for name, body := range files {
			require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(body), 0o600))
		}
	}
}

func firstLine(s string) string {
	line, _, _ := strings.Cut(s, "\n")
	return line
}
