package browser_test

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/url"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/openpai/paictl/pkg/client"
	"github.com/openpai/paictl/pkg/client/browser"
	"github.com/openpai/paictl/pkg/kube/kubetest"
	"github.com/openpai/paictl/pkg/server/servertest"
	"github.com/openpai/paictl/pkg/server/v3/api"
)

func TestMain(m *testing.M) { os.Exit(kubetest.Wrap(m).Run()) }

// open starts a server with the user ann. It returns the server and a client that is connected to that server.
func open(t *testing.T) (*servertest.Server, *client.Server) {
	t.Helper()
	c := kubetest.Start(t)
	servertest.Prepare(t, c)
	s := servertest.Start(t, c, servertest.Options{})
	s.Person("ann", "default")
	asked, err := client.New(client.Options{URL: s.URL, CA: s.CA(), Version: "test"})
	require.NoError(t, err)
	return s, asked
}

// say sends a JSON body in the way that the server's web pages do.
func say(t *testing.T, s *servertest.Server, path string, in any, out any) {
	t.Helper()
	body, err := json.Marshal(in)
	require.NoError(t, err)
	a := s.Do("POST", path, "", string(body), "Content-Type", "application/json", "Sec-Fetch-Site", "same-origin")
	require.Equal(t, 200, a.Status, a.Body)
	a.Into(out)
}

// visit requests an address of this machine, as a browser does after a redirect, and returns the status of the response.
func visit(t *testing.T, address string) int {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, address, http.NoBody)
	require.NoError(t, err)
	resp, err := http.DefaultClient.Do(r)
	require.NoError(t, err)
	_ = resp.Body.Close()
	return resp.StatusCode
}

// typed enters ann's password on the sign-in page at an address, and returns the address that the server then redirects the browser to.
func typed(t *testing.T, s *servertest.Server, address string) string {
	t.Helper()
	u, err := url.Parse(address)
	require.NoError(t, err)
	q := u.Query()
	require.Equal(t, "/oauth/authorize", u.Path)
	out := api.Arrival{}
	say(t, s, "/api/v3/signin/password", map[string]any{"username": "ann", "password": servertest.Password, "goal": api.Goal{Program: &api.Program{
		Redirect: q.Get("redirect_uri"), State: q.Get("state"), Challenge: q.Get("code_challenge"), Client: q.Get("client_id")}}}, &out)
	return out.To
}

func TestABrowserOfThisMachineSignsIn(t *testing.T) {
	s, c := open(t)
	pair, err := browser.SignIn(t.Context(), c, func(_ context.Context, address string) error {
		to := typed(t, s, address)
		u, err := url.Parse(to)
		require.NoError(t, err)
		forged := *u
		forged.RawQuery = url.Values{"code": {"x"}, "state": {"x"}}.Encode()
		assert.Equal(t, 400, visit(t, forged.String()), "what another program sends ends nothing")
		go func() { // as a browser that paictl doesn't wait for
			if resp, err := http.Get(to); err == nil {
				_ = resp.Body.Close()
			}
		}()
		return nil
	})
	require.NoError(t, err)
	me, err := c.As(pair.Access).WhoAmI(t.Context())
	require.NoError(t, err)
	assert.Equal(t, "ann", me.Name)
	assert.NotContains(t, s.Printed.String(), pair.Refresh.Reveal())
}

func TestABrowserThatIsLeftLeavesNothing(t *testing.T) {
	_, c := open(t)
	ctx, cancel := context.WithCancel(t.Context())
	redirect := ""
	_, err := browser.SignIn(ctx, c, func(_ context.Context, address string) error {
		u, err := url.Parse(address)
		require.NoError(t, err)
		redirect = u.Query().Get("redirect_uri")
		cancel()
		return nil
	})
	require.ErrorIs(t, err, context.Canceled)
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, redirect, http.NoBody)
	require.NoError(t, err)
	resp, err := http.DefaultClient.Do(r)
	if err == nil {
		_ = resp.Body.Close()
	}
	require.Error(t, err, "no one waits there")
	_, err = browser.SignIn(t.Context(), c, func(context.Context, string) error { return errors.New("no browser") })
	assert.ErrorContains(t, err, "no browser")
}

func TestABrowserElsewhereSignsIn(t *testing.T) {
	s, c := open(t)
	var pauses []time.Duration
	asked := (*api.Device)(nil)
	pair, err := browser.Device(t.Context(), c, func(d *api.Device) { asked = d }, func(_ context.Context, d time.Duration) error {
		if pauses = append(pauses, d); len(pauses) < 3 {
			return nil
		}
		out := api.Arrival{}
		say(t, s, "/api/v3/signin/password", map[string]any{"username": "ann", "password": servertest.Password, "goal": api.Goal{Device: asked.UserCode}}, &out)
		require.NotNil(t, out.Waiting)
		assert.Equal(t, "paictl/test", out.Waiting.Client)
		say(t, s, "/api/v3/signin/approval", map[string]any{"approval": out.Waiting.Approval, "allow": true}, &struct{}{})
		return nil
	})
	require.NoError(t, err)
	assert.Equal(t, []time.Duration{5 * time.Second, 5 * time.Second, 10 * time.Second}, pauses, "it asks less often when the server says so")
	me, err := c.As(pair.Access).WhoAmI(t.Context())
	require.NoError(t, err)
	assert.Equal(t, "ann", me.Name)

	_, err = browser.Device(t.Context(), c, func(d *api.Device) { asked = d }, func(context.Context, time.Duration) error {
		out := api.Arrival{}
		say(t, s, "/api/v3/signin/password", map[string]any{"username": "ann", "password": servertest.Password, "goal": api.Goal{Device: asked.UserCode}}, &out)
		say(t, s, "/api/v3/signin/approval", map[string]any{"approval": out.Waiting.Approval, "allow": false}, &struct{}{})
		return nil
	})
	var refused *client.RefusedError
	require.ErrorAs(t, err, &refused)
	assert.ErrorContains(t, err, "the sign-in was refused")
	_, err = browser.Device(t.Context(), c, func(*api.Device) {}, func(context.Context, time.Duration) error { return context.Canceled })
	assert.Error(t, err)
}

func TestWhereABrowserCanBeOpened(t *testing.T) {
	for _, env := range []map[string]string{{"SSH_CONNECTION": "x", "DISPLAY": ":0"}, {"CI": "true", "DISPLAY": ":0"}} {
		assert.False(t, browser.Available(func(key string) string { return env[key] }))
	}
}
