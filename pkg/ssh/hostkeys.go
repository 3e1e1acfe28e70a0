package ssh

import (
	"bytes"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"sync"

	"golang.org/x/crypto/ssh"
	"golang.org/x/crypto/ssh/knownhosts"

	"github.com/openpai/paictl/pkg/hint"
)

// hostKeys verifies host keys with known_hosts files. hostKeys reads each file once, and remembers the keys that were accepted during the run.
type hostKeys struct {
	confirm func(host, fingerprint string) (bool, error)
	person  *person

	mu       sync.Mutex
	files    map[string]*knownFiles
	accepted map[string]ssh.PublicKey // by file and normalised address

	asking sync.Mutex
}

// knownFiles is the combined content of a list of known_hosts files.
type knownFiles struct {
	check ssh.HostKeyCallback
	// originals maps the path of a parsed copy to the path of the original file.
	originals map[string]string
	// authorities is the set of lines that contain the key of a CA. Each element has the form path:line.
	authorities map[string]bool
}

// load returns the content of the files. Missing files count as empty.
func (h *hostKeys) load(paths []string) (*knownFiles, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	key := strings.Join(paths, "\x00")
	if k, ok := h.files[key]; ok {
		return k, nil
	}
	k, err := readKnownHosts(paths)
	if err != nil {
		return nil, err
	}
	if h.files == nil {
		h.files = map[string]*knownFiles{}
	}
	h.files[key] = k
	return k, nil
}

// probe is a key that no file contains. Checking this key returns an error that lists the known keys.
type probe struct{}

