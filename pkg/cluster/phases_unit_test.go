package cluster

import (
	"fmt"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/openpai/paictl/pkg/cluster/engine"
	"github.com/openpai/paictl/pkg/cluster/phases"
	"github.com/openpai/paictl/pkg/config"
)

func testSpec(t testing.TB, masters, workers int) *engine.Spec {
	t.Helper()
	quick := "ssh-username: root\ndns: 10.9.0.53\nmachines:\n"
	for i := range masters + workers {
		name, role := fmt.Sprintf("m%d", i+1), "master"
		if i >= masters {
			name, role = fmt.Sprintf("w%d", i-masters+1), "worker"
		}
		quick += fmt.Sprintf("  - {hostip: 10.9.%d.%d, hostname: %s, roles: [%s]}\n", i/250, i%250+1, name, role)
	}
	s, err := engine.NewSpec(configure(t, t.TempDir(), quick), newBundle(t))
	require.NoError(t, err)
	return s
}

func TestImagesHaveTheNamesThatTheConfigurationGivesThem(t *testing.T) {
	s := &engine.Spec{Config: &config.Cluster{}}
	s.Config.Kubernetes.Kubernetes.DockerRegistry = "mirror.example/k8s"
	s.Config.Services.Cluster.DockerRegistry = config.DockerRegistry{Domain: "harbor.example", Namespace: "pai"}
	for ref, want := range map[string]string{
		"registry.k8s.io/pause:3.10":                                    "mirror.example/k8s/pause:3.10",
		"registry.k8s.io/coredns/coredns:v1":                            "mirror.example/k8s/coredns/coredns:v1",
		"registry.k8s.io/kube-state-metrics/kube-state-metrics:v2.19.0": "registry.k8s.io/kube-state-metrics/kube-state-metrics:v2.19.0",
		"docker.io/openpai/pai-watchdog:v1":                             "harbor.example/pai/pai-watchdog:v1",
		"quay.io/prometheus/prometheus:v3.15.0":                         "quay.io/prometheus/prometheus:v3.15.0",
	} {
		assert.Equal(t, want, phases.ImageRef(s, ref))
	}
}

func TestConfigurationsAreRenderedAsTheyAlwaysWere(t *testing.T) {
	s := testSpec(t, 3, 1)
	k := &s.Config.Kubernetes.Kubernetes
	k.APIEndpoint, k.LoadBalanceIP, k.APIServerCertSANs = "", "10.9.0.100", []string{"pai.example.org", "10.9.0.1"}
	k.Extra.Kubelet = map[string]any{"maxPods": 200, "failSwapOn": false}
	k.Extra.KubeProxy = map[string]any{"mode": "iptables"}
	k.Extra.Kubeadm = map[string]any{"scheduler": map[string]any{"extraArgs": phases.Args("v", "4")}}
	k.Extra.Containerd = map[string]any{"debug": map[string]any{"level": "debug"}}
	conf, err := phases.KubeadmConfig(s.Fresh(), s.Nodes[0])
	require.NoError(t, err)
	golden(t, "kubeadm.yaml", string(conf))
	joined, err := phases.JoinConfig(s.Fresh(), s.Nodes[1], &engine.Ticket{Token: "abcdef.0123456789abcdef", CaHash: "sha256:aa", CertificateKey: "bb"})
	require.NoError(t, err)
	golden(t, "join-master.yaml", string(joined))
	joined, err = phases.JoinConfig(s.Fresh(), s.Nodes[3], &engine.Ticket{Token: "abcdef.0123456789abcdef", CaHash: "sha256:aa"})
	require.NoError(t, err)
	golden(t, "join-worker.yaml", string(joined))
	conf, err = phases.Named(s.Fresh(), phases.PhaseContainerd).(interface{ Config() ([]byte, error) }).Config()
	require.NoError(t, err)
	golden(t, "containerd.toml", string(conf))
	conf, err = phases.Named(s.Fresh(), phases.PhaseNetwork).(interface{ Manifest() ([]byte, error) }).Manifest()
	require.NoError(t, err)
	golden(t, "flannel.yaml", string(conf))
	assert.Equal(t, "Swap", phases.IgnoredChecks(s))
	assert.True(t, filepath.IsAbs(s.Bundle.Dir()))
}
