package vc

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/openpai/paictl/pkg/hint"
	"github.com/openpai/paictl/pkg/httpserver/access"
	"github.com/openpai/paictl/pkg/kube"
	"github.com/openpai/paictl/pkg/scheduler/api"
	"github.com/openpai/paictl/pkg/scheduler/cell"
)

// service is the scheduler's Service in kube.SystemNamespace with the name of the API's port.
const service = "scheduler:http"

// answerTimeout is the timeout of one request. While the scheduler rebuilds its state, it doesn't respond for one or two
// seconds.
const answerTimeout = 15 * time.Second

// ErrNotRunning means that no scheduler responds. Either no scheduler was started, or no scheduler is the leader yet.
var ErrNotRunning = errors.New("the scheduler doesn't answer")

// ErrNotInstalled wraps ErrNotRunning for a cluster without a scheduler.
var ErrNotInstalled = fmt.Errorf("%w: it isn't installed", ErrNotRunning)

// Scheduler is a client of a cluster's scheduler. By default, it connects through the Kubernetes API server.
type Scheduler struct {
	client kubernetes.Interface
	// at is the scheduler's address. If at is nil, requests use the API server's proxy.
	at *url.URL

	mu    sync.Mutex
	read  time.Time
	token string
}

// NewScheduler returns a Scheduler that connects through the API server. It sends no requests.
func NewScheduler(client kubernetes.Interface) *Scheduler { return &Scheduler{client: client} }

// NewSchedulerAt returns a Scheduler that connects to a URL, such as the URL of the scheduler's Service inside the cluster. If
// at is "", the Scheduler connects through the API server.
func NewSchedulerAt(client kubernetes.Interface, at string) (*Scheduler, error) {
	s := NewScheduler(client)
	if at == "" {
		return s, nil
	}
	var err error
	if s.at, err = url.Parse(at); err != nil {
		return nil, fmt.Errorf("open the scheduler: %w", err)
	}
	return s, nil
}

// inside is the client for requests to the Service. It uses no proxy, because only pods can reach the Service.
var inside = &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 8, IdleConnTimeout: time.Minute}}

func (s *Scheduler) request(method, path string) *rest.Request {
	if s.at != nil {
		return kube.Direct(s.at, inside, method, path)
	}
	return s.client.CoreV1().RESTClient().Verb(method).Namespace(kube.SystemNamespace).Resource("services").Name(service).SubResource("proxy").Suffix(path)
}

// known returns the token for the scheduler's API. It returns "" if the token can't be read, and the scheduler then rejects the
// request. Schedulers of earlier versions need no token. refused is a token that the scheduler rejected, or "". If the cached
// token is refused, known reads the token again, because the token may have changed.
func (s *Scheduler) known(ctx context.Context, refused string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.read.IsZero() || refused != "" && refused == s.token && time.Since(s.read) >= readAgain {
		s.read = time.Now()
		held, err := s.client.CoreV1().Secrets(kube.SystemNamespace).Get(ctx, access.TokenSecret, metav1.GetOptions{})
		if err == nil {
			s.token = string(held.Data[access.TokenKey])
		}
	}
	return s.token
}

// readAgain is the minimum time between two reads of a rejected token.
const readAgain = 5 * time.Second

// VirtualClusters returns the resources and usage of all virtual clusters.
func (s *Scheduler) VirtualClusters(ctx context.Context) (*api.VirtualClusters, error) {
	out := &api.VirtualClusters{}
	return out, s.ask(ctx, s.request(http.MethodGet, api.PathVirtualClusters), "", out)
}

// Queue returns the waiting gangs that q selects. Schedulers of earlier versions ignore prefixes and the limit, so Queue also
// filters the response.
func (s *Scheduler) Queue(ctx context.Context, q api.QueueQuery) (*api.Queue, error) {
	r := s.request(http.MethodGet, api.PathQueue)
	for _, prefix := range q.Prefixes {
		r = r.Param("prefix", prefix)
	}
	if q.Limit > 0 {
		r = r.Param("limit", strconv.Itoa(q.Limit))
	}
	out := &api.Queue{}
	if err := s.ask(ctx, r, q.VC, out); err != nil {
		return out, err
	}
	out.Items = slices.DeleteFunc(out.Items, func(g api.Queued) bool { return !q.Selects(g.VC, g.Group) })
	out.Total = max(out.Total, len(out.Items))
	if q.Limit > 0 && len(out.Items) > q.Limit {
		out.Items = out.Items[:q.Limit]
	}
	return out, nil
}

// Why returns the state of a gang, and the reason why the gang waits.
func (s *Scheduler) Why(ctx context.Context, vc, group string) (*api.Why, error) {
	out := &api.Why{}
	return out, s.ask(ctx, s.request(http.MethodGet, api.PathWhy+group), vc, out)
}

// Nodes returns the GPUs of each machine and their use.
func (s *Scheduler) Nodes(ctx context.Context) (*api.Nodes, error) {
	out := &api.Nodes{}
	return out, s.ask(ctx, s.request(http.MethodGet, api.PathNodes), "", out)
}

// Outlook predicts whether pods would start if they were created now. It changes nothing.
func (s *Scheduler) Outlook(ctx context.Context, q *api.OutlookQuery) (*api.Outlook, error) {
	body, err := json.Marshal(q)
	if err != nil {
		return nil, fmt.Errorf("write the question: %w", err)
	}
	out := &api.Outlook{}
	return out, s.ask(ctx, s.request(http.MethodPost, api.PathOutlook).Body(body).SetHeader("Content-Type", "application/json"), "", out)
}

