package catalogue

import (
	"encoding/json"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"helm.sh/helm/v3/pkg/chartutil"
	"helm.sh/helm/v3/pkg/engine"

	"github.com/openpai/paictl/pkg/config"
	"github.com/openpai/paictl/pkg/secret"
)

func TestAServiceIsWhatItsChartSays(t *testing.T) {
	c := loadValid(t, "")
	var names []string
	for _, s := range c.Services() {
		names = append(names, s.Name)
	}
	assert.Equal(t, []string{"ammeter", "base", "metrics", "storage"}, names)
	s := c.Get("metrics")
	assert.Equal(t, "Collects what machines and services measure.", s.Description)
	assert.Equal(t, "pai-system", s.Namespace)
	assert.Equal(t, []string{"base", "storage"}, s.Requires)
	assert.Equal(t, []string{"master"}, s.Placement)
	assert.Equal(t, []Claim{{Name: "metrics-data", Owner: 65534}}, s.Claims)
	assert.Equal(t, SourceEmbedded, s.Source)
	assert.True(t, s.Enabled)
	assert.NotNil(t, s.Chart)
	assert.False(t, c.Get("ammeter").Enabled, "its annotation says so")
	assert.Nil(t, c.Get("nobody"))
}

func TestValuesAreLayoutAndSectionOverDefaults(t *testing.T) {
	c := loadValid(t, `
metrics:
  retention: 30d
  retentionBytes: 214748364800
  service: {port:}
  image: {tag: v9}
  receivers: [{name: a}]
ammeter: {enabled: true, interval: 10}
`)
	s := c.Get("metrics")
	assert.Equal(t, map[string]any{
		"retention": "30d", "retentionBytes": int64(214748364800), "service": map[string]any{}, "image": map[string]any{"tag": "v9"},
		"receivers": []any{map[string]any{"name": "a"}},
		"global": map[string]any{
			"clusterId": "lab", "imageRegistry": "", "ownRegistry": "docker.io/openpai", "ownTag": "v1.2.3", "imagePullSecrets": []any{},
			"dataPath": "/data", "dnsDomain": "cluster.local", "podCidr": "10.244.0.0/16", "accessSecret": "metrics-access", "tokenSecret": "job-controller-token",
		},
		"affinity": map[string]any{"nodeAffinity": map[string]any{"requiredDuringSchedulingIgnoredDuringExecution": map[string]any{
			"nodeSelectorTerms": []any{map[string]any{"matchExpressions": []any{map[string]any{"key": "pai-master", "operator": "In", "values": []any{"true"}}}}},
		}}},
		"tolerations": []any{map[string]any{"key": "node-role.kubernetes.io/control-plane", "operator": "Exists", "effect": "NoSchedule"}},
	}, s.Values)
	assert.True(t, c.Get("ammeter").Enabled)
	assert.Equal(t, int64(10), c.Get("ammeter").Values["interval"])
	assert.Equal(t, []any{map[string]any{"operator": "Exists"}}, c.Get("ammeter").Values["tolerations"])
	assert.NotContains(t, c.Get("base").Values, "tolerations", "a chart without pods gets no placement")
}

func TestWholeNumbersReachTemplatesAsTheyWereWritten(t *testing.T) {
	s := loadValid(t, "metrics: {retentionBytes: 214748364800}\n").Get("metrics")
	values, err := chartutil.ToRenderValues(s.Chart, s.ReleaseValues(), chartutil.ReleaseOptions{Name: s.Name, Namespace: s.Namespace}, nil)
	require.NoError(t, err)
	files, err := engine.Render(s.Chart, values)
	require.NoError(t, err)
	assert.Contains(t, files["metrics/templates/map.yaml"], "written: \"214748364800\"\n")
}

func TestPullSecretsAreNamedWhereTheRegistryAsksForALogin(t *testing.T) {
	cfg := parse(t, "")
	cfg.Services.Cluster.DockerRegistry.Username = "robot"
	cfg.Services.Cluster.DockerRegistry.Mirror = "mirror.example.com:5000"
	c, _, err := Load(t.Context(), cfg, Options{Charts: testCharts()})
	require.NoError(t, err)
	global := c.Get("base").Values["global"].(map[string]any)
	assert.Equal(t, []any{"pai-secret"}, global["imagePullSecrets"])
	assert.Equal(t, "mirror.example.com:5000", global["imageRegistry"])
}

