package cluster

import (
	"io"
	"log"
	"net"
	"net/http/httptest"
	"os/exec"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/openpai/paictl/pkg/cluster/engine"
	"github.com/openpai/paictl/pkg/hint"
	"github.com/openpai/paictl/test/tier"
)

func TestNoClusterIsMadeBehindTheAddressOfAnother(t *testing.T) {
	t.Parallel()
	l := newLab(t, 3, 1)
	l.conf.Kubernetes.Kubernetes.LoadBalanceIP = "10.9.0.100"
	for _, h := range l.hosts {
		h.write("/.fake/answers/10.9.0.100:6443", " 16\n")
	}
	err := l.refused()
	require.ErrorContains(t, err, "m1: another cluster answers at 10.9.0.100:6443")
	assert.Contains(t, hint.Of(err), "set api-endpoint (or load-balance-ip) in kubernetes-configuration.yaml to an address that only this cluster uses")
	assert.Contains(t, hint.Of(err), "list its masters in layout.yaml")
}

func TestALoadBalancerThatIsReadyBeforeTheClusterKeepsNoOneFromMakingIt(t *testing.T) {
	t.Parallel()
	l := newLab(t, 1, 1)
	l.conf.Kubernetes.Kubernetes.LoadBalanceIP = "10.9.0.100"
	m1 := l.host("m1")
	m1.write("/.fake/answers/10.9.0.100:6443", "") // it has no backend
	m1.write("/.fake/fail/kubeadm-init", "the power fails")
	o := l.up(t.Context())
	require.ErrorContains(t, o.err, "m1")
	require.Contains(t, l.story(o), "the power fails")
	// The API server of the earlier attempt responds by now.
	m1.write("/etc/kubernetes/bootstrap-kubelet.conf", "")
	m1.write("/.fake/answers/10.9.0.100:6443", " 16\n")
	m1.remove("/.fake/fail/kubeadm-init")
	l.mustUp()
}

func TestAnAPIServerIsKnownByItsHandshake(t *testing.T) {
	tier.More(t, "bash")
	if _, err := exec.LookPath("bash"); err != nil {
		t.Skip("there is no bash")
	}
	ask := func(address net.Addr) string {
		t.Helper()
		host, port, err := net.SplitHostPort(address.String())
		require.NoError(t, err)
		out, err := exec.CommandContext(t.Context(), "/bin/sh", "-c", engine.PreludeScript+endpointScript+"p_endpoint "+host+" "+port+"\n").Output()
		require.NoError(t, err)
		return string(out)
	}
	api := httptest.NewUnstartedServer(nil)
	api.Config.ErrorLog = log.New(io.Discard, "", 0)
	api.StartTLS()
	assert.Equal(t, "endpoint\ttls\n", ask(api.Listener.Addr()))
	plain := httptest.NewServer(nil)
	defer plain.Close()
	assert.Empty(t, ask(plain.Listener.Addr()))
	closes, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer func() { _ = closes.Close() }()
	go func() {
		for {
			c, err := closes.Accept()
			if err != nil {
				return
			}
			_ = c.Close()
		}
	}()
	assert.Empty(t, ask(closes.Addr()), "a load balancer without a machine behind it")
	gone := api.Listener.Addr()
	api.Close()
	assert.Empty(t, ask(gone))
}
