package release

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/openpai/paictl/pkg/cluster/bundle"
	"github.com/openpai/paictl/pkg/hint"
)

// Verdict is the result of checking one file against the list.
type Verdict struct {
	File   string `json:"file"`
	Name   string `json:"name,omitempty"` // in the release
	SHA256 string `json:"sha256,omitempty"`
	Want   string `json:"want,omitempty"` // the released file's checksum, if it differs
	OK     bool   `json:"ok"`
	Reason string `json:"reason,omitempty"`
}

// Read reads a list and its signature from files. The name of the signature is the name of the list with .minisig.
func Read(file string, key Key) (*List, error) {
	text, err := readList(file)
	if err != nil {
		return nil, fmt.Errorf("read the checksums: %w", err)
	}
	signature, err := readList(file + ".minisig")
	if errors.Is(err, fs.ErrNotExist) {
		return nil, hint.Errorf("download "+SignatureFile+" from the release into the same folder", "%s has no signature beside it", file)
	}
	if err != nil {
		return nil, fmt.Errorf("read the signature: %w", err)
	}
	return Open(text, signature, key)
}

// listLimit is the maximum size of a list or signature in bytes. The list of a release has about 4 KiB.
const listLimit = 1 << 20

// readList reads a file of at most listLimit bytes.
func readList(file string) ([]byte, error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, listLimit+1))
	if err == nil && len(text) > listLimit {
		return nil, hint.Errorf("name the release's "+ListFile+" by --checksums FILE", "%s has more than %d bytes: it isn't a list of checksums", file, listLimit)
	}
	return text, err
}

// Find returns the list of checksums for an installed or downloaded file. The list is in the same folder as the file, or in the folder share/paictl
// of the installation.
func Find(file string) (string, error) {
	target, err := filepath.EvalSymlinks(file)
	if err != nil {
		return "", fmt.Errorf("find the checksums: %w", err)
	}
	dir := filepath.Dir(target)
	for _, list := range []string{filepath.Join(dir, ListFile), filepath.Join(filepath.Dir(dir), "share", "paictl", ListFile)} {
		if _, err := os.Stat(list); err == nil {
			return list, nil
		}
	}
	return "", hint.Errorf("download "+ListFile+" and "+SignatureFile+" from the release, and name the first by --checksums FILE",
		"found no %s beside %s", ListFile, target)
}

// Verify checks a file. name is the name of the file in the release. If name is empty, Verify uses the base name of the file. If the release has no
// file with that name, Verify compares only the checksum, because an unpacked or renamed file is still a file of the release.
func (l *List) Verify(ctx context.Context, file, name string) (Verdict, error) {
	v := Verdict{File: file, Name: name}
	sum, err := bundle.HashFile(ctx, file)
	if ctx.Err() != nil {
		return v, ctx.Err()
	}
	if err != nil {
		v.Reason = err.Error()
		return v, nil //nolint:nilerr // an unreadable file is a verdict
	}
	v.SHA256 = sum
	if name == "" {
		v.Name = filepath.Base(file)
	}
	want, err := l.Sum(v.Name)
	switch {
	case err == nil && want == sum:
		v.OK = true
	case err == nil:
		v.Want, v.Reason = want, fmt.Sprintf("it has sha256 %s, but %s of %s has %s", sum, v.Name, l.Version, want)
	case name == "" && l.named(sum) != "":
		v.OK, v.Name = true, l.named(sum)
	case name == "":
		v.Name, v.Reason = "", fmt.Sprintf("no file of %s has its sha256, %s", l.Version, sum)
	default:
		v.Reason = err.Error()
	}
	return v, nil
}
