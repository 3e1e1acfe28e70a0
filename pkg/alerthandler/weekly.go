package alerthandler

import (
	"context"
	"io"
	"net/http"
	"net/url"
	"os"
	"strings"
	"sync"
	"time"

	"k8s.io/client-go/kubernetes"

	"github.com/openpai/paictl/pkg/alerthandler/notify"
	"github.com/openpai/paictl/pkg/alerthandler/policy"
	measurements "github.com/openpai/paictl/pkg/diagnose/metrics"
	"github.com/openpai/paictl/pkg/diagnose/web"
	"github.com/openpai/paictl/pkg/httpserver/access"
	"github.com/openpai/paictl/pkg/job"
	"github.com/openpai/paictl/pkg/job/listing"
	"github.com/openpai/paictl/pkg/job/report"
	"github.com/openpai/paictl/pkg/kube"
)

// ReportOptions configure the sources of the figures in weekly reports.
type ReportOptions struct {
	// JobController and Prometheus are URLs. If JobController is empty, requests go through the API server. If Prometheus is empty, the cluster has
	// no Prometheus.
	JobController, Prometheus string
	// AccessFile is the file with the password for Prometheus. Empty means that no password is sent.
	AccessFile string
	// Sources overrides all other fields in tests.
	Sources *report.Sources
}

const (
	// weeklyLook is the time between two checks whether a report is due. weeklySoon applies before the caches are synced. weeklyRetry applies after a
	// report couldn't be made.
	weeklyLook  = time.Minute
	weeklySoon  = 100 * time.Millisecond
	weeklyRetry = 10 * time.Minute
	// weeklyTime limits the time to make a report. weeklyWithin is the maximum delay of a report, because unsent notices are discarded after a day.
	weeklyTime   = 5 * time.Minute
	weeklyWithin = 23 * time.Hour
	// weeklyRows limits the rows in each table of a report.
	weeklyRows = 40
	// webTime limits the response time of Prometheus.
	webTime = 20 * time.Second
)

// weekly makes the weekly report when it is due and at least one receiver has chosen the report.
type weekly struct {
	sources report.Sources
	mu      sync.Mutex
	at      time.Time // of the report
	report  *report.Report
}

func (h *Handler) newWeekly() (*weekly, error) {
	o := &h.o.Reports
	if o.Sources != nil {
		return &weekly{sources: *o.Sources}, nil
	}
	core, err := kubernetes.NewForConfig(h.o.Config)
	if err != nil {
		return nil, err
	}
	jobs, err := job.NewAt(&kube.Cluster{Config: h.o.Config, Client: core, Server: h.o.Config.Host, Context: Name, Program: true}, job.Options{HistoryURL: o.JobController})
	if err != nil {
		return nil, err
	}
	reader := &measurements.Reader{Ask: o.prometheus()}
	return &weekly{sources: report.Sources{Usage: jobs.History.Usage, Occupied: reader.Occupied, Now: h.o.Now,
		Jobs: func(ctx context.Context, f listing.Filter) (*listing.Page, error) { return jobs.History.List(ctx, f) }}}, nil
}

// prometheus returns a function that sends a query to Prometheus and returns the response body.
func (o *ReportOptions) prometheus() func(ctx context.Context, service, path string, query url.Values) (io.ReadCloser, error) {
	client := &http.Client{Timeout: webTime, Transport: &http.Transport{DisableKeepAlives: true}} // it ignores the proxies of the environment
	return func(ctx context.Context, service, path string, query url.Values) (io.ReadCloser, error) {
		if o.Prometheus == "" {
			return nil, &web.NoneError{Service: service}
		}
		at, err := url.JoinPath(o.Prometheus, path)
		if err != nil {
			return nil, err
		}
		r, err := http.NewRequestWithContext(ctx, http.MethodGet, at+"?"+query.Encode(), http.NoBody)
		if err != nil {
			return nil, err
		}
		if o.AccessFile != "" {
			password, err := os.ReadFile(o.AccessFile)
			if err != nil {
				return nil, err
			}
			r.SetBasicAuth(access.User, strings.TrimRight(string(password), "\r\n"))
		}
		return web.Answer(client, r, service)
	}
}

func (h *Handler) tell(ctx context.Context) {
	var all sync.WaitGroup
	defer all.Wait()
	all.Go(func() { h.makeReports(ctx) })
	h.notifier.Run(ctx, h.news)
}

func (h *Handler) makeReports(ctx context.Context) {
	for ctx.Err() == nil {
		after := weeklyLook
		if !h.Synced() || h.people.Fresh() != nil {
			after = weeklySoon
		} else if err := h.makeReport(ctx); err != nil && ctx.Err() == nil {
			h.o.Log.WarnContext(ctx, "make the weekly report", "error", err.Error())
			after = weeklyRetry
		}
		timer := time.NewTimer(after)
		select {
		case <-ctx.Done():
		case <-timer.C:
		}
		timer.Stop()
	}
}

// makeReport makes the report that is due, unless the report already exists, is too late, or has no receivers.
func (h *Handler) makeReport(ctx context.Context) error {
	now := h.o.Now()
	at := notify.WeeklyAt(now)
	if now.Sub(at) > weeklyWithin || h.weekly.made(at) != nil || len(h.readers()) == 0 && !h.o.Notify.WeeklyReport {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, weeklyTime)
	defer cancel()
	until := at.Truncate(24 * time.Hour)
	r, err := report.Make(ctx, h.weekly.sources, report.Query{Since: until.AddDate(0, 0, -7), Until: until})
	if err != nil {
		return err
	}
	h.weekly.mu.Lock()
	h.weekly.at, h.weekly.report = at, r
	h.weekly.mu.Unlock()
	h.wake()
	return nil
}

// made returns the report that was due at a time, or nil if the report doesn't exist.
func (w *weekly) made(at time.Time) *report.Report {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.at.Equal(at) {
		return nil
	}
	return w.report
}

func (h *Handler) readers() (out []notify.Person) {
	for _, p := range h.people.Users() {
		if n := p.User.Spec.Notifications; n != nil && n.WeeklyReport {
			if one := h.person(p.Name); one.Chosen != nil {
				out = append(out, one)
			}
		}
	}
	return out
}

// weeklyNotice returns the data of the weekly report for the notifier, or nil if the report doesn't exist or is too late.
func (h *Handler) weeklyNotice(now time.Time) *notify.Weekly {
	at := notify.WeeklyAt(now)
	r := h.weekly.made(at)
	if r == nil || now.Sub(at) > weeklyWithin {
		return nil
	}
	clean := func(text string) string { return policy.OneLine(text, 200) }
	return &notify.Weekly{At: at, For: h.readers(), Whole: func() string { return r.Text(weeklyRows, clean) }, Of: func(name string) string { return r.Of(name).Text(weeklyRows, clean) }}
}
