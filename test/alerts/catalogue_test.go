package alerts

import (
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"gopkg.in/yaml.v3"

	"github.com/openpai/paictl/pkg/config"
	"github.com/openpai/paictl/pkg/services/catalogue"
)

// cluster is a whole configuration without the sections of services.
var cluster = map[string]string{
	config.LayoutFile: `apiVersion: paictl.openpai.org/v1
kind: Layout
machine-sku:
  cpu: {mem: 16Gi, cpu: {vcore: 8}, os: ubuntu22.04, discovered: true}
machine-list:
  - {hostname: m1, hostip: 10.0.0.1, machine-type: cpu, roles: [master]}
`,
	config.RolesFile: `apiVersion: paictl.openpai.org/v1
kind: RoleDefinition
k8s-role:
  master: {component-list: [etcd, apiserver, controller-manager, scheduler], labels: {pai-master: "true"}}
`,
	config.KubernetesFile: `apiVersion: paictl.openpai.org/v1
kind: KubernetesConfiguration
kubernetes: {pod-cidr: 10.244.0.0/16}
`,
	config.ServicesFile: `apiVersion: paictl.openpai.org/v1
kind: ServicesConfiguration
cluster:
  common: {cluster-id: lab, data-path: /data}
  docker-registry: {domain: docker.io, namespace: openpai, docker-tag: v1.2.3}
`,
}

// service loads a service with the given section in the configuration.
func service(t *testing.T, name, section string) *catalogue.Service {
	t.Helper()
	data := map[string][]byte{}
	for file, text := range cluster {
		if file == config.ServicesFile {
			text += name + ":\n" + indent(section)
		}
		data[file] = []byte(text)
	}
	cfg, err := config.Parse("conf", data)
	require.NoError(t, err)
	c, findings, err := catalogue.Load(t.Context(), cfg, catalogue.Options{})
	require.NoError(t, err)
	require.Empty(t, findings)
	return c.Get(name)
}

func indent(text string) string {
	return regexp.MustCompile(`(?m)^`).ReplaceAllString(strings.TrimSpace(text), "  ") + "\n"
}

var credentialFile = regexp.MustCompile(`/etc/alertmanager/credentials/(\S+)`)

// paictl removes the secrets from the section of the configuration, and stores them under the names that the configuration of Alertmanager reads.
func TestEverySecretOfASectionIsAFileThatAlertmanagerReads(t *testing.T) {
	s := service(t, "alert-manager", everyReceiver)
	stored := slices.Sorted(maps.Keys(s.Credentials))
	require.Equal(t, []string{
		"receivers.email.authPassword", "receivers.heartbeat.url", "receivers.slack.apiUrl",
		"receivers.webhooks.chat.secretUrl", "receivers.webhooks.ops.bearerToken",
	}, stored)

	values, err := yaml.Marshal(s.Values)
	require.NoError(t, err)
	require.NotContains(t, string(values), "s3cret")
	text := configMaps(t, "alert-manager", string(values))["alert-manager"].Data["alertmanager.yml"]
	var read []string
	for _, m := range credentialFile.FindAllStringSubmatch(text, -1) {
		read = append(read, m[1])
	}
	slices.Sort(read)
	require.Equal(t, stored, slices.Compact(read))
	docs := strings.Join(manifests(t, "alert-manager", string(values)), "\n")
	require.NotContains(t, docs, "kind: Secret")
	require.Contains(t, docs, "secretName: "+s.CredentialsName())
	require.Contains(t, docs, "checksum/credentials: ")
}
