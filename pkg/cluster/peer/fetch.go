package peer

import (
	"cmp"
	"context"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"syscall"
	"time"
)

// backward is how many bytes before the end of a partial file a transfer resumes. An upload over SFTP writes out of order, and may leave holes near
// the end.
const backward = 4 << 20

// Fetch fetches one file. It writes its progress and its result to out. It returns an error only if its input is invalid or a write to out fails.
func Fetch(ctx context.Context, f Fetching, out io.Writer) error {
	f.Patience = f.Patience.WithDefaults()
	if err := f.check(); err != nil {
		return err
	}
	g := &getting{Fetching: f, out: out, now: time.Now}
	err := g.get(ctx)
	if g.silent != nil {
		return g.silent
	}
	if err == nil {
		return say(out, Message{Got: g.got, Done: true, Shared: g.share()})
	}
	var why *failed
	if !errors.As(err, &why) {
		why = &failed{Disk, err}
	}
	return say(out, Message{Got: g.got, Failure: why.kind, Error: why.err.Error()})
}

func (f Fetching) check() error {
	switch {
	case !IsSum(f.SHA256):
		return fmt.Errorf("%q is not a sha256 in hex", f.SHA256)
	case f.Size < 0 || f.Mode > 0o7777:
		return errors.New("the size or the mode is wrong")
	case !filepath.IsAbs(f.Path) || filepath.Dir(f.Part) != filepath.Dir(f.Path) || f.Part == f.Path:
		return fmt.Errorf("%q and %q are not two files of one folder", f.Path, f.Part)
	case f.Folder != "" && !filepath.IsAbs(f.Folder):
		return fmt.Errorf("the folder %q has no absolute path", f.Folder)
	}
	return nil
}

// failed is an error with its kind. The caller chooses the next machine by the kind.
type failed struct {
	kind Failure
	err  error
}

func (e *failed) Error() string { return e.err.Error() }
func (e *failed) Unwrap() error { return e.err }

type getting struct {
	Fetching
	out io.Writer
	now func() time.Time

	got, told int64
	told0     time.Time
	silent    error // the error of out
}

func (g *getting) get(ctx context.Context) error {
	part, err := os.OpenFile(g.Part, os.O_RDWR|os.O_CREATE|syscall.O_NOFOLLOW, 0o600)
	if err != nil {
		return err
	}
	defer func() { _ = part.Close() }()
	sum := sha256.New()
	from, err := g.resume(part, sum)
	if err != nil {
		return err
	}
	if err := g.receive(ctx, part, sum, from); err != nil {
		return err
	}
	if got := hex.EncodeToString(sum.Sum(nil)); got != g.SHA256 {
		kind := Wrong
		if from > 0 {
			kind = Mixed
		}
		err := fmt.Errorf("the content has the sha256 %s, not %s", got, g.SHA256)
		return &failed{kind, errors.Join(err, os.Remove(g.Part))}
	}
	if err := part.Chmod(os.FileMode(g.Mode)); err != nil {
		return err
	}
	return os.Rename(g.Part, g.Path)
}

// resume hashes the content of an earlier attempt. It returns the offset at which the transfer resumes.
func (g *getting) resume(part *os.File, sum hash.Hash) (int64, error) {
	info, err := part.Stat()
	if err != nil {
		return 0, err
	}
	from := info.Size() - backward
	if from <= 0 || info.Size() > g.Size {
		from = 0
	}
	if err := part.Truncate(from); err != nil {
		return 0, err
	}
	_, err = io.Copy(sum, part)
	return from, err
}

