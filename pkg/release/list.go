package release

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"aead.dev/minisign"

	"github.com/openpai/paictl/pkg/hint"
)

// List is a list of checksums whose signature is valid.
type List struct {
	// Version is the version of the release, such as v1.2.3. The signature covers it.
	Version string
	// Time is the time of the release's commit.
	Time time.Time
	// Key is the key that signed the list.
	Key Key

	sums map[string]string // by file name
}

// refused is the remedy if a list doesn't match its signature.
const refused = "download " + ListFile + " and " + SignatureFile + " again; if it fails again, don't use this release, because someone changed it"

// Open checks the signature of a list, and returns the list.
func Open(text, signature []byte, key Key) (*List, error) {
	var s minisign.Signature
	if err := s.UnmarshalText(signature); err != nil {
		return nil, hint.Errorf(refused, "%s is not a signature by minisign: %w", SignatureFile, err)
	}
	if s.KeyID != key.public.ID() {
		return nil, hint.Errorf("find out which key signs this project's releases, and give it by --key",
			"%s was made with the key %016X, but the expected key is %s", SignatureFile, s.KeyID, key.ID())
	}
	// Base64 can encode the same bytes in several ways. Only the encoding that minisign writes is accepted, so that a change of any bit is detected.
	if canonical, err := s.MarshalText(); err != nil || !bytes.Equal(canonical, signature) {
		return nil, hint.Errorf(refused, "%s is not as minisign wrote it: it was changed", SignatureFile)
	}
	if !minisign.Verify(key.public, text, signature) {
		return nil, hint.Errorf(refused, "%s doesn't match its signature: one of them was changed", ListFile)
	}
	l := &List{Key: key}
	if err := l.comment(s.TrustedComment); err != nil {
		return nil, fmt.Errorf("read the trusted comment of %s: %w", SignatureFile, err)
	}
	var err error
	if l.sums, err = parseSums(text); err != nil {
		return nil, fmt.Errorf("read %s: %w", ListFile, err)
	}
	return l, nil
}

// Comment returns the trusted comment for the signature of a release.
func Comment(version string, when time.Time) string {
	return fmt.Sprintf("timestamp:%d\tfile:%s\tpaictl:%s", when.Unix(), ListFile, version)
}

// comment parses the text that Comment returns.
func (l *List) comment(text string) error {
	for field := range strings.SplitSeq(text, "\t") {
		name, value, _ := strings.Cut(field, ":")
		switch name {
		case "timestamp":
			seconds, err := strconv.ParseInt(value, 10, 64)
			if err != nil {
				return fmt.Errorf("timestamp %q is not a number", value)
			}
			l.Time = time.Unix(seconds, 0).UTC()
		case "paictl":
			l.Version = value
		}
	}
	if l.Version == "" {
		return hint.Errorf("it may be the signature of another project's file", "it doesn't name a release of paictl")
	}
	return nil
}

// parseSums parses lines of the form "SHA256  NAME".
func parseSums(text []byte) (map[string]string, error) {
	sums := map[string]string{}
	n := 0
	for line := range strings.Lines(string(text)) {
		n++
		sum, name, ok := strings.Cut(strings.TrimSuffix(line, "\n"), "  ")
		if !ok || len(sum) != 64 || strings.Trim(sum, "0123456789abcdef") != "" || name == "" || strings.ContainsAny(name, `/\`) {
			return nil, fmt.Errorf("line %d is not of the form SHA256, two spaces, file name", n)
		}
		if _, twice := sums[name]; twice {
			return nil, fmt.Errorf("line %d: %s is listed twice", n, name)
		}
		sums[name] = sum
	}
	if len(sums) == 0 {
		return nil, errors.New("it is empty")
	}
	return sums, nil
}

// Sum returns the SHA-256 of a file of the release. It returns an error if the list doesn't contain the file.
func (l *List) Sum(name string) (string, error) {
	sum, ok := l.sums[name]
	if !ok {
		return "", hint.Errorf("the release may not have it, or the list may belong to another release", "%s of %s doesn't list %s", ListFile, l.Version, name)
	}
	return sum, nil
}

// named returns the name of a file of the release with that checksum, or "" if there is no such file.
func (l *List) named(sum string) string {
	var names []string
	for name, s := range l.sums {
		if s == sum {
			names = append(names, name)
		}
	}
	if len(names) == 0 {
		return ""
	}
	return slices.Min(names)
}
