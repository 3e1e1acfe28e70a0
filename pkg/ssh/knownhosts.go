package ssh

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/gofrs/flock"
	"golang.org/x/crypto/ssh"
	"golang.org/x/crypto/ssh/knownhosts"

	"github.com/openpai/paictl/pkg/hint"
)

// readKnownHosts parses known_hosts files. readKnownHosts ignores invalid lines, as ssh does, because a single line with a new key type must not make
// all hosts unreachable.
func readKnownHosts(paths []string) (*knownFiles, error) {
	k := &knownFiles{originals: map[string]string{}, authorities: map[string]bool{}}
	var readable []string
	for _, path := range paths {
		text, err := os.ReadFile(path)
		if os.IsNotExist(err) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("read known hosts: %w", err)
		}
		clean, authorities := sanitizeKnownHosts(text)
		parsed := path
		if !bytes.Equal(clean, text) {
			if parsed, err = writeTemp(clean); err != nil {
				return nil, err
			}
			defer func() { _ = os.Remove(parsed) }()
		}
		readable = append(readable, parsed)
		k.originals[parsed] = path
		for _, line := range authorities {
			k.authorities[fmt.Sprintf("%s:%d", parsed, line)] = true
		}
	}
	check, err := knownhosts.New(readable...)
	if err != nil {
		return nil, hint.Errorf("correct the line, or delete it", "read known hosts: %w", err)
	}
	k.check = check
	return k, nil
}

// sanitizeKnownHosts replaces invalid lines with empty lines, so that the line numbers stay the same. authorities contains the numbers of the lines
// that contain the key of a CA.
func sanitizeKnownHosts(text []byte) (clean []byte, authorities []int) {
	lines := bytes.Split(text, []byte("\n"))
	for i, line := range lines {
		trimmed := bytes.TrimSpace(line)
		if len(trimmed) == 0 || trimmed[0] == '#' {
			continue
		}
		marker, hosts, _, _, _, err := ssh.ParseKnownHosts(append(slices.Clone(trimmed), '\n'))
		if err != nil || len(line) > 60<<10 || !validHosts(hosts) {
			lines[i] = nil
			continue
		}
		if marker == "cert-authority" {
			authorities = append(authorities, i+1)
		}
	}
	return bytes.Join(lines, []byte("\n")), authorities
}

// validHosts reports whether the host patterns of a line are valid. A hashed pattern must be the only pattern.
func validHosts(hosts []string) bool {
	for _, h := range hosts {
		if strings.HasPrefix(h, "|") {
			parts := strings.Split(h, "|")
			if len(hosts) != 1 || len(parts) != 4 || parts[1] != "1" || parts[2] == "" || parts[3] == "" {
				return false
			}
			continue
		}
		name := strings.TrimPrefix(h, "!")
		if name == "" {
			return false
		}
		if _, _, err := net.SplitHostPort(name); name[0] == '[' && err != nil {
			return false
		}
	}
	return len(hosts) > 0
}

func writeTemp(text []byte) (string, error) {
	f, err := os.CreateTemp("", "known_hosts-")
	if err != nil {
		return "", fmt.Errorf("read known hosts: %w", err)
	}
	_, err = f.Write(text)
	return f.Name(), errors.Join(err, f.Close())
}

// appendLine appends a line to a file. appendLine locks the file, because other programs may append lines at the same time.
func appendLine(path, line string) (err error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	lock := flock.New(path, flock.SetFlag(os.O_CREATE|os.O_RDWR), flock.SetPermissions(0o600))
	if err := lock.Lock(); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, lock.Unlock()) }()
	f, err := os.OpenFile(path, os.O_RDWR|os.O_APPEND, 0o600)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	if size, err := f.Seek(0, io.SeekEnd); err != nil {
		return err
	} else if size > 0 {
		last := make([]byte, 1)
		if _, err := f.ReadAt(last, size-1); err != nil {
			return err
		}
		if last[0] != '\n' {
			line = "\n" + line
		}
	}
	_, err = f.WriteString(line)
	return err
}
