package send

import (
	"bufio"
	"context"
	"encoding/json"
	"flag"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/openpai/paictl/pkg/alerthandler/notify"
	"github.com/openpai/paictl/pkg/secret"
)

var hello = &notify.Message{ID: "0123456789abcdef", Subject: `job ann/<!channel> [x](http://evil) was stopped`, Text: "The job ended.\n\nReason: <at user_id=\"all\"></at> & more\n"}

var update = flag.Bool("update", false, "write the golden files")

// open returns a guard that allows connections to this machine, which runs the servers of the tests.
func open() *guard { return &guard{} }

func hook(t *testing.T, kind notify.Type, url string) *Webhook {
	t.Helper()
	w, err := newWebhook(&notify.Webhook{Name: "chat", Type: kind, SecretURL: secret.String(url)}, "", open(), time.Second)
	require.NoError(t, err)
	w.client.Transport.(*http.Transport).DialContext = (&net.Dialer{}).DialContext
	return w
}

// Each type of chat gets a body in its format. User text is in fields that the chat doesn't interpret.
func TestBodies(t *testing.T) {
	for _, kind := range notify.Types() {
		t.Run(string(kind), func(t *testing.T) {
			var got map[string]any
			s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				assert.Equal(t, http.MethodPost, r.Method)
				assert.Equal(t, "application/json", r.Header.Get("Content-Type"))
				assert.Equal(t, hello.ID, r.Header.Get("Idempotency-Key"))
				assert.NoError(t, json.NewDecoder(r.Body).Decode(&got))
				_, _ = io.WriteString(w, `{"code":0,"errcode":0}`)
			}))
			defer s.Close()
			require.NoError(t, hook(t, kind, s.URL+"/token").Send(t.Context(), "", hello))
			text, err := json.MarshalIndent(got, "", "  ")
			require.NoError(t, err)
			golden(t, string(kind)+".json", string(text)+"\n")
		})
	}
}

func golden(t *testing.T, name, got string) {
	t.Helper()
	file := "testdata/" + name
	if *update {
		require.NoError(t, os.MkdirAll("testdata", 0o755))
		require.NoError(t, os.WriteFile(file, []byte(got), 0o644))
	}
	want, err := os.ReadFile(file)
	require.NoError(t, err)
	require.Equal(t, string(want), got)
}

// Slack rejects blocks with more than 3000 characters. So a long digest is split into several blocks that contain all lines.
func TestALongMessageToSlack(t *testing.T) {
	line := strings.Repeat("é", 150) + "\n"
	long := &notify.Message{ID: "1", Subject: "100 events", Text: strings.Repeat(line, 90) + strings.Repeat("x", 7000)}
	_, body, err := hook(t, notify.TypeSlack, "https://hooks.example.org/1").request(long)
	require.NoError(t, err)
	var got struct {
		Blocks []struct{ Text struct{ Text string } }
	}
	require.NoError(t, json.Unmarshal(body, &got))
	var all strings.Builder
	for _, b := range got.Blocks[1:] {
		require.NotEmpty(t, b.Text.Text)
		require.LessOrEqual(t, len([]rune(b.Text.Text)), 3000)
		all.WriteString(b.Text.Text)
	}
	require.Equal(t, long.Text, all.String())
	require.True(t, strings.HasSuffix(got.Blocks[1].Text.Text, "é\n"))
	require.Less(t, len(got.Blocks), 50)
}

// The signatures for Feishu and DingTalk cover the time and the secret.
func TestSignatures(t *testing.T) {
	w := hook(t, notify.TypeDingTalk, "https://oapi.example.org/robot/send?access_token=x")
	w.c.SigningSecret, w.now = "SEC1", func() time.Time { return time.UnixMilli(1_700_000_000_123) }
	address, _, err := w.request(hello)
	require.NoError(t, err)
	require.Equal(t, "https://oapi.example.org/robot/send?access_token=x&sign=LtwRhnP04fXYO09uCgUpnz%2F3dV0OxcApXKnTCuuaVBQ%3D&timestamp=1700000000123", address)
	w.c.Type = notify.TypeFeishu
	_, body, err := w.request(hello)
	require.NoError(t, err)
	var got map[string]any
	require.NoError(t, json.Unmarshal(body, &got))
	require.Equal(t, "1700000000", got["timestamp"])
	require.Equal(t, "s3Va4ru9IQUY6HTJcYx7OEVyXl0V0S/y32v4ZbfOHCI=", got["sign"])
}

