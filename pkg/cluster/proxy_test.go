package cluster

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/openpai/paictl/pkg/cluster/engine"
	"github.com/openpai/paictl/pkg/cluster/phases"
	"github.com/openpai/paictl/pkg/config"
	"github.com/openpai/paictl/pkg/secret"
)

// TestAMachinesProxyReachesNoProgram checks that the prelude unsets the proxy. All machines of a lab set a proxy for their users, and the stubs
// fail if the proxy is set.
func TestAMachinesProxyReachesNoProgram(t *testing.T) {
	t.Parallel()
	l := newLab(t, 1, 1)
	l.mustUp()
	assert.Contains(t, strings.Join(l.host("m1").calls(), "\n"), "kubeadm init")
	for _, h := range l.hosts {
		for _, e := range h.server.Execs() {
			if strings.Contains(e.Body, "kubeadm ") || strings.Contains(e.Body, "kubectl ") {
				assert.Contains(t, e.Body, "\nunset http_proxy https_proxy ")
			}
		}
	}
}

func TestTheProxyIsContainerdsAndItsPasswordStaysThere(t *testing.T) {
	t.Parallel()
	const password = "s3cr3t-of-the-proxy"
	l := newLab(t, 1, 1)
	k := &l.conf.Kubernetes.Kubernetes
	l.made()
	assert.Equal(t, "# Written by paictl; change proxy in kubernetes-configuration.yaml instead.\n", l.host("w1").read(phases.ContainerdEnv))

	k.Proxy = config.Proxy{HTTP: "http://10.9.9.9:3128", HTTPS: secret.String("http://u:" + password + "@10.9.9.9:3128"), NoProxy: []string{".example.org"}}
	o := l.mustUp()
	want := ""
	for _, h := range l.hosts {
		want += h.name + " containerd update " + phases.ContainerdEnv + "\n" + h.name + " containerd restart containerd.service its files change\n"
	}
	assert.Equal(t, want, lines(o.changes))
	text, err := json.Marshal(o.events)
	require.NoError(t, err)
	assert.NotContains(t, string(text), password)
	for _, h := range l.hosts {
		assert.Equal(t, `# Written by paictl; change proxy in kubernetes-configuration.yaml instead.
HTTP_PROXY=http://10.9.9.9:3128
HTTPS_PROXY=http://u:`+password+`@10.9.9.9:3128
NO_PROXY=localhost,127.0.0.0/8,kubernetes.default,.svc,.cluster.local,10.254.0.0/16,10.244.0.0/16,10.9.0.1,10.9.0.2,.example.org
`, h.read(phases.ContainerdEnv))
		info, err := os.Stat(h.root + phases.ContainerdEnv)
		require.NoError(t, err)
		assert.Equal(t, os.FileMode(0o600), info.Mode().Perm())
		h.worldReadable(func(path, text string) { assert.NotContains(t, text, password, path) })
		assert.NotContains(t, h.read(engine.StateDir+"/journal"), password)
	}
	assert.Empty(t, l.mustUp().changes)

	k.Proxy = config.Proxy{}
	assert.Equal(t, want, lines(l.mustUp().changes))
	assert.NotContains(t, l.host("w1").read(phases.ContainerdEnv), "PROXY=")
}

func TestAptAloneUsesTheProxyAndSaysItToNoOne(t *testing.T) {
	f := newFakeRoot(t)
	calls := filepath.Join(f.bin, "calls")
	f.stub("apt-get", `echo "$* $http_proxy $https_proxy $no_proxy" >>`+calls)
	s := preflightSpec(t, 1)
	s.Config.Kubernetes.Kubernetes.Proxy = config.Proxy{HTTP: "http://10.9.9.9:1", HTTPS: "http://10.9.9.9:2"}
	cmd := exec.CommandContext(t.Context(), "/bin/sh", "-s")
	cmd.Env = []string{"PATH=" + f.bin + ":" + os.Getenv("PATH"), "PAICTL_ROOT=" + f.root, "http_proxy=" + machineProxy, "NO_PROXY=x"}
	cmd.Stdin = strings.NewReader(engine.ApplyProgram("run1", phasePreflight, engine.RepairScript+phases.AptProxy(s)+"p_packages mount\necho \"after: ${http_proxy-}${https_proxy-}${no_proxy-}${NO_PROXY-}.\"\n"))
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, "%s", out)
	assert.Contains(t, string(out), "after: .")
	got, err := os.ReadFile(calls)
	require.NoError(t, err)
	arguments, env, _ := strings.Cut(string(got), " install mount ")
	assert.NotContains(t, arguments, "10.9.9.9", "a command line is read by everyone")
	assert.True(t, strings.HasPrefix(env, "http://10.9.9.9:1 http://10.9.9.9:2 localhost,127.0.0.0/8,"), env)
}