func (probe) Type() string                        { return "paictl-probe" }
func (probe) Marshal() []byte                     { return []byte("paictl-probe") }
func (probe) Verify([]byte, *ssh.Signature) error { return errors.New("not a key") }
func nowhere() net.Addr                           { return &net.TCPAddr{IP: net.IPv4zero} }
func acceptedKey(e *endpoint) string {
	return e.knownHosts[0] + "\x00" + knownhosts.Normalize(e.address())
}
func (h *hostKeys) recall(e *endpoint) ssh.PublicKey {
	if len(e.knownHosts) == 0 {
		return nil
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.accepted[acceptedKey(e)]
}

// algorithms returns the host key algorithms to offer. The algorithms of the known keys come first, so that a host with several keys presents a known
// key.
func (h *hostKeys) algorithms(e *endpoint) ([]string, error) {
	k, err := h.load(e.knownHosts)
	if err != nil {
		return nil, err
	}
	all := ssh.SupportedAlgorithms().HostKeys
	var types []string
	if key := h.recall(e); key != nil {
		types = append(types, key.Type())
	}
	if unknown, ok := errors.AsType[*knownhosts.KeyError](k.check(e.address(), nowhere(), probe{})); ok {
		for _, w := range unknown.Want {
			if k.authorities[fmt.Sprintf("%s:%d", w.Filename, w.Line)] {
				return all, nil
			}
			types = append(types, w.Key.Type())
		}
	}
	if len(types) == 0 {
		types = []string{ssh.KeyAlgoED25519}
	}
	return preferred(types, all), nil
}

// preferred moves the algorithms of the given key types to the front.
func preferred(types, all []string) []string {
	var first []string
	for _, t := range types {
		if t == ssh.KeyAlgoRSA {
			first = append(first, ssh.KeyAlgoRSASHA512, ssh.KeyAlgoRSASHA256)
			continue
		}
		first = append(first, t)
	}
	for _, a := range all {
		if !slices.Contains(first, a) {
			first = append(first, a)
		}
	}
	return first
}

// verify returns nil if the host key is accepted.
func (h *hostKeys) verify(e *endpoint, key ssh.PublicKey) error {
	if known := h.recall(e); known != nil {
		return h.compare(e, known, key)
	}
	k, err := h.load(e.knownHosts)
	if err != nil {
		return err
	}
	err = k.check(e.address(), nowhere(), key)
	if err == nil {
		return nil
	}
	if revoked, ok := errors.AsType[*knownhosts.RevokedError](err); ok {
		return hint.Errorf("give the host a new key", "host key of %s: %w: %s is revoked in %s:%d", e.name, ErrHostKey,
			ssh.FingerprintSHA256(key), k.originals[revoked.Revoked.Filename], revoked.Revoked.Line)
	}
	mismatch, ok := errors.AsType[*knownhosts.KeyError](err)
	if !ok {
		return hint.Errorf("check the host's certificate", "host key of %s: %w: %w", e.name, ErrHostKey, err)
	}
	if len(mismatch.Want) > 0 {
		w := mismatch.Want[0]
		return changedKey(e, fmt.Sprintf("%s:%d", k.originals[w.Filename], w.Line), w.Key, key)
	}
	return h.unknown(e, key)
}

// compare compares a key with the key that was accepted for the host earlier in the run.
func (h *hostKeys) compare(e *endpoint, known, key ssh.PublicKey) error {
	if bytes.Equal(known.Marshal(), key.Marshal()) {
		return nil
	}
	return changedKey(e, e.knownHosts[0], known, key)
}

func changedKey(e *endpoint, where string, known, key ssh.PublicKey) error {
	return hint.Errorf(
		fmt.Sprintf("someone may be intercepting the connection; if the machine was reinstalled, run: ssh-keygen -R '%s' -f %s",
			knownhosts.Normalize(e.address()), where[:max(0, cutLine(where))]),
		"host key of %s: %w: it has changed: %s says %s %s, the host shows %s %s", e.name, ErrHostKey, where,
		known.Type(), ssh.FingerprintSHA256(known), key.Type(), ssh.FingerprintSHA256(key))
}

// cutLine returns the length of the path in path:line.
func cutLine(where string) int {
	if i := strings.LastIndex(where, ":"); i > 0 && strings.Trim(where[i+1:], "0123456789") == "" {
		return i
	}
	return len(where)
}

// unknown handles an unknown key. The policy decides whether unknown accepts the key, asks a person, or rejects the key.
func (h *hostKeys) unknown(e *endpoint, key ssh.PublicKey) error {
	if e.policy == HostKeyStrict || e.policy == HostKeyAsk && h.confirm == nil {
		return h.refuse(e, key)
	}
	if e.policy == HostKeyAsk {
		defer h.person.begin()()
		h.asking.Lock()
		defer h.asking.Unlock()
		if known := h.recall(e); known != nil { // another connection has asked in between
			return h.compare(e, known, key)
		}
		yes, err := h.confirm(e.name, key.Type()+" "+ssh.FingerprintSHA256(key))
		if err != nil {
			return fmt.Errorf("host key of %s: %w: %w", e.name, ErrHostKey, err)
		}
		if !yes {
			return h.refuse(e, key)
		}
	}
	return h.remember(e, key)
}

func (h *hostKeys) refuse(e *endpoint, key ssh.PublicKey) error {
	scan := fmt.Sprintf("ssh-keyscan -p %d %s", e.port, e.host)
	if e.port == 22 {
		scan = "ssh-keyscan " + e.host
	}
	file := "~/.ssh/known_hosts"
	if len(e.knownHosts) > 0 {
		file = e.knownHosts[0]
	}
	return hint.Errorf(
		fmt.Sprintf("compare the fingerprint with the machine's own (ssh-keygen -lf /etc/ssh/ssh_host_ed25519_key.pub), then run again with --accept-new-host-keys, or: %s >> %s", scan, file),
		"host key of %s: %w: %s is not known, its key is %s %s", e.name, ErrHostKey, e.address(), key.Type(), ssh.FingerprintSHA256(key))
}

// remember stores an accepted key, and appends it to the first known_hosts file.
func (h *hostKeys) remember(e *endpoint, key ssh.PublicKey) error {
	if len(e.knownHosts) == 0 {
		return nil
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.accepted == nil {
		h.accepted = map[string]ssh.PublicKey{}
	}
	if known := h.accepted[acceptedKey(e)]; known != nil {
		return h.compare(e, known, key)
	}
	line := knownhosts.Line([]string{e.address()}, key) + "\n"
	if err := appendLine(e.knownHosts[0], line); err != nil {
		return hint.Errorf("make the file writable, or name another known_hosts file", "remember host key of %s: %w", e.name, err)
	}
	h.accepted[acceptedKey(e)] = key
	return nil
}
