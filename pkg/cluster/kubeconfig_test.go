package cluster

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/client-go/tools/clientcmd"
	api "k8s.io/client-go/tools/clientcmd/api"

	"github.com/openpai/paictl/pkg/cluster/paths"
	"github.com/openpai/paictl/pkg/hint"
)

const adminConf = `apiVersion: v1
kind: Config
clusters:
- {name: kubernetes, cluster: {server: "https://10.0.0.1:6443", certificate-authority-data: bmV3LWNh}}
users:
- {name: kubernetes-admin, user: {client-certificate-data: bmV3LWNlcnQ=, client-key-data: bmV3LWtleQ==}}
contexts:
- {name: kubernetes-admin@kubernetes, context: {cluster: kubernetes, user: kubernetes-admin}}
current-context: kubernetes-admin@kubernetes
`

func fetched(t *testing.T) *api.Config {
	t.Helper()
	c, err := renameKubeconfig([]byte(adminConf), "pai", "https://10.0.0.9:6443")
	require.NoError(t, err)
	return c
}

func readBack(t *testing.T, file string) *api.Config {
	t.Helper()
	c, err := clientcmd.LoadFromFile(file)
	require.NoError(t, err)
	return c
}

func TestAFetchedKubeconfigIsNamedAfterTheCluster(t *testing.T) {
	c := fetched(t)
	assert.Equal(t, "pai", c.CurrentContext)
	assert.Equal(t, "https://10.0.0.9:6443", c.Clusters["pai"].Server, "the address for all, not the machine's own")
	assert.Equal(t, "new-key", string(c.AuthInfos["pai-admin"].ClientKeyData))
	assert.Equal(t, "pai-admin", c.Contexts["pai"].AuthInfo)
	assert.Len(t, c.Clusters, 1)
}

func TestAnIncompleteKubeconfigIsAnError(t *testing.T) {
	for name, text := range map[string]string{
		"not YAML":       "{",
		"no context":     "apiVersion: v1\nkind: Config\n",
		"user not there": "apiVersion: v1\nkind: Config\ncurrent-context: a\ncontexts:\n- {name: a, context: {cluster: c, user: u}}\nclusters:\n- {name: c, cluster: {server: x}}\n",
	} {
		_, err := renameKubeconfig([]byte(text), "pai", "https://x")
		require.Error(t, err, name)
	}
}

func TestMergeMakesANewFileThatOnlyItsOwnerReads(t *testing.T) {
	file := filepath.Join(t.TempDir(), ".kube", "config")
	res, err := MergeKubeconfig(file, fetched(t), false)
	require.NoError(t, err)
	assert.Equal(t, MergeResult{File: file, Context: "pai", Created: true}, res)
	info, err := os.Stat(file)
	require.NoError(t, err)
	assert.Equal(t, os.FileMode(0o600), info.Mode().Perm())
	assert.Empty(t, readBack(t, file).CurrentContext, "nobody asked for a current context")
}

func TestMergeReplacesItsOwnEntriesWholeAndKeepsAllOthers(t *testing.T) {
	file := filepath.Join(t.TempDir(), "config")
	require.NoError(t, os.WriteFile(file, []byte(`apiVersion: v1
kind: Config
preferences: {}
clusters:
- {name: pai, cluster: {server: "https://old", certificate-authority: old-ca.crt, insecure-skip-tls-verify: true}}
- {name: home, cluster: {server: "https://home", certificate-authority: home.crt}}
users:
- {name: pai-admin, user: {token: old-token, exec: {apiVersion: client.authentication.k8s.io/v1, command: old, interactiveMode: Never}}}
- {name: me, user: {token: mine}}
contexts:
- {name: pai, context: {cluster: pai, user: pai-admin, namespace: research}}
- {name: home, context: {cluster: home, user: me}}
current-context: home
`), 0o644))
	res, err := MergeKubeconfig(file, fetched(t), false)
	require.NoError(t, err)
	assert.Equal(t, MergeResult{File: file, Context: "pai", Replaced: true, Current: "home"}, res)

	text, err := os.ReadFile(file)
	require.NoError(t, err)
	assert.NotContains(t, string(text), "old", "no authority, key or token of the old entry survives")
	assert.NotContains(t, string(text), "insecure")
	assert.Contains(t, string(text), "certificate-authority: home.crt", "a relative path stays as it was")
	c := readBack(t, file)
	assert.Equal(t, "home", c.CurrentContext)
	assert.Equal(t, "mine", c.AuthInfos["me"].Token)
	assert.Equal(t, "research", c.Contexts["pai"].Namespace, "the operator's choice")
	info, err := os.Stat(file)
	require.NoError(t, err)
	assert.Equal(t, os.FileMode(0o600), info.Mode().Perm(), "it holds a key now")

	res, err = MergeKubeconfig(file, fetched(t), true)
	require.NoError(t, err)
	assert.Equal(t, "pai", res.Current)
	assert.Equal(t, "pai", readBack(t, file).CurrentContext)
}

func TestMergeFollowsALinkAndLeavesIt(t *testing.T) {
	dir := t.TempDir()
	real, link := filepath.Join(dir, "real"), filepath.Join(dir, "config")
	require.NoError(t, os.WriteFile(real, nil, 0o600))
	require.NoError(t, os.Symlink(real, link))
	_, err := MergeKubeconfig(link, fetched(t), false)
	require.NoError(t, err)
	info, err := os.Lstat(link)
	require.NoError(t, err)
	assert.NotZero(t, info.Mode()&os.ModeSymlink)
	assert.Contains(t, readBack(t, real).Contexts, "pai")
}

func TestMergeLeavesAFileThatItCannotRead(t *testing.T) {
	file := filepath.Join(t.TempDir(), "config")
	require.NoError(t, os.WriteFile(file, []byte("clusters: 7\n"), 0o600))
	_, err := MergeKubeconfig(file, fetched(t), false)
	require.ErrorContains(t, err, "is not a kubeconfig")
	assert.Contains(t, hint.Of(err), "--file")
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	assert.Equal(t, "clusters: 7\n", string(text))
}

func TestKubeconfigOfAMachineWithoutAClusterSaysWhatToRun(t *testing.T) {
	t.Parallel()
	l := newLab(t, 1, 0)
	o := l.options()
	_, err := Kubeconfig(t.Context(), l.spec(), o)
	require.ErrorContains(t, err, "there is no cluster on m1 yet")
	assert.Equal(t, "run first: paictl cluster up", hint.Of(err))

	l.host("m1").write("/etc/kubernetes/admin.conf", strings.ReplaceAll(adminConf, "10.0.0.1", "10.9.0.1"))
	l.host("m1").write(paths.Member, "")
	c, err := Kubeconfig(t.Context(), l.spec(), o)
	require.NoError(t, err)
	assert.Equal(t, "https://10.9.0.1:6443", c.Clusters["pai"].Server)
}
