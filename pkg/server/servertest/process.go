package servertest

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/openpai/paictl/pkg/kube"
	servertls "github.com/openpai/paictl/pkg/server/tls"
	"github.com/openpai/paictl/test/output"
	"github.com/openpai/paictl/test/programs"
)

// Program is a running cmd/pai-server in a separate process.
type Program struct {
	*Server
	// Metrics is the address of /metrics, /healthz and /readyz.
	Metrics string

	args  []string
	cmd   *exec.Cmd
	ended chan struct{}
}

// Run starts the program and waits until it is ready. The program gets a cluster's kubeconfig, and additional arguments and settings. programs.Clean
// removes the built program.
func Run(t testing.TB, c *kube.Cluster, kubeconfig string, settings map[string]any, args ...string) *Program {
	t.Helper()
	settings["addresses"] = []string{"127.0.0.1"}
	data, err := json.Marshal(settings)
	require.NoError(t, err)
	file := filepath.Join(t.TempDir(), "settings.json")
	require.NoError(t, os.WriteFile(file, data, 0o600))
	listen, metrics := free(t), free(t)
	p := &Program{Metrics: "http://" + metrics, Server: &Server{Printed: &output.Buffer{}, URL: "https://" + listen, t: t}}
	p.args = append([]string{"--kubeconfig", kubeconfig, "--settings", file, "--listen", listen, "--metrics-listen", metrics}, args...)
	p.Start()
	authority, err := servertls.Read(t.Context(), c.Client)
	require.NoError(t, err)
	require.NotNil(t, authority)
	pool := x509.NewCertPool()
	pool.AddCert(authority)
	p.Client = &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS13}, ForceAttemptHTTP2: true}}
	t.Cleanup(p.Client.CloseIdleConnections)
	return p
}

func free(t testing.TB) string {
	t.Helper()
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer func() { _ = l.Close() }()
	return l.Addr().String()
}

// Start starts the program again at the same address.
func (p *Program) Start() {
	p.t.Helper()
	cmd := exec.CommandContext(context.WithoutCancel(p.t.Context()), programs.Program(p.t, "pai-server"), p.args...)
	cmd.Env = slices.DeleteFunc(os.Environ(), func(v string) bool { return strings.HasPrefix(v, "GOGC=") }) // its own setting applies
	cmd.Stdout, cmd.Stderr = p.Printed, p.Printed
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	require.NoError(p.t, cmd.Start())
	ended := make(chan struct{})
	p.cmd, p.ended = cmd, ended
	go func() { _ = cmd.Wait(); close(ended) }()
	p.t.Cleanup(func() { _ = cmd.Process.Kill(); <-ended })
	deadline := time.Now().Add(time.Minute)
	for err := p.ready(); err != nil; err = p.ready() {
		select {
		case <-ended:
			p.t.Fatalf("the program has ended: %s", p.Printed)
		case <-time.After(20 * time.Millisecond):
		}
		require.True(p.t, time.Now().Before(deadline), "it isn't ready: %v: %s", err, p.Printed)
	}
}

func (p *Program) ready() error {
	r, err := http.NewRequestWithContext(p.t.Context(), http.MethodGet, p.Metrics+"/readyz", nil)
	if err != nil {
		return err
	}
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		return err
	}
	_ = resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return errors.New(resp.Status)
	}
	conn, err := (&net.Dialer{}).DialContext(p.t.Context(), "tcp", strings.TrimPrefix(p.URL, "https://"))
	if err == nil {
		_ = conn.Close()
	}
	return err
}

// Kill kills the program, and waits until it has ended.
func (p *Program) Kill() {
	_ = p.cmd.Process.Kill()
	<-p.ended
	if p.Client != nil {
		p.Client.CloseIdleConnections()
	}
}

// Pid returns the process ID of the program.
func (p *Program) Pid() int { return p.cmd.Process.Pid }
