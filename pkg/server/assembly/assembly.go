// Package assembly assembles a server from people, tokens, jobs, and their routes. In: the connection to a cluster, and settings. Out: a server, and
// the parts that must run together with the server.
package assembly

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"

	"github.com/openpai/paictl/pkg/audit"
	"github.com/openpai/paictl/pkg/diagnose/metrics"
	"github.com/openpai/paictl/pkg/job"
	"github.com/openpai/paictl/pkg/job/cache"
	"github.com/openpai/paictl/pkg/job/logs"
	"github.com/openpai/paictl/pkg/kube"
	"github.com/openpai/paictl/pkg/people"
	"github.com/openpai/paictl/pkg/people/onetime"
	"github.com/openpai/paictl/pkg/people/signin"
	"github.com/openpai/paictl/pkg/people/template"
	"github.com/openpai/paictl/pkg/people/token"
	v1 "github.com/openpai/paictl/pkg/people/v1"
	"github.com/openpai/paictl/pkg/portal"
	"github.com/openpai/paictl/pkg/server"
	"github.com/openpai/paictl/pkg/server/app"
	"github.com/openpai/paictl/pkg/server/idempotency"
	"github.com/openpai/paictl/pkg/server/openapi"
	"github.com/openpai/paictl/pkg/server/pages"
	"github.com/openpai/paictl/pkg/server/settings"
	v2 "github.com/openpai/paictl/pkg/server/v2"
	v3 "github.com/openpai/paictl/pkg/server/v3"
	"github.com/openpai/paictl/pkg/status"
	"github.com/openpai/paictl/pkg/version"
)

// Lease is the name of the lease that the leading replica holds. The leading replica maintains keys and tokens.
const Lease = "pai-server"

// The duration of the lease, the deadline of its renewal, and the interval between attempts.
const (
	leaseTime = 30 * time.Second
	renewTime = 20 * time.Second
	askTime   = 5 * time.Second
)

// Options configure an Assembly.
type Options struct {
	Config   *rest.Config
	Settings *settings.Settings
	// HistoryURL and SchedulerURL have the same meaning as in job.Options.
	HistoryURL, SchedulerURL string
	// AccessFile is the file with the password that the proxy sends to the platform's own services. "" means no password.
	AccessFile string
	// Credentials is the folder with the secrets of issuers and directories, one file for each secret. "" means no secrets.
	Credentials string
	// SystemNamespace is the namespace of the lease. Identity is the name of this replica in the lease. If Identity is empty, this is the only
	// replica, and it leads.
	SystemNamespace, Identity string
	// Leading is called when this replica begins to lead. Its context ends when the replica stops leading. Leading may be nil.
	Leading func(context.Context)
	// Audit receives a line of JSON for each audit record.
	Audit io.Writer
	// BuiltIn holds job templates for all users.
	BuiltIn []v1.TemplateSpec
	Metrics prometheus.Registerer
	Log     *slog.Logger
	Now     func() time.Time // nil is time.Now
}

// Assembly is a server with all its parts.
type Assembly struct {
	Server *server.Server
	// Proxy serves the origin of the pages of other services.
	Proxy  *server.Server
	People *people.Directory
	Tokens *token.Service
	SignIn *signin.Service
	Cache  *cache.Cache
	// Templates holds the job templates. Ready doesn't wait for them, because the other functions don't need templates.
	Templates *template.Store

	o       Options
	client  kubernetes.Interface
	audit   *audit.Sink
	actions *app.ActionWatch
	keys    *idempotency.Store
	again   *signin.Recheck
	once    *onetime.Store
	status  *status.Shared
}

