package sandbox

import (
	"context"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"golang.org/x/sync/errgroup"
)

//go:embed scripts/*.sh
var scripts embed.FS

func script(name string) ([]byte, error) { return scripts.ReadFile("scripts/" + name) }

// user is the name of the account that exists on every host in addition to root. It is in the group sudo.
const user = "pai"

func (s *Sandbox) hostDir(name string) string { return filepath.Join(s.dir, "hosts", name) }

// addHosts adds hosts to the state until the sandbox has n hosts, and creates their host keys. A new host gets the lowest free number.
func (s *Sandbox) addHosts(n int) error {
	for i := 1; len(s.state.Hosts) < n; i++ {
		h := Host{Name: fmt.Sprintf("%s-%d", s.state.Name, i), Address: s.state.addressOf(i), Kind: s.state.Kind}
		if slices.Contains(s.Names(), h.Name) {
			continue
		}
		key, err := s.hostKey(h.Name)
		if err != nil {
			return err
		}
		h.HostKey = key
		s.state.Hosts = slices.Insert(s.state.Hosts, min(i-1, len(s.state.Hosts)), h)
	}
	if err := s.save(); err != nil {
		return err
	}
	return s.writeKnownHosts()
}

// provision writes the files that aren't in the base image into the roots of new hosts. paictl writes these files only before the first boot.
// Afterwards only the host itself changes its root.
func (s *Sandbox) provision(ctx context.Context, hosts []Host) error {
	var missing []Host
	for _, h := range hosts {
		if !exists(filepath.Join(s.hostDir(h.Name), "provisioned")) {
			missing = append(missing, h)
		}
	}
	if len(missing) == 0 {
		return nil
	}
	hash, err := s.passwordHash(ctx)
	if err != nil {
		return err
	}
	operator, err := os.ReadFile(s.KeyFile() + ".pub")
	if err != nil {
		return err
	}
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(8)
	for _, h := range missing {
		g.Go(func() error {
			if err := s.provisionHost(ctx, h, hash, operator); err != nil {
				return fmt.Errorf("furnish %s: %w", h.Name, err)
			}
			return writeFile(filepath.Join(s.hostDir(h.Name), "provisioned"), nil, 0o600)
		})
	}
	return g.Wait()
}

func (s *Sandbox) provisionHost(ctx context.Context, h Host, hash string, operator []byte) error {
	dir := s.hostDir(h.Name)
	if err := os.MkdirAll(filepath.Join(dir, "work"), 0o755); err != nil {
		return err
	}
	r := root{base: s.state.Base, dir: filepath.Join(dir, "upper")}
	r.put("etc/hostname", h.Name+"\n", 0o644)
	r.put("etc/hosts", fmt.Sprintf("127.0.0.1 localhost\n::1 localhost ip6-localhost ip6-loopback\n%s %s\n", h.Address, h.Name), 0o644)
	r.put("etc/resolv.conf", resolvConf(), 0o644)
	r.put("etc/machine-id", "", 0o444)
	r.put("etc/ssh/sshd_config.d/10-paictl-sandbox.conf", "HostKey /"+hostKeyPath+"\nPermitRootLogin prohibit-password\nUseDNS no\n", 0o644)
	r.put("root/.ssh/authorized_keys", string(operator), 0o600)
	r.account(hash, string(operator))
	if r.err == nil && h.Kind == Full {
		r.boot(h, s.state)
		if r.err == nil {
			r.err = copyVar(ctx, s.state.Base, dir)
		}
	}
	if h.Kind == Light {
		r.mkdir("run/sshd", 0o755)
	}
	return r.err
}

// copyVar gives a host a separate /var outside of the overlay. containerd keeps overlays in /var, and an overlay can't contain the upper layer of
// another overlay.
func copyVar(ctx context.Context, base, dir string) error {
	if err := removeTree(filepath.Join(dir, "var")); err != nil {
		return err
	}
	_, err := run(ctx, nil, "cp", "-a", filepath.Join(base, "var"), filepath.Join(dir, "var"))
	return err
}

// root is the upper layer of a host's file system. It stores the first error. After an error, its methods do nothing.
type root struct {
	base, dir string
	err       error
}

