package image

import (
	"bytes"
	"log"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/registry"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/openpai/paictl/pkg/cluster/bundle"
	"github.com/openpai/paictl/pkg/hint"
)

const password = "open-sesame"

// store is a registry on this machine that records requests. store may require a login.
type store struct {
	*httptest.Server
	mu    sync.Mutex
	seen  []string
	login []string // every Authorization header
}

func newStore(t *testing.T, locked, tls bool) *store {
	t.Helper()
	s := &store{}
	reg := registry.New(registry.Logger(log.New(new(bytes.Buffer), "", 0)))
	h := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.mu.Lock()
		s.seen = append(s.seen, r.Method+" "+r.URL.Path)
		if a := r.Header.Get("Authorization"); a != "" {
			s.login = append(s.login, a)
		}
		s.mu.Unlock()
		if user, pw, _ := r.BasicAuth(); locked && (user != "pai" || pw != password) {
			w.Header().Set("WWW-Authenticate", `Basic realm="registry"`)
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		reg.ServeHTTP(w, r)
	})
	if s.Server = httptest.NewUnstartedServer(h); tls {
		s.Config.ErrorLog = log.New(new(bytes.Buffer), "", 0) // failed handshakes
		s.StartTLS()
	} else {
		s.Start()
	}
	t.Cleanup(s.Close)
	return s
}

func (s *store) host() string { return s.Listener.Addr().String() }

// changes returns the write requests since the last call of changes.
func (s *store) changes() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	var out []string
	for _, r := range s.seen {
		if !strings.HasPrefix(r, "GET ") && !strings.HasPrefix(r, "HEAD ") {
			out = append(out, r)
		}
	}
	s.seen = nil
	return out
}

// anonymous is a keychain without logins. anonymous hides the logins of the test machine.
type anonymous struct{}

func (anonymous) Resolve(authn.Resource) (authn.Authenticator, error) { return authn.Anonymous, nil }

func pusher() Pusher { return Pusher{Access: Access{Keychain: anonymous{}}} }

func plan(t *testing.T, b *bundle.Bundle, s *store, all bool) []Item {
	t.Helper()
	items, err := Plan(b, Destination{Registry: s.host() + "/pai", Tag: "v9", Mirror: s.host() + "/cache"}, nil, all)
	require.NoError(t, err)
	return items
}

var ownImages = len(Names())

func states(results []Result) []State {
	var out []State
	for _, r := range results {
		out = append(out, r.State)
	}
	return out
}

func TestWhatIsThereIsNotSentAgain(t *testing.T) {
	b, s := newBundle(t), newStore(t, false, false)
	items := plan(t, b, s, true)
	results, err := pusher().Push(t.Context(), b, items)
	require.NoError(t, err)
	assert.Equal(t, slices.Repeat([]State{Pushed}, ownImages+1), states(results))
	assert.NotEmpty(t, s.changes())

	results, err = pusher().Push(t.Context(), b, items)
	require.NoError(t, err)
	assert.Equal(t, slices.Repeat([]State{Present}, ownImages+1), states(results))
	assert.Empty(t, s.changes())
	for _, r := range results {
		assert.Equal(t, r.Digest, r.Found, "the registry knows the image by the digest that nodes know")
	}
}

func TestADryRunSendsNothing(t *testing.T) {
	b, s := newBundle(t), newStore(t, false, false)
	p := pusher()
	p.DryRun = true
	results, err := p.Push(t.Context(), b, plan(t, b, s, false))
	require.NoError(t, err)
	assert.Equal(t, slices.Repeat([]State{Missing}, ownImages), states(results))
	assert.Empty(t, s.changes())
}

func TestAnotherImageUnderTheNameIsFoundAndReplaced(t *testing.T) {
	b, s := newBundle(t), newStore(t, false, false)
	items := plan(t, b, s, false)
	other := items[1]
	other.Target = items[0].Target
	_, err := pusher().Push(t.Context(), b, []Item{other})
	require.NoError(t, err)

	r, err := pusher().Access.Look(t.Context(), items[0])
	require.NoError(t, err)
	assert.Equal(t, Other, r.State)
	assert.Equal(t, other.Digest, r.Found)
	results, err := pusher().Push(t.Context(), b, items[:1])
	require.NoError(t, err)
	assert.Equal(t, []State{Pushed}, states(results))
	r, err = pusher().Access.Look(t.Context(), items[0])
	require.NoError(t, err)
	assert.Equal(t, Present, r.State)
}

