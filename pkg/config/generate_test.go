package config

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

func write(t *testing.T, dir, name, text string) string {
	t.Helper()
	p := filepath.Join(dir, name)
	require.NoError(t, os.WriteFile(p, []byte(text), 0o600))
	return p
}

func TestOfflineGenerationWritesAFolderThatLoads(t *testing.T) {
	dir := t.TempDir()
	qs := write(t, dir, "quick-start.yaml", "machines: [10.0.0.1, {hostip: 10.0.0.2, ssh-port: 2222, labels: {rack: a}}]\nssh-username: pai\nssh-password: 'a\"b\\c#: x'\ndns: 10.0.0.53\n")
	out := filepath.Join(dir, "cluster")
	g, err := Generate(t.Context(), Generation{QuickStart: qs, OutDir: out, Offline: true})
	require.NoError(t, err)
	require.Empty(t, g.Warnings)
	for _, n := range Files() {
		b, _ := os.ReadFile(filepath.Join(out, n))
		t.Logf("%s\n%s", n, b)
	}
	c, findings, err := LoadValid(out)
	require.NoError(t, err)
	t.Log(findings)
	require.Equal(t, `a"b\c#: x`, c.Layout.SSH.Password.Reveal())
}
