package main

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/openpai/paictl/pkg/kube/kubetest"
	"github.com/openpai/paictl/pkg/server/servertest"
	servertls "github.com/openpai/paictl/pkg/server/tls"
)

func TestMain(m *testing.M) { os.Exit(kubetest.Wrap(m).Run()) }

func TestMistakesInArgumentsAreNamed(t *testing.T) {
	settings := filepath.Join(t.TempDir(), "settings.json")
	require.NoError(t, os.WriteFile(settings, []byte(`{"limit": 1}`), 0o600))
	for args, says := range map[string]string{
		"--listen nowhere":           `--listen "nowhere" is not HOST:PORT`,
		"--metrics-listen x":         `--metrics-listen "x" is not HOST:PORT`,
		"--proxy-listen x":           `--proxy-listen "x" is not HOST:PORT`,
		"extra":                      `unexpected argument "extra"`,
		"--namespace other":          `jobs run in pai-jobs`,
		"--settings " + settings:     `unknown field "limit"`,
		"--settings /does/not/exist": "no such file",
	} {
		var out bytes.Buffer
		_, err := parse(strings.Fields(args), &out)
		assert.ErrorContains(t, err, says, args)
	}
}

// free returns an address with a port that no program uses.
func free(t *testing.T) string {
	t.Helper()
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer func() { _ = l.Close() }()
	return l.Addr().String()
}

func TestTheProgramAnswersOverTLSAndLeavesInOrder(t *testing.T) {
	c := kubetest.Start(t)
	servertest.Prepare(t, c)
	o, err := parse([]string{"--kubeconfig", kubetest.Kubeconfig(t), "--listen", free(t), "--proxy-listen", free(t), "--redirect-listen", free(t), "--metrics-listen", free(t), "--identity", "test", "--job-controller", "", "--scheduler", ""}, io.Discard)
	require.NoError(t, err)
	o.settings.Addresses = []string{"127.0.0.1"}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- run(ctx, o, slog.New(slog.DiscardHandler)) }()
	get := func(client *http.Client, url string) (int, string, http.Header) {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
		require.NoError(t, err)
		resp, err := client.Do(r)
		if err != nil {
			return 0, err.Error(), nil
		}
		defer func() { _ = resp.Body.Close() }()
		body, _ := io.ReadAll(resp.Body)
		return resp.StatusCode, string(body), resp.Header
	}
	metrics := "http://" + o.metricsListen
	require.Eventually(t, func() bool { status, _, _ := get(http.DefaultClient, metrics+"/readyz"); return status == 200 }, time.Minute, 20*time.Millisecond)

	authority, err := servertls.Read(t.Context(), c.Client)
	require.NoError(t, err)
	require.NotNil(t, authority, "the server has made it")
	pool := x509.NewCertPool()
	pool.AddCert(authority)
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12}, ForceAttemptHTTP2: true},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	t.Cleanup(client.CloseIdleConnections)
	status, body, _ := get(client, "https://"+o.listen+"/healthz")
	assert.Equal(t, 200, status, body)
	assert.Equal(t, "Pylon ready.", body)
	status, body, _ = get(client, "https://"+o.listen+"/rest-server/api/v2/jobs")
	assert.Equal(t, 401, status, body)
	status, body, _ = get(client, "https://"+o.proxyListen+"/healthz")
	assert.Equal(t, 404, status, "no API at the address of other services' pages: %s", body)
	status, _, header := get(client, "http://"+o.redirectListen+"/first?a=b")
	assert.Equal(t, 308, status)
	assert.Equal(t, "https://127.0.0.1/first?a=b", header.Get("Location"))
	status, body, _ = get(http.DefaultClient, metrics+"/metrics")
	assert.Equal(t, 200, status)
	assert.Contains(t, body, `pai_server_requests_total{method="GET",route="/api/v2/jobs",status="401"} 1`)

	cancel()
	require.Eventually(t, func() bool { status, _, _ := get(http.DefaultClient, metrics+"/readyz"); return status == 503 }, time.Minute, 20*time.Millisecond, "nothing new is sent to it")
	status, _, _ = get(client, "https://"+o.listen+"/healthz")
	assert.Equal(t, 200, status, "who comes nevertheless is answered")
	select {
	case err := <-ended:
		require.NoError(t, err)
	case <-time.After(30 * time.Second):
		t.Fatal("it doesn't end")
	}
}