func TestProgressEndsWithTheState(t *testing.T) {
	b, s := newBundle(t), newStore(t, false, false)
	p := pusher()
	var last []Event
	sent := map[string]int64{}
	p.Progress = func(e Event) {
		if e.State != "" {
			last = append(last, e)
			return
		}
		sent[e.Item.Name] = max(sent[e.Item.Name], e.Sent)
	}
	_, err := p.Push(t.Context(), b, plan(t, b, s, false))
	require.NoError(t, err)
	require.Len(t, last, ownImages)
	assert.Equal(t, 3, last[2].N)
	assert.Equal(t, ownImages, last[2].Total)
	assert.Equal(t, Pushed, last[2].State)
	assert.Positive(t, sent["pai-volume"])
}

func TestALockedRegistryTakesTheConfigurationsLogin(t *testing.T) {
	b, s := newBundle(t), newStore(t, true, false)
	p := pusher()
	p.Access.Host, p.Access.Username, p.Access.Password = s.host(), "pai", password
	results, err := p.Push(t.Context(), b, plan(t, b, s, true))
	require.NoError(t, err)
	assert.Equal(t, slices.Repeat([]State{Pushed}, ownImages+1), states(results), "a mirror on the same host has the same login")
}

func TestARefusedLoginSaysWhatToDoAndNoPassword(t *testing.T) {
	b, s := newBundle(t), newStore(t, true, false)
	for name, tt := range map[string]struct {
		user string
		want string
	}{
		"without a login":    {"", "docker login " + s.host()},
		"with another login": {"eve", "username and password under cluster.docker-registry, and whether eve may push"},
	} {
		t.Run(name, func(t *testing.T) {
			p := pusher()
			p.Access.Host, p.Access.Username, p.Access.Password = s.host(), tt.user, "another-secret"
			_, err := p.Push(t.Context(), b, plan(t, b, s, false))
			require.ErrorContains(t, err, "401")
			assert.Contains(t, hint.Of(err), tt.want)
			assert.NotContains(t, err.Error()+hint.Of(err), "another-secret")
		})
	}
}

func TestALoginGoesToItsOwnRegistryOnly(t *testing.T) {
	b, ours, mirror := newBundle(t), newStore(t, true, false), newStore(t, false, false)
	p := pusher()
	p.Access.Host, p.Access.Username, p.Access.Password = ours.host(), "pai", password
	items, err := Plan(b, Destination{Registry: ours.host() + "/pai", Tag: "v9", Mirror: mirror.host()}, nil, true)
	require.NoError(t, err)
	_, err = p.Push(t.Context(), b, items)
	require.NoError(t, err)
	assert.NotEmpty(t, ours.login)
	assert.Empty(t, mirror.login)
}

func TestALoginWithoutARegistryIsGivenToNobody(t *testing.T) {
	assert.False(t, Access{Username: "pai", Password: password}.ours("index.docker.io"))
	assert.True(t, Access{Host: "docker.io", Username: "pai", Password: password}.ours("index.docker.io"))
}

func TestCertificatesAreVerified(t *testing.T) {
	b, s := newBundle(t), newStore(t, false, true)
	items := plan(t, b, s, false)
	_, err := pusher().Push(t.Context(), b, items)
	require.ErrorContains(t, err, "certificate")
	assert.Contains(t, hint.Of(err), "SSL_CERT_FILE")
	assert.Empty(t, s.changes())

	trusting := pusher()
	trusting.Access.Transport, _ = s.Client().Transport.(*http.Transport)
	_, err = trusting.Push(t.Context(), b, items)
	require.NoError(t, err)

	insecure := pusher()
	insecure.Access.Insecure = true
	results, err := insecure.Push(t.Context(), b, items)
	require.NoError(t, err)
	assert.Equal(t, slices.Repeat([]State{Present}, ownImages), states(results))
}

// refusing is a transport that fails the test on any request.
type refusing struct{ t *testing.T }

func (r refusing) RoundTrip(req *http.Request) (*http.Response, error) {
	r.t.Errorf("%s went out", req.URL)
	return nil, http.ErrServerClosed
}

func TestPlainHTTPStaysOnThisMachine(t *testing.T) {
	for _, url := range []string{"http://10.0.0.1/v2/", "http://registry.local:5000/v2/", "http://registry.example.org/v2/"} {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
		require.NoError(t, err)
		_, err = guard{refusing{t}}.RoundTrip(req)
		require.ErrorIs(t, err, errPlain, url)
	}
	for ref, want := range map[string]bool{
		"127.0.0.1:5000/pai": true, "localhost/pai": true, "[::1]:5000/pai": true,
		"10.0.0.1:5000/pai": false, "registry.example.org/pai": false, "localhost.example.org/pai": false,
	} {
		assert.Equal(t, want, Loopback(ref), ref)
	}
}

func TestADamagedImageIsNotSent(t *testing.T) {
	b, s := newBundle(t), newStore(t, false, false)
	items := plan(t, b, s, false)
	items[0].SHA256 = strings.Repeat("0", 64)
	_, err := pusher().Push(t.Context(), b, items)
	require.ErrorContains(t, err, "is damaged")
	assert.Empty(t, s.changes())
}
