// Package code downloads the folder that was submitted with a job into a task. In: an address and a checksum. Out: the files,
// or an error that names the failed part.
package code

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"time"

	"github.com/openpai/paictl/pkg/runtime/spec"
	"github.com/openpai/paictl/pkg/ui/plural"
)

const (
	tries      = 8
	minBackoff = 250 * time.Millisecond
	maxBackoff = 15 * time.Second
	// busyTries is the number of attempts while the server is busy. All attempts together take at least a quarter of an hour.
	busyTries = 64
	// stall is how long a download may receive no data before it is canceled.
	stall = 30 * time.Second
)

// errFinal is an error that a retry can't solve.
type errFinal struct{ error }

// errBusy means that the server has too many downloads.
var errBusy = errors.New("the server is busy")

// Get downloads the archive, verifies it, and then unpacks it into c.Dir. It stores the archive in the folder tmp and removes
// it afterwards.
func Get(ctx context.Context, c *spec.Code, token, tmp string, tell func(format string, args ...any)) error {
	client := newClient()
	defer client.CloseIdleConnections()
	return get(ctx, c, client, token, tmp, tell)
}

func get(ctx context.Context, c *spec.Code, client *http.Client, token, tmp string, tell func(format string, args ...any)) error {
	if c.Size > spec.MaxCode {
		return fmt.Errorf("the code has %d bytes, more than %d", c.Size, int64(spec.MaxCode))
	}
	if err := os.MkdirAll(tmp, 0o755); err != nil {
		return err
	}
	name := filepath.Join(tmp, "code.tar.gz")
	defer os.Remove(name)
	d := download{code: c, token: token, name: name, client: client, hash: sha256.New()}
	if err := d.run(ctx, tell); err != nil {
		return fmt.Errorf("fetch the code: %w", err)
	}
	f, err := os.Open(name)
	if err != nil {
		return err
	}
	defer f.Close()
	if err := Unpack(ctx, f, c.Dir); err != nil {
		return fmt.Errorf("unpack the code into %s: %w", c.Dir, err)
	}
	return nil
}

func newClient() *http.Client {
	return &http.Client{Transport: &http.Transport{
		DialContext:           (&net.Dialer{Timeout: 10 * time.Second}).DialContext,
		TLSHandshakeTimeout:   10 * time.Second,
		ResponseHeaderTimeout: stall,
		DisableCompression:    true, // the archive is already gzipped
	}}
}

type download struct {
	code   *spec.Code
	token  string
	name   string
	client *http.Client
	file   *os.File
	have   int64
	hash   hash.Hash
}

func (d *download) run(ctx context.Context, tell func(string, ...any)) error {
	var err error
	if d.file, err = os.OpenFile(d.name, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600); err != nil {
		return err
	}
	defer d.file.Close()
	backoff, busy := minBackoff, 0
	for n := 1; ; n++ {
		had := d.have
		err := d.try(ctx)
		var final errFinal
		switch {
		case err == nil:
			return d.file.Close()
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case errors.As(err, &final):
			return final.error
		case d.have > had:
			n, busy, backoff = 1, 0, minBackoff // the download makes progress
		case errors.Is(err, errBusy) && busy < busyTries:
			busy++
			n-- // waiting for its turn doesn't count as a failure
		case n >= tries:
			return fmt.Errorf("%w (tried %s)", err, plural.Times(n))
		}
		tell("fetch the code: %v; continuing at byte %d", err, d.have)
		t := time.NewTimer(backoff)
		select {
		case <-ctx.Done():
		case <-t.C:
		}
		t.Stop()
		backoff = min(2*backoff, maxBackoff)
	}
}

// try downloads the missing part of the archive. Then it checks the whole archive.
func (d *download) try(ctx context.Context) error {
	if d.have < d.code.Size || d.have == 0 {
		if err := d.request(ctx); err != nil {
			return err
		}
	}
	if d.have != d.code.Size {
		return fmt.Errorf("received %d bytes of %d", d.have, d.code.Size)
	}
	if sum := hex.EncodeToString(d.hash.Sum(nil)); sum != d.code.SHA256 {
		if err := d.restart(); err != nil {
			return err
		}
		return fmt.Errorf("the received code has the checksum %s, not %s", sum, d.code.SHA256)
	}
	return nil
}

// restart discards the downloaded part of the archive.
func (d *download) restart() error {
	d.have = 0
	d.hash.Reset()
	if err := d.file.Truncate(0); err != nil {
		return err
	}
	_, err := d.file.Seek(0, io.SeekStart)
	return err
}

func (d *download) request(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, d.code.URL, nil)
	if err != nil {
		return errFinal{err}
	}
	req.Header.Set("User-Agent", "pai-runtime")
	req.Header.Set("Authorization", "Bearer "+d.token)
	if d.have > 0 {
		req.Header.Set("Range", fmt.Sprintf("bytes=%d-", d.have))
	}
	res, err := d.client.Do(req)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	switch {
	case res.StatusCode == http.StatusPartialContent && d.have > 0:
	case res.StatusCode == http.StatusOK:
		if err := d.restart(); err != nil { // the server doesn't support ranges
			return errFinal{err}
		}
	case res.StatusCode == http.StatusNotFound, res.StatusCode == http.StatusGone:
		return fmt.Errorf("%s isn't there (%s)", d.code.SHA256, res.Status)
	case res.StatusCode == http.StatusForbidden:
		return errFinal{errors.New("the job controller refuses the job's token for its code; submit the job again if an earlier paictl has submitted it")}
	case res.StatusCode == http.StatusServiceUnavailable && res.Header.Get("Retry-After") != "":
		return errBusy
	default:
		return fmt.Errorf("the server answers %s", res.Status)
	}
	// Read one byte more than the archive's size. If the response contains that byte, the archive is wrong.
	body := io.LimitReader(res.Body, d.code.Size-d.have+1)
	watchdog := time.AfterFunc(stall, cancel)
	defer watchdog.Stop()
	n, err := io.Copy(io.MultiWriter(d.file, d.hash), touch{body, watchdog})
	d.have += n
	if d.have > d.code.Size {
		return errFinal{fmt.Errorf("more than the %d bytes that were announced", d.code.Size)}
	}
	return err
}

// touch is a reader that resets a timer with each read.
type touch struct {
	r io.Reader
	t *time.Timer
}

func (t touch) Read(p []byte) (int, error) {
	n, err := t.r.Read(p)
	t.t.Reset(stall)
	return n, err
}