func TestASectionWinsOverWhatPaictlComputes(t *testing.T) {
	c, _ := load(t, `
metrics:
  placement: [worker, store]
  tolerations: [{operator: Exists}]
  affinity: {podAntiAffinity: {}}
storage:
  local: {serviceVolumes: [{service: a, claim: a, namespace: a, owner: 1, size: 1Gi, node: a, path: /a}]}
`)
	assert.Equal(t, []string{"worker", "store"}, c.Get("metrics").Placement)
	assert.Equal(t, []any{map[string]any{"operator": "Exists"}}, c.Get("metrics").Values["tolerations"])
	assert.Len(t, c.Get("metrics").Values["affinity"], 2, "maps are merged")
	assert.Equal(t, "a", c.Get("storage").Values["local"].(map[string]any)["serviceVolumes"].([]any)[0].(map[string]any)["node"])
}

func TestTolerationsAreForTaintsOfRoles(t *testing.T) {
	cfg := parse(t, "")
	cfg.Layout.MachineList[0].Roles = []string{"master", "store"}
	assert.Equal(t, []any{
		map[string]any{"key": "node-role.kubernetes.io/control-plane", "operator": "Exists", "effect": "NoSchedule"},
		map[string]any{"key": "store", "operator": "Equal", "value": "only", "effect": "NoSchedule"},
	}, placementValues(cfg, []string{"store"})[keyTolerations], "the machine has the master's taints too")
	assert.Empty(t, placementValues(cfg, []string{"worker"})[keyTolerations], "a taint of one machine alone is respected")
}

func TestClaimsBecomeVolumesOfTheStorageService(t *testing.T) {
	volume := map[string]any{
		"service": "metrics", "claim": "metrics-data", "namespace": "pai-system", "owner": int64(65534), "size": "20Gi", "node": "m1", "path": "/data/metrics/metrics-data",
	}
	moved := map[string]any{}
	for k, v := range volume {
		moved[k] = v
	}
	moved["node"], moved["size"] = "w1", "1Ti"
	for name, c := range map[string]struct {
		sections string
		want     []any
	}{
		"on the machine of the placement":        {"", []any{volume}},
		"where the section places it":            {"metrics: {placement: worker, persistence: {size: 1Ti}}\n", []any{moved}},
		"not for a service that is disabled":     {"metrics: {enabled: false}\n", []any{}},
		"not without persistence":                {"metrics: {persistence: {enabled: false}}\n", []any{}},
		"not for a storage class of the cluster": {"metrics: {persistence: {storageClass: fast}}\n", []any{}},
	} {
		t.Run(name, func(t *testing.T) {
			storage := loadValid(t, c.sections).Get("storage")
			assert.Equal(t, c.want, storage.Values["local"].(map[string]any)["serviceVolumes"])
		})
	}
}

func TestAWrongDataPathIsNotReportedAgainOfEachVolume(t *testing.T) {
	cfg := parse(t, "")
	cfg.Services.Cluster.Common.DataPath = "data"
	_, findings, err := Load(t.Context(), cfg, Options{})
	require.NoError(t, err)
	assert.Empty(t, findings.Errors(), "the configuration's own check names it")
}

// volumeNodes loads the test configuration with the given machines. volumeNodes returns the catalogue, and the node of the volume for metrics.
func volumeNodes(t *testing.T, machines, sections string) (*Catalogue, any) {
	t.Helper()
	head, _, _ := strings.Cut(testLayout, "  - {")
	cfg, err := parseFiles(map[string]string{config.LayoutFile: head + machines, config.RolesFile: testRoles, config.ServicesFile: testServices + sections})
	require.NoError(t, err)
	c, _, err := Load(t.Context(), cfg, Options{Charts: testCharts()})
	require.NoError(t, err)
	return c, nodeInValues(c)
}

func nodeInValues(c *Catalogue) any {
	return c.Get("storage").Values["local"].(map[string]any)["serviceVolumes"].([]any)[0].(map[string]any)["node"]
}

func TestANewVolumeLiesOnTheLowestAddressWhateverTheOrder(t *testing.T) {
	lines := []string{
		"  - {hostname: m1, hostip: 10.0.0.10, machine-type: cpu, roles: [master]}\n",
		"  - {hostname: m2, hostip: 10.0.0.9, machine-type: cpu, roles: [master]}\n",
		"  - {hostname: a, machine-type: cpu, roles: [master]}\n",
		"  - {hostname: w1, hostip: 10.0.0.1, machine-type: cpu, roles: [worker]}\n",
	}
	for i := range lines {
		_, node := volumeNodes(t, strings.Join(lines[i:], "")+strings.Join(lines[:i], ""), "")
		assert.Equal(t, "m2", node, "9 is less than 10, and a machine without an address comes last")
	}
}

