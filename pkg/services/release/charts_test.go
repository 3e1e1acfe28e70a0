package release

import (
	"io/fs"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"helm.sh/helm/v3/pkg/chart"
	"helm.sh/helm/v3/pkg/chart/loader"

	"github.com/openpai/paictl/templates"
)

func embedded(t *testing.T) map[string]*chart.Chart {
	t.Helper()
	out := map[string]*chart.Chart{}
	folders, err := fs.ReadDir(templates.Charts(), "charts")
	require.NoError(t, err)
	for _, f := range folders {
		if !f.IsDir() {
			continue
		}
		var files []*loader.BufferedFile
		root := "charts/" + f.Name()
		require.NoError(t, fs.WalkDir(templates.Charts(), root, func(path string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() {
				return err
			}
			raw, err := fs.ReadFile(templates.Charts(), path)
			files = append(files, &loader.BufferedFile{Name: strings.TrimPrefix(path, root+"/"), Data: raw})
			return err
		}))
		out[f.Name()], err = loader.LoadFiles(files)
		require.NoError(t, err, f.Name())
	}
	return out
}

// Fields that the API server adds must not look like changes.
func TestOurOwnChartsAreUnchangedTheSecondTime(t *testing.T) {
	w := newWorld(t)
	charts := embedded(t)
	needed := map[string]map[string]any{
		"grafana": {"adminPassword": "not-a-real-password"},
		"cluster-backup": {"to": "s3://backups/pai", "recipients": []any{"age1ql3z7hjy54pw3hyww5ayyfg7zqgvc7w3j2elw8zmrj2kg5sfn9aqmcac8p"},
			"credentialsSecret": "cluster-backup-credentials"},
	}
	names := []string{"cluster-configuration"}
	for name := range charts {
		if name != names[0] {
			names = append(names, name)
		}
	}
	for _, name := range names {
		r := Request{Name: name, Namespace: w.namespace, Chart: charts[name], Values: needed[name]}
		out, err := w.manager.Apply(t.Context(), r)
		if !assert.NoError(t, err) {
			continue
		}
		assert.Equal(t, Installed, out.Action)
		plan, err := w.manager.Plan(t.Context(), r)
		require.NoError(t, err)
		assert.Equal(t, Plan{Action: Unchanged}, plan, name)
	}
	for _, name := range names {
		assert.NoError(t, w.manager.Uninstall(t.Context(), w.namespace, name))
	}
}
