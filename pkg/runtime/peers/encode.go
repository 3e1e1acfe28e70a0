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
	"strings"
)

// maxSize bounds what Decode unpacks. Ten thousand tasks with UIDs are 1 MB.
const maxSize = 32 << 20

var rolePattern = regexp.MustCompile(`^[a-z0-9]{1,63}$`)

// validUID tells whether s may be one. A UID is hashed and printed, nothing else.
func validUID(s string) bool {
	for i := range len(s) {
		c := s[i]
		if (c < '0' || c > '9') && (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') && c != '-' {
			return false
		}
	}
	return len(s) > 0 && len(s) <= 63
}

// message is Peers as it is sent. A list is one text, each entry with a comma after it: two thousand
// small strings of JSON would take most of a task's time.
type message struct {
	Attempt int32         `json:"attempt"`
	Roles   []messageRole `json:"roles"`
}

type messageRole struct {
	Name    string `json:"name"`
	PodIPs  string `json:"podIPs"`
	HostIPs string `json:"hostIPs"`
	PodUIDs string `json:"podUIDs,omitempty"`
}

func join(list []string) string {
	if len(list) == 0 {
		return ""
	}
	return strings.Join(list, ",") + ","
}

func split(text string) []string {
	if text == "" {
		return nil
	}
	return strings.Split(strings.TrimSuffix(text, ","), ",")
}

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
	m := message{Attempt: p.Attempt}
	for _, r := range p.Roles {
		m.Roles = append(m.Roles, messageRole{r.Name, join(r.PodIPs), join(r.HostIPs), join(r.PodUIDs)})
	}
	if err := json.NewEncoder(z).Encode(m); err != nil {
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
	var m message
	if err := json.Unmarshal(plain, &m); err != nil {
		return nil, fmt.Errorf("peers: %w", err)
	}
	p := &Peers{Attempt: m.Attempt}
	for _, r := range m.Roles {
		p.Roles = append(p.Roles, Role{r.Name, split(r.PodIPs), split(r.HostIPs), split(r.PodUIDs)})
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
			if len(r.PodUIDs) > 0 && !validUID(r.PodUIDs[i]) {
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
