package migrate

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/openpai/paictl/pkg/hint"
	"github.com/openpai/paictl/pkg/job"
	"github.com/openpai/paictl/pkg/job/api"
	"github.com/openpai/paictl/pkg/kube"
	"github.com/openpai/paictl/pkg/openpai/history"
	"github.com/openpai/paictl/pkg/ui/iostreams"
	"github.com/openpai/paictl/pkg/ui/plural"
)

// jobs imports the history of jobs. The database and the cluster are both opened before anything is changed.
type jobs struct {
	from  *history.Source
	to    *job.Client
	known map[string]bool // UIDs
	added int             // by this run
}

// openJobs opens the database that the flags select. It returns nil if they select none.
func openJobs(ctx context.Context, opts *OpenPAIOptions) (*jobs, error) {
	if opts.HistoryFrom == "" {
		return nil, nil
	}
	program, err := history.Find()
	if err != nil {
		return nil, err
	}
	c, err := kube.Open(opts.To)
	if err != nil {
		return nil, err
	}
	to, err := job.New(c)
	if err != nil {
		return nil, err
	}
	known, err := knownJobs(ctx, to)
	if err != nil {
		return nil, c.Explain(err)
	}
	from, err := history.Open(ctx, program, opts.HistoryFrom)
	if err != nil {
		return nil, err
	}
	return &jobs{from: from, to: to, known: known}, nil
}

// pageJobs limits the number of jobs in one response of the history.
const pageJobs = 1000

func knownJobs(ctx context.Context, to *job.Client) (map[string]bool, error) {
	known := map[string]bool{}
	for q := (api.JobQuery{Limit: pageJobs}); ; {
		page, err := to.History.Jobs(ctx, q)
		if err != nil {
			return nil, err
		}
		for i := range page.Items {
			known[page.Items[i].UID] = true
		}
		if q.Cursor = page.Next; q.Cursor == "" {
			return known, nil
		}
	}
}

// take imports all jobs, and counts them by user. The report is nil if the program that reads the jobs from the database exits without a report.
func (j *jobs) take(ctx context.Context, opts *OpenPAIOptions, here func(user string) bool) (*history.Report, error) {
	told := progress{io: opts.Factory.IO}
	o := history.Options{Known: func(uid string) bool { return j.known[uid] }, Progress: told.say}
	if !opts.DryRun {
		o.Store = func(ctx context.Context, part io.Reader, size int64) error {
			added, err := j.to.History.PutBack(ctx, part, size)
			if err == nil {
				j.added += added.Jobs
			}
			return err
		}
	}
	report, err := j.from.Read(ctx, o)
	if report != nil {
		for _, p := range report.People {
			p.Here = here(p.Name)
		}
	}
	if err == nil {
		return report, nil
	}
	remedy := cmp.Or(hint.Of(err), "run the command again when the cause is gone: no job is added twice")
	switch {
	case !opts.DryRun:
		err = fmt.Errorf("%s added to the history so far: %w", plural.Of(j.added, "job"), err)
	case report != nil:
		err = fmt.Errorf("%s found so far: %w", plural.Of(report.Jobs, "job"), err)
	}
	return report, hint.Wrap(err, remedy)
}

// close ends the connection to the database. The database was only read.
func (j *jobs) close() {
	if j != nil {
		j.from.Close()
	}
}

// progress prints a line about the progress for every 5000 jobs.
type progress struct {
	io   *iostreams.IOStreams
	last int
}

// every is the number of jobs between two lines of progress.
const every = 5000

func (p *progress) say(done, all int) {
	if done/every > p.last/every {
		p.io.Say("checked %d of %s", done, plural.Of(all, "job"))
	}
	p.last = done
}

// jobRows returns rows about the imported jobs, one for each user.
func jobRows(r *history.Report, dryRun bool) [][]string {
	added := map[bool]string{false: "added", true: "would be added"}[dryRun]
	var rows [][]string
	for _, p := range r.People {
		action := fmt.Sprintf("%d %s, %d there; %s to %s", p.Jobs, added, p.Known, p.First.Format(time.DateOnly), p.Last.Format(time.DateOnly))
		if !p.Here {
			action += "; no user of this cluster has this name"
		}
		rows = append(rows, []string{p.Name, "jobs", action, "logs"})
	}
	if r.WithoutText > 0 {
		rows = append(rows, []string{"-", "jobs", added, "the text of " + plural.Of(r.WithoutText, "job") + ": it can't be read as a job file"})
	}
	return append(rows, leftOut(r)...)
}

// leftOut returns rows about the jobs that were not imported, one for each reason.
func leftOut(r *history.Report) [][]string {
	const named = 3
	why, count := map[string][]string{}, map[string]int{}
	for _, l := range r.LeftOut {
		count[l.Why]++
		if len(why[l.Why]) < named {
			why[l.Why] = append(why[l.Why], l.User+"~"+l.Name)
		}
	}
	var rows [][]string
	for reason, names := range why {
		more := ""
		if n := count[reason] - len(names); n > 0 {
			more = fmt.Sprintf(" and %d more", n)
		}
		rows = append(rows, []string{strings.Join(names, ", ") + more, "jobs", "left out", reason})
	}
	slices.SortFunc(rows, func(a, b []string) int { return cmp.Compare(a[3], b[3]) })
	if n := r.LeftOutCount - len(r.LeftOut); n > 0 {
		rows = append(rows, []string{plural.Of(n, "further job"), "jobs", "left out", "-"})
	}
	return rows
}