func TestAVolumeStaysWhereItLies(t *testing.T) {
	const m1, m2 = "  - {hostname: m1, hostip: 10.0.0.10, machine-type: cpu, roles: [master]}\n", "  - {hostname: m2, hostip: 10.0.0.9, machine-type: cpu, roles: [master]}\n"
	c, _ := volumeNodes(t, m2+m1, "storage: {resources: {}}\n")
	require.Equal(t, []string{"m2", "m1"}, c.LocalVolumes()[0].Machines)
	c.Place(func(v LocalVolume) string {
		assert.Equal(t, "metrics metrics-data pai-system /data/metrics/metrics-data m2", strings.Join([]string{v.Service, v.Claim, v.Namespace, v.Path, v.Node}, " "))
		return "m1"
	})
	assert.Equal(t, "m1", nodeInValues(c))
	assert.Equal(t, "m1", c.LocalVolumes()[0].Node)
	c.Place(func(LocalVolume) string { return "" })
	assert.Equal(t, "m1", nodeInValues(c), "of what nothing is known nothing changes")

	c, _ = volumeNodes(t, m1, "storage: {local: {serviceVolumes: [{service: a, claim: a, namespace: a, owner: 1, size: 1Gi, node: x, path: /a}]}}\n")
	assert.Empty(t, c.LocalVolumes(), "what the operator lists is the operator's")
	c.Place(func(LocalVolume) string { return "m1" })
	assert.Equal(t, "x", nodeInValues(c))
}

func TestSecretsLeaveTheValues(t *testing.T) {
	c := loadValid(t, `
metrics:
  receivers:
    - {name: chat, token: hunter2-a}
    - {name: mail}
    - {name: pager, token: hunter2-b}
  auth: {password: hunter2-password, keys: {page: hunter2-c}}
`)
	s := c.Get("metrics")
	assert.Equal(t, map[string]secret.String{
		"receivers.0.token": "hunter2-a", "receivers.2.token": "hunter2-b", "auth.password": "hunter2-password", "auth.keys.page": "hunter2-c",
	}, s.Credentials)
	text, err := json.Marshal([]any{s.Values, s.ShownValues(), s.ReleaseValues()})
	require.NoError(t, err)
	assert.NotContains(t, string(text), "hunter2")
	assert.Equal(t, "metrics-credentials", s.Values["credentialsSecret"])
	assert.Equal(t, []any{map[string]any{"name": "chat"}, map[string]any{"name": "mail"}, map[string]any{"name": "pager"}}, s.Values["receivers"])
	s.SetCredentialsRevision("random")
	assert.Equal(t, "random", s.Values["credentialsChecksum"])
	c.Get("base").SetCredentialsRevision("random")
	assert.NotContains(t, c.Get("base").Values, "credentialsChecksum", "it has no credentials")
}

func TestSecretPathsLeadToWhatMustNotBeShown(t *testing.T) {
	cfg := parse(t, `
metrics:
  retention: 10d
  receivers: [{name: chat, token: hunter2-a}]
  auth: {user: me, password: 12345678, keys: {page: {deep: 1}}}
upstream:
  chart: ./chart
  values: {a: 1}
  secretValues: {login: {password: x, list: [y]}}
rest-server: {jwt-secret: z, rate: [1]}
empty:
`)
	embedded, err := readCharts(testCharts())
	require.NoError(t, err)
	var got []string
	for _, p := range secretPaths(cfg, embedded) {
		got = append(got, p.String())
	}
	assert.Equal(t, []string{
		"metrics.auth.keys.page.deep", "metrics.auth.password", "metrics.receivers[0].token",
		"rest-server.jwt-secret", "rest-server.rate[0]",
		"upstream.secretValues.login.list[0]", "upstream.secretValues.login.password",
	}, got)
	assert.Len(t, secretPaths(cfg, nil), 10, "without charts everything may be a secret")
}

