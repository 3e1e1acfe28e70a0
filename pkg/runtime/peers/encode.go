package peers

import (
	"bytes"
	"compress/gzip"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"regexp"
	"strings"
)

// maxSize is the maximum unpacked size of a message. A message for ten thousand tasks with UIDs has 1 MB.
const maxSize = 32 << 20

var rolePattern = regexp.MustCompile(`^[a-z0-9]{1,63}$`)

// validUID reports whether s may be a UID. The check is lax because UIDs are only hashed and printed.
func validUID(s string) bool {
	for i := range len(s) {
		c := s[i]
		if (c < '0' || c > '9') && (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') && c != '-' {
			return false
		}
	}
	return len(s) > 0 && len(s) <= 63
}

// header is the first line of the message, in JSON. Three lines for each role follow: the addresses of pods, the addresses of
// machines, and UIDs. A comma follows each entry. The lists aren't JSON, because decoding JSON would take most of a task's
// time.
type header struct {
	Attempt int32    `json:"attempt"`
	Roles   []string `json:"roles"`
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

// Encode returns the gzipped message. The same peers always give the same message.
func Encode(p *Peers) ([]byte, error) {
	if err := p.check(); err != nil {
		return nil, err
	}
	h := header{Attempt: p.Attempt}
	for _, r := range p.Roles {
		h.Roles = append(h.Roles, r.Name)
	}
	first, err := json.Marshal(h)
	if err != nil {
		return nil, err
	}
	lines := []string{string(first)}
	for _, r := range p.Roles {
		lines = append(lines, join(r.PodIPs), join(r.HostIPs), join(r.PodUIDs))
	}
	var buf bytes.Buffer
	z, err := gzip.NewWriterLevel(&buf, gzip.BestCompression)
	if err != nil {
		return nil, err
	}
	if _, err := io.WriteString(z, strings.Join(lines, "\n")+"\n"); err != nil {
		return nil, err
	}
	if err := z.Close(); err != nil {
		return nil, err
	}
	return buf.Bytes(), nil
}

// Decode decodes the output of Encode. It validates all fields, because addresses are written to /etc/hosts and to files that
// shells read.
func Decode(data []byte) (*Peers, error) {
	text, err := unpack(data)
	if err != nil {
		return nil, fmt.Errorf("peers: %w", err)
	}
	first, rest, _ := strings.Cut(text, "\n")
	var h header
	if err := json.Unmarshal([]byte(first), &h); err != nil {
		return nil, fmt.Errorf("peers: %w", err)
	}
	p := &Peers{Attempt: h.Attempt}
	for _, name := range h.Roles {
		var lists [3][]string
		for i := range lists {
			line, after, ok := strings.Cut(rest, "\n")
			if !ok {
				return nil, fmt.Errorf("peers: role %.63q has a missing line", name)
			}
			lists[i], rest = split(line), after
		}
		p.Roles = append(p.Roles, Role{name, lists[0], lists[1], lists[2]})
	}
	return p, p.check()
}

// unpack returns the uncompressed text. It allocates a buffer of the length that the gzip trailer contains.
func unpack(data []byte) (string, error) {
	z, err := gzip.NewReader(bytes.NewReader(data))
	if err != nil {
		return "", err
	}
	size := binary.LittleEndian.Uint32(data[len(data)-4:])
	if size > maxSize {
		return "", fmt.Errorf("more than %d bytes", maxSize)
	}
	text := make([]byte, size)
	if _, err := io.ReadFull(z, text); err != nil {
		return "", err
	}
	switch n, err := z.Read(make([]byte, 1)); {
	case n > 0 || err == nil:
		return "", errors.New("longer than its end says")
	case !errors.Is(err, io.EOF): // its checksum is wrong
		return "", err
	}
	return string(text), nil
}

func (p *Peers) check() error {
	if p.Attempt < 0 {
		return errors.New("peers: a negative attempt")
	}
	seen := map[string]bool{}
	for _, r := range p.Roles {
		if !rolePattern.MatchString(r.Name) || seen[r.Name] {
			return fmt.Errorf("peers: role %q is listed twice or isn't a name", r.Name)
		}
		seen[r.Name] = true
		n := len(r.PodIPs)
		if len(r.HostIPs) != n || (len(r.PodUIDs) != 0 && len(r.PodUIDs) != n) {
			return fmt.Errorf("peers: role %s has %d addresses, %d of machines and %d UIDs", r.Name, n, len(r.HostIPs), len(r.PodUIDs))
		}
		for i := range n {
			if err := address(r.PodIPs[i]); err != nil {
				return fmt.Errorf("peers: task %s-%d: %w", r.Name, i, err)
			}
			// Skip an address that equals the previous address, because adjacent tasks are often on the same machine.
			if host := r.HostIPs[i]; host != "" && (i == 0 || host != r.HostIPs[i-1]) {
				if err := address(host); err != nil {
					return fmt.Errorf("peers: machine of task %s-%d: %w", r.Name, i, err)
				}
			}
			if len(r.PodUIDs) > 0 && !validUID(r.PodUIDs[i]) {
				return fmt.Errorf("peers: task %s-%d has no UID", r.Name, i)
			}
		}
	}
	return nil
}

// address returns an error unless s is an IP address without a zone. A zone may contain any text.
func address(s string) error {
	a, err := netip.ParseAddr(s)
	if err == nil && a.Zone() != "" {
		err = fmt.Errorf("the address %q has a zone", s)
	}
	return err
}

// Role returns the role with this name in the Framework, or nil.
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
