package report

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/openpai/paictl/pkg/diagnose/metrics"
	"github.com/openpai/paictl/pkg/job/api"
	"github.com/openpai/paictl/pkg/job/listing"
)

var noon = time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)

func at(hours float64) *time.Time {
	t := noon.Add(time.Duration(hours * float64(time.Hour)))
	return &t
}

func row(user, vc string, gpus int, submitted float64, started, completed *time.Time) listing.Row {
	return listing.Row{Job: api.Job{User: user, VirtualCluster: vc, GPUs: gpus, Submitted: *at(submitted), Started: started, Completed: completed}}
}

// sources returns Sources with fixed figures for the day before noon. It also returns the filters that were passed to Jobs.
func sources(held []metrics.OccupiedUse, heldErr error) (Sources, *[]listing.Filter) {
	asked := &[]listing.Filter{}
	return Sources{
		Usage: func(_ context.Context, q api.UsageQuery) (*api.Usage, error) {
			return &api.Usage{Since: q.Since, Until: q.Until, Items: []api.UsageItem{
				{VirtualCluster: "vision", User: "ann", GPUTime: api.GPUTime{Guaranteed: 7200, Opportunistic: 3600, Preempted: 3600}},
				{VirtualCluster: "vision", User: "bob", GPUTime: api.GPUTime{Guaranteed: 3600, Failed: 1800}},
				{VirtualCluster: "nlp", User: "bob", GPUTime: api.GPUTime{Guaranteed: 36000}},
			}}, nil
		},
		Jobs: func(_ context.Context, f listing.Filter) (*listing.Page, error) {
			*asked = append(*asked, f)
			if f.Cursor == "" {
				return &listing.Page{Next: "2", Items: []listing.Row{row("ann", "vision", 8, -3, at(-1), nil), row("ann", "vision", 2, -2, nil, nil)}}, nil
			}
			return &listing.Page{Items: []listing.Row{row("bob", "nlp", api.UnknownGPUs, -5, nil, at(-4.5)), row("bob", "nlp", 1, 1, nil, nil)}}, nil
		},
		Occupied: func(context.Context, string, string, time.Time, time.Time) ([]metrics.OccupiedUse, error) {
			return held, heldErr
		},
		Now: func() time.Time { return noon },
	}, asked
}

func TestAReport(t *testing.T) {
	s, asked := sources([]metrics.OccupiedUse{{User: "ann", VirtualCluster: "vision", Measured: 10000, Used: 5000, Idle: 2000}, {User: "bob", VirtualCluster: "nlp", Measured: 38000, Used: 38000}}, nil)
	r, err := Make(t.Context(), s, Query{Since: noon.Add(-24 * time.Hour), Until: noon.Add(time.Hour)})
	require.NoError(t, err)
	require.Len(t, *asked, 2)
	assert.True(t, (*asked)[0].Earlier, "jobs whose name another one took count, too")
	names := func(rows []Row) (out []string) {
		for i := range rows {
			out = append(out, rows[i].Name)
		}
		return out
	}
	assert.Equal(t, []string{"nlp", "vision"}, names(r.VirtualClusters))
	assert.Equal(t, []string{"bob", "ann"}, names(r.People))
	ann := r.People[1]
	assert.Equal(t, int64(10800), ann.Held())
	assert.Equal(t, int64(3600), ann.Lost())
	assert.Equal(t, &Use{Measured: 10000, Used: 5000, Idle: 2000}, ann.Use)
	assert.Equal(t, &Waits{Jobs: 2, GPUs: 8*7200 + 2*7200, Longest: 7200}, ann.Waits, "one waited two hours, and one still waits")
	assert.Equal(t, &Waits{Jobs: 1, Longest: 1800}, r.People[0].Waits, "a job that was stopped before it started; one of the future doesn't count")
	assert.Equal(t, int64(50400), r.Total.Held())
	bob := r.Of("bob")
	assert.Equal(t, []string{"nlp", "vision"}, names(bob.VirtualClusters))
	assert.Equal(t, []string{"bob"}, names(bob.People))
	assert.Equal(t, int64(39600), bob.Total.Held())
	assert.Empty(t, r.Notes)
	assert.Equal(t, []string{"3.0", "1.4 (50 %)", "0.6 (20 %)", "1.0", "20.0", "2h0m0s", "2"}, ann.Cells())
	text := r.Text(1, func(s string) string { return s })
	assert.Regexp(t, `(?m)^VIRTUAL CLUSTER +GPU HOURS +USED`, text)
	assert.Regexp(t, `(?m)^nlp +10\.0`, text)
	assert.Contains(t, text, "and 1 more\n")
}

func TestUnknownFiguresAreSaid(t *testing.T) {
	query := Query{Since: noon.Add(-24 * time.Hour), Until: noon}
	s, _ := sources(nil, errors.New("the cluster has no Prometheus"))
	s.Jobs = func(context.Context, listing.Filter) (*listing.Page, error) { return nil, errors.New("away") }
	r, err := Make(t.Context(), s, query)
	require.NoError(t, err)
	assert.Equal(t, []string{"waiting times aren't known: away", "no metrics: the cluster has no Prometheus"}, r.Notes)
	assert.Equal(t, []string{"14.0", "-", "-", "1.5", "-", "-", "-"}, r.Total.Cells())
	assert.Contains(t, r.Text(10, func(s string) string { return s }), "Note: no metrics: the cluster has no Prometheus\n")

	s, _ = sources([]metrics.OccupiedUse{{User: "ann", VirtualCluster: "vision", Measured: 25200}}, nil)
	r, err = Make(t.Context(), s, query)
	require.NoError(t, err)
	assert.Equal(t, []string{"no metrics for 50 % of the GPU hours: used and idle are about the rest"}, r.Notes)

	s.Usage = func(context.Context, api.UsageQuery) (*api.Usage, error) { return nil, errors.New("away") }
	_, err = Make(t.Context(), s, query)
	require.Error(t, err)
}
