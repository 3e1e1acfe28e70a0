package catalogue

import (
	"flag"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/openpai/paictl/pkg/config"
)

var update = flag.Bool("update", false, "write the golden files")

// testCharts returns four small charts. storage requires base, metrics requires storage, and ammeter requires metrics.
func testCharts() fs.FS { return os.DirFS("testdata") }

const testLayout = `apiVersion: paictl.openpai.org/v1
kind: Layout
machine-sku:
  cpu: {mem: 16Gi, cpu: {vcore: 8}, os: ubuntu22.04, discovered: true}
machine-list:
  - {hostname: m1, hostip: 10.0.0.1, machine-type: cpu, roles: [master]}
  - {hostname: w1, hostip: 10.0.0.2, machine-type: cpu, roles: [worker]}
  - {hostname: w2, hostip: 10.0.0.3, machine-type: cpu, roles: [worker], taints: ["mine=yes:NoExecute"]}
`

const testRoles = `apiVersion: paictl.openpai.org/v1
kind: RoleDefinition
k8s-role:
  master:
    component-list: [etcd, apiserver, controller-manager, scheduler]
    labels: {pai-master: "true"}
    taints: ["node-role.kubernetes.io/control-plane:NoSchedule"]
  worker: {labels: {pai-worker: "true"}, workloads: true}
  store: {labels: {disk: big, pai-store: "true"}, taints: ["store=only:NoSchedule"]}
  bare: {workloads: true}
`

const testServices = `apiVersion: paictl.openpai.org/v1
kind: ServicesConfiguration
cluster:
  common: {cluster-id: lab, data-path: /data}
  docker-registry: {domain: docker.io, namespace: openpai, docker-tag: v1.2.3}

`

func parse(t testing.TB, sections string) *config.Cluster {
	t.Helper()
	cfg, err := parseFiles(map[string]string{config.LayoutFile: testLayout, config.RolesFile: testRoles, config.ServicesFile: testServices + sections})
	require.NoError(t, err)
	return cfg
}

func parseFiles(files map[string]string) (*config.Cluster, error) {
	data := map[string][]byte{config.KubernetesFile: []byte("apiVersion: paictl.openpai.org/v1\nkind: KubernetesConfiguration\nkubernetes: {pod-cidr: 10.244.0.0/16}\n")}
	for name, text := range files {
		data[name] = []byte(text)
	}
	return config.Parse("conf", data)
}

func load(t testing.TB, sections string) (*Catalogue, config.Findings) {
	t.Helper()
	c, findings, err := Load(t.Context(), parse(t, sections), Options{Charts: testCharts()})
	require.NoError(t, err)
	return c, findings
}

// loadValid returns the catalogue of a configuration with the given sections. The test fails if the configuration has findings.
func loadValid(t testing.TB, sections string) *Catalogue {
	t.Helper()
	c, findings := load(t, sections)
	require.Empty(t, findings)
	return c
}

// lines returns findings in the form for users, with remedies, but without the file name.
func lines(findings config.Findings) []string {
	out := []string{}
	for _, f := range findings {
		out = append(out, strings.TrimPrefix(f.String(), filepath.Join("conf", config.ServicesFile)+":"))
		if f.Remedy != "" {
			out = append(out, "-> "+f.Remedy)
		}
	}
	return out
}

func golden(t *testing.T, name string, got []byte) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		require.NoError(t, os.WriteFile(path, got, 0o644))
	}
	want, err := os.ReadFile(path)
	require.NoError(t, err)
	assert.Equal(t, string(want), string(got), "go test -update writes it anew")
}
