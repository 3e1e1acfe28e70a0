package chart

import (
	"bytes"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"helm.sh/helm/v3/pkg/chart/loader"

	"github.com/openpai/paictl/pkg/cluster/bundle"
	"github.com/openpai/paictl/templates"
)

func files(chartYAML, values string) fstest.MapFS {
	return fstest.MapFS{
		"charts/README.md":                    {Data: []byte("no chart")},
		"charts/hello/Chart.yaml":             {Data: []byte(chartYAML)},
		"charts/hello/values.yaml":            {Data: []byte(values)},
		"charts/hello/templates/_pai.tpl":     {Data: []byte("{{/* shared */}}")},
		"charts/hello/templates/service.yaml": {Data: []byte("kind: Service")},
	}
}

const helloYAML = "apiVersion: v2\nname: hello\nversion: 0.1.0\nannotations: {paictl.openpai.org/placement: master}\n"

func TestAChartSaysWhatItNeeds(t *testing.T) {
	list, err := List(files(helloYAML, `
image: {repository: quay.io/hello/world, tag: v1, digest: sha256:12}
sidecar:
  image: {repository: grafana/grafana, tag: "12.0"}
list: [{repository: quay.io/hello/world, tag: v1, digest: sha256:12}]
own: {repository: "", tag: ""}
`))
	require.NoError(t, err)
	require.Len(t, list, 1)
	assert.Equal(t, "hello", list[0].Name)
	assert.Equal(t, "0.1.0", list[0].Version)
	assert.Equal(t, []string{"master"}, list[0].Roles)
	assert.Equal(t, []Image{
		{Repository: "docker.io/grafana/grafana", Tag: "12.0"},
		{Repository: "quay.io/hello/world", Tag: "v1", Digest: "sha256:12"},
	}, list[0].Images)
	assert.Equal(t, "world", list[0].Images[1].Name())
	assert.Equal(t, "quay.io/hello/world:v1", list[0].Images[1].Ref())
}

func TestRolesAreThoseOfABundle(t *testing.T) {
	for placement, want := range map[string][]string{
		"master": {"master"}, "worker": {"worker"}, "all": nil, "none": nil, "": nil, "master,worker": nil, "storage": nil,
	} {
		list, err := List(files("apiVersion: v2\nname: hello\nversion: 0.1.0\nannotations: {paictl.openpai.org/placement: \""+placement+"\"}\n", ""))
		require.NoError(t, err)
		assert.Equal(t, want, list[0].Roles, placement)
	}
}

func TestNamesGetTheRegistryThatTheyMean(t *testing.T) {
	for name, want := range map[string]string{
		"busybox":               "docker.io/library/busybox",
		"grafana/grafana":       "docker.io/grafana/grafana",
		"quay.io/a/b":           "quay.io/a/b",
		"localhost/a":           "localhost/a",
		"registry:5000/a":       "registry:5000/a",
		"docker.io/library/sth": "docker.io/library/sth",
	} {
		assert.Equal(t, want, withHost(name))
	}
}

func TestAChartThatHelmWouldRefuseIsNamed(t *testing.T) {
	for name, tt := range map[string]struct {
		files fstest.MapFS
		want  string
	}{
		"a different name than its folder": {files("name: other\nversion: 0.1.0\n", ""), `name "other"`},
		"no version":                       {files("name: hello\n", ""), `version ""`},
		"broken YAML":                      {files("name: [", ""), "Chart.yaml"},
		"broken values":                    {files(helloYAML, "a: ["), "values.yaml"},
		"no Chart.yaml":                    {fstest.MapFS{"charts/hello/x": {}}, "Chart.yaml"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := List(tt.files)
			require.ErrorContains(t, err, "read chart hello: ")
			require.ErrorContains(t, err, tt.want)
		})
	}
}

func TestAnArchiveIsAlwaysTheSame(t *testing.T) {
	var archives [][]byte
	for range 2 {
		list, err := List(files(helloYAML, ""))
		require.NoError(t, err)
		data, err := list[0].Archive()
		require.NoError(t, err)
		archives = append(archives, data)
	}
	assert.True(t, bytes.Equal(archives[0], archives[1]))
}

func TestAnArchiveLiesUnderItsVersion(t *testing.T) {
	list, err := List(files(helloYAML, ""))
	require.NoError(t, err)
	a := list[0].Artifact()
	assert.Equal(t, "charts/hello-0.1.0.tgz", a.Path)
	assert.Equal(t, bundle.KindChart, a.Kind)
}

func TestHelmOpensTheArchivesOfAllCharts(t *testing.T) {
	list, err := List(templates.Charts())
	require.NoError(t, err)
	require.NotEmpty(t, list)
	for _, c := range list {
		data, err := c.Archive()
		require.NoError(t, err)
		got, err := loader.LoadArchive(bytes.NewReader(data))
		require.NoError(t, err, c.Name)
		require.NoError(t, got.Validate(), c.Name)
		assert.Equal(t, c.Name, got.Name())
		assert.Equal(t, c.Version, got.Metadata.Version)
		assert.NotEmpty(t, got.Templates, c.Name)
	}
}
