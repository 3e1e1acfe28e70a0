package sshd

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/openpai/paictl/pkg/runtime/env"
	xssh "golang.org/x/crypto/ssh"
)

// Files writes the files for the image's ssh clients to a folder.
type Files struct {
	Dir string // HOME/ssh of the runtime
	Key string // the job's private key, PEM; "" if tasks don't log in to each other
}

// Write writes the job's key, the host keys and the client configuration.
func (f Files) Write(l *env.Layout) error {
	if err := os.MkdirAll(f.Dir, 0o700); err != nil {
		return err
	}
	hostKey, err := HostKey(f.Key)
	if err != nil {
		return err
	}
	signer, err := ParseKey(hostKey)
	if err != nil {
		return err
	}
	known := append([]byte("* "), xssh.MarshalAuthorizedKey(signer.PublicKey())...)
	for _, file := range []struct {
		name string
		data []byte
	}{
		{"id", append(bytes.TrimSpace([]byte(f.Key)), '\n')}, {"known_hosts", known}, {"config", f.config(l)},
	} {
		// ssh rejects files that other users may read or change.
		if err := writePrivate(filepath.Join(f.Dir, file.name), file.data); err != nil {
			return err
		}
	}
	return nil
}

// Config returns the path of the client configuration for ssh -F.
func (f Files) Config() string { return filepath.Join(f.Dir, "config") }

// config returns a client configuration with the names and the address of every task.
func (f Files) config(l *env.Layout) []byte {
	var b bytes.Buffer
	b.WriteString("# Written by pai-runtime: the tasks of this job.\n")
	for i := range l.Tasks {
		t := &l.Tasks[i]
		target := t.Address
		if target == "" {
			target = t.Name
		}
		ports := t.Ports["ssh"]
		if target == "" || len(ports) == 0 {
			continue
		}
		names := t.Aliases()
		if t.Name != "" {
			names = append(names, t.Name)
		}
		if t.Address != "" && !l.Spec.HostNetwork {
			names = append(names, t.Address)
		}
		fmt.Fprintf(&b, "Host %s\n  HostName %s\n  Port %d\n  IdentityFile %s\n  IdentitiesOnly yes\n  UserKnownHostsFile %s\n  StrictHostKeyChecking yes\n  LogLevel ERROR\n",
			strings.Join(names, " "), target, ports[0], filepath.Join(f.Dir, "id"), filepath.Join(f.Dir, "known_hosts"))
	}
	return b.Bytes()
}

func writePrivate(name string, data []byte) error {
	if err := os.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return os.WriteFile(name, data, 0o600)
}

// Include adds the runtime's configuration at the beginning of a user's configuration, because ssh uses the first value that it
// finds. It replaces the user's file atomically, because tasks may share a home folder.
func (f Files) Include(userHome string) error {
	dir := filepath.Join(userHome, ".ssh")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	name := filepath.Join(dir, "config")
	if target, err := filepath.EvalSymlinks(name); err == nil {
		name = target
	}
	old, err := os.ReadFile(name)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	line := "Include " + f.Config() + "\n"
	if bytes.Contains(old, []byte(line)) {
		return nil
	}
	tmp, err := os.CreateTemp(filepath.Dir(name), ".config-*") // with mode 0600, which ssh requires
	if err != nil {
		return err
	}
	defer os.Remove(tmp.Name()) // after success it no longer exists
	_, err = tmp.Write(append([]byte(line), old...))
	if err := errors.Join(err, tmp.Close()); err != nil {
		return err
	}
	return os.Rename(tmp.Name(), name)
}
