package config

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/openpai/paictl/pkg/config/strictyaml"
)

func TestAProxysPasswordIsShownToNoOne(t *testing.T) {
	const password = "s3cr3t-of-the-proxy"
	files := goodFiles()
	files[KubernetesFile] += "  proxy: {http: 'http://u:" + password + "@10.0.0.9:3128', https: 'http://u:" + password + "@10.0.0.9:3128', no-proxy: [.example.org, '*.corp', 10.0.0.0/8, 'registry:5000']}\n"
	dir := folder(t, files)
	require.NoError(t, os.Chmod(filepath.Join(dir, KubernetesFile), 0o600))
	findings, err := ValidateDir(dir)
	require.NoError(t, err)
	assert.Empty(t, findings)
	c, err := Load(dir)
	require.NoError(t, err)
	assert.True(t, c.HoldsSecret(KubernetesFile))
	shown, err := c.Annotated()
	require.NoError(t, err)
	assert.NotContains(t, string(shown), password)
	assert.Contains(t, string(shown), "no-proxy:")

	require.NoError(t, os.Chmod(filepath.Join(dir, KubernetesFile), 0o644))
	findings, err = ValidateDir(dir)
	require.NoError(t, err)
	require.Len(t, findings, 1)
	assert.Equal(t, "file/permissions", findings[0].Rule)
	assert.Equal(t, strictyaml.Warning, findings[0].Severity)

	files[KubernetesFile] = "kubernetes: {proxy: {https: 'ftp://u:" + password + "@x'}}\n"
	findings, err = ValidateDir(folder(t, files))
	require.NoError(t, err)
	assert.NotContains(t, findings.Error(), password)
}

func TestAQuickStartFileSetsTheProxy(t *testing.T) {
	file := filepath.Join(t.TempDir(), "quick-start.yaml")
	require.NoError(t, os.WriteFile(file, []byte("machines: [10.0.0.1]\nssh-username: pai\nssh-password: x\ndns: [10.0.0.53]\nproxy: {https: 'http://u:p@10.0.0.9:3128', no-proxy: [.example.org]}\n"), 0o600))
	out := filepath.Join(t.TempDir(), "out")
	_, err := Generate(t.Context(), Generation{QuickStart: file, OutDir: out, Offline: true})
	require.NoError(t, err)
	c, err := Load(out)
	require.NoError(t, err)
	assert.Equal(t, "http://u:p@10.0.0.9:3128", c.Kubernetes.Kubernetes.Proxy.HTTPS.Reveal())
	assert.Equal(t, []string{".example.org"}, c.Kubernetes.Kubernetes.Proxy.NoProxy)
	info, err := os.Stat(filepath.Join(out, KubernetesFile))
	require.NoError(t, err)
	assert.Equal(t, os.FileMode(0o600), info.Mode().Perm())

	require.NoError(t, os.WriteFile(file, []byte("machines: [10.0.0.1]\nssh-username: pai\nssh-password: x\nproxy: {https: '10.0.0.9:3128'}\n"), 0o600))
	_, err = Generate(t.Context(), Generation{QuickStart: file, OutDir: out, Offline: true, Force: true})
	require.ErrorContains(t, err, "quick-start.yaml:4:16: proxy.https: ")
}
