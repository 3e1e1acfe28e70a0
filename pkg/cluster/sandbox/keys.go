package sandbox

import (
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/crypto/ssh"
)

// hostKeyPath is the path of a host's only SSH key, relative to the host's root.
const hostKeyPath = "etc/ssh/ssh_host_ed25519_key"

// newKey creates an ed25519 key pair. private is in OpenSSH's format. public is a line for authorized_keys, without a newline.
func newKey(comment string) (private []byte, public string, err error) {
	pub, priv, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		return nil, "", err
	}
	block, err := ssh.MarshalPrivateKey(priv, comment)
	if err != nil {
		return nil, "", err
	}
	sshPub, err := ssh.NewPublicKey(pub)
	if err != nil {
		return nil, "", err
	}
	line := strings.TrimSpace(string(ssh.MarshalAuthorizedKey(sshPub)))
	return pem.EncodeToMemory(block), line, nil
}

// ensureKeys creates the operator's key pair and the password of the user pai, if they don't exist.
func (s *Sandbox) ensureKeys(context.Context) error {
	// The public key is written last. If it exists, the private key exists as well.
	if !exists(s.KeyFile() + ".pub") {
		private, public, err := newKey("paictl-sandbox")
		if err != nil {
			return fmt.Errorf("make the operator's key: %w", err)
		}
		if err := writeFile(s.KeyFile(), private, 0o600); err != nil {
			return fmt.Errorf("write the operator's key: %w", err)
		}
		if err := writeFile(s.KeyFile()+".pub", []byte(public+" paictl-sandbox\n"), 0o644); err != nil {
			return fmt.Errorf("write the operator's key: %w", err)
		}
	}
	if exists(s.PasswordFile()) {
		return nil
	}
	if err := writeFile(s.PasswordFile(), []byte(rand.Text()+"\n"), 0o600); err != nil {
		return fmt.Errorf("write the password of the user pai: %w", err)
	}
	return nil
}

// passwordHash returns the password hash of the user pai in the format of crypt(3). The base image's openssl reads the password from standard input
// and computes the hash.
func (s *Sandbox) passwordHash(ctx context.Context) (string, error) {
	password, err := os.ReadFile(s.PasswordFile())
	if err != nil {
		return "", err
	}
	out, err := runInput(ctx, nil, string(password), "chroot", s.state.Base, "/usr/bin/openssl", "passwd", "-6", "-stdin")
	if err != nil {
		return "", fmt.Errorf("hash the password of the user pai: %w", err)
	}
	return strings.TrimSpace(out), nil
}

// hostKey returns the host's public key. It creates the key pair if necessary. The key exists before the host, so that even the first connection
// can verify the host.
func (s *Sandbox) hostKey(name string) (string, error) {
	path := filepath.Join(s.hostDir(name), "upper", hostKeyPath)
	b, err := os.ReadFile(path)
	if err == nil {
		signer, err := ssh.ParsePrivateKey(b)
		if err != nil {
			return "", fmt.Errorf("read the host key of %s: %w", name, err)
		}
		return strings.TrimSpace(string(ssh.MarshalAuthorizedKey(signer.PublicKey()))), nil
	}
	if !errors.Is(err, fs.ErrNotExist) {
		return "", err
	}
	private, public, err := newKey(name)
	if err != nil {
		return "", fmt.Errorf("make the host key of %s: %w", name, err)
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return "", err
	}
	return public, writeFile(path, private, 0o600)
}

func (s *Sandbox) writeKnownHosts() error {
	var b strings.Builder
	for _, h := range s.state.Hosts {
		fmt.Fprintf(&b, "%s,%s %s\n", h.Name, h.Address, h.HostKey)
	}
	return writeFile(s.KnownHosts(), []byte(b.String()), 0o644)
}
