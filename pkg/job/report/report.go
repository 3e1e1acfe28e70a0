// Package report sums up the GPU time that was allocated, used and lost over a period, for each virtual cluster and each user.
// In: GPU time of the history, lists of jobs, the measured use of GPUs. Out: a Report, with notes about unknown figures, and its texts.
package report

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/openpai/paictl/pkg/diagnose/metrics"
	"github.com/openpai/paictl/pkg/job/api"
	"github.com/openpai/paictl/pkg/job/listing"
	"github.com/openpai/paictl/pkg/ui/plural"
)

// Query selects jobs and the period of the report, which is widened to whole hours. An empty name doesn't restrict the selection.
type Query struct {
	User, VirtualCluster string
	Since, Until         time.Time
}

// Report sums up the GPU time that was allocated, used and lost.
type Report struct {
	Since time.Time `json:"since"`
	Until time.Time `json:"until"`
	// VirtualClusters and People contain the same figures, grouped by virtual cluster and by user. Both start with the row that has the most GPU
	// time.
	VirtualClusters []Row `json:"virtualClusters"`
	People          []Row `json:"people"`
	Total           Row   `json:"total"`
	// Notes are sentences about figures that are unknown or incomplete, with the reasons.
	Notes []string `json:"notes,omitempty"`

	// parts are the figures for each user in each virtual cluster. notes are the Notes without the note about missing metrics. unmeasured is true
	// if the metrics couldn't be read.
	parts      map[part]*Row
	notes      []string
	unmeasured bool
}

type part struct{ vc, user string }

// Row contains the figures for one virtual cluster or user, in GPU seconds.
type Row struct {
	Name string `json:"name,omitempty"`
	// GPUTime is the time during which jobs held GPUs. The work in its preempted and failed parts was lost.
	api.GPUTime
	// Use is the measured part of GPUTime, or nil if no part was measured.
	Use *Use `json:"use,omitempty"`
	// Waits sums up how long jobs waited that were submitted in the period. It is nil if the waiting times are unknown.
	Waits *Waits `json:"waits,omitempty"`
}

// Use is the measured use of GPUs while jobs held them, in GPU seconds.
type Use struct {
	// Measured is the GPU time with measurements. Used is Measured times the utilization, so an hour at 50 % counts as half an hour. Idle is the
	// time with a utilization below 5 %.
	Measured int64 `json:"measuredSeconds"`
	Used     int64 `json:"usedSeconds"`
	Idle     int64 `json:"idleSeconds"`
}

// Waits sums up the waiting times of jobs. A job waits from its submission until its first start, or until the end of the period.
type Waits struct {
	Jobs int `json:"jobs"`
	// GPUs is the sum over all jobs of the waiting time multiplied by the number of requested GPUs, in GPU seconds. Longest is the longest
	// waiting time of a job, in seconds.
	GPUs    int64 `json:"gpuSeconds"`
	Longest int64 `json:"longestSeconds"`
}

// Lost returns the GPU time of attempts that were preempted or failed.
func (r *Row) Lost() int64 { return r.Preempted + r.Failed }

// Sources are the functions that provide the figures.
type Sources struct {
	Usage func(ctx context.Context, q api.UsageQuery) (*api.Usage, error)
	Jobs  func(ctx context.Context, f listing.Filter) (*listing.Page, error)
	// Occupied returns the measured use of GPUs.
	Occupied func(ctx context.Context, user, vc string, since, until time.Time) ([]metrics.OccupiedUse, error)
	Now      func() time.Time
}

const (
	// pageSize is the number of jobs that are read at once, and maxJobs the number of jobs that are read in all.
	pageSize = 1000
	maxJobs  = 50_000
	// enough is the part of the GPU time that must be measured. If less is measured, the report has a note about this.
	enough = 0.95
)

// Make makes a report. It returns an error if the GPU time is unknown. Other unknown figures are described in the notes.
func Make(ctx context.Context, s Sources, q Query) (*Report, error) {
	u, err := s.Usage(ctx, api.UsageQuery{User: q.User, VirtualCluster: q.VirtualCluster, Since: q.Since, Until: q.Until, By: []string{api.ByVC, api.ByUser}})
	if err != nil {
		return nil, err
	}
	r := &Report{Since: u.Since, Until: u.Until, parts: map[part]*Row{}}
	for i := range u.Items {
		one := &u.Items[i]
		r.part(one.VirtualCluster, one.User).Add(one.GPUTime)
	}
	until := u.Until
	if now := s.Now(); until.After(now) {
		until = now
	}
	if err := r.waits(ctx, s, q, u.Since, until); err != nil {
		return nil, err
	}
	if err := r.use(ctx, s, q, u.Since, until); err != nil {
		return nil, err
	}
	return r.assembled(), nil
}

// Of returns a report with only the figures of one user.
func (r *Report) Of(user string) *Report {
	out := &Report{Since: r.Since, Until: r.Until, parts: map[part]*Row{}, notes: r.notes, unmeasured: r.unmeasured}
	for k, row := range r.parts {
		if k.user == user {
			out.parts[k] = row
		}
	}
	return out.assembled()
}

