package sshd

import (
	"crypto/ed25519"
	"crypto/hkdf"
	"crypto/rand"
	"crypto/sha256"
	"encoding/pem"
	"errors"
	"fmt"
	"strings"

	"golang.org/x/crypto/ssh"
)

// ParseKey parses a private key without a passphrase. The error never contains the key.
func ParseKey(text string) (ssh.Signer, error) {
	signer, err := ssh.ParsePrivateKey([]byte(text))
	var locked *ssh.PassphraseMissingError
	switch {
	case errors.As(err, &locked):
		return nil, errors.New("the job's private key has a passphrase")
	case err != nil:
		return nil, errors.New("the job's private key isn't a PEM block that ssh supports")
	}
	return signer, nil
}

// HostKey returns the key of a task's server. It derives this key from the job's key, so that every task can compute the host
// keys of all other tasks. The host key differs from the job's key, so that a server's signatures can't be used for a login. If
// jobKey is "", the host key is random.
func HostKey(jobKey string) (string, error) {
	seed := make([]byte, ed25519.SeedSize)
	if jobKey == "" {
		if _, err := rand.Read(seed); err != nil {
			return "", err
		}
	} else {
		block, _ := pem.Decode([]byte(jobKey))
		if block == nil {
			return "", errors.New("the job's private key isn't a PEM block")
		}
		derived, err := hkdf.Key(sha256.New, block.Bytes, nil, "paictl job ssh host key", len(seed))
		if err != nil {
			return "", err
		}
		seed = derived
	}
	block, err := ssh.MarshalPrivateKey(ed25519.NewKeyFromSeed(seed), "")
	if err != nil {
		return "", err
	}
	return string(pem.EncodeToMemory(block)), nil
}

// ParseAuthorized parses public keys in the format of authorized_keys, one per line. It skips blank lines and comments. It
// rejects options, because the server wouldn't apply them.
func ParseAuthorized(lines []string) ([]ssh.PublicKey, error) {
	var out []ssh.PublicKey
	for _, line := range strings.Split(strings.Join(lines, "\n"), "\n") {
		line = strings.TrimSpace(line)
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		key, comment, options, _, err := ssh.ParseAuthorizedKey([]byte(line))
		if err != nil {
			return nil, fmt.Errorf("%.20q… is not a public key of ssh", line)
		}
		if len(options) > 0 {
			return nil, fmt.Errorf("the public key %q has options, which aren't supported", comment)
		}
		out = append(out, key)
	}
	return out, nil
}

// AuthorizedKey returns the authorized_keys line of a key.
func AuthorizedKey(s ssh.Signer) string { return string(ssh.MarshalAuthorizedKey(s.PublicKey())) }