// A server rejects a message, or responds with an error or with too much data. The error doesn't contain the server's address, which is a secret.
func TestFailures(t *testing.T) {
	for name, c := range map[string]struct {
		kind    notify.Type
		answer  func(http.ResponseWriter)
		want    error
		message string
	}{
		"an error":             {notify.TypeGeneric, func(w http.ResponseWriter) { w.WriteHeader(http.StatusNotFound) }, notify.ErrRefused, "chat answered 404"},
		"an error of DingTalk": {notify.TypeDingTalk, func(w http.ResponseWriter) { _, _ = io.WriteString(w, `{"errcode":310000,"errmsg":"token TOKEN"}`) }, notify.ErrRefused, "the code 310000"},
		"an error of Feishu":   {notify.TypeFeishu, func(w http.ResponseWriter) { _, _ = io.WriteString(w, `{"code":19021}`) }, notify.ErrRefused, "the code 19021"},
		"a page":               {notify.TypeFeishu, func(w http.ResponseWriter) { _, _ = io.WriteString(w, "<html>") }, notify.ErrRefused, "not JSON"},
		"an endless answer": {notify.TypeGeneric, func(w http.ResponseWriter) {
			for range 1000 {
				_, _ = w.Write(make([]byte, 4096))
			}
		}, nil, ""},
	} {
		t.Run(name, func(t *testing.T) {
			s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { c.answer(w) }))
			defer s.Close()
			err := hook(t, c.kind, s.URL+"/TOKEN").Send(t.Context(), "", hello)
			require.ErrorIs(t, err, c.want)
			if err != nil {
				require.ErrorContains(t, err, c.message)
				require.NotContains(t, err.Error(), "TOKEN")
			}
		})
	}
}

// expired is a context whose deadline expires when done is closed.
type expired struct {
	context.Context
	done chan struct{}
}

func (e expired) Done() <-chan struct{} { return e.done }

func (e expired) Err() error {
	select {
	case <-e.done:
		return context.DeadlineExceeded
	default:
		return nil
	}
}

// A server that never responds takes only a limited time. The error states that the message may have arrived.
func TestAServerThatNeverAnswers(t *testing.T) {
	var lc net.ListenConfig
	l, err := lc.Listen(t.Context(), "tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer l.Close()
	w := hook(t, notify.TypeGeneric, "http://"+l.Addr().String()+"/TOKEN")
	require.Positive(t, w.client.Timeout)
	ctx := expired{t.Context(), make(chan struct{})}
	go func() {
		defer close(ctx.done)
		if c, err := l.Accept(); err == nil {
			t.Cleanup(func() { c.Close() })
			if r, err := http.ReadRequest(bufio.NewReader(c)); err == nil {
				_, _ = io.Copy(io.Discard, r.Body)
			}
		}
	}()
	err = w.Send(ctx, "", hello)
	require.ErrorIs(t, err, notify.ErrUnknown)
	require.NotContains(t, err.Error(), "TOKEN")
	l.Close()
	err = w.Send(t.Context(), "", hello)
	require.Error(t, err)
	require.NotErrorIs(t, err, notify.ErrUnknown, "nothing was sent")
	require.NotContains(t, err.Error(), "TOKEN")
}

// Requests can't reach a server inside the site by its address, by a name that resolves to its address, or through a redirect. Environment variables
// don't set a proxy.
func TestInsideIsRefusedAtEachConnection(t *testing.T) {
	var reached atomic.Int64
	inner := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { reached.Add(1) }))
	defer inner.Close()
	t.Setenv("HTTP_PROXY", inner.URL)
	port := inner.URL[strings.LastIndex(inner.URL, ":"):]
	for _, url := range []string{inner.URL + "/TOKEN", "http://localhost" + port + "/TOKEN", "http://[::ffff:127.0.0.1]" + port + "/TOKEN"} {
		w, err := NewWebhook(&notify.Webhook{Name: "chat", Type: notify.TypeGeneric, SecretURL: secret.String(url)}, &notify.Config{})
		require.NoError(t, err)
		err = w.Send(t.Context(), "", hello)
		require.ErrorContains(t, err, "is refused")
		require.NotContains(t, err.Error(), "TOKEN")
	}
	require.Zero(t, reached.Load())

	// The first server counts as outside the site. All other servers are checked.
	outer := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, inner.URL+"/other", http.StatusTemporaryRedirect)
	}))
	defer outer.Close()
	w, err := newWebhook(&notify.Webhook{Name: "chat", Type: notify.TypeGeneric, SecretURL: secret.String(outer.URL + "/TOKEN")}, "", &guard{inside: inside()}, time.Second)
	require.NoError(t, err)
	transport := w.client.Transport.(*http.Transport)
	guarded := transport.DialContext
	transport.DialContext = func(ctx context.Context, network, address string) (net.Conn, error) {
		if address == strings.TrimPrefix(outer.URL, "http://") {
			return (&net.Dialer{}).DialContext(ctx, network, address)
		}
		return guarded(ctx, network, address)
	}
	err = w.Send(t.Context(), "", hello)
	require.ErrorContains(t, err, "127.0.0.1 is refused")
	require.NotContains(t, err.Error(), "TOKEN")
	require.Zero(t, reached.Load())
}

