package preflight

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/openpai/paictl/pkg/cluster/answer"
	"github.com/openpai/paictl/pkg/config"
	"github.com/openpai/paictl/pkg/layout"
)

func TestEachCheckHasANameOfItsOwnAndSaysWhatItLooksAt(t *testing.T) {
	seen := map[string]bool{}
	for _, c := range Checks() {
		assert.False(t, seen[c.ID], c.ID)
		seen[c.ID] = true
		assert.NotEmpty(t, c.Examines, c.ID)
		assert.NotEqual(t, c.Host == nil, c.All == nil, "%s looks at one host, or at all", c.ID)
	}
}

// answers returns the output of a machine by section, without an engine.
func answers(t *testing.T, journal string, probe ...string) map[string]answer.Answer {
	t.Helper()
	sections, err := answer.Sections([]byte("@@ facts\npaictl-facts\t1\nhostname\tw1\nmachine-id\tid\nuid\t1000\narch\tx86_64\nswap-kib\t1024\nend\tok\n" +
		"@@ journal\n" + journal + "@@ " + Section + "\n" + strings.Join(probe, "\n") + "\nend\tok\n"))
	require.NoError(t, err)
	return sections
}

func TestAMachineIsCheckedWithoutAnEngine(t *testing.T) {
	node := &Node{Machine: layout.Machine{Hostname: "w1", HostIP: "10.0.0.11"}}
	c := &Cluster{Nodes: []*Node{node}, Kubernetes: &config.KubernetesSpec{Version: "v1.36.3", APIServerPort: 6443}, Endpoint: "10.0.0.1:6443"}
	found := func(sections map[string]answer.Answer) (out []string) {
		h, broken := Read(c, node, sections)
		require.Nil(t, broken)
		for _, f := range Run(c, []*Host{h}) {
			out = append(out, f.Check+" "+f.Severity)
		}
		return out
	}
	fresh := found(answers(t, "", "packages\tapt-get", "missing\tip"))
	assert.Contains(t, fresh, "commands error")
	assert.Contains(t, fresh, "sudo error")
	assert.Contains(t, fresh, "swap warning")

	member := found(answers(t, "journal\tjoin\tdone\n", "packages\tapt-get", "missing\tip", "exists\t/var/lib/paictl/member", "exists\t/etc/kubernetes/kubelet.conf"))
	assert.Contains(t, member, "commands error")
	assert.NotContains(t, member, "swap warning", "a member is not asked again whether it is fit to join")
}

func TestAnAnswerThatCannotBeReadIsAFinding(t *testing.T) {
	node := &Node{Machine: layout.Machine{Hostname: "w1"}}
	sections := answers(t, "")
	sections[Section] = answer.Answer{Failed: "2"}
	_, broken := Read(&Cluster{}, node, sections)
	require.NotNil(t, broken)
	assert.Equal(t, "probe", broken.Check)
	assert.Contains(t, broken.Message, "exit status 2")
}

// The folders may be mount points or links of the operator.
func TestTheRemedyForAnotherKubernetesEmptiesFoldersAndKeepsThem(t *testing.T) {
	c := &Cluster{Kubernetes: &config.KubernetesSpec{}}
	h, broken := Read(c, &Node{Machine: layout.Machine{Hostname: "w1"}}, answers(t, "", "exists\t/var/lib/kubelet/config.yaml"))
	require.Nil(t, broken)
	found := checkKubernetes(h)
	require.Len(t, found, 1)
	_, find, ok := strings.Cut(found[0].Remedy, "; find ")
	require.True(t, ok, found[0].Remedy)

	root := t.TempDir()
	in := func(path string) string { return filepath.Join(root, path) }
	for _, file := range []string{
		"etc/cni/net.d/10.conflist", "etc/kubernetes/pki/ca.key", "etc/kubernetes/admin.conf", "var/lib/etcd/member/snap/db",
		"data/kubelet/config.yaml", "data/kubelet/pods/a/token", "elsewhere/file",
	} {
		require.NoError(t, os.MkdirAll(filepath.Dir(in(file)), 0o755))
		require.NoError(t, os.WriteFile(in(file), []byte("x"), 0o600))
	}
	require.NoError(t, os.Symlink(in("data/kubelet"), in("var/lib/kubelet")))
	require.NoError(t, os.Symlink(in("elsewhere"), in("data/kubelet/link")))
	command := "find " + strings.ReplaceAll(find, " /", " "+root+"/")
	for word := range strings.FieldsSeq(command) {
		require.True(t, !strings.Contains(word, "/") || strings.HasPrefix(word, root+"/"), "%s would delete files of this machine", command)
	}
	out, err := exec.CommandContext(t.Context(), "/bin/sh", "-c", command).CombinedOutput()
	require.NoError(t, err, "%s: %s", command, out)

	for _, folder := range []string{"etc/cni/net.d", "etc/kubernetes", "var/lib/etcd", "data/kubelet"} {
		entries, err := os.ReadDir(in(folder))
		require.NoError(t, err)
		assert.Empty(t, entries, folder)
	}
	target, err := os.Readlink(in("var/lib/kubelet"))
	require.NoError(t, err)
	assert.Equal(t, in("data/kubelet"), target)
	assert.FileExists(t, in("elsewhere/file"), "a link inside is removed, and not followed")
}
