package login

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/openpai/paictl/pkg/client"
	"github.com/openpai/paictl/pkg/hint"
	"github.com/openpai/paictl/pkg/secret"
)

func store(t *testing.T) Store {
	return Store{Path: filepath.Join(t.TempDir(), "paictl", "clusters.yaml")}
}

func TestTheFileIsForItsOwnerAlone(t *testing.T) {
	s := store(t)
	f, err := s.Read()
	require.NoError(t, err)
	assert.Empty(t, f.Clusters)
	require.NoError(t, s.Change(t.Context(), func(f *File) error {
		f.Current = "lab"
		f.Clusters["lab"] = &Cluster{Server: "https://lab", User: "ann", Access: "access", Refresh: "refresh", Expires: time.Unix(1800000000, 0).UTC()}
		return nil
	}))
	info, err := os.Stat(s.Path)
	require.NoError(t, err)
	assert.Equal(t, os.FileMode(0o600), info.Mode().Perm())
	f, err = s.Read()
	require.NoError(t, err)
	assert.Equal(t, "refresh", f.Clusters["lab"].Refresh.Reveal(), "and not its mask")
	assert.Equal(t, "lab", f.At("https://lab"))
	assert.NotContains(t, fmt.Sprintf("%+v", f.Clusters["lab"]), "refresh:")

	require.NoError(t, os.Chmod(s.Path, 0o640))
	_, err = s.Read()
	require.ErrorContains(t, err, "others may read it")
	assert.Equal(t, "chmod 600 "+s.Path, hint.Of(err))
	require.Error(t, s.Change(t.Context(), func(*File) error { t.Error("it isn't changed"); return nil }))
}

func TestWhatCannotBeReadIsNotRepeated(t *testing.T) {
	for name, text := range map[string]string{
		"no YAML":              "clusters: {lab: {server: https://lab, refresh: pair_geheim",
		"a key that isn't one": "clusters: {lab: {server: https://lab, refesh: pair_geheim}}\n",
		"another type":         "clusters: [pair_geheim]\n",
		"no cluster":           "clusters: {lab: }\n",
		"no name":              "clusters: {'../x': {server: https://lab}}\n",
	} {
		t.Run(name, func(t *testing.T) {
			s := Store{Path: filepath.Join(t.TempDir(), "clusters.yaml")}
			require.NoError(t, os.WriteFile(s.Path, []byte(text), 0o600))
			_, err := s.Read()
			require.Error(t, err)
			assert.NotContains(t, err.Error(), "geheim")
			assert.NotEmpty(t, hint.Of(err))
		})
	}
}

func FuzzClusters(f *testing.F) {
	f.Add("current: lab\nclusters: {lab: {server: https://lab, refresh: x}}\n")
	f.Add("clusters: {a: &a {server: x}, b: *a}")
	f.Fuzz(func(t *testing.T, text string) {
		file, err := parse("clusters.yaml", []byte(text))
		if err == nil {
			for _, name := range file.Names() {
				assert.NotNil(t, file.Clusters[name])
			}
		}
	})
}

// issuer issues tokens. Each refresh token can be used only once.
type issuer struct {
	mu    sync.Mutex
	good  string
	n     int
	away  error
	asked int
}

func (i *issuer) Refresh(_ context.Context, refresh secret.String) (*client.Pair, error) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.asked++
	if i.away != nil {
		return nil, i.away
	}
	if refresh.Reveal() != i.good {
		return nil, &client.RefusedError{}
	}
	i.n++
	i.good = fmt.Sprint("refresh-", i.n)
	return &client.Pair{Access: secret.String(fmt.Sprint("access-", i.n)), Refresh: secret.String(i.good), Lifetime: 900}, nil
}

func signedIn(t *testing.T, s Store, now time.Time) {
	t.Helper()
	require.NoError(t, s.Change(t.Context(), func(f *File) error {
		f.Clusters["lab"] = &Cluster{Server: "https://lab", User: "ann", Access: "access-0", Refresh: "refresh-0", Expires: now.Add(15 * time.Minute)}
		return nil
	}))
}

func TestATokenIsRenewedOnceHoweverManyNeedIt(t *testing.T) {
	s, now, server := store(t), time.Now(), &issuer{good: "refresh-0"}
	signedIn(t, s, now)
	clock := func() time.Time { return now }
	var all []*Session // each as another paictl
	for range 8 {
		all = append(all, &Session{Store: s, Name: "lab", Server: server, Now: clock})
	}
	got := func() map[string]bool {
		var wg sync.WaitGroup
		var mu sync.Mutex
		tokens := map[string]bool{}
		for _, one := range all {
			wg.Go(func() {
				token, err := one.Access(t.Context())
				assert.NoError(t, err)
				mu.Lock()
				defer mu.Unlock()
				tokens[token.Reveal()] = true
			})
		}
		wg.Wait()
		return tokens
	}
	assert.Equal(t, map[string]bool{"access-0": true}, got())
	assert.Zero(t, server.asked)
	now = now.Add(14*time.Minute + time.Second)
	assert.Equal(t, map[string]bool{"access-1": true}, got(), "it ends within a minute")
	assert.Equal(t, 1, server.asked)

	token, err := all[0].Renewed(t.Context(), "access-1")
	require.NoError(t, err)
	assert.Equal(t, "access-2", token.Reveal(), "the server refused it")
	token, err = all[1].Renewed(t.Context(), "access-1")
	require.NoError(t, err)
	assert.Equal(t, "access-2", token.Reveal(), "another has renewed it")
	assert.Equal(t, 2, server.asked)
}

func TestASessionThatHasEndedSaysHowToBeginOne(t *testing.T) {
	s, now, server := store(t), time.Now(), &issuer{good: "another"}
	signedIn(t, s, now)
	one := &Session{Store: s, Name: "lab", Server: server, Now: func() time.Time { return now.Add(time.Hour) }}
	_, err := one.Access(t.Context())
	require.EqualError(t, err, "your session at lab has ended")
	assert.Equal(t, "sign in again: paictl login lab", hint.Of(err))
	server.away = errors.New("connection refused")
	_, err = one.Access(t.Context())
	require.EqualError(t, err, "connection refused")
	f, err := s.Read()
	require.NoError(t, err)
	assert.Equal(t, "refresh-0", f.Clusters["lab"].Refresh.Reveal(), "a server that is unavailable ends no session")
}