// Validate returns the effects of a configuration. It changes nothing.
func (s *Scheduler) Validate(ctx context.Context, configuration []byte) (*api.Validation, error) {
	out := &api.Validation{}
	return out, s.ask(ctx, s.request(http.MethodPost, api.PathValidate).Body(configuration).SetHeader("Content-Type", "application/yaml"), "", out)
}

func (s *Scheduler) ask(ctx context.Context, r *rest.Request, vc string, out any) error {
	ctx, cancel := context.WithTimeout(ctx, answerTimeout)
	defer cancel()
	if vc != "" {
		r = r.Param("vc", vc)
	}
	token := s.known(ctx, "")
	if token != "" {
		r = r.SetHeader(access.TokenHeader, token)
	}
	result := r.Do(ctx)
	body, _ := result.Raw()
	err := result.Error() // result.Error also contains the API server's message
	if token != "" && apierrors.IsForbidden(err) && said(body) != "" {
		if changed := s.known(ctx, token); changed != token {
			result = r.SetHeader(access.TokenHeader, changed).Do(ctx)
			body, _ = result.Raw()
			err = result.Error()
		}
	}
	if failed, ok := errors.AsType[*net.OpError](err); ok && s.at != nil {
		return fmt.Errorf("%w: none of its pods is ready: %s", ErrNotRunning, failed.Error())
	}
	switch {
	case err == nil:
	case apierrors.IsNotFound(err) && said(body) == "":
		return ErrNotInstalled
	case apierrors.IsServiceUnavailable(err), apierrors.IsTimeout(err), apierrors.IsServerTimeout(err):
		if text := said(body); text != "" {
			return fmt.Errorf("%w: %s", ErrNotRunning, text)
		}
		return fmt.Errorf("%w: none of its pods is ready", ErrNotRunning)
	case apierrors.IsForbidden(err) && said(body) != "":
		return hint.Wrap(&closedError{"ask the scheduler: " + said(body), err}, "ask an administrator for the roles of docs/jobs.md, \"Permissions\"")
	case errors.Is(ctx.Err(), context.DeadlineExceeded): // the client's own error may concern its rate limit
		return fmt.Errorf("ask the scheduler: no answer in time: %w", ctx.Err())
	default:
		if text := said(body); text != "" {
			return fmt.Errorf("ask the scheduler: %s", text)
		}
		return fmt.Errorf("ask the scheduler: %w", err)
	}
	if err := json.Unmarshal(body, out); err != nil {
		return fmt.Errorf("read the scheduler's answer: %w", err)
	}
	return nil
}

// closedError means that the scheduler rejected a request because its token was missing or wrong.
type closedError struct {
	text string
	err  error
}

func (e *closedError) Error() string { return e.text }
func (e *closedError) Unwrap() error { return e.err }

// said returns the scheduler's own message, or "" if the response comes from the API server.
func said(body []byte) string {
	var text string
	if json.Unmarshal(body, &text) != nil {
		return ""
	}
	text = strings.TrimPrefix(text, "hivedscheduler: User Error: ")
	return strings.TrimPrefix(text, "hivedscheduler: Platform Error: ")
}

// Await waits until the scheduler uses changes of virtual clusters, and returns the result of ask. It retries after errors of
// ask until ctx ends. problem is the scheduler's problem with the configuration before the change.
func Await(ctx context.Context, ask func(context.Context) (*api.VirtualClusters, error), changes []api.ChangedVirtualCluster, problem string, every time.Duration) (*api.VirtualClusters, error) {
	tick := time.NewTicker(every)
	defer tick.Stop()
	for {
		now, err := ask(ctx)
		switch {
		case err == nil && made(changes, now.Items) && now.Problem == "":
			return now, nil
		case err == nil && now.Problem != "" && now.Problem != problem:
			return now, hint.Errorf("running jobs continue. Correct it with: paictl vc set; or revert it with: paictl config rollback",
				"the scheduler refuses the configuration: %s", now.Problem)
		}
		select {
		case <-ctx.Done():
			return nil, hint.Wrap(fmt.Errorf("the scheduler doesn't use the new configuration yet: %w", context.Cause(ctx)),
				"it is in the cluster; see: paictl vc list; paictl service logs -n scheduler")
		case <-tick.C:
		}
	}
}

// made reports whether the virtual clusters are in the state after the changes.
func made(changes []api.ChangedVirtualCluster, now []api.VirtualCluster) bool {
	for i := range changes {
		c := &changes[i]
		at := slices.IndexFunc(now, func(v api.VirtualCluster) bool { return v.Name == c.Name })
		if (at >= 0) != (c.After != nil) || at >= 0 && !c.After.SameOwner(&now[at]) {
			return false
		}
	}
	return true
}

// Configured returns the virtual clusters of a configuration as the scheduler reports them without any gangs.
func Configured(c cell.Config) []api.VirtualCluster {
	out := api.Owners(c)
	core, err := cell.New(c)
	if err != nil {
		return out
	}
	for _, stats := range core.Stats().VirtualClusters {
		for i := range out {
			if out[i].Name != stats.Name {
				continue
			}
			out[i].Guaranteed = stats.Guaranteed
			if n := stats.CPU.Guaranteed; n > 0 {
				out[i].CPU = &cell.CPUStats{Guaranteed: n}
			}
		}
	}
	return out
}