// New assembles a server. It sends no requests.
func New(o Options) (*Assembly, error) {
	client, err := kubernetes.NewForConfig(o.Config)
	if err != nil {
		return nil, fmt.Errorf("connect to the API server: %w", err)
	}
	a := &Assembly{o: o, client: client, keys: idempotency.New(client, o.Now)}
	cluster := &kube.Cluster{Config: o.Config, Client: client, Server: o.Config.Host, Context: "pai-server", Program: true}
	jobs, err := job.NewAt(cluster, job.Options{HistoryURL: o.HistoryURL, SchedulerURL: o.SchedulerURL})
	if err != nil {
		return nil, err
	}
	a.Cache = cache.New(jobs, o.Log)
	if a.People, err = people.Open(o.Config, people.Options{Owns: jobs.Owns}); err != nil {
		return nil, err
	}
	if a.Templates, err = template.Open(o.Config, template.Options{Log: o.Log, Now: o.Now, BuiltIn: o.BuiltIn}); err != nil {
		return nil, err
	}
	lifetimes := token.Lifetimes{Browser: o.Settings.Tokens.BrowserLifetime(), Refresh: o.Settings.Tokens.RefreshLifetime(), Rotate: o.Settings.Tokens.KeyLifetime()}
	if a.Tokens, err = token.Open(o.Config, a.People, token.Options{Lifetimes: lifetimes, Now: o.Now}); err != nil {
		return nil, err
	}
	who, err := openProviders(o)
	if err != nil {
		return nil, err
	}
	a.SignIn = signin.New(a.People, who.passwords, signin.Options{Now: o.Now, Log: o.Log, Policies: who.policies, ProvidersOnly: !o.Settings.SignIn.Password.Enabled, Addresses: func(name string) (all []string) {
		for _, r := range a.Tokens.Of(name) {
			all = append(all, r.Address)
		}
		return all
	}})
	a.again = &signin.Recheck{People: a.People, Tokens: a.Tokens, Checkers: who.checkers, Policies: who.policies, ProvidersOnly: !o.Settings.SignIn.Password.Enabled,
		Every: o.Settings.SignIn.Recheck.Every(), Grace: o.Settings.SignIn.Recheck.Grace(), Now: o.Now, Log: o.Log}
	if a.once, err = onetime.Open(o.Config, o.Now); err != nil {
		return nil, err
	}
	a.audit = audit.NewSink(audit.NewLines(o.Audit, o.Log), jobs.History, func(err error) bool {
		_, wrong := errors.AsType[*job.RefusedError](err)
		return wrong
	}, o.Log)
	if o.Metrics != nil {
		o.Metrics.MustRegister(
			prometheus.NewCounterFunc(prometheus.CounterOpts{Name: "pai_server_audit_left_out_total", Help: "Refusals that are not in the audit, because there were many of one actor or network."},
				func() float64 { return float64(a.audit.Dropped()) }),
			prometheus.NewCounterFunc(prometheus.CounterOpts{Name: "pai_server_audit_lost_total", Help: "Records of the audit that were printed and never kept, because too many waited."},
				func() float64 { _, lost := a.audit.Waiting(); return float64(lost) }))
	}
	services := newReporter(o, cluster)
	a.status = openStatus(o, cluster, jobs, services)
	core := &app.App{People: a.People, Tokens: a.Tokens, SignIn: a.SignIn, Jobs: jobs, Lister: a.Cache, Audit: a.audit, Keys: a.keys, Now: o.Now, Templates: a.Templates,
		Most:      app.Most{Jobs: o.Settings.Limits.LiveJobs, Tasks: o.Settings.Limits.LiveTasks},
		LogMemory: &logs.Memory{Each: 32 << 20, All: 96 << 20}, PasswordSignIn: o.Settings.SignIn.Password.Enabled,
		Issuers: who.issuers, Once: a.once, At: o.Settings.URL(), ReturnPages: o.Settings.SignIn.ReturnPages, Status: a.status, Services: openServices(o, services),
		Metrics: &metrics.Reader{Ask: openWeb(o), Failed: func(err error) { o.Log.Warn("Prometheus can't be asked", "error", err.Error()) }}}
	if core.Actions, err = app.OpenActions(o.Config, o.Log); err != nil {
		return nil, err
	}
	a.actions = core.Actions
	if core.Alerts, err = openAlerts(o); err != nil {
		return nil, err
	}
	through, err := openDoor(o)
	if err != nil {
		return nil, err
	}
	limits := server.Limits{PerMinute: o.Settings.Limits.PerMinute, PerTokenMinute: o.Settings.Limits.PerTokenMinute, ChangesPerHour: o.Settings.Limits.ChangesPerHour, SubmitPerHour: o.Settings.Limits.SubmitPerHour, Streams: o.Settings.Limits.Streams}
	routes := slices.Concat(v2.Routes(version.Version), v3.Routes(version.Version), pages.Routes(through.Links()))
	described, err := openapi.Route(version.Version, routes) // without the proxied services, which describe themselves, and the portal, which is for browsers
	if err != nil {
		return nil, err
	}
	a.Server = server.New(server.Options{
		App: core, Routes: slices.Concat(routes, []server.Route{described}, portal.Routes(), through.OwnRoutes()), Limits: limits,
		Log: o.Log, Metrics: o.Metrics, TrustedProxies: o.Settings.TrustedProxies, Now: o.Now,
	})
	a.Proxy = a.Server.Proxied(through.Routes())
	return a, nil
}

