package assembly

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/url"
	"time"

	"k8s.io/client-go/rest"

	"github.com/openpai/paictl/pkg/config/store"
	"github.com/openpai/paictl/pkg/diagnose/web"
	"github.com/openpai/paictl/pkg/httpserver/access"
	"github.com/openpai/paictl/pkg/job"
	"github.com/openpai/paictl/pkg/kube"
	"github.com/openpai/paictl/pkg/layout"
	"github.com/openpai/paictl/pkg/services/facts"
	"github.com/openpai/paictl/pkg/services/state"
	"github.com/openpai/paictl/pkg/status"
)

// openStatus returns a reader of the state of the whole cluster. The reader works like "paictl status", but reads no Secrets. Instead it reads the
// public part of the configuration, and the published facts about releases.
func openStatus(o Options, cluster *kube.Cluster, jobs *job.Client, services *facts.Reporter) *status.Shared {
	held := store.New(cluster.Client)
	read := func(ctx context.Context, known func(string, *layout.Layout)) ([]state.Status, error) {
		p, err := held.Public(ctx)
		if err != nil {
			return nil, err
		}
		known(p.Cluster.Kubernetes.Kubernetes.ClusterName, &p.Cluster.Layout)
		report, err := services.Report(ctx)
		if errors.Is(err, facts.ErrNone) {
			return nil, &status.AbsentError{Err: err}
		}
		if err != nil {
			return nil, err
		}
		return report.Explained(), nil
	}
	return &status.Shared{Open: func() (*status.Follower, error) {
		own := *cluster
		own.Config = rest.CopyConfig(cluster.Config)
		return status.New(&own, status.Options{Services: read, Web: openWeb(o), Scheduler: jobs.Scheduler, Now: o.Now, Every: statusEvery})
	}}
}

// statusEvery is the minimum time between two computations of the cluster's state.
const statusEvery = 250 * time.Millisecond

// webTime limits the response time of Prometheus or Alertmanager.
const webTime = 20 * time.Second

// openWeb returns a function that sends requests to Prometheus and Alertmanager at the configured addresses.
func openWeb(o Options) func(ctx context.Context, service, path string, query url.Values) (io.ReadCloser, error) {
	client := &http.Client{Timeout: webTime, Transport: &http.Transport{DisableKeepAlives: true}} // it ignores the proxies of the environment
	return func(ctx context.Context, service, path string, query url.Values) (io.ReadCloser, error) {
		base, open := o.Settings.Door[service].URL, o.Settings.Door[service].Password
		if service == "alert-manager" {
			base, open = o.Settings.Alerts.URL, o.Settings.Alerts.Password
		}
		if base == "" {
			return nil, &web.NoneError{Service: service}
		}
		at, err := url.JoinPath(base, path)
		if err != nil {
			return nil, err
		}
		r, err := http.NewRequestWithContext(ctx, http.MethodGet, at+"?"+query.Encode(), http.NoBody)
		if err != nil {
			return nil, err
		}
		if password := servicePassword(o); open && password != nil {
			text, err := password()
			if err != nil {
				return nil, err
			}
			r.SetBasicAuth(access.User, text.Reveal())
		}
		return web.Answer(client, r, service)
	}
}
