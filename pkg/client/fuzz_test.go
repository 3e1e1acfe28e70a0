package client

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/openpai/paictl/pkg/job"
	fapi "github.com/openpai/paictl/pkg/job/api"
	"github.com/openpai/paictl/pkg/secret"
	"github.com/openpai/paictl/pkg/server/v3/api"
)

// says is a transport that returns the same response to all requests.
type says struct {
	status int
	body   []byte
}

func (s says) RoundTrip(r *http.Request) (*http.Response, error) {
	return &http.Response{StatusCode: s.status, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Header: http.Header{"Content-Type": {"application/json"}}, Body: io.NopCloser(bytes.NewReader(s.body)), Request: r}, nil
}

// For any response of a server, paictl doesn't panic, and doesn't print a token.
func FuzzAnswers(f *testing.F) {
	for _, body := range []string{
		`{}`, `null`, `[]`, `{"items":[null,{"name":"x"}],"next":"y"}`, `{"code":"NoJobError","message":"m","findings":[{}]}`, `{"name":"ann","grants":null,"token":{"scopes":null}}`, `{"virtualClusters":[null]}`,
		"{}\n{\"end\":true}\n", "{\"detail\":null,\"line\":{}}\n", "event: snapshot\ndata: {\"items\":[null]}\nid: 1\n\n", "event: end\ndata: {\n\n", ":\n\n\n", `{"access_token":"x","refresh_token":1}`, `{"job":{"status":null}}`,
	} {
		f.Add(body, uint8(0))
		f.Add(body, uint8(1))
	}
	statuses := []int{200, 400, 404, 409, 201, 304}
	f.Fuzz(func(t *testing.T, body string, status uint8) {
		s, err := New(Options{URL: "https://gpu.example.org", Tokens: Fixed("the-token-7391"), Version: "test"})
		if err != nil {
			t.Fatal(err)
		}
		s.http.Transport = says{statuses[int(status)%len(statuses)], []byte(body)}
		c, j := &Jobs{Server: s, Name: "ann"}, &job.Job{User: "ann", Name: "x"}
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		once := func(*api.Frame) error { return nil }
		for _, ask := range []func() error{
			func() error { _, err := c.List(ctx, job.Filter{}); return err },
			func() error { _, err := c.Known(ctx, "ann"); return err },
			func() error { _, err := c.Resolve(ctx, "ann", "x"); return err },
			func() error { _, err := c.Detail(ctx, j); return err },
			func() error { _, err := c.Why(ctx, j); return err },
			func() error { _, _, err := c.Events(ctx, j); return err },
			func() error { _, _, err := c.Top(ctx, j); return err },
			func() error { _, err := c.Targets(ctx, j); return err },
			func() error { _, err := c.Offer(ctx); return err },
			func() error { _, err := c.VirtualClusters(ctx); return err },
			func() error { _, err := c.Usage(ctx, fapi.UsageQuery{}); return err },
			func() error { _, err := s.WhoAmI(ctx); return err },
			func() error { _, err := s.Users(ctx); return err },
			func() error { _, err := s.Group(ctx, "x"); return err },
			func() error { _, err := s.NewToken(ctx, api.NewToken{}); return err },
			func() error { _, err := s.Password(ctx, "ann", secret.String("hunter2-7391")); return err },
			func() error { return s.frames(ctx, get("/x", nil), func(time.Time) {}, once) },
			func() error { return s.events(ctx, get("/x", nil), "", func(event) error { return nil }) },
		} {
			if err := ask(); err != nil && !strings.Contains(body, "7391") && strings.Contains(err.Error(), "7391") {
				t.Fatalf("a secret is in %q", err)
			}
		}
	})
}

// A fingerprint that is accepted is valid, and parses to itself.
func FuzzFingerprint(f *testing.F) {
	for _, s := range []string{strings.Repeat("ab", 32), "SHA256:" + strings.Repeat("AB:", 31) + "AB", "", "sha256:sha256:", strings.Repeat("é", 32)} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		print, err := ParseFingerprint(text)
		if err != nil {
			return
		}
		if again, err := ParseFingerprint(print); err != nil || again != print || len(print) != 32*3-1 {
			t.Fatalf("%q reads as %q, and that as %q: %v", text, print, again, err)
		}
	})
}

// A server address that is accepted has the scheme https and a host, and nothing else.
func FuzzAddress(f *testing.F) {
	for _, s := range []string{"gpu.example.org", "https://x:1/", "https://user:p@x", "http://x", "x\\y", "[::1]:443", "x#y", "https:x"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		u, err := ParseURL(text)
		if err != nil {
			return
		}
		if u.Scheme != "https" || u.Host == "" || u.User != nil || u.Path != "" || u.RawQuery != "" || u.Fragment != "" {
			t.Fatalf("%q reads as %q", text, u)
		}
	})
}
