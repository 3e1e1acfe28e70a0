package config

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/openpai/paictl/pkg/config/strictyaml"
)

func TestAnotherVersionOfTheDriverIsWrittenWhereItStands(t *testing.T) {
	for before, after := range map[string]string{
		"kubernetes:\n  gpu-driver: {policy: install} # ours\n  # next\n":                                   "kubernetes:\n  gpu-driver: {policy: install, version: \"570\"} # ours\n  # next\n",
		"kubernetes:\n  gpu-driver: {version: '535', policy: install}\n":                                    "kubernetes:\n  gpu-driver: {version: \"570\", policy: install}\n",
		"kubernetes:\n  gpu-driver:\n    policy: install # why\n    source: nvidia\n  x: 1\n":               "kubernetes:\n  gpu-driver:\n    policy: install # why\n    version: \"570\"\n    source: nvidia\n  x: 1\n",
		"kubernetes:\n  gpu-driver:\n    # \u00fcber\n    version: 535.54.03   # held\n    policy: install": "kubernetes:\n  gpu-driver:\n    # \u00fcber\n    version: \"570\"   # held\n    policy: install",
		"kubernetes:\n  gpu-driver:\n    policy: install":                                                   "kubernetes:\n  gpu-driver:\n    policy: install\n    version: \"570\"\n",
		"{kubernetes: {\u00fc: 1, gpu-driver: {policy: \"install\"}}}":                                      "{kubernetes: {\u00fc: 1, gpu-driver: {policy: \"install\", version: \"570\"}}}",
		"kubernetes:\n  gpu-driver: &d\n    policy: install\n":                                              "kubernetes:\n  gpu-driver: &d\n    policy: install\n    version: \"570\"\n",
		"kubernetes:\r\n  gpu-driver:\r\n    policy: install\r\n":                                           "kubernetes:\r\n  gpu-driver:\r\n    policy: install\r\n    version: \"570\"\r\n",
	} {
		out, err := withDriverVersion([]byte(before), "570")
		require.NoError(t, err, before)
		assert.Equal(t, after, string(out))
	}
	for _, text := range []string{"", "[]", "kubernetes: {}\n", "kubernetes:\n  gpu-driver: {}\n", "kubernetes:\n  gpu-driver: &a {policy: install, version: *a}\n",
		"kubernetes:\n  gpu-driver:\n    policy: install\n    version: |\n      535\n", "kubernetes:\n  gpu-driver:\n    policy: install\n    version: # later\n", "kubernetes:\n  gpu-driver: {policy: install, version: [1]}\n"} {
		_, err := withDriverVersion([]byte(text), "570")
		assert.Error(t, err, text)
	}
}

func TestTheVersionOfTheDriverIsEditedInAFolder(t *testing.T) {
	dir := layoutFolder(t, handWritten)
	path := filepath.Join(dir, KubernetesFile)
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	_, err = SetDriverVersion(dir, "570")
	require.ErrorContains(t, err, "has no gpu-driver", "nothing is installed without the policy")
	require.NoError(t, os.WriteFile(path, []byte(strings.TrimRight(string(text), "\n")+"\n  gpu-driver: {policy: install}\n"), 0o600))
	e, err := SetDriverVersion(dir, "570")
	require.NoError(t, err)
	assert.Empty(t, e.Before)
	assert.Equal(t, "570", e.Cluster.Kubernetes.Kubernetes.GPUDriver.Version)
	require.NoError(t, e.Write())
	again, err := SetDriverVersion(dir, "570")
	require.NoError(t, err)
	assert.Equal(t, "570", again.Before)
	require.NoError(t, again.Write())
	require.NoError(t, e.Undo())
	now, err := os.ReadFile(path)
	require.NoError(t, err)
	assert.True(t, strings.HasSuffix(string(now), "{policy: install}\n"))
	_, err = SetDriverVersion(dir, "newest")
	require.ErrorContains(t, err, "was not changed")
}

func TestTextsOfServicesAreWrittenWhereTheyStand(t *testing.T) {
	dir := layoutFolder(t, handWritten)
	path := filepath.Join(dir, ServicesFile)
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	before := strings.TrimRight(string(text), "\n") + "\nscheduler:\n  image: {tag: v1.0.0} # ours\nwatchdog:\n  image:\n    tag: 'v1.0.0'\n"
	require.NoError(t, os.WriteFile(path, []byte(before), 0o640))
	fields := []strictyaml.Path{{"scheduler", "image", "tag"}, {"watchdog", "image", "tag"}, {"agent", "image", "tag"}}
	e, err := SetServicesText(dir, fields, "v1.1.0")
	require.NoError(t, err)
	assert.Equal(t, fields[:2], e.Changed)
	assert.Equal(t, fields[2:], e.NotEdited, "what isn't there isn't added")
	require.NoError(t, e.Write())
	now, err := os.ReadFile(path)
	require.NoError(t, err)
	assert.Equal(t, strings.ReplaceAll(strings.ReplaceAll(before, "'v1.0.0'", "v1.1.0"), "v1.0.0", "v1.1.0"), string(now))
	e, err = SetServicesText(dir, fields, "v1.1.0")
	require.NoError(t, err)
	assert.Empty(t, e.Changed)

	require.NoError(t, os.WriteFile(path, []byte(before+"agent:\n  image:\n    tag: |\n      v1.0.0\n"), 0o640))
	e, err = SetServicesText(dir, fields, "v1.1.0")
	require.NoError(t, err)
	assert.Equal(t, fields[2:], e.NotEdited)
	require.NoError(t, os.WriteFile(path, []byte(before+"# of now\n"), 0o640))
	require.ErrorContains(t, e.Write(), "was changed by another program", "what others write stays")
	require.NoError(t, os.WriteFile(path, []byte(before), 0o640))
	e, err = SetServicesText(dir, nil, "v1.1.0")
	require.NoError(t, err)
	require.NoError(t, e.Write())
}

func TestAnUpgradeNamesItsBundle(t *testing.T) {
	dir := layoutFolder(t, handWritten)
	path := filepath.Join(dir, KubernetesFile)
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	before := strings.TrimRight(string(text), "\n") + "\n  bundle: ../old # ours\n"
	require.NoError(t, os.WriteFile(path, []byte(before), 0o600))
	e, err := SetKubernetesVersion(dir, "v1.37.0", "/srv/a new one")
	require.NoError(t, err)
	require.NoError(t, e.Write())
	now, err := os.ReadFile(path)
	require.NoError(t, err)
	assert.Contains(t, string(now), "  bundle: \"/srv/a new one\" # ours\n")
	assert.Contains(t, string(now), "v1.37.0")
	e, err = SetKubernetesVersion(dir, e.Cluster.Kubernetes.Kubernetes.Version, "/srv/a third one") // other programs, the same Kubernetes
	require.NoError(t, err)
	require.NoError(t, e.Write())
	now, err = os.ReadFile(path)
	require.NoError(t, err)
	assert.Contains(t, string(now), `bundle: "/srv/a third one"`)

	e, err = SetKubernetesVersion(dir, "v1.37.1", "")
	require.NoError(t, err)
	assert.Equal(t, "/srv/a third one", e.Cluster.Kubernetes.Kubernetes.Bundle)
}
