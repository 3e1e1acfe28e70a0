package cluster

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/openpai/paictl/pkg/cluster/engine"
	"github.com/openpai/paictl/pkg/cluster/phases"
)

func TestPodsDoNotGetAllOfAMachine(t *testing.T) {
	s := testSpec(t, 1, 0)
	s.Config.Kubernetes.Kubernetes.Extra.Kubelet = map[string]any{"systemReserved": map[string]any{"memory": "8Gi"}}
	conf := phases.KubeletSettings(s.Fresh())
	assert.Equal(t, map[string]any{"cpu": "100m", "memory": "8Gi", "pid": "1000"}, conf["systemReserved"], "the operator's word counts")
	assert.Equal(t, map[string]any{"cpu": "100m", "memory": "512Mi", "ephemeral-storage": "1Gi", "pid": "1000"}, conf["kubeReserved"])
	assert.Equal(t, 32768, conf["podPidsLimit"], "a pod of endless processes stops there")
}

func TestTheKubeletGetsAtMostThreeNameServers(t *testing.T) {
	s := testSpec(t, 1, 0)
	k := &s.Config.Kubernetes.Kubernetes
	body := func(path string) string {
		res, err := phases.Named(s.Fresh(), phases.PhaseKubelet).(interface {
			Resources(n *engine.Node) (engine.Resources, error)
		}).Resources(s.Nodes[0])
		require.NoError(t, err)
		for _, f := range res.Files {
			if f.Path == path {
				return string(f.Body)
			}
		}
		return ""
	}
	k.ClusterDNS = []string{"10.0.0.53", "10.0.0.54", "10.0.0.55", "10.0.0.56"}
	assert.Equal(t, "nameserver 10.0.0.53\nnameserver 10.0.0.54\nnameserver 10.0.0.55\n", body(phases.ResolvConf))
	assert.Empty(t, body(phases.ResolvDropIn))
	k.ClusterDNS, k.DNSDomain = nil, "cluster.local"
	assert.Empty(t, body(phases.ResolvConf))
	assert.Contains(t, body(phases.ResolvDropIn), "[Service]\nExecStartPre="+phases.ResolvScript+" cluster.local\n")
	assert.NotEmpty(t, body(phases.ResolvScript))
	assert.Equal(t, phases.MachineResolvConf, phases.KubeletSettings(s.Fresh())["resolvConf"])
	k.Extra.Kubelet = map[string]any{"resolvConf": "/etc/mine"}
	assert.Equal(t, "/etc/mine", phases.KubeletSettings(s.Fresh())["resolvConf"], "the operator's word counts")
}

func TestAMachinesOwnNameServersReachTheKubeletWithinItsLimits(t *testing.T) {
	const etc, resolved = "/etc/resolv.conf", "/run/systemd/resolve/resolv.conf"
	many := "search"
	for i := range 40 {
		many += fmt.Sprintf(" d%02d.example.org", i)
	}
	long := "search " + strings.Repeat(strings.Repeat("x", 60)+".example.org ", 28)
	for name, c := range map[string]struct {
		files map[string]string
		want  string // of the kubelet's file
		link  string // the file that it is
	}{
		"within the limits": {map[string]string{etc: "search a.b c.d\nnameserver 10.0.0.1\noptions ndots:2\n"}, "search a.b c.d\nnameserver 10.0.0.1\noptions ndots:2\n", etc},
		"four servers": {map[string]string{etc: "search a.b\nnameserver 10.0.0.1\nnameserver 10.0.0.2\nnameserver 10.0.0.1\nnameserver 10.0.0.3\nnameserver 10.0.0.4\noptions edns0\n"},
			"options edns0\nnameserver 10.0.0.1\nnameserver 10.0.0.2\nnameserver 10.0.0.3\nsearch a.b\n", ""},
		"the servers behind the stub": {map[string]string{etc: "nameserver 127.0.0.53\n", resolved: "nameserver 10.0.0.1\n"}, "nameserver 10.0.0.1\n", resolved},
		"a stub beside a server":      {map[string]string{etc: "nameserver 127.0.0.53\nnameserver 10.0.0.1\n"}, "nameserver 10.0.0.1\n", ""},
		"40 domains":                  {map[string]string{etc: many + "\nnameserver 10.0.0.1\n"}, "nameserver 10.0.0.1\n" + strings.Join(strings.Fields(many)[:30], " ") + "\n", ""},
		"28 long domains":             {map[string]string{etc: long + "\nnameserver 10.0.0.1\n"}, "nameserver 10.0.0.1\n" + strings.Join(strings.Fields(long)[:27], " ") + "\n", ""},
		"no settings at all":          {nil, "", "/dev/null"},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFakeRoot(t)
			for p, body := range c.files {
				f.file(p, body)
			}
			require.NoError(t, os.MkdirAll(f.root+"/run", 0o755))
			for range 2 { // also if the file exists
				cmd := exec.CommandContext(t.Context(), "/bin/sh", "-s", "cluster.local")
				cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "PAICTL_ROOT=" + f.root}
				cmd.Stdin = bytes.NewReader(phases.KubeletResolvConf)
				out, err := cmd.CombinedOutput()
				require.NoError(t, err, "%s", out)
			}
			got, err := os.ReadFile(f.root + phases.MachineResolvConf)
			require.NoError(t, err)
			assert.Equal(t, c.want, string(got))
			to, _ := os.Readlink(f.root + phases.MachineResolvConf)
			assert.Equal(t, c.link, strings.TrimPrefix(to, f.root))
		})
	}
}

func TestLogsOfAFastWriterAreRotatedOften(t *testing.T) {
	s := testSpec(t, 1, 0)
	conf := phases.KubeletSettings(s.Fresh())
	assert.Equal(t, "32Mi", conf["containerLogMaxSize"])
	assert.Equal(t, "3s", conf["containerLogMonitorInterval"])
	s.Config.Kubernetes.Kubernetes.Extra.Kubelet = map[string]any{"containerLogMaxSize": "1Gi"}
	assert.Equal(t, "1Gi", phases.KubeletSettings(s.Fresh())["containerLogMaxSize"], "the operator's word counts")
}
