package catalogue

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/openpai/paictl/pkg/config"
	"github.com/openpai/paictl/pkg/version"
)

// gpuCluster returns a configuration with the given number of masters, and two machines with eight GPUs each.
func gpuCluster(t testing.TB, masters int, sections string) *config.Cluster {
	t.Helper()
	list := ""
	for i := range masters {
		list += strings.ReplaceAll("  - {hostname: mN, hostip: 10.0.0.N, machine-type: cpu, roles: [master]}\n", "N", string(rune('1'+i)))
	}
	c, err := config.Parse("conf", map[string][]byte{
		config.LayoutFile: []byte(`machine-sku:
  cpu: {mem: 16Gi, cpu: {vcore: 8}, os: ubuntu22.04, discovered: true}
  8x-a100: {mem: 512Gi, cpu: {vcore: 64}, gpu: {type: A100, count: 8}, os: ubuntu22.04, discovered: true}
machine-list:
` + list + `  - {hostname: g1, hostip: 10.0.1.1, machine-type: 8x-a100, roles: [worker]}
  - {hostname: g2, hostip: 10.0.1.2, machine-type: 8x-a100, roles: [worker]}
`),
		config.RolesFile: []byte(`k8s-role:
  master: {component-list: [etcd, apiserver, controller-manager, scheduler], labels: {pai-master: "true"}}
  worker: {labels: {pai-worker: "true"}, workloads: true}
`),
		config.KubernetesFile: []byte("kubernetes: {version: v1.36.3+vendor.1, docker-registry: registry.example.org/k8s, pod-cidr: 10.244.0.0/16, cluster-dns: [10.9.9.9]}\n"),
		config.ServicesFile: []byte(`cluster:
  common: {cluster-id: lab, data-path: /data}
  docker-registry: {domain: docker.io, namespace: openpai, docker-tag: v1.2.3}
` + sections),
	})
	require.NoError(t, err)
	return c
}

// schedulerOf loads paictl's own charts, and returns the scheduler's service and the findings.
func schedulerOf(t *testing.T, cfg *config.Cluster) (*Service, config.Findings) {
	t.Helper()
	c, found, err := Load(t.Context(), cfg, Options{})
	require.NoError(t, err)
	return c.Get(SchedulerService), found
}

func TestTheSchedulerIsConfiguredByTheLayout(t *testing.T) {
	s, found := schedulerOf(t, gpuCluster(t, 1, ""))
	require.NoError(t, found.Err())
	assert.True(t, s.Enabled)
	assert.EqualValues(t, 1, s.Values["replicas"], "one master runs one")
	text := s.Values["global"].(map[string]any)[keySchedulerConfiguration].(string)
	for _, word := range []string{"physicalCluster:", "8x-a100", "cellAddress: g1", "cellAddress: g2", "default:"} {
		assert.Contains(t, text, word)
	}
	assert.NotContains(t, text, "m1")
	again, _ := schedulerOf(t, gpuCluster(t, 1, ""))
	assert.Equal(t, s.Values, again.Values, "the same configuration makes the same values")
}

// Existing configurations still contain these settings.
func TestSettingsOfEarlierVersionsAreNoErrors(t *testing.T) {
	s, found := schedulerOf(t, gpuCluster(t, 1, "scheduler:\n  kubeScheduler:\n    image: {tag: v1.36.0}\n    verbosity: 4\n    resources: {requests: {cpu: 10m}}\n"))
	require.NoError(t, found.Err())
	assert.Equal(t, map[string]any{"verbosity": int64(4)}, s.Values["kubeScheduler"])
	said := strings.Join(lines(found), "\n")
	assert.Contains(t, said, "6:12: warning: ")
	assert.Contains(t, said, "scheduler.kubeScheduler.image: this setting no longer has an effect: kube-scheduler is part of the scheduler's own image")
	assert.Contains(t, said, "scheduler.kubeScheduler.resources: this setting no longer has an effect")

	_, found = schedulerOf(t, gpuCluster(t, 1, "scheduler: {kubeScheduler: {imagine: 1}}\n"))
	assert.ErrorContains(t, found.Err(), "there is no key")
}

func TestImagesOfAnotherReleaseAreRefused(t *testing.T) {
	before := version.Version
	t.Cleanup(func() { version.Version = before })
	for own, says := range map[string]string{
		"v0.1.0-dev": "", "v1.2.3": "", "v1.3.0-dev+0123abc-dirty": "docker-tag: v1.3.0-dev_0123abc-dirty", "v1.3.0": "docker-tag: v1.3.0",
	} {
		version.Version = own
		_, found := schedulerOf(t, gpuCluster(t, 1, ""))
		if says == "" {
			assert.NoError(t, found.Err(), own)
			continue
		}
		require.ErrorContains(t, found.Err(), "the images of v1.2.3 don't match this paictl, which is "+own)
		assert.ErrorContains(t, found.Err(), "set "+says+",")
	}
	// Sections may set their own images, as in sandboxes.
	version.Version = "v1.2.3"
	_, found := schedulerOf(t, gpuCluster(t, 1, "scheduler: {image: {repository: docker.io/openpai/pai-scheduler, tag: v1.0.0}}\nprometheus: {image: {repository: x/prometheus, tag: v3.15.0}}\n"))
	require.ErrorContains(t, found.Err(), "scheduler.image.tag: the images of v1.0.0 don't match this paictl")
	assert.NotContains(t, found.Err().Error(), "prometheus")
}

