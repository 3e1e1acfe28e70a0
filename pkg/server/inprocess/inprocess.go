// Package inprocess runs the server inside paictl for users who have the cluster's kubeconfig. It provides the routes, rules and audit of pai-server
// even if pai-server isn't running. In: a kubeconfig's connection. Out: a dialer for connections to the server. All requests over these connections
// are requests of the operator.
package inprocess

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	authv1 "k8s.io/api/authentication/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/openpai/paictl/pkg/audit"
	"github.com/openpai/paictl/pkg/diagnose/alerts"
	"github.com/openpai/paictl/pkg/diagnose/metrics"
	"github.com/openpai/paictl/pkg/diagnose/web"
	"github.com/openpai/paictl/pkg/hint"
	"github.com/openpai/paictl/pkg/job"
	"github.com/openpai/paictl/pkg/kube"
	"github.com/openpai/paictl/pkg/people"
	"github.com/openpai/paictl/pkg/people/rules"
	"github.com/openpai/paictl/pkg/people/template"
	"github.com/openpai/paictl/pkg/people/token"
	v1 "github.com/openpai/paictl/pkg/people/v1"
	"github.com/openpai/paictl/pkg/scheduler/api"
	"github.com/openpai/paictl/pkg/server"
	"github.com/openpai/paictl/pkg/server/app"
	v3 "github.com/openpai/paictl/pkg/server/v3"
	"github.com/openpai/paictl/pkg/services/state"
)

// HeaderFor is the header with the name of the person for whom the operator acts. The name is query-escaped. Only this server reads the header.
const HeaderFor = "Impersonate-User"

// Options configure a Server.
type Options struct {
	Cluster *kube.Cluster
	Version string
	Log     *slog.Logger
	// Configured returns the virtual clusters when no scheduler responds. If Configured is nil, the virtual clusters of the scheduler's last
	// configuration are used.
	Configured func(context.Context) ([]api.VirtualCluster, error)
	// Status reads the state of the whole cluster. It may be nil.
	Status app.StatusSource
	// Services reads the state of the platform's services. It may be nil.
	Services func(context.Context) (*state.Report, error)
	// Web sends a request to the HTTP API of a service of the platform. If Web is nil, such requests are sent through the API server.
	Web func(ctx context.Context, service, path string, query url.Values) (io.ReadCloser, error)
	// Author is recorded as the author of changes in the history of the configuration.
	Author string
	// Unaudited is called if a change couldn't be written to the audit log. It may be nil.
	Unaudited func(error)
}

// Server serves the operator's requests. It starts with the first connection, and runs until the program ends.
type Server struct {
	o       Options
	jobs    *job.Client
	people  *people.Directory
	tokens  *token.Service
	list    *template.Store
	core    *app.App
	server  *server.Server
	pipe    *pipe
	started sync.Once
	silent  atomic.Bool // the audit didn't answer in time

	mu   sync.Mutex
	user string // the user of the kubeconfig; "" until the API server was queried

	reading  sync.Mutex
	read     time.Time // when the people were read; zero: not yet
	prepared bool      // the first change found that the definitions and groups exist
}

// New returns a server. It sends no requests to the cluster.
func New(o Options) (*Server, error) {
	s := &Server{o: o, pipe: newPipe()}
	var err error
	if s.jobs, err = job.New(o.Cluster); err != nil {
		return nil, err
	}
	s.jobs.Configured = o.Configured
	pages := web.New(o.Cluster)
	if s.o.Web == nil {
		s.o.Web = pages.Get
	}
	alertmanager, err := alerts.New(alerts.Options{Send: sender(pages)})
	if err != nil {
		return nil, err
	}
	if s.people, err = people.Open(o.Cluster.Config, people.Options{Owns: s.jobs.Owns}); err != nil {
		return nil, err
	}
	if s.tokens, err = token.Open(o.Cluster.Config, s.people, token.Options{}); err != nil {
		return nil, err
	}
	builtIn, err := template.BuiltIn()
	if err != nil {
		return nil, err
	}
	if s.list, err = template.Open(o.Cluster.Config, template.Options{BuiltIn: builtIn}); err != nil {
		return nil, err
	}
	s.core = &app.App{People: s.people, Tokens: s.tokens, Templates: s.list, Jobs: s.jobs, Audit: s, Lister: lister{s.jobs}, Author: o.Author, Status: o.Status, Services: o.Services, Alerts: alertmanager,
		Metrics: &metrics.Reader{Ask: s.o.Web}}
	s.server = server.New(server.Options{App: s.core, Routes: v3.Routes(o.Version), Limits: server.Limits{Unlimited: true}, Log: o.Log, Caller: s.caller, Reveal: s.reveal})
	return s, nil
}

func sender(pages *web.Client) func(ctx context.Context, method, path string, query url.Values, body []byte) (int, []byte, error) {
	return func(ctx context.Context, method, path string, query url.Values, body []byte) (int, []byte, error) {
		status, answer, err := pages.Do(ctx, method, "alert-manager", path, query, body)
		if _, none := errors.AsType[*web.NoneError](err); none {
			err = hint.Wrap(alerts.ErrNone, "start it with: paictl service start -n alert-manager")
		}
		return status, answer, err
	}
}

