package assembly

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/url"
	"sync"
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

// openStatus returns a function that reads the state of the whole cluster as "paictl status" does, but without Secrets: of the configuration it reads the
// public part, and of releases the published facts.
func openStatus(o Options, cluster *kube.Cluster, jobs *job.Client, services *facts.Reporter) func(context.Context) (*status.Cluster, error) {
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
	var mu sync.Mutex
	var have *status.Cluster // a view asks for it every five seconds
	var at time.Time
	return func(ctx context.Context) (*status.Cluster, error) {
		mu.Lock()
		defer mu.Unlock()
		if have != nil && time.Since(at) < statusAge {
			return have, nil
		}
		own := *cluster
		own.Config = rest.CopyConfig(cluster.Config)
		f, err := status.New(&own, status.Options{Services: read, Web: openWeb(o), Scheduler: jobs.Scheduler, Now: o.Now})
		if err != nil {
			return nil, err
		}
		c, err := f.Once(ctx)
		if err != nil {
			o.Log.WarnContext(ctx, "the state of the cluster can't be read", "error", err.Error())
			return nil, &job.UnavailableError{Err: err}
		}
		have, at = c, time.Now()
		return c, nil
	}
}

// statusAge is for how long the state of the cluster is shown to others who ask.
const statusAge = 3 * time.Second

// webTime bounds an answer of Prometheus or Alertmanager.
const webTime = 20 * time.Second

// openWeb returns a function that asks Prometheus and Alertmanager at the addresses of the settings.
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
