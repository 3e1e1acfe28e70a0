package session

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"

	"github.com/openpai/paictl/pkg/config"
	"github.com/openpai/paictl/pkg/config/store"
	"github.com/openpai/paictl/pkg/services/catalogue"
)

func TestTheFolderIsReadWhenItIsCompared(t *testing.T) {
	dir, files := filepath.Join(t.TempDir(), "my cluster"), map[string][]byte{}
	require.NoError(t, os.Mkdir(dir, 0o700))
	for _, name := range config.Files() {
		b, err := os.ReadFile(filepath.Join("../../config/store/testdata/cluster", name))
		require.NoError(t, err)
		files[name] = b
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), b, 0o600))
	}
	client := fake.NewClientset()
	s := store.New(client)
	s.SecretPaths = catalogue.SecretPaths
	d, err := s.Draft(t.Context(), store.Candidate{Dir: dir, Files: files})
	require.NoError(t, err)
	_, err = s.Push(t.Context(), d, store.Entry{By: "ada@desk"})
	require.NoError(t, err)

	c := pushedCopy(dir)
	assert.Equal(t, "paictl config push -p '"+dir+"'", c.Push)
	cm, err := client.CoreV1().ConfigMaps(c.Namespace).Get(t.Context(), c.Name, metav1.GetOptions{})
	require.NoError(t, err)
	text, err := json.Marshal(cm)
	require.NoError(t, err)
	revision, differ, err := c.Compare(text)
	require.NoError(t, err)
	assert.Equal(t, 1, revision)
	assert.Empty(t, differ)

	require.NoError(t, os.WriteFile(filepath.Join(dir, config.LayoutFile), append(files[config.LayoutFile], "# a node was added\n"...), 0o600))
	_, differ, err = c.Compare(text)
	require.NoError(t, err)
	assert.Equal(t, []string{config.LayoutFile}, differ)

	require.NoError(t, os.Remove(filepath.Join(dir, config.RolesFile)))
	_, _, err = c.Compare(text)
	assert.Error(t, err)
}
