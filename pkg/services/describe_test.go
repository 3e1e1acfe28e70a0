package services

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"gopkg.in/yaml.v3"
)

func TestAServiceIsDescribedByItsChartAndSection(t *testing.T) {
	d := desired(t, "", "grafana: {enabled: false}\nredis: {chart: 'oci://r.example/redis', version: 1.2.3, digest: 'sha256:6b86b273ff34fce19d6b804eff5a3f5747ada4eaa22f1d49c01e52ddb7875b4b'}\n")
	byName := map[string]Description{}
	for _, x := range d.Describe() {
		byName[x.Name] = x
	}
	assert.Equal(t, Description{Name: "grafana", Description: "Is grafana.", Namespace: "pai-system", Requires: []string{"prometheus"},
		Placement: []string{"worker"}, Version: "0.1.0", AppVersion: "1", Source: "embedded"}, byName["grafana"])
	assert.Equal(t, "1.2.3", byName["redis"].Version)
	assert.Equal(t, "oci://r.example/redis", byName["redis"].Source)
	assert.True(t, byName["redis"].Enabled)
}

func TestValuesAreCompleteAndHoldNoSecret(t *testing.T) {
	d := desired(t, "", "alerts: {password: s3cr3t-word}\n")
	s, err := d.Service(t.Context(), "alerts", nil)
	require.NoError(t, err)
	values, err := Values(s)
	require.NoError(t, err)
	assert.Equal(t, "********", values["password"])
	assert.Equal(t, "alerts-credentials", values["credentialsSecret"])
	assert.EqualValues(t, 1, values["replicas"], "the chart's own")
	raw, err := yaml.Marshal(values)
	require.NoError(t, err)
	assert.NotContains(t, string(raw), "s3cr3t-word")
}

func TestAnUpstreamChartThatNobodyFetchedIsNamed(t *testing.T) {
	d := desired(t, "", "redis: {chart: 'oci://r.example/redis', version: 1.2.3, digest: 'sha256:6b86b273ff34fce19d6b804eff5a3f5747ada4eaa22f1d49c01e52ddb7875b4b'}\n")
	_, err := d.Service(t.Context(), "redis", nil)
	assert.EqualError(t, err, "there is no chart of redis")
}

func TestSecretValuesOfAnUpstreamServiceAreMasked(t *testing.T) {
	d := desired(t, "", "redis: {chart: 'oci://r.example/redis', version: 1.2.3, digest: 'sha256:6b86b273ff34fce19d6b804eff5a3f5747ada4eaa22f1d49c01e52ddb7875b4b', secretValues: {auth: {password: s3cr3t-word, keys: [another-word]}}}\n")
	m := newMasks(d.Config, d.Catalogue.Services())
	assert.Equal(t, "******** and ********", m.text("s3cr3t-word and another-word"))
}