// assembled fills in the sums of the parts and returns the report.
func (r *Report) assembled() *Report {
	vcs, people := map[string]*Row{}, map[string]*Row{}
	for k, one := range r.parts {
		named(vcs, k.vc).sum(one)
		named(people, k.user).sum(one)
		r.Total.sum(one)
	}
	r.VirtualClusters, r.People, r.Notes = ordered(vcs), ordered(people), slices.Clone(r.notes)
	measured := int64(0)
	if r.Total.Use != nil {
		measured = r.Total.Use.Measured
	}
	if held := r.Total.Held(); held > 0 && !r.unmeasured {
		if part := float64(measured) / float64(held); part < enough {
			r.Notes = append(r.Notes, fmt.Sprintf("no metrics for %.0f %% of the GPU hours: used and idle are about the rest", 100*(1-part)))
		}
	}
	return r
}

func named(of map[string]*Row, name string) *Row {
	if of[name] == nil {
		of[name] = &Row{Name: name}
	}
	return of[name]
}

// sum adds the figures of another row to r.
func (r *Row) sum(o *Row) {
	r.Add(o.GPUTime)
	if u := o.Use; u != nil {
		if r.Use == nil {
			r.Use = &Use{}
		}
		r.Use.Measured, r.Use.Used, r.Use.Idle = r.Use.Measured+u.Measured, r.Use.Used+u.Used, r.Use.Idle+u.Idle
	}
	if w := o.Waits; w != nil {
		if r.Waits == nil {
			r.Waits = &Waits{}
		}
		r.Waits.Jobs, r.Waits.GPUs, r.Waits.Longest = r.Waits.Jobs+w.Jobs, r.Waits.GPUs+w.GPUs, max(r.Waits.Longest, w.Longest)
	}
}

// part returns the row for a user in a virtual cluster, and adds the row if it is missing.
func (r *Report) part(vc, user string) *Row {
	k := part{vc, user}
	if r.parts[k] == nil {
		r.parts[k] = &Row{}
	}
	return r.parts[k]
}

func (r *Report) note(format string, args ...any) {
	r.notes = append(r.notes, fmt.Sprintf(format, args...))
}

// ordered returns the rows as a list that starts with the most GPU time.
func ordered(of map[string]*Row) []Row {
	out := make([]Row, 0, len(of))
	for _, r := range of {
		out = append(out, *r)
	}
	slices.SortFunc(out, func(a, b Row) int { return cmp.Or(cmp.Compare(b.Held(), a.Held()), cmp.Compare(a.Name, b.Name)) })
	return out
}

// waits adds the waiting times of the jobs that were submitted in the period.
func (r *Report) waits(ctx context.Context, s Sources, q Query, since, until time.Time) error {
	f := listing.Filter{User: q.User, VirtualCluster: q.VirtualCluster, Since: since, Earlier: true, Limit: pageSize}
	n := 0
	for {
		page, err := s.Jobs(ctx, f)
		if err != nil {
			if ctx.Err() != nil {
				return context.Cause(ctx)
			}
			if n == 0 {
				r.note("waiting times aren't known: %v", err)
			} else {
				r.note("waiting times include only the latest %s: %v", plural.Of(n, "job"), err)
			}
			return nil
		}
		if page.Note != "" && n == 0 {
			r.note("waiting times may be incomplete: %s", page.Note)
		}
		for i := range page.Items {
			n++
			r.wait(&page.Items[i], until)
		}
		if page.Next == "" {
			return nil
		}
		if n >= maxJobs {
			r.note("waiting times include only the latest %d jobs: there are more", n)
			return nil
		}
		f.Cursor = page.Next
	}
}

func (r *Report) wait(j *listing.Row, until time.Time) {
	if !j.Submitted.Before(until) {
		return
	}
	end := until
	for _, t := range []*time.Time{j.Started, j.Completed} { // a job that was stopped while it waited has no start
		if t != nil && t.Before(end) {
			end = *t
		}
	}
	seconds := max(int64(end.Sub(j.Submitted)/time.Second), 0)
	r.part(j.VirtualCluster, j.User).sum(&Row{Waits: &Waits{Jobs: 1, GPUs: seconds * int64(max(j.Taken(), 0)), Longest: seconds}})
}

// use adds the measured use of GPUs in the period.
func (r *Report) use(ctx context.Context, s Sources, q Query, since, until time.Time) error {
	given := int64(0)
	for _, one := range r.parts {
		given += one.Held()
	}
	if given == 0 || !since.Before(until) {
		return nil
	}
	held, err := s.Occupied(ctx, q.User, q.VirtualCluster, since, until)
	if err != nil {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		r.note("no metrics: %v", err)
		r.unmeasured = true
		return nil
	}
	for _, h := range held {
		r.part(h.VirtualCluster, h.User).sum(&Row{Use: &Use{Measured: int64(h.Measured), Used: int64(h.Used), Idle: int64(h.Idle)}})
	}
	return nil
}
