// Package login stores the clusters that the user has signed in to, by name, and the tokens for these clusters.
// In: a file that only its owner may read. Out: a cluster by name, and tokens that are renewed before they expire.
package login

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/gofrs/flock"
	"github.com/google/renameio/v2"
	"gopkg.in/yaml.v3"

	"github.com/openpai/paictl/pkg/hint"
	"github.com/openpai/paictl/pkg/secret"
)

// Cluster is a cluster that the user has signed in to, and the tokens of the session.
type Cluster struct {
	// Server is the address of the cluster's server, in the form https://HOST.
	Server string `yaml:"server"`
	// CA is the PEM of the only CA that may sign the server's certificate. If it is "", the system's CAs may sign the certificate.
	CA string `yaml:"ca,omitempty"`
	// User is the name of the user who signed in, or "" after signing out.
	User string `yaml:"user,omitempty"`
	// Access is valid until Expires. Refresh is used to get the next access token.
	Access  secret.String `yaml:"access,omitempty"`
	Expires time.Time     `yaml:"expires,omitempty"`
	Refresh secret.String `yaml:"refresh,omitempty"`
}

// File is the content of the file with the sessions.
type File struct {
	// Current is the name of the default cluster.
	Current  string              `yaml:"current,omitempty"`
	Clusters map[string]*Cluster `yaml:"clusters,omitempty"`
}

// Names returns the names of all clusters in alphabetical order.
func (f *File) Names() []string { return slices.Sorted(maps.Keys(f.Clusters)) }

// At returns the name of the cluster with a server's address, or "" if the user never signed in there.
func (f *File) At(server string) string {
	for _, name := range f.Names() {
		if f.Clusters[name].Server == server {
			return name
		}
	}
	return ""
}

// names matches valid names of clusters.
var names = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9_.-]{0,62}$`)

// CheckName returns an error if a name isn't valid for a cluster.
func CheckName(name string) error {
	if !names.MatchString(name) {
		return hint.Errorf("use up to 63 letters, digits, - _ and .", "%q is not a valid name for a cluster", name)
	}
	return nil
}

// maxFile is the maximum size of the file in bytes.
const maxFile = 4 << 20

// Store reads and writes the file at Path.
type Store struct{ Path string }

// Read reads the file. If the file doesn't exist, Read returns a File without clusters. It returns an error if other users may read the file.
func (s Store) Read() (*File, error) {
	info, err := os.Stat(s.Path)
	if errors.Is(err, fs.ErrNotExist) {
		return &File{Clusters: map[string]*Cluster{}}, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read where you are signed in: %w", err)
	}
	if wide := info.Mode().Perm() & 0o077; wide != 0 && runtime.GOOS != "windows" {
		return nil, hint.Errorf("chmod 600 "+s.Path, "%s has tokens in it, and others may read it", s.Path)
	}
	if info.Size() > maxFile {
		return nil, hint.Errorf("move it away, then sign in again", "%s is too long", s.Path)
	}
	text, err := os.ReadFile(s.Path)
	if err != nil {
		return nil, fmt.Errorf("read where you are signed in: %w", err)
	}
	return parse(s.Path, text)
}

func parse(path string, text []byte) (*File, error) {
	f := &File{}
	d := yaml.NewDecoder(bytes.NewReader(text))
	d.KnownFields(true)
	if err := d.Decode(f); err != nil && len(bytes.TrimSpace(text)) > 0 {
		// The parser's error repeats the invalid text, which may be a token. So only its position is used.
		return nil, hint.Errorf("move it away, then sign in again: paictl login https://HOST", "%s can't be read: %s", path, place(err))
	}
	if f.Clusters == nil {
		f.Clusters = map[string]*Cluster{}
	}
	for name, c := range f.Clusters {
		if c == nil || CheckName(name) != nil {
			return nil, hint.Errorf("remove it, or give it a server", "%s: clusters.%s is not a valid cluster", path, name)
		}
	}
	return f, nil
}

var line = regexp.MustCompile(`line \d+`)

// place describes where a parser stopped, without the text that the parser read.
func place(err error) string {
	if at := line.FindString(err.Error()); at != "" {
		return "there is a mistake in " + at
	}
	return "it is not a YAML file of paictl"
}

// Change reads the file, calls change, and writes the file unless change returns an error. Concurrent calls wait for each other, even in
// different processes.
func (s Store) Change(ctx context.Context, change func(*File) error) (err error) {
	if err := os.MkdirAll(filepath.Dir(s.Path), 0o700); err != nil {
		return fmt.Errorf("keep where you are signed in: %w", err)
	}
	lock := flock.New(s.Path+".lock", flock.SetFlag(os.O_CREATE|os.O_RDWR), flock.SetPermissions(0o600))
	if _, err := lock.TryLockContext(ctx, lockEvery); err != nil {
		return fmt.Errorf("wait for another paictl that changes %s: %w", s.Path, err)
	}
	defer func() { err = errors.Join(err, lock.Unlock()) }()
	f, err := s.Read()
	if err != nil {
		return err
	}
	if err := change(f); err != nil {
		return err
	}
	text, err := yaml.Marshal(f)
	if err != nil {
		return err
	}
	if err := renameio.WriteFile(s.Path, append([]byte(head), text...), 0o600, renameio.WithStaticPermissions(0o600)); err != nil {
		return fmt.Errorf("keep where you are signed in: %w", err)
	}
	return nil
}

const (
	lockEvery = 50 * time.Millisecond
	head      = "# Where you are signed in; written by paictl login and logout. It contains tokens: don't share it.\n"
)

// DefaultName returns the default name of a cluster. This is its host, without the characters that aren't allowed in a name.
func DefaultName(host string) string {
	name := strings.Map(func(r rune) rune {
		if r == ':' || r == '[' || r == ']' {
			return '-'
		}
		return r
	}, host)
	return strings.Trim(name, "-")
}
