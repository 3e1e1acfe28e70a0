package ssh

import (
	"context"
	"crypto/sha256"
	_ "embed"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"path"
	"strconv"
	"strings"
	"time"

	"github.com/openpai/paictl/pkg/hint"
	"github.com/openpai/paictl/pkg/ssh/internal/wire"
)

//go:embed scripts/upload_sums.sh
var sumsPart string

//go:embed scripts/upload_check.sh
var checkPart string

//go:embed scripts/upload_finish.sh
var finishPart string

var checkScript, finishScript = sumsPart + checkPart, sumsPart + finishPart

type pending struct {
	File
	temp string // its name beside the target until it is complete
	part int64  // bytes of it that an earlier attempt has left
}

// Upload compares the files with the files on the host in one round trip. Upload sends files that differ over SFTP, and a script verifies and renames
// the sent files. The whole upload takes three round trips, regardless of the number of files. If the upload of a large file was interrupted, the
// next upload resumes the transfer. The host stores the checksums of its files in /var/lib/paictl/sums.
func (h *host) Upload(ctx context.Context, files []File, progress func(sent, total int64)) (UploadResult, error) {
	u := &upload{h: h, progress: progress}
	err := u.traced(ctx, files, u.all)
	return u.result, err
}

// Missing compares the files in the same way as Upload, but sends no file.
func (h *host) Missing(ctx context.Context, files []File) ([]Missing, error) {
	u := &upload{h: h}
	var out []Missing
	err := u.traced(ctx, files, func(ctx context.Context, files []File) error {
		todo, _, err := u.check(ctx, files)
		for _, f := range todo {
			out = append(out, Missing{File: f.File, Part: path.Join(path.Dir(f.Path), f.temp)})
		}
		return err
	})
	return out, err
}

// traced waits until no other upload over this connection is writing the same files. Then traced calls do and reports the operation to the tracer.
func (u *upload) traced(ctx context.Context, files []File, do func(context.Context, []File) error) error {
	h := u.h
	if len(files) == 0 {
		return nil
	}
	if err := h.client.o.Gate.Check(h.name, Script{Name: "upload", Mutates: true}); err != nil {
		return err
	}
	if err := checkFiles(files); err != nil {
		return err
	}
	free, err := h.conn.claim(ctx, files)
	if err != nil {
		return h.conn.explain(ctx, "upload", err)
	}
	defer free()
	start := h.client.o.Now()
	err = do(ctx, files)
	h.client.o.Tracer.Trace(Event{
		Host: h.name, Op: OpUpload, Name: "upload", Start: start, Duration: h.client.o.Now().Sub(start),
		RoundTrips: u.trips, BytesOut: u.scriptBytes + u.result.Bytes, BytesIn: u.bytesIn, Err: err,
	})
	return err
}

// upload is one call of Upload or Missing.
type upload struct {
	h        *host
	progress func(sent, total int64)
	result   UploadResult

	trips                int
	scriptBytes, bytesIn int64
}

// all uploads files. A resumed file with a wrong checksum is sent again from the beginning.
func (u *upload) all(ctx context.Context, files []File) error {
	todo, root, err := u.check(ctx, files)
	if err != nil {
		return err
	}
	u.result.Skipped += len(files) - len(todo)
	if len(todo) == 0 {
		return nil
	}
	if err := u.send(ctx, todo, root); err != nil {
		return err
	}
	again, err := u.finish(ctx, todo)
	if err != nil || len(again) == 0 {
		return err
	}
	return u.all(ctx, again) // from the start: the unfinished files were removed
}

// check returns the files that must be sent. root is the prefix of all paths on the host. root is empty except in tests.
func (u *upload) check(ctx context.Context, files []File) (todo []pending, root string, err error) {
	var manifest strings.Builder
	for _, f := range files {
		fmt.Fprintf(&manifest, "%s %d %x %o %s %s\n", f.SHA256, f.Size, 0o100000|f.Mode, f.Mode, tempName(f), f.Path)
	}
	lines, err := u.run(ctx, "upload/check", manifest.String(), checkScript)
	if err != nil {
		return nil, "", err
	}
	for _, line := range lines {
		if prefix, ok := strings.CutPrefix(line, "root "); ok || line == "root" {
			root = prefix
			continue
		}
		var word string
		var n int
		var part int64
		if _, err := fmt.Sscan(line+" 0", &word, &n, &part); err != nil || n < 0 || n >= len(files) {
			return nil, "", u.confused(line)
		}
		switch word {
		case "mode":
		case "send":
			todo = append(todo, pending{File: files[n], temp: tempName(files[n]), part: part})
		case "directory":
			return nil, "", hint.Errorf("move the directory away", "upload to %s: %s is a directory", u.h.name, files[n].Path)
		default:
			return nil, "", u.confused(line)
		}
	}
	return todo, root, nil
}

// finish verifies the sent files and renames them. finish returns the files that must be sent again.
func (u *upload) finish(ctx context.Context, sent []pending) (again []File, err error) {
	var manifest strings.Builder
	for _, f := range sent {
		fmt.Fprintf(&manifest, "%s %o %s %s\n", f.SHA256, f.Mode, f.temp, f.Path)
	}
	lines, err := u.run(ctx, "upload/finish", manifest.String(), finishScript)
	if err != nil {
		return nil, err
	}
	var bad []error
	for _, line := range lines {
		words := strings.Fields(line)
		if len(words) < 2 {
			return nil, u.confused(line)
		}
		n, err := strconv.Atoi(words[1])
		if err != nil || n < 0 || n >= len(sent) {
			return nil, u.confused(line)
		}
		switch f := sent[n]; {
		case words[0] == "done":
			u.result.Sent++
		case f.part > 0:
			again = append(again, f.File)
		default:
			bad = append(bad, u.corrupted(f.File, words[len(words)-1]))
		}
	}
	if len(bad) == 0 && u.result.Sent+len(again) < len(sent) {
		return nil, u.confused(strings.Join(lines, "; "))
	}
	return again, errors.Join(bad...)
}