// Ready returns nil if the server can serve requests, otherwise an error with the reason.
func (a *Assembly) Ready() error {
	if !a.Cache.Filled() {
		return errors.New("waiting for the API server: the jobs have not been read yet")
	}
	return errors.Join(a.People.Fresh(), a.Tokens.Fresh())
}

// Parts returns the functions that run together with the server until the context ends. A function that returns earlier has failed.
func (a *Assembly) Parts() []func(context.Context) error {
	return []func(context.Context) error{a.People.Run, a.Tokens.Run, a.Templates.Run, a.Cache.Run, a.audit.Run, a.status.Run, a.actions.Run, a.tend}
}

// tend runs lead whenever this replica leads, until the context ends.
func (a *Assembly) tend(ctx context.Context) error {
	if a.o.Identity == "" {
		return a.lead(ctx)
	}
	terms := make(chan context.Context) // one for each term as the leader
	return Together(ctx, func(ctx context.Context) error { return a.stand(ctx, terms) }, func(ctx context.Context) error {
		for {
			select {
			case held := <-terms:
				// The next term begins only after lead has returned, because lead may still store responses of issuers. The server also ends only
				// after that.
				if err := a.lead(held); err != nil && held.Err() == nil {
					a.o.Log.ErrorContext(held, "look after keys, tokens and people", "error", err.Error())
				}
			case <-ctx.Done():
				return nil
			}
		}
	})
}

// stand takes part in elections until the context ends. It sends the context of each term that this replica wins.
func (a *Assembly) stand(ctx context.Context, terms chan<- context.Context) error {
	lock := &resourcelock.LeaseLock{LeaseMeta: metav1.ObjectMeta{Namespace: a.o.SystemNamespace, Name: Lease}, Client: a.client.CoordinationV1(),
		LockConfig: resourcelock.ResourceLockConfig{Identity: a.o.Identity}}
	for ctx.Err() == nil {
		e, err := leaderelection.NewLeaderElector(leaderelection.LeaderElectionConfig{
			Lock: lock, LeaseDuration: leaseTime, RenewDeadline: renewTime, RetryPeriod: askTime, ReleaseOnCancel: true, Name: Lease,
			Callbacks: leaderelection.LeaderCallbacks{
				OnStartedLeading: func(held context.Context) {
					select {
					case terms <- held:
					case <-held.Done():
					}
				},
				OnStoppedLeading: func() {},
			},
		})
		if err != nil {
			return fmt.Errorf("stand for election: %w", err)
		}
		e.Run(ctx) // it returns after the lease was lost, and then takes part again
	}
	return nil
}

// tidyEvery is the interval between two deletions of old submissions.
const tidyEvery = 10 * time.Minute

// lead runs the parts that may run in only one replica, until ctx ends.
func (a *Assembly) lead(ctx context.Context) error {
	parts := []func(context.Context) error{a.Tokens.Tend, a.tidy, a.again.Run, func(ctx context.Context) error {
		a.once.Tend(ctx, func(err error) {
			a.o.Log.WarnContext(ctx, "delete codes that have expired", "error", err.Error())
		})
		return nil
	}}
	if a.o.Leading != nil {
		parts = append(parts, func(ctx context.Context) error { a.o.Leading(ctx); return nil })
	}
	return Together(ctx, parts...)
}

func (a *Assembly) tidy(ctx context.Context) error {
	for {
		if err := a.keys.Tidy(ctx); err != nil && ctx.Err() == nil {
			a.o.Log.WarnContext(ctx, "forget old submissions", "error", err.Error())
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(tidyEvery):
		}
	}
}

// Together runs functions concurrently. When the first function returns, Together cancels the others, and returns the error of the first.
func Together(ctx context.Context, parts ...func(context.Context) error) error {
	inner, cancel := context.WithCancel(ctx)
	defer cancel()
	ended := make(chan error, len(parts))
	for _, part := range parts {
		go func() { ended <- part(inner) }()
	}
	first := <-ended
	stopped := ctx.Err() != nil
	cancel()
	for range parts[1:] {
		<-ended
	}
	if stopped {
		return nil
	}
	return first
}
