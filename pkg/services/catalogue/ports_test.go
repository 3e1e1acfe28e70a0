package catalogue

import (
	"strings"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/openpai/paictl/pkg/config"
)

func TestAServiceOnAPortOfTheMachinesThatIsTakenIsRefused(t *testing.T) {
	for name, c := range map[string]struct{ sections, kubernetes, want string }{
		"free":                 {"node-exporter: {service: {port: 9100}}", "", ""},
		"the kubelet's":        {"node-exporter: {service: {port: 10250}}", "", "node-exporter.service.port: port 10250 of the machines is used by kubelet [services/port]"},
		"kube-proxy's":         {"node-exporter: {service: {port: 10256}}", "", "port 10256 of the machines is used by kube-proxy"},
		"etcd's":               {"node-exporter: {service: {port: 2380}}", "", "port 2380 of the machines is used by etcd"},
		"the API's":            {"node-exporter: {service: {port: 7443}}", "api-servers-port: 7443", "port 7443 of the machines is used by the API server"},
		"the kubelet's, moved": {"node-exporter: {service: {port: 9100}}", "extra: {kubelet: {port: 9100}}", "port 9100 of the machines is used by kubelet (extra.kubelet.port)"},
		"left by the kubelet":  {"node-exporter: {service: {port: 10250}}", "extra: {kubelet: {port: 10350}}", ""},
		"a node port":          {"node-exporter: {service: {port: 31000}}", "", "port 31000 is in the range of node ports"},
		"of a disabled one":    {"node-exporter: {enabled: false, service: {port: 10250}}", "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			cfg, err := parseFiles(map[string]string{
				config.LayoutFile: testLayout, config.RolesFile: testRoles, config.ServicesFile: testServices + c.sections + "\n",
				config.KubernetesFile: "kubernetes:\n  pod-cidr: 10.244.0.0/16\n  " + c.kubernetes + "\n",
			})
			require.NoError(t, err)
			got := strings.Join(lines(Check(cfg)), "\n")
			if c.want == "" {
				assert.Empty(t, got)
				return
			}
			assert.Contains(t, got, c.want)
		})
	}
}

func TestTwoServicesOnOnePortAreBothNamed(t *testing.T) {
	chart := func(name string) *fstest.MapFile {
		return &fstest.MapFile{Data: []byte("apiVersion: v2\nname: " + name + "\nversion: 0.1.0\nannotations:\n  paictl.openpai.org/placement: all\n  paictl.openpai.org/host-ports: port\n")}
	}
	values := &fstest.MapFile{Data: []byte("port: 9100\n")}
	_, findings, err := Load(t.Context(), parse(t, "a: {port: 9200}\nb: {port: 9200}\n"), Options{Charts: fstest.MapFS{
		"charts/a/Chart.yaml": chart("a"), "charts/a/values.yaml": values, "charts/b/Chart.yaml": chart("b"), "charts/b/values.yaml": values,
	}})
	require.NoError(t, err)
	require.Len(t, findings, 1)
	assert.Equal(t, "b.port", findings[0].Field)
	assert.Equal(t, "port 9200 of the machines is used by a (a.port, line 7)", findings[0].Message)
}