// corrupted returns the error of a wrong checksum. The error reports whether the content was already wrong on this machine or was corrupted during
// the transfer.
func (u *upload) corrupted(f File, got string) error {
	sum, err := hashOf(f)
	if err != nil {
		return fmt.Errorf("upload %s to %s: %w", f.Path, u.h.name, err)
	}
	if sum != f.SHA256 {
		return hint.Errorf("make or fetch the file again, for example with paictl bundle verify",
			"upload %s to %s: the local file does not have its checksum: got %s, want %s", f.Path, u.h.name, sum, f.SHA256)
	}
	return hint.Errorf("run it again; if it comes back, check the machine's disk and network",
		"upload %s to %s: corrupted in transit: got %s, want %s", f.Path, u.h.name, got, f.SHA256)
}

func (u *upload) run(ctx context.Context, name, manifest, script string) ([]string, error) {
	limit := u.h.client.o.ScriptTimeout
	ctx, cancel := context.WithTimeoutCause(ctx, limit, timeoutError(limit))
	defer cancel()
	program := wire.Run("manifest=" + wire.Quote(strings.TrimSuffix(manifest, "\n")) + "\n" + script)
	u.trips++
	u.scriptBytes += int64(len(program))
	r, err := u.h.run(ctx, Script{Name: name}, program)
	u.bytesIn += int64(len(r.Stdout) + len(r.Stderr))
	if err != nil {
		return nil, err
	}
	if r.ExitCode != 0 {
		said := strings.TrimSpace(string(r.Stderr[:min(len(r.Stderr), 1000)]))
		return nil, hint.Errorf("see what the machine says; often its disk is full or read-only",
			"%s on %s: exit code %d: %s", name, u.h.name, r.ExitCode, said)
	}
	return strings.FieldsFunc(string(r.Stdout), func(c rune) bool { return c == '\n' }), nil
}

func (u *upload) confused(line string) error {
	return hint.Errorf("look for a startup file that prints text at non-interactive logins: run true over ssh, which must not print anything",
		"upload to %s: the machine answered %q", u.h.name, line)
}

// tempName returns the name of a temporary file in the target's folder. The name depends only on the path and the content, so that an upload can be
// resumed.
func tempName(f File) string {
	sum := sha256.Sum256([]byte(f.Path + "\x00" + f.SHA256))
	return ".paictl-" + hex.EncodeToString(sum[:10])
}

func hashOf(f File) (string, error) {
	r, err := f.Open()
	if err != nil {
		return "", err
	}
	defer func() { _ = r.Close() }()
	sum := sha256.New()
	if _, err := io.Copy(sum, r); err != nil {
		return "", err
	}
	return hex.EncodeToString(sum.Sum(nil)), nil
}

// checkFiles returns an error if the scripts can't process a file.
func checkFiles(files []File) error {
	seen := map[string]bool{}
	for _, f := range files {
		_, err := hex.DecodeString(f.SHA256)
		switch {
		case !path.IsAbs(f.Path) || path.Clean(f.Path) != f.Path || f.Path == "/":
			return fmt.Errorf("upload: path %q is not absolute and clean", f.Path)
		case strings.TrimSpace(f.Path) != f.Path || strings.ContainsFunc(f.Path, unprintable):
			return fmt.Errorf("upload: path %q holds a control character, a backslash, or a space at its end", f.Path)
		case seen[f.Path]:
			return fmt.Errorf("upload: path %s occurs twice", f.Path)
		case err != nil || len(f.SHA256) != 64 || strings.ToLower(f.SHA256) != f.SHA256:
			return fmt.Errorf("upload %s: %q is not a sha256 in hex", f.Path, f.SHA256)
		case f.Size < 0 || f.Mode > 0o7777 || f.Open == nil:
			return fmt.Errorf("upload %s: size, mode or content is missing", f.Path)
		}
		seen[f.Path] = true
	}
	return nil
}

func unprintable(r rune) bool { return r < ' ' || r == 0x7f || r == '\\' }

// claim reserves the paths of the files. claim waits until no other upload over this connection is writing to the paths.
func (c *conn) claim(ctx context.Context, files []File) (free func(), err error) {
	for {
		c.mu.Lock()
		other := c.overlap(files)
		if other == nil {
			mine := make(chan struct{})
			for _, f := range files {
				c.claimed[f.Path] = mine
			}
			c.mu.Unlock()
			return func() { c.unclaim(files, mine) }, nil
		}
		c.mu.Unlock()
		select {
		case <-other:
		case <-c.done:
			return nil, ErrClosed
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}

// overlap returns the channel of another upload that has reserved at least one path, or nil.
func (c *conn) overlap(files []File) chan struct{} {
	for _, f := range files {
		if other, ok := c.claimed[f.Path]; ok {
			return other
		}
	}
	return nil
}

func (c *conn) unclaim(files []File, mine chan struct{}) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, f := range files {
		delete(c.claimed, f.Path)
	}
	close(mine)
}

// errStalled means that an upload made no progress for too long.
var errStalled = fmt.Errorf("%w: no byte was taken for %s", ErrTimeout, stallLimit)

// stallLimit is the maximum time without progress of an upload. stallLimit doesn't limit the duration of the whole upload.
const stallLimit = 2 * time.Minute