// Dial returns a connection to the server, and starts the server if necessary.
func (s *Server) Dial(ctx context.Context, _, _ string) (net.Conn, error) {
	s.started.Do(func() {
		go func() { _ = s.server.HTTP(s.server).Serve(s.pipe) }() // it ends with the program
	})
	return s.pipe.dial(ctx)
}

// reveal returns the text and the remedy of an error of the cluster. Other servers hide such errors, but the operator may read them.
func (s *Server) reveal(err error) (message, remedy string) {
	if aboutPeople(err) {
		err = s.o.Cluster.Explain(err) // the remedy of pkg/job is a role for jobs
	}
	err = s.jobs.Explain(err)
	return err.Error(), hint.Of(err)
}

// aboutPeople reports whether the API server denied access to an object with data about people.
func aboutPeople(err error) bool {
	status := apierrors.APIStatus(nil)
	if !apierrors.IsForbidden(err) || !errors.As(err, &status) {
		return false
	}
	d := status.Status().Details
	return d != nil && d.Group == v1.GroupVersion.Group || strings.Contains(err.Error(), strconv.Quote(v1.Namespace))
}

// caller reads the objects that the request needs, and returns the operator.
func (s *Server) caller(r *http.Request) (app.Caller, error) {
	if err := s.load(r); err != nil {
		return app.Caller{}, err
	}
	as, err := url.QueryUnescape(r.Header.Get(HeaderFor))
	if err != nil {
		return app.Caller{}, fmt.Errorf("%s: %w", HeaderFor, err)
	}
	return s.core.Operator(s.operator, as), nil
}

// load reads the objects that a request needs, because this server has no watches.
func (s *Server) load(r *http.Request) error {
	route := s.server.Match(r)
	if route == nil {
		return nil
	}
	kind, _, _ := strings.Cut(route.Rule, ".")
	ctx := r.Context()
	writes := r.Method == http.MethodPost || r.Method == http.MethodPut
	switch kind {
	case "user", "group":
		return s.loadPeople(ctx, writes)
	case "token":
		if err := s.loadPeople(ctx, writes); err != nil {
			return err
		}
		if err := s.tokens.Load(ctx); writes || !apierrors.IsNotFound(err) {
			return err
		}
		return nil // a cluster without the definition of Users has no tokens
	case "template", "templates":
		if !writes {
			if err := s.list.Load(ctx); !errors.Is(err, people.ErrUnprepared) {
				return err
			}
			return nil // the cluster has the built-in templates
		}
		if err := s.loadPeople(ctx, false); err != nil { // authors and groups
			return err
		}
		err := s.list.Load(ctx)
		if errors.Is(err, people.ErrUnprepared) { // the first template of a cluster
			if err = s.loadPeople(ctx, true); err == nil {
				err = s.list.Load(ctx)
			}
		}
		return err
	}
	return nil
}

// peopleAge is how long the server uses people that it has read. A command with many changes then doesn't read them again for each change. Changes of
// this server take effect at once. Changes by others become visible after a similar delay as in pai-server. The API server rejects a change that is
// based on an old version.
const peopleAge = 5 * time.Second

// loadPeople reads the people. If prepare is true, it first creates the definitions and groups that a cluster needs before the first change.
func (s *Server) loadPeople(ctx context.Context, prepare bool) error {
	s.reading.Lock()
	defer s.reading.Unlock()
	if prepare && !s.prepared {
		if err := s.people.Prepare(ctx); err != nil {
			return err
		}
		s.prepared = true
	}
	if !s.read.IsZero() && time.Since(s.read) < peopleAge {
		return nil
	}
	if err := s.people.Load(ctx); err != nil {
		return err
	}
	s.read = time.Now()
	return nil
}

// operator returns the name of the kubeconfig's user in the API server, or "unknown".
func (s *Server) operator(ctx context.Context) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.user == "" {
		s.user = "unknown"
		review, err := s.o.Cluster.Client.AuthenticationV1().SelfSubjectReviews().Create(ctx, &authv1.SelfSubjectReview{}, metav1.CreateOptions{})
		if err == nil && review.Status.UserInfo.Username != "" {
			s.user = review.Status.UserInfo.Username
		}
	}
	return s.user
}

// auditTime limits how long a change waits until its audit record is stored.
var auditTime = 10 * time.Second

// Write stores an audit record. It waits for the response, because the program may end soon.
func (s *Server) Write(ctx context.Context, r audit.Record) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), auditTime)
	defer cancel()
	if s.silent.Load() {
		return // so that a command with many changes waits only once
	}
	if err := s.jobs.History.SaveAudit(ctx, []audit.Record{r}); err != nil {
		s.silent.Store(ctx.Err() != nil)
		// Don't report a missing record for the role job-user, because that role has no access to the audit log. Failed attempts have changed
		// nothing, so their records aren't important.
		jobUser := r.Kind == string(rules.KindJob) && errors.Is(err, job.ErrClosed)
		if s.o.Unaudited != nil && r.Outcome == audit.Done && !jobUser {
			s.o.Unaudited(err)
		}
	}
}