// Only a few redirects are followed, and only redirects that keep the body. The redirected request must not contain the address of the first server.
func TestRedirects(t *testing.T) {
	var last http.Header
	mux := http.NewServeMux()
	mux.HandleFunc("/keeps", func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, "/end", http.StatusPermanentRedirect)
	})
	mux.HandleFunc("/loses", func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, "/end", http.StatusFound) })
	mux.HandleFunc("/loops", func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, "/loops", http.StatusTemporaryRedirect)
	})
	mux.HandleFunc("/end", func(_ http.ResponseWriter, r *http.Request) {
		last = r.Header.Clone()
		body, err := io.ReadAll(r.Body)
		assert.NoError(t, err)
		assert.Contains(t, string(body), hello.ID)
	})
	s := httptest.NewServer(mux)
	defer s.Close()
	require.NoError(t, hook(t, notify.TypeGeneric, s.URL+"/keeps").Send(t.Context(), "", hello))
	require.Empty(t, last.Get("Referer"))
	require.ErrorContains(t, hook(t, notify.TypeGeneric, s.URL+"/loses").Send(t.Context(), "", hello), "doesn't forward")
	require.ErrorContains(t, hook(t, notify.TypeGeneric, s.URL+"/loops").Send(t.Context(), "", hello), "more than 3 redirects")
}

// A configured proxy is used. Addresses inside the site are blocked even with a proxy.
func TestAProxy(t *testing.T) {
	var asked atomic.Value
	proxy := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { asked.Store(r.URL.Host) }))
	defer proxy.Close()
	send := func(url string) error {
		w, err := NewWebhook(&notify.Webhook{Name: "chat", Type: notify.TypeGeneric, SecretURL: secret.String(url)}, &notify.Config{WebhookProxy: proxy.URL})
		require.NoError(t, err)
		return w.Send(t.Context(), "", hello)
	}
	require.NoError(t, send("http://chat.example.org/x"))
	require.Equal(t, "chat.example.org", asked.Load())
	require.ErrorContains(t, send("http://10.0.0.1/x"), "is refused")
}

// Only addresses in an allowed network can be reached inside the site.
func TestAllowedNetworks(t *testing.T) {
	w, err := NewWebhook(&notify.Webhook{Name: "chat", Type: notify.TypeGeneric, SecretURL: "https://chat.example.org"}, &notify.Config{WebhookNetworks: []string{"10.20.0.0/16"}})
	require.NoError(t, err)
	require.NotNil(t, w)
	_, err = NewWebhook(&notify.Webhook{}, &notify.Config{WebhookNetworks: []string{"x"}})
	require.Error(t, err)
	require.NoError(t, (&guard{inside: inside(), allowed: []netip.Prefix{netip.MustParsePrefix("10.20.0.0/16")}}).check(netip.MustParseAddr("10.20.1.1")))
}