// put writes a file. Missing parent folders get the owner and mode that they have in the base image.
func (r *root) put(path, content string, mode os.FileMode) {
	r.parents(path)
	if r.err == nil {
		r.err = writeFile(filepath.Join(r.dir, path), []byte(content), mode)
	}
}

func (r *root) link(path, target string) {
	r.parents(path)
	if r.err != nil {
		return
	}
	full := filepath.Join(r.dir, path)
	if r.err = os.Remove(full); r.err == nil || errors.Is(r.err, fs.ErrNotExist) {
		r.err = os.Symlink(target, full)
	}
}

func (r *root) mkdir(path string, mode os.FileMode) {
	r.parents(filepath.Join(path, "x"))
	if r.err == nil {
		r.err = os.Chmod(filepath.Join(r.dir, path), mode)
	}
}

func (r *root) parents(path string) {
	at := ""
	for part := range strings.SplitSeq(filepath.Dir(path), "/") {
		if r.err != nil {
			return
		}
		if at = filepath.Join(at, part); exists(filepath.Join(r.dir, at)) {
			continue
		}
		mode, uid, gid := os.FileMode(0o755), 0, 0
		if fi, err := os.Stat(filepath.Join(r.base, at)); err == nil {
			mode = fi.Mode().Perm()
			if st, ok := fi.Sys().(*syscall.Stat_t); ok {
				uid, gid = int(st.Uid), int(st.Gid)
			}
		}
		full := filepath.Join(r.dir, at)
		r.err = errors.Join(os.MkdirAll(full, mode), os.Chmod(full, mode), os.Chown(full, uid, gid))
	}
}

// account adds the user pai with the hashed password and the operator's key. According to Debian's rule for the group sudo, sudo asks for the
// password.
func (r *root) account(hash, operator string) {
	const id = 1000
	r.edit("etc/passwd", 0o644, func(text string) string {
		return text + fmt.Sprintf("%s:x:%d:%d::/home/%s:/bin/bash\n", user, id, id, user)
	})
	r.edit("etc/shadow", 0o640, func(text string) string { return text + user + ":" + hash + ":19000:0:99999:7:::\n" })
	r.edit("etc/group", 0o644, func(text string) string { return joinSudo(text) + fmt.Sprintf("%s:x:%d:\n", user, id) })
	r.edit("etc/gshadow", 0o640, func(text string) string { return joinSudo(text) + user + ":!::\n" })
	home := "home/" + user
	r.put(home+"/.ssh/authorized_keys", operator, 0o600)
	for _, p := range []string{"", "/.ssh", "/.ssh/authorized_keys"} {
		if r.err == nil {
			r.err = os.Chown(filepath.Join(r.dir, home+p), id, id)
		}
	}
	for _, p := range []string{home, home + "/.ssh", "root/.ssh"} {
		if r.err == nil {
			r.err = os.Chmod(filepath.Join(r.dir, p), 0o700)
		}
	}
}

// edit writes a changed copy of a file in the base image, with the same owner.
func (r *root) edit(path string, mode os.FileMode, change func(string) string) {
	if r.err != nil {
		return
	}
	b, err := os.ReadFile(filepath.Join(r.base, path))
	if err != nil {
		r.err = err
		return
	}
	r.put(path, change(string(b)), mode)
	if fi, err := os.Stat(filepath.Join(r.base, path)); err == nil && r.err == nil {
		if st, ok := fi.Sys().(*syscall.Stat_t); ok {
			r.err = os.Chown(filepath.Join(r.dir, path), int(st.Uid), int(st.Gid))
		}
	}
}

// joinSudo adds the user to the group sudo in the text of /etc/group or /etc/gshadow.
func joinSudo(text string) string {
	lines := strings.Split(text, "\n")
	for i, l := range lines {
		if strings.HasPrefix(l, "sudo:") {
			if !strings.HasSuffix(l, ":") {
				l += ","
			}
			lines[i] = l + user
		}
	}
	return strings.Join(lines, "\n")
}

// addressOf returns the address of the i-th host, counted from 1. The first host's address is ten above the gateway's address, so that people can
// distinguish them easily.
func (st state) addressOf(i int) netip.Addr {
	b := st.gateway().As4()
	b[3] += byte(9 + i)
	return netip.AddrFrom4(b)
}
