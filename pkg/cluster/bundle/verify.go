package bundle

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"runtime"
	"strings"
	"sync"

	"golang.org/x/sync/errgroup"

	"github.com/openpai/paictl/pkg/hint"
)

// Bad is an artifact whose file doesn't match the manifest.
type Bad struct {
	Artifact Artifact `json:"artifact"`
	// Got is the file's actual checksum, or "" if the file couldn't be read.
	Got string `json:"got,omitempty"`
	// Err is the reason why the file couldn't be read, or nil if the checksum is wrong.
	Err error `json:"-"`
}

// String describes how the file differs from the manifest.
func (b Bad) String() string {
	if errors.Is(b.Err, os.ErrNotExist) {
		return b.Artifact.Path + " is missing"
	}
	if b.Err != nil {
		return fmt.Sprintf("%s: %v", b.Artifact.Path, b.Err)
	}
	return fmt.Sprintf("%s has sha256 %s, but the manifest says %s", b.Artifact.Path, b.Got, b.Artifact.SHA256)
}

// CorruptError lists every file of a bundle that differs from the manifest.
type CorruptError struct {
	Dir    string
	Origin string
	Bad    []Bad
}

// Error describes each bad file.
func (e *CorruptError) Error() string {
	lines := make([]string, len(e.Bad))
	for i, b := range e.Bad {
		lines[i] = b.String()
	}
	return fmt.Sprintf("bundle %s is damaged: %s", e.Dir, strings.Join(lines, "; "))
}

// Remedy returns the commands that repair the bundle. These commands create bad files again and keep all other files. The operator must add damaged
// driver packages again.
func (e *CorruptError) Remedy() string {
	var rm, driver []string
	for _, b := range e.Bad {
		switch {
		case b.Artifact.Kind == KindDriver:
			driver = append(driver, fmt.Sprintf("paictl bundle add-driver %s --system %s --bundle %s", path.Base(b.Artifact.Path), b.Artifact.System, hint.Quote(e.Dir)))
		case !errors.Is(b.Err, os.ErrNotExist):
			rm = append(rm, b.Artifact.Path)
		}
	}
	again := fmt.Sprintf("paictl bundle %s -o %s", e.Origin, hint.Quote(e.Dir))
	switch {
	case len(driver) == len(e.Bad):
		again = ""
	case len(rm) > 0:
		again = fmt.Sprintf("(cd %s && rm -f %s) && %s", hint.Quote(e.Dir), strings.Join(rm, " "), again)
	}
	if len(driver) > 0 {
		again = strings.TrimPrefix(again+" && "+driver[0], " && ")
	}
	if len(driver) > 1 {
		again += fmt.Sprintf(", and likewise the other driver packages (%d), from your files, or remove them with: paictl bundle remove-driver", len(driver)-1)
	}
	return "run: " + again
}

// Verify hashes all files, several at the same time. It returns a *CorruptError that lists all files that differ from the manifest. It calls done
// once per file and never concurrently. done may be nil.
func (b *Bundle) Verify(ctx context.Context, done func(Artifact)) error {
	return b.verify(ctx, b.manifest.Artifacts, done)
}

func (b *Bundle) verify(ctx context.Context, list []Artifact, done func(Artifact)) error {
	bad := make([]*Bad, len(list))
	var mu sync.Mutex
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(runtime.GOMAXPROCS(0))
	for i, a := range list {
		g.Go(func() error {
			sum, err := HashFile(ctx, b.File(a))
			if ctx.Err() != nil {
				return ctx.Err()
			}
			if err != nil || sum != a.SHA256 {
				bad[i] = &Bad{Artifact: a, Got: sum, Err: err}
			}
			if done != nil {
				mu.Lock()
				defer mu.Unlock()
				done(a)
			}
			return nil
		})
	}
	if err := g.Wait(); err != nil {
		return err
	}
	return b.corrupt(bad)
}

// corrupt combines the bad artifacts into one error. It returns nil if all elements of found are nil.
func (b *Bundle) corrupt(found []*Bad) error {
	var bad []Bad
	for _, f := range found {
		if f != nil {
			bad = append(bad, *f)
		}
	}
	if len(bad) == 0 {
		return nil
	}
	e := &CorruptError{Dir: b.dir, Origin: b.manifest.Origin, Bad: bad}
	return hint.Wrap(e, e.Remedy())
}

// HashFile returns the hexadecimal SHA-256 of a file. It returns an error if ctx ends during the calculation.
func HashFile(ctx context.Context, path string) (string, error) {
	f, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer f.Close()
	h := sha256.New()
	buf := make([]byte, 1<<20)
	for {
		if err := ctx.Err(); err != nil {
			return "", err
		}
		n, err := f.Read(buf)
		h.Write(buf[:n])
		if errors.Is(err, io.EOF) {
			return hex.EncodeToString(h.Sum(nil)), nil
		}
		if err != nil {
			return "", err
		}
	}
}
