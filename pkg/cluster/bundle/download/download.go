// Package download downloads files over HTTP. It resumes interrupted downloads, retries, and rejects files with a wrong checksum.
// In: a URL and a SHA-256. Out: a file with that checksum, or a short text.
package download

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	neturl "net/url"
	"os"
	"time"

	"github.com/openpai/paictl/pkg/cluster/bundle"
	"github.com/openpai/paictl/pkg/hint"
	"github.com/openpai/paictl/pkg/secret"
)

const (
	// Attempts is the maximum number of attempts for a download.
	Attempts = 4
	// stalled is the timeout of a connection on which the server sends no data.
	stalled = time.Minute
	// textLimit is the maximum size of a short file, in bytes. The longest list of checksums is much smaller.
	textLimit = 1 << 20
)

// StatusError is the error for a response whose status isn't 200 or 206.
type StatusError struct {
	URL  string
	Code int
}

// Error returns a message with the URL and the status.
func (e *StatusError) Error() string {
	return fmt.Sprintf("GET %s: %d %s", secret.Address(e.URL), e.Code, http.StatusText(e.Code))
}

// Lasting reports whether a retry would fail with the same status.
func (e *StatusError) Lasting() bool {
	return e.Code < 500 && e.Code != http.StatusTooManyRequests && e.Code != http.StatusRequestTimeout
}

// errStalled is the error of a transfer that has stopped receiving data.
var errStalled = fmt.Errorf("nothing arrived for %s", stalled)

// Client downloads files over HTTP.
type Client struct {
	HTTP *http.Client
	// Wait waits after failed attempt n (1, 2, …). It is Pause, except in tests.
	Wait func(ctx context.Context, n int) error
	// Report receives the number of downloaded bytes of a file, and the file's size, or -1 if the server doesn't report the size. It may be nil.
	Report func(have, total int64)
}

// Pause waits one second after the first failed attempt. The wait doubles after each further failed attempt.
func Pause(ctx context.Context, n int) error {
	t := time.NewTimer(time.Second << (n - 1))
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// retry calls f until f succeeds, ctx ends, f returns a permanent error, or f has failed Attempts times.
func (c Client) retry(ctx context.Context, f func() error) error {
	for n := 1; ; n++ {
		err := f()
		if err == nil || ctx.Err() != nil || n == Attempts {
			return errors.Join(err, ctx.Err())
		}
		if s, ok := errors.AsType[*StatusError](err); ok && s.Lasting() {
			return err
		}
		if err := c.Wait(ctx, n); err != nil {
			return err
		}
	}
}

// Text returns the content of a short file.
func (c Client) Text(ctx context.Context, url string) ([]byte, error) {
	var text []byte
	err := c.retry(ctx, func() error {
		resp, cancel, err := c.get(ctx, url, 0)
		if err != nil {
			return err
		}
		defer cancel(nil)
		defer resp.Body.Close()
		text, err = io.ReadAll(io.LimitReader(watched(resp.Body, cancel), textLimit+1))
		return err
	})
	if err == nil && len(text) > textLimit {
		err = fmt.Errorf("GET %s: the answer has more than %d bytes", secret.Address(url), textLimit)
	}
	return text, err
}

// File downloads url to dst and checks its SHA-256. It resumes an interrupted download, and removes a complete file with a wrong checksum.
func (c Client) File(ctx context.Context, url, sum, dst string) error {
	if got, err := bundle.HashFile(ctx, dst); err == nil && got == sum {
		return nil
	}
	part := dst + ".part"
	if err := c.retry(ctx, func() error { return c.append(ctx, url, part) }); err != nil {
		return err
	}
	got, err := bundle.HashFile(ctx, part)
	if err != nil {
		return err
	}
	if got != sum {
		_ = os.Remove(part)
		return hint.Errorf("fetch again; if it fails again, the server or a proxy damages the file",
			"%s has sha256 %s, but the published one is %s", secret.Address(url), got, sum)
	}
	return os.Rename(part, dst)
}

// append downloads the rest of a partial file.
func (c Client) append(ctx context.Context, url, part string) error {
	f, err := os.OpenFile(part, os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	defer f.Close()
	have, err := f.Seek(0, io.SeekEnd)
	if err != nil {
		return err
	}
	resp, cancel, err := c.get(ctx, url, have)
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
		have = 0
	}
	body := watched(resp.Body, cancel)
	body.report, body.have, body.total = c.Report, have, -1
	if resp.ContentLength >= 0 {
		body.total = have + resp.ContentLength
	}
	if _, err := io.Copy(f, body); err != nil {
		if cause := context.Cause(resp.Request.Context()); errors.Is(cause, errStalled) {
			err = cause
		}
		return fmt.Errorf("GET %s: %w", secret.Address(url), err)
	}
	return f.Close()
}

// get requests a file from an offset. If it returns no error, the caller must call the returned function.
func (c Client) get(ctx context.Context, url string, offset int64) (*http.Response, context.CancelCauseFunc, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		cancel(err)
		return nil, nil, withoutLogin(err)
	}
	if offset > 0 {
		req.Header.Set("Range", fmt.Sprintf("bytes=%d-", offset))
	}
	resp, err := c.HTTP.Do(req)
	if err != nil {
		cancel(err)
		return nil, nil, withoutLogin(err)
	}
	if resp.StatusCode != http.StatusOK && resp.StatusCode != http.StatusPartialContent {
		resp.Body.Close()
		cancel(nil)
		return nil, nil, &StatusError{URL: url, Code: resp.StatusCode}
	}
	return resp, cancel, nil
}

// watchedReader cancels a transfer that receives no data for too long. It reports the number of received bytes.
type watchedReader struct {
	r           io.Reader
	t           *time.Timer
	report      func(have, total int64)
	have, total int64
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
	if w.have += int64(n); w.report != nil && n > 0 {
		w.report(w.have, w.total)
	}
	return n, err
}

// withoutLogin masks the URL in an error of net/http, because the URL's query may contain a signature after a redirect.
func withoutLogin(err error) error {
	if u, ok := errors.AsType[*neturl.Error](err); ok {
		u.URL = secret.Address(u.URL)
	}
	return err
}
