package catalogue

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/openpai/paictl/pkg/config"
	"github.com/openpai/paictl/pkg/config/strictyaml"
	"github.com/openpai/paictl/pkg/version"
)

func TestWhichImagesAreOfAnotherRelease(t *testing.T) {
	before := version.Version
	t.Cleanup(func() { version.Version = before })
	for name, c := range map[string]struct {
		own, tag, sections string
		refused            bool
	}{
		"same":                             {"v1.2.3", "", "", false},
		"tag alone, own repository":        {"v1.2.3", "", "scheduler: {image: {tag: v1.0.0}}\n", true},
		"runtime's tag alone":              {"v1.2.3", "", "job-controller: {runtimeImage: {tag: v1.0.0}}\n", true},
		"mirror of another's image":        {"v1.2.3", "", "prometheus: {image: {repository: harbor.site/x/pai-prometheus, tag: v3.5.0}}\n", false},
		"digest wins over the tag":         {"v1.2.3", "", "scheduler: {image: {repository: r/pai-scheduler, tag: v1.0.0, digest: 'sha256:0123456789012345678901234567890123456789012345678901234567890123'}}\n", false},
		"a service that is off":            {"v1.2.3", "", "watchdog: {enabled: false, image: {repository: r/pai-watchdog, tag: v1.0.0}}\n", false},
		"git describe of ours after a tag": {"v1.3.0-4-g0123abc", "", "", true},
		"git describe of theirs":           {"v1.2.3", "v1.2.2-4-g0123abc", "", true},
		"release candidate":                {"v1.3.0-rc.1", "", "", true},
		"latest":                           {"v1.2.3", "latest", "", false},
		"site's tag":                       {"v1.2.3", "2026-11-25", "", false},
		"commit":                           {"v1.3.0-dev+0123abc", "v1.3.0-dev_0123abc", "", false},
		"another commit":                   {"v1.3.0-dev+0123abc", "v1.3.0-dev_0123abd", "", true},
	} {
		t.Run(name, func(t *testing.T) {
			version.Version = c.own
			cfg := gpuCluster(t, 1, c.sections)
			if c.tag != "" {
				cfg.Services.Cluster.DockerRegistry.Tag = c.tag
			}
			_, found := schedulerOf(t, cfg)
			got := ""
			for _, f := range found {
				if f.Rule == RuleRelease {
					got = f.String() + " -> " + f.Remedy
				}
			}
			assert.Equal(t, c.refused, got != "", "own %s: %s", c.own, got)
		})
	}
}

func TestImagesOfAnotherReleaseKeepNoMachinesFromBeingLookedAt(t *testing.T) {
	before := version.Version
	t.Cleanup(func() { version.Version = before })
	cfg := gpuCluster(t, 1, "scheduler: {image: {tag: v1.2.3}}\nwatchdog: {image: {tag: v1.2.3}}\n")
	of := func(found config.Findings) (n int) {
		for _, f := range found {
			if f.Rule == RuleRelease {
				n++
			}
		}
		return n
	}
	version.Version = "v1.3.0"
	assert.Zero(t, of(CheckMachines(cfg)))
	assert.Zero(t, of(CheckUpgrade(cfg)))
	fields, tag, later, err := OtherRelease(cfg)
	require.NoError(t, err)
	assert.Equal(t, "v1.3.0", tag)
	assert.False(t, later)
	assert.Contains(t, fields, strictyaml.Path{"scheduler", "image", "tag"})
	assert.Contains(t, fields, strictyaml.Path{"watchdog", "image", "tag"})

	version.Version = "v1.1.0"
	assert.Zero(t, of(CheckMachines(cfg)))
	assert.NotZero(t, of(CheckUpgrade(cfg)), "an earlier paictl takes nothing back")
}
