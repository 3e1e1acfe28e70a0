package sim_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/openpai/paictl/pkg/scheduler/sim"
)

func results(t *testing.T, steps string) (out []string, reasons []string) {
	t.Helper()
	require.NoError(t, sim.Replay(t.Context(), "steps.yaml", []byte(steps), sim.ReplayOptions{}, func(l *sim.Line) error {
		out, reasons = append(out, l.Result), append(reasons, l.Reason)
		return nil
	}))
	return out, reasons
}

func TestAConfigurationMayShareValuesWithOtherSteps(t *testing.T) {
	got, reasons := results(t, `
- op: start
  config:
    physicalCluster: &hardware
      cellTypes: {NODE: {childCellType: V100, childCellNumber: 2, isNodeLevel: true}}
      physicalCells: [{cellType: NODE, cellAddress: a}]
    virtualClusters: {A: {virtualCells: &cells [{cellType: NODE, cellNumber: 1}]}}
- op: start
  config: {physicalCluster: *hardware, virtualClusters: {B: {virtualCells: *cells}}}
- {op: schedule, pod: p, podSchedulingSpec: {virtualCluster: B, leafCellNumber: &n 2}}
- {op: schedule, pod: q, podSchedulingSpec: {virtualCluster: B, leafCellNumber: *n}}
`)
	assert.Equal(t, []string{"ok", "ok", "bind", "bind"}, got, strings.Join(reasons, "\n"))
}

func TestAliasesThatGrowWithoutEndAreRefused(t *testing.T) {
	for name, steps := range map[string]string{
		"one that holds itself": "- {op: start, config: &c {physicalCluster: *c}}\n",
		"a billion laughs": "- {op: start, config: [&a [1,1,1,1,1,1,1,1,1,1], &b [*a,*a,*a,*a,*a,*a,*a,*a,*a,*a], &c [*b,*b,*b,*b,*b,*b,*b,*b,*b,*b], &d [*c,*c,*c,*c,*c,*c,*c,*c,*c,*c], " +
			"&e [*d,*d,*d,*d,*d,*d,*d,*d,*d,*d], &f [*e,*e,*e,*e,*e,*e,*e,*e,*e,*e], &g [*f,*f,*f,*f,*f,*f,*f,*f,*f,*f]]}\n- {op: start, config: {physicalCluster: *g}}\n",
	} {
		t.Run(name, func(t *testing.T) {
			said := ""
			err := sim.Replay(t.Context(), "steps.yaml", []byte(steps), sim.ReplayOptions{}, func(l *sim.Line) error {
				said = l.Result + ": " + l.Reason
				return nil
			})
			if err != nil {
				said = "error: " + err.Error()
			}
			assert.Regexp(t, "(?s)^error: .*alias", said)
		})
	}
}