// receive appends the content of the other machine's file, beginning at an offset.
func (g *getting) receive(ctx context.Context, part *os.File, sum hash.Hash, from int64) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	answer, err := g.ask(ctx, from)
	if err != nil {
		return err
	}
	defer func() { _ = answer.Body.Close() }()
	start := g.now()
	stall := time.AfterFunc(g.Patience.Stall, func() { cancel(errStalled) })
	defer stall.Stop()
	buf := make([]byte, 256<<10)
	for want := g.Size - from; want > 0; {
		n, err := answer.Body.Read(buf[:min(int64(len(buf)), want)])
		if n > 0 {
			stall.Reset(g.Patience.Stall)
			want -= int64(n)
			g.got += int64(n)
			if _, werr := part.Write(buf[:n]); werr != nil {
				return werr
			}
			sum.Write(buf[:n])
			g.tell()
		}
		if want > 0 && err == nil && g.Patience.TooSlow(g.got, g.now().Sub(start)) {
			err = errTooSlow
		}
		if err != nil && want > 0 {
			return broken(ctx, err)
		}
	}
	return nil
}

var (
	errStalled = errors.New("no data for too long")
	errTooSlow = errors.New("it sends too slowly")
)

func broken(ctx context.Context, err error) error {
	if cause := context.Cause(ctx); cause != nil {
		err = cause
	}
	if errors.Is(err, errStalled) || errors.Is(err, errTooSlow) {
		return &failed{Slow, err}
	}
	return &failed{Broken, fmt.Errorf("the transfer broke off: %w", err)}
}

// ask sends the request for the file, and checks the response's status and length.
func (g *getting) ask(ctx context.Context, from int64) (*http.Response, error) {
	cert, err := x509.ParseCertificate(g.From.Certificate)
	if err != nil {
		return nil, &failed{Unreachable, fmt.Errorf("the other machine's certificate: %w", err)}
	}
	known := x509.NewCertPool()
	known.AddCert(cert)
	dialer := &net.Dialer{Timeout: g.Patience.Dial}
	client := &http.Client{
		Transport: &http.Transport{
			DialContext:     dialer.DialContext,
			TLSClientConfig: &tls.Config{MinVersion: tls.VersionTLS13, RootCAs: known, ServerName: serverName},
			// An HTTP proxy from the environment can't reach the machines.
			Proxy: nil, DisableCompression: true, DisableKeepAlives: true,
			TLSHandshakeTimeout: g.Patience.Dial, ResponseHeaderTimeout: g.Patience.Dial, MaxResponseHeaderBytes: 16 << 10,
		},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, "https://"+g.From.Address+files+g.SHA256, http.NoBody)
	if err != nil {
		return nil, &failed{Unreachable, err}
	}
	r.Header.Set("Authorization", "Bearer "+g.Token)
	if from > 0 {
		r.Header.Set("Range", fmt.Sprintf("bytes=%d-", from))
	}
	answer, err := client.Do(r)
	if err != nil {
		return nil, &failed{Unreachable, err}
	}
	want := http.StatusOK
	if from > 0 {
		want = http.StatusPartialContent
	}
	if answer.StatusCode != want {
		_ = answer.Body.Close()
		return nil, &failed{Refused, fmt.Errorf("it answers %q", cmp.Or(answer.Status, "nothing"))}
	}
	if answer.ContentLength != g.Size-from {
		_ = answer.Body.Close()
		return nil, &failed{Wrong, fmt.Errorf("it has %d bytes instead of %d", answer.ContentLength+from, g.Size)}
	}
	return answer, nil
}

// tell writes the progress after each percent of the file or after each second.
func (g *getting) tell() {
	now := g.now()
	if g.silent != nil || g.got-g.told < g.Size/100 && now.Sub(g.told0) < time.Second {
		return
	}
	g.told, g.told0 = g.got, now
	g.silent = say(g.out, Message{Got: g.got})
}

// share adds the file to the served folder. If it returns false, this machine doesn't serve the file.
func (g *getting) share() bool {
	return g.Folder != "" && Share(g.Path, g.Folder, g.SHA256) == nil
}

// Share links a file into the served folder. The name of the link is sum. The caller must have verified the checksum.
func Share(file, folder, sum string) error {
	if !IsSum(sum) {
		return fmt.Errorf("%q is not a sha256 in hex", sum)
	}
	err := os.Link(file, filepath.Join(folder, sum))
	if errors.Is(err, os.ErrExist) {
		return nil
	}
	return err
}