func TestABrokenChartIsNamedWithItsAnnotation(t *testing.T) {
	head := "apiVersion: v2\nname: a\nversion: 0.1.0\nannotations:\n"
	placed := head + "  paictl.openpai.org/placement: all\n"
	for name, c := range map[string]struct{ chart, schema, want string }{
		"no placement":           {head + "  x: y\n", "", "chart a: the annotation paictl.openpai.org/placement is missing"},
		"all beside a role":      {head + "  paictl.openpai.org/placement: all, master\n", "", `chart a: annotation paictl.openpai.org/placement: "all" can't be combined with other roles`},
		"a role twice":           {head + "  paictl.openpai.org/placement: master, master\n", "", `chart a: annotation paictl.openpai.org/placement: "master" is listed twice`},
		"enabled is no truth":    {placed + "  paictl.openpai.org/enabled: maybe\n", "", `chart a: annotation paictl.openpai.org/enabled: "maybe" is neither true nor false`},
		"claims of another kind": {placed + "  paictl.openpai.org/claims: x\n", "", "chart a: annotation paictl.openpai.org/claims: "},
		"a claim of root":        {placed + "  paictl.openpai.org/claims: '[{name: x}]'\n", "", "chart a: annotation paictl.openpai.org/claims: a claim needs a name, and an owner that isn't root"},
		"another name":           {"apiVersion: v2\nname: b\nversion: 0.1.0\nannotations: {paictl.openpai.org/placement: all}\n", "", `chart a: Chart.yaml calls it "b"`},
		"a schema that is none":  {placed, "{", "chart a: values.schema.json: "},
		"a schema of elsewhere":  {placed, `{"$ref": "https://example.com/x.json"}`, "chart a: values.schema.json: "},
	} {
		t.Run(name, func(t *testing.T) {
			files := fstest.MapFS{"charts/a/Chart.yaml": {Data: []byte(c.chart)}, "charts/README.md": {}}
			if c.schema != "" {
				files["charts/a/values.schema.json"] = &fstest.MapFile{Data: []byte(c.schema)}
			}
			_, _, err := Load(t.Context(), parse(t, ""), Options{Charts: files})
			require.Error(t, err)
			assert.Contains(t, err.Error(), c.want)
		})
	}
}

func TestPaictlsOwnChartsAndAnEmptyConfigurationAgree(t *testing.T) {
	cfg := parse(t, "")
	c, findings, err := Load(t.Context(), cfg, Options{})
	require.NoError(t, err)
	assert.Empty(t, lines(findings))
	assert.Empty(t, lines(Check(cfg)))
	_, err = c.Select(nil, nil)
	require.NoError(t, err)
	assert.Empty(t, SecretPaths(cfg))
	embedded, err := readCharts(nil)
	require.NoError(t, err)
	for _, s := range c.Services() {
		secrets := false
		for _, part := range embedded[s.Name].schema.byLocation {
			secrets = secrets || part.WriteOnly
		}
		if secrets {
			s.Values[keyCredentialsSecret], s.Values[keyCredentialsRevision] = s.CredentialsName(), "revision"
			assert.Empty(t, embedded[s.Name].schema.check(merge(s.Chart.Values, s.Values)), "%s takes its credentials by name", s.Name)
		}
	}
}

// Commands don't check these schemas against the meta-schema, so this test does.
func TestTheSchemasOfPaictlsOwnChartsAreSchemas(t *testing.T) {
	embedded, err := readCharts(nil)
	require.NoError(t, err)
	for name, c := range embedded {
		_, err := newValuesSchema(c.Schema, schemaOfOthers)
		assert.NoError(t, err, name)
	}
	_, err = newValuesSchema([]byte(`{"type": 1}`), schemaOfOthers)
	assert.Error(t, err, "a schema of another chart may be wrong")
}

func TestPaictlsOwnChartsAreReadOnce(t *testing.T) {
	one, err := readCharts(nil)
	require.NoError(t, err)
	two, err := readCharts(nil)
	require.NoError(t, err)
	assert.Same(t, one["grafana"], two["grafana"])
	delete(one, "grafana")
	assert.Contains(t, two, "grafana", "a caller has its own map")
}

func FuzzCheck(f *testing.F) {
	for _, s := range []string{"metrics: {retention: 1d}", "metrics: []", "ammeter: 1", "x: {chart: oci://a/b}", "x: {chart: [1]}", "metrics: {receivers: [{token: [1]}, null, 3], auth: {password: {a: b}, keys: {a b: c}}}",
		"storage: {local: {serviceVolumes: 7}}", "storage: {local: 7}", "metrics: {persistence: x, placement: [all, 3]}", "metrics: {image: null, replicas: 1e400, global: 3, affinity: [], credentialsSecret: {}}", "x: {chart: 'http://[', digest: 3, requires: {}, values: [], secretValues: 1}"} {
		f.Add(s)
	}
	embedded, err := readCharts(testCharts())
	require.NoError(f, err)
	f.Fuzz(func(t *testing.T, sections string) {
		cfg, err := parseFiles(map[string]string{config.LayoutFile: testLayout, config.RolesFile: testRoles, config.ServicesFile: testServices + sections})
		if err != nil {
			t.Skip()
		}
		b := &builder{cfg: cfg, embedded: embedded, services: map[string]*Service{}}
		c := b.load()
		for _, one := range b.findings {
			require.NotEmpty(t, one.Rule)
			require.NotEmpty(t, one.Message)
		}
		for _, s := range c.Services() {
			s.SetCredentialsRevision("r")
			_ = s.ShownValues()
		}
		secretPaths(cfg, embedded)
		_, _ = c.Select(nil, nil)
	})
}
