package job

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/openpai/paictl/pkg/cmdutil"
)

func TestACommandOnManyJobsHasOneClient(t *testing.T) {
	file := filepath.Join(t.TempDir(), "kubeconfig")
	require.NoError(t, os.WriteFile(file, []byte(`{apiVersion: v1, kind: Config, current-context: test, contexts: [{name: test, context: {cluster: test, user: test}}], users: [{name: test, user: {}}], clusters: [{name: test, cluster: {server: "http://127.0.0.1:1"}}]}`), 0o600))
	t.Setenv("KUBECONFIG", file)
	t.Setenv("XDG_CONFIG_HOME", t.TempDir())
	f, fl := cmdutil.New("v1"), &Flags{}
	first, err := fl.open(f)
	require.NoError(t, err)
	second, err := fl.open(f)
	require.NoError(t, err)
	assert.Same(t, first, second)
}