func TestTheSchedulerStandsByWhereTwoMachinesCan(t *testing.T) {
	s, _ := schedulerOf(t, gpuCluster(t, 3, ""))
	assert.EqualValues(t, 2, s.Values["replicas"])
	s, _ = schedulerOf(t, gpuCluster(t, 3, "scheduler: {replicas: 1}\n"))
	assert.EqualValues(t, 1, s.Values["replicas"], "the section wins")
}

func TestTheSchedulerIsOffWhereNobodyHasGPUs(t *testing.T) {
	s, found := schedulerOf(t, parse(t, ""))
	assert.False(t, s.Enabled)
	assert.NotContains(t, strings.Join(lines(found), "\n"), "scheduler")
	s, _ = schedulerOf(t, parse(t, "scheduler: {replicas: 2}\n"))
	assert.False(t, s.Enabled)
	s, _ = schedulerOf(t, parse(t, "scheduler: {enabled: true}\n"))
	assert.True(t, s.Enabled)
	s, _ = schedulerOf(t, gpuCluster(t, 1, "scheduler: {enabled: false}\n"))
	assert.False(t, s.Enabled)
}

func TestMistakesOfVirtualClustersHaveTheirLine(t *testing.T) {
	for name, c := range map[string]struct {
		section, says string
	}{
		"more than there is": {"scheduler:\n  virtualClusters:\n    a:\n      virtualCells:\n        - cellType: 8x-a100\n          cellNumber: 3\n", "conf/services-configuration.yaml:"},
		"an unknown type":    {"scheduler:\n  virtualClusters:\n    a:\n      virtualCells:\n        - {cellType: 8x-a10, cellNumber: 1}\n", "conf/services-configuration.yaml:8:"},
		"an unknown key":     {"scheduler:\n  virtualClusters:\n    a:\n      virtualCell: []\n", "conf/services-configuration.yaml:7:"},
		"in HiveD's text": {"hivedscheduler:\n  config: |\n    virtualClusters:\n      a:\n        virtualCells:\n          - {cellType: 8x-a10, cellNumber: 1}\n",
			"conf/services-configuration.yaml:9:"},
	} {
		t.Run(name, func(t *testing.T) {
			_, found := schedulerOf(t, gpuCluster(t, 1, c.section))
			require.Error(t, found.Err())
			assert.Contains(t, found.Errors()[0].String(), c.says)
			assert.NotEmpty(t, found.Errors()[0].Remedy)
		})
	}
}

// A new configuration, or a configuration from a quick-start file, has no file with line numbers.
func TestMistakesOfSectionsWithoutAFileNameTheField(t *testing.T) {
	cfg := gpuCluster(t, 1, "")
	made := &config.Cluster{Dir: "new", Layout: cfg.Layout, Roles: cfg.Roles, Kubernetes: cfg.Kubernetes, Services: cfg.Services}
	made.Services.Sections = map[string]any{SchedulerService: map[string]any{"virtualClusters": map[string]any{
		"a": map[string]any{"virtualCells": []any{map[string]any{"cellType": "no-such", "cellNumber": 1}}},
	}}}
	_, found := SchedulerConfig(made)
	require.Error(t, found.Err())
	assert.Contains(t, found.Errors()[0].Field, "scheduler.virtualClusters.a.virtualCells[0]")
}

func TestTheOriginalsSectionIsRead(t *testing.T) {
	s, found := schedulerOf(t, gpuCluster(t, 1, `hivedscheduler:
  webservice-port: 30096
  config: |
    physicalCluster:
      cellTypes:
        NODE: {childCellType: A100, childCellNumber: 8, isNodeLevel: true}
      physicalCells: [{cellType: NODE, cellAddress: g1}]
    virtualClusters:
      team: {virtualCells: [{cellType: NODE, cellNumber: 1}]}
`))
	require.NoError(t, found.Err())
	assert.Contains(t, s.Values["global"].(map[string]any)[keySchedulerConfiguration], "team:")
	assert.Contains(t, strings.Join(lines(found), "\n"), "hivedscheduler.webservice-port")
	assert.NotContains(t, strings.Join(lines(found), "\n"), "there is no service hivedscheduler")
}
