package peers

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"regexp"
)

// maxSize bounds what Decode unpacks. Ten thousand tasks with UIDs are 1 MB.
const maxSize = 32 << 20

var (
	rolePattern = regexp.MustCompile(`^[a-z0-9]{1,63}$`)
	// A UID is hashed and printed, nothing else.
	uidPattern = regexp.MustCompile(`^[a-zA-Z0-9-]{1,63}$`)
)

// Encode returns gzipped JSON. The same peers give the same bytes.
func Encode(p *Peers) ([]byte, error) {
	if err := p.check(); err != nil {
		return nil, err
	}
	var buf bytes.Buffer
	z, err := gzip.NewWriterLevel(&buf, gzip.BestCompression)
	if err != nil {
		return nil, err
	}
	if err := json.NewEncoder(z).Encode(p); err != nil {
		return nil, err
	}
	if err := z.Close(); err != nil {
		return nil, err
	}
	return buf.Bytes(), nil
}

// Decode reads what Encode wrote, and believes nothing: addresses go into /etc/hosts and into
// files that shells read.
func Decode(data []byte) (*Peers, error) {
	z, err := gzip.NewReader(bytes.NewReader(data))
	if err != nil {
		return nil, fmt.Errorf("peers: %w", err)
	}
	plain, err := io.ReadAll(io.LimitReader(z, maxSize+1))
	if err != nil {
		return nil, fmt.Errorf("peers: %w", err)
	}
	if len(plain) > maxSize {
		return nil, fmt.Errorf("peers: more than %d bytes", maxSize)
	}
	p := &Peers{}
	if err := json.Unmarshal(plain, p); err != nil {
		return nil, fmt.Errorf("peers: %w", err)
	}
	return p, p.check()
}

func (p *Peers) check() error {
	if p.Attempt < 0 {
		return errors.New("peers: a negative attempt")
	}
	seen := map[string]bool{}
	for _, r := range p.Roles {
		if !rolePattern.MatchString(r.Name) || seen[r.Name] {
			return fmt.Errorf("peers: role %q stands twice or isn't a name", r.Name)
		}
		seen[r.Name] = true
		n := len(r.PodIPs)
		if len(r.HostIPs) != n || (len(r.PodUIDs) != 0 && len(r.PodUIDs) != n) {
			return fmt.Errorf("peers: role %s has %d addresses, %d of machines and %d UIDs", r.Name, n, len(r.HostIPs), len(r.PodUIDs))
		}
		for i := range n {
			if _, err := netip.ParseAddr(r.PodIPs[i]); err != nil {
				return fmt.Errorf("peers: task %s-%d: %w", r.Name, i, err)
			}
			if _, err := netip.ParseAddr(r.HostIPs[i]); err != nil && r.HostIPs[i] != "" {
				return fmt.Errorf("peers: machine of task %s-%d: %w", r.Name, i, err)
			}
			if len(r.PodUIDs) > 0 && !uidPattern.MatchString(r.PodUIDs[i]) {
				return fmt.Errorf("peers: task %s-%d has no UID", r.Name, i)
			}
		}
	}
	return nil
}

// Role finds a role by its name in the Framework, or nil.
func (p *Peers) Role(name string) *Role {
	if p == nil {
		return nil
	}
	for i := range p.Roles {
		if p.Roles[i].Name == name {
			return &p.Roles[i]
		}
	}
	return nil
}
