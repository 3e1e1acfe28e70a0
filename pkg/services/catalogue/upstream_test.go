package catalogue

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"helm.sh/helm/v3/pkg/chart"
)

const pinned = "digest: sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"

func TestASectionMayNameItsChart(t *testing.T) {
	c := loadValid(t, `
redis:
  chart: oci://registry.example.com/charts/redis
  version: 1.2.3
  `+pinned+`
  namespace: data
  requires: [storage]
  values: {replicas: 3, drop: null}
  secretValues: {auth: {password: hunter2}, replicas: 4}
metrics: {chart: ./metrics, enabled: false}
`)
	s := c.Get("redis")
	assert.Equal(t, "oci://registry.example.com/charts/redis", s.Source)
	assert.Equal(t, "data", s.Namespace)
	assert.Equal(t, []string{"storage"}, s.Requires)
	assert.True(t, s.Enabled)
	assert.Nil(t, s.Chart, "nobody fetched it")
	assert.Equal(t, &ChartRef{Chart: s.Source, Version: "1.2.3", Digest: strings.TrimPrefix(pinned, "digest: "), Dir: "conf"}, s.Upstream)
	assert.Equal(t, map[string]any{"replicas": int64(3), "drop": nil}, s.Values, "nothing is added; null takes a default away, as Helm means it")
	assert.Equal(t, map[string]any{"replicas": int64(4), "drop": nil, "auth": map[string]any{"password": "hunter2"}}, s.ReleaseValues())
	text, err := json.Marshal([]any{s.ShownValues(), s.Values})
	require.NoError(t, err)
	assert.NotContains(t, string(text), "hunter2")
	assert.Contains(t, string(text), `"auth":{"password":"********"}`)

	own := c.Get("metrics")
	assert.NotNil(t, own.Upstream, "it takes the place of the embedded chart")
	assert.False(t, own.Enabled)
	selected, err := c.Select([]string{"redis"}, nil)
	require.NoError(t, err)
	assert.Equal(t, "base storage redis", namesOf(selected))
}

func TestAMistakeInAnUpstreamSectionHasItsPlaceAndRemedy(t *testing.T) {
	for name, c := range map[string]struct {
		section string
		want    []string
	}{
		"no reference":                 {"chart: ftp://a/b", []string{"7:12: x.chart: is not a reference to a chart [services/chart]", "-> write oci://REGISTRY/PATH, https://REPOSITORY#NAME, https://....tgz, or a path"}},
		"a password in the reference":  {"chart: 'https://u:hunter2@a/b.tgz'", []string{"7:12: x.chart: contains a user or a password [services/chart]", "-> remove it, and log in with: docker login, or helm repo add"}},
		"a repository without a chart": {"chart: https://a/b, " + pinned, []string{"7:12: x.chart: names a repository, but no chart [services/chart]", "-> add the chart's name: https://a/b#NAME"}},
		"no version": {"chart: oci://a/b", []string{
			"7:12: x.chart: has no version, so the chart may change at any time [services/chart]", "-> set version",
			"7:12: warning: x.chart: the chart is not pinned: the owner of its server can change it [services/unpinned]", "-> set digest to the sha256 of the archive that helm pull downloads"}},
		"no digest":                     {"chart: https://a/b.tgz", []string{"7:12: warning: x.chart: the chart is not pinned: the owner of its server can change it [services/unpinned]", "-> set digest to the sha256 of the archive that helm pull downloads"}},
		"a digest that is none":         {"chart: https://a/b.tgz, digest: abc", []string{"7:37: x.digest: is not a digest [services/chart]", "-> write sha256: and 64 hexadecimal digits"}},
		"no TLS with a digest":          {"chart: http://a/b.tgz, " + pinned, []string{}},
		"a path needs nothing else":     {"chart: ../charts/x", []string{}},
		"a placement":                   {"chart: ./x, placement: [master]", []string{"7:28: x.placement: paictl can't place the pods of a chart that isn't its own [services/placement]", "-> write nodeSelector, affinity or tolerations below values, as the chart requires"}},
		"a key that is misspelt":        {"chart: ./x, vlaues: {}", []string{`7:25: x.vlaues: there is no key "vlaues" here [services/section]`, `-> did you mean "values"?; settings of the chart itself belong below values`}},
		"a namespace that is none":      {"chart: ./x, namespace: A B", []string{`7:28: x.namespace: "A B" is not a name for a namespace [services/section]`, "-> use a-z, 0-9 and -"}},
		"values that are no map":        {"chart: ./x, values: [a]", []string{"7:25: x.values: expected a map of settings [services/section]", "-> write each setting on a separate line, indented, as key: value"}},
		"a version that is a number":    {"chart: https://a/b.tgz, version: 1.2, " + pinned, []string{"7:38: x.version: expected text [services/section]", "-> put the value in quotes"}},
		"a chart that is no text":       {"chart: [a]", []string{"7:12: x.chart: expected text [services/section]", "-> put the value in quotes", "7:12: x.chart: is empty [services/chart]", "-> write oci://REGISTRY/PATH, https://REPOSITORY#NAME, https://....tgz, or a path"}},
		"requires a service of nowhere": {"chart: ./x, requires: nobody", []string{`7:27: x.requires: x requires "nobody", but there is no such service [services/requires]`, "-> the services are ammeter, base, metrics, storage, x"}},
	} {
		t.Run(name, func(t *testing.T) {
			_, findings := load(t, "x: {"+c.section+"}\n")
			assert.Equal(t, c.want, lines(findings))
			assert.NotContains(t, findings.Error(), "hunter2")
		})
	}
	_, findings := load(t, "BIG_name: {chart: ./x}\n")
	assert.Equal(t, []string{`7:11: BIG_name: "BIG_name" is not a name for a service [services/section]`, "-> use a-z, 0-9 and -, at most 53 characters"}, lines(findings))
}

type shelf map[string]*chart.Chart

func (s shelf) Fetch(_ context.Context, ref ChartRef) (*chart.Chart, error) {
	if c := s[ref.Chart]; c != nil {
		return c, nil
	}
	return nil, errors.New("not on the shelf: " + ref.Chart)
}

func TestUpstreamChartsAreFetchedAndTheirSchemaHolds(t *testing.T) {
	embedded, err := readCharts(testCharts())
	require.NoError(t, err)
	charts := shelf{"./a": embedded["metrics"].Chart, "./b": embedded["base"].Chart}
	cfg := parse(t, `
a:
  chart: ./a
  values: {replicas: 99, retention: 1d}
  secretValues: {auth: {password: x}}
b: {chart: ./b}
off: {chart: ./off, enabled: false}
`)
	c, findings, err := Load(t.Context(), cfg, Options{Charts: testCharts(), Fetcher: charts})
	require.NoError(t, err)
	assert.Equal(t, []string{
		"10:22: a.values.replicas: is more than 5 [services/values]", "-> the largest value is 5",
		"11:35: a.secretValues.auth.password: matches none of the allowed forms [services/values]", "-> At least eight characters.",
	}, lines(findings))
	assert.Equal(t, "Collects what machines and services measure.", c.Get("a").Description)
	assert.NotNil(t, c.Get("b").Chart)
	assert.Nil(t, c.Get("off").Chart, "what is disabled needs no network")

	delete(charts, "./a")
	delete(charts, "./b")
	_, _, err = Load(t.Context(), cfg, Options{Charts: testCharts(), Fetcher: charts})
	require.EqualError(t, err, "chart of a: not on the shelf: ./a\nchart of b: not on the shelf: ./b")
}
