package fetch

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path"
	"strings"
	"time"

	"github.com/openpai/paictl/pkg/cluster/bundle"
	"github.com/openpai/paictl/pkg/hint"
)

const (
	attempts = 4
	// stalled is how long a server may send no data before the connection is given up.
	stalled = time.Minute
	// sumsLimit is far above the size of the longest list of checksums.
	sumsLimit = 1 << 20
)

// StatusError is an answer that is not 200 or 206.
type StatusError struct {
	URL  string
	Code int
}

// Error names the URL and the status.
func (e *StatusError) Error() string {
	return fmt.Sprintf("GET %s: %d %s", e.URL, e.Code, http.StatusText(e.Code))
}

// lasting reports whether a retry is useless.
func (e *StatusError) lasting() bool {
	return e.Code < 500 && e.Code != http.StatusTooManyRequests && e.Code != http.StatusRequestTimeout
}

// errStalled is the error for a transfer that receives no more data.
var errStalled = fmt.Errorf("nothing arrived for %s", stalled)

// downloader gets files over HTTP.
type downloader struct {
	client *http.Client
	// wait sleeps before attempt n (1 …); tests don't.
	wait func(ctx context.Context, n int) error
}

// pause waits 1, 2, 4 s.
func pause(ctx context.Context, n int) error {
	t := time.NewTimer(time.Second << (n - 1))
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// retry calls f until it succeeds, fails permanently, or has failed too often.
func (d downloader) retry(ctx context.Context, f func() error) error {
	for n := 1; ; n++ {
		err := f()
		if err == nil || ctx.Err() != nil || n == attempts {
			return errors.Join(err, ctx.Err())
		}
		if s, ok := errors.AsType[*StatusError](err); ok && s.lasting() {
			return err
		}
		if err := d.wait(ctx, n); err != nil {
			return err
		}
	}
}

// published returns the SHA-256 that upstream publishes for fileURL.
func (d downloader) published(ctx context.Context, sumsURL, fileURL string) (string, error) {
	var text string
	err := d.retry(ctx, func() error {
		resp, cancel, err := d.get(ctx, sumsURL, 0)
		if err != nil {
			return err
		}
		defer cancel(nil)
		defer resp.Body.Close()
		data, err := io.ReadAll(io.LimitReader(resp.Body, sumsLimit))
		text = string(data)
		return err
	})
	if err != nil {
		return "", hint.Wrap(fmt.Errorf("get the published checksum: %w", err), remedy(err, path.Base(sumsURL)))
	}
	sum, ok := findSum(text, path.Base(fileURL))
	if !ok {
		return "", hint.Errorf("look at what "+sumsURL+" answers; a proxy may have answered instead of the project",
			"%s has no SHA-256 of %s", sumsURL, path.Base(fileURL))
	}
	return sum, nil
}

// remedy returns the remedy for a file that can't be downloaded.
func remedy(err error, file string) string {
	if s, ok := errors.AsType[*StatusError](err); ok && s.lasting() {
		return "paictl uses no file without its published checksum; a mirror must have " + file + " too"
	}
	return "check this machine's internet access, or name a mirror: --mirror URL; or build from source: paictl bundle build"
}

// findSum finds a bare checksum, or the line "sum  name" or "sum *name" of a list.
func findSum(text, file string) (string, bool) {
	fields := strings.Fields(text)
	if len(fields) == 1 && isSum(fields[0]) {
		return fields[0], true
	}
	for line := range strings.Lines(text) {
		f := strings.Fields(line)
		if len(f) == 2 && isSum(f[0]) && path.Base(strings.TrimPrefix(f[1], "*")) == file {
			return f[0], true
		}
	}
	return "", false
}

func isSum(s string) bool {
	return len(s) == 64 && strings.Trim(s, "0123456789abcdef") == ""
}

// file downloads url to dst and checks its SHA-256. It resumes an earlier attempt instead of
// downloading its bytes again, and removes a whole file with the wrong checksum.
func (d downloader) file(ctx context.Context, url, sum, dst string) error {
	if got, err := bundle.HashFile(ctx, dst); err == nil && got == sum {
		return nil
	}
	part := dst + ".part"
	if err := d.retry(ctx, func() error { return d.append(ctx, url, part) }); err != nil {
		return err
	}
	got, err := bundle.HashFile(ctx, part)
	if err != nil {
		return err
	}
	if got != sum {
		_ = os.Remove(part)
		return hint.Errorf("fetch again; if it fails again, the server or a proxy damages the file",
			"%s has sha256 %s, but the published one is %s", url, got, sum)
	}
	return os.Rename(part, dst)
}

// append downloads the missing rest of part.
func (d downloader) append(ctx context.Context, url, part string) error {
	f, err := os.OpenFile(part, os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	defer f.Close()
	have, err := f.Seek(0, io.SeekEnd)
	if err != nil {
		return err
	}
	resp, cancel, err := d.get(ctx, url, have)
	if s, ok := errors.AsType[*StatusError](err); ok && s.Code == http.StatusRequestedRangeNotSatisfiable {
		return nil // the file is complete; the checksum decides
	}
	if err != nil {
		return err
	}
	defer cancel(nil)
	defer resp.Body.Close()
	if resp.StatusCode == http.StatusOK && have > 0 { // the server doesn't support ranges
		if err := f.Truncate(0); err != nil {
			return err
		}
		if _, err := f.Seek(0, io.SeekStart); err != nil {
			return err
		}
	}
	if _, err := io.Copy(f, watched(resp.Body, cancel)); err != nil {
		if cause := context.Cause(resp.Request.Context()); errors.Is(cause, errStalled) {
			err = cause
		}
		return fmt.Errorf("GET %s: %w", url, err)
	}
	return f.Close()
}

// get starts a request, from byte offset on if it is not 0. cancel must be called.
func (d downloader) get(ctx context.Context, url string, offset int64) (*http.Response, context.CancelCauseFunc, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		cancel(err)
		return nil, nil, err
	}
	if offset > 0 {
		req.Header.Set("Range", fmt.Sprintf("bytes=%d-", offset))
	}
	resp, err := d.client.Do(req)
	if err != nil {
		cancel(err)
		return nil, nil, err
	}
	if resp.StatusCode != http.StatusOK && resp.StatusCode != http.StatusPartialContent {
		resp.Body.Close()
		cancel(nil)
		return nil, nil, &StatusError{URL: url, Code: resp.StatusCode}
	}
	return resp, cancel, nil
}

// watchedReader ends a transfer that receives no more data.
type watchedReader struct {
	r io.Reader
	t *time.Timer
}

func watched(r io.Reader, cancel context.CancelCauseFunc) *watchedReader {
	return &watchedReader{r: r, t: time.AfterFunc(stalled, func() { cancel(errStalled) })}
}

func (w *watchedReader) Read(p []byte) (int, error) {
	n, err := w.r.Read(p)
	w.t.Reset(stalled)
	if err != nil {
		w.t.Stop()
	}
	return n, err
}
