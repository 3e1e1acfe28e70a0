package job

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/openpai/paictl/pkg/hint"
	"github.com/openpai/paictl/pkg/job/api"
	"github.com/openpai/paictl/pkg/kube"
	"github.com/openpai/paictl/pkg/node/logstore/logapi"
)

// ErrNoController is returned if the job controller doesn't respond, because it was not started or none of its pods is ready. Jobs that still exist
// in the API can be shown without the controller.
var ErrNoController = errors.New("the job controller doesn't answer")

// ErrAway is returned for a temporary failure, while the job controller or a program that it depends on is restarted.
var ErrAway = errors.New("not now")

// ErrElsewhere is returned for a copy of the history that can't be made, because a database server keeps the history.
var ErrElsewhere = errors.New("the history of jobs is in a database server")

// away marks an error as temporary, so that errors.Is finds ErrAway.
type away struct{ error }

// Is reports whether target is ErrAway.
func (away) Is(target error) bool { return target == ErrAway }

// Unwrap returns the underlying error.
func (e away) Unwrap() error { return e.error }

// remedyController is the advice if the job controller doesn't respond.
const remedyController = "look at it with: paictl service status -n job-controller; start it with: paictl service start -n job-controller"

// remedyRight is the advice if the user doesn't have a necessary right.
const remedyRight = "ask an administrator for the role job-user: docs/jobs.md, \"Permissions\", has it"

// ErrClosed means that the caller may not read the history. The job controller may be running.
var ErrClosed = errors.New("you may not read the history of jobs")

// closed is an ErrClosed with its reason. It is also an ErrNoController, so that jobs that still exist in the API are shown.
type closed struct{ why string }

func (e *closed) Error() string { return ErrClosed.Error() + ": " + e.why }

// Is reports whether target is ErrClosed or ErrNoController.
func (*closed) Is(target error) bool { return target == ErrClosed || target == ErrNoController }

// errFailing is returned if the job controller responds, but its archive doesn't work.
var errFailing = errors.New("the history of jobs fails")

// historyTimeout bounds the duration of one request, so that a list is shown even if the controller hangs.
const historyTimeout = 15 * time.Second

// archiveTimeout bounds how long the controller may take to copy or to restore an archive.
const archiveTimeout = 2 * time.Hour

// idleConnections is the number of idle connections to the controller that are kept open.
const idleConnections = 16

// maxError is how many bytes of an error response are read.
const maxError = 64 << 10

// History reads and changes the job controller's history of jobs.
type History struct {
	client rest.Interface
	http   *http.Client
	// at is the URL of the controller. If it is nil, requests go through the API server.
	at *url.URL
}

func newHistory(c *kube.Cluster, at string) (*History, error) {
	if at != "" {
		to, err := url.Parse(at)
		if err != nil {
			return nil, fmt.Errorf("open the history of jobs: %w", err)
		}
		// The client has a separate Transport, because the default Transport uses the proxies of the environment.
		return &History{at: to, http: &http.Client{Transport: newWithToken(&http.Transport{MaxIdleConnsPerHost: idleConnections, IdleConnTimeout: time.Minute}, c.Client)}}, nil
	}
	config := rest.CopyConfig(c.Config)
	config.Wrap(func(rt http.RoundTripper) http.RoundTripper { return newWithToken(rt, c.Client) })
	h, err := rest.HTTPClientFor(config)
	if err != nil {
		return nil, fmt.Errorf("open the history of jobs: %w", err)
	}
	client, err := kubernetes.NewForConfigAndClient(config, h)
	if err != nil {
		return nil, fmt.Errorf("open the history of jobs: %w", err)
	}
	return &History{client: client.CoreV1().RESTClient(), http: h}, nil
}

// Jobs reads one page of a list, newest submission first.
func (h *History) Jobs(ctx context.Context, q api.JobQuery) (*api.JobPage, error) {
	out := &api.JobPage{}
	return out, h.ask(ctx, query(h.get("/v1/jobs"), q), out)
}

// List reads a page of the live and the finished jobs from the leading replica of the controller. If the controller isn't available, List returns an
// error at once, because the caller can read the jobs in another way.
func (h *History) List(ctx context.Context, f Filter) (*Page, error) {
	r := query(h.get("/v1/jobs"), api.JobQuery{User: f.User, VirtualCluster: f.VirtualCluster, Keyword: f.Keyword, Since: f.Since, Limit: f.Limit, Cursor: f.Cursor})
	for _, p := range f.Phases {
		r = r.Param("state", string(p))
	}
	if f.InName != "" {
		r = r.Param("name", f.InName)
	}
	if f.Earlier {
		r = r.Param("earlier", "true")
	}
	out := &Page{}
	if err := h.ask(ctx, r.Param("live", "true").MaxRetries(0), out); err != nil {
		return nil, err
	}
	return out, nil
}

func query(r *rest.Request, q api.JobQuery) *rest.Request {
	add := func(name, value string) {
		if value != "" {
			r = r.Param(name, value)
		}
	}
	add("user", q.User)
	add("vc", q.VirtualCluster)
	add("keyword", q.Keyword)
	add("state", strings.Join(q.States, ","))
	add("cursor", q.Cursor)
	if !q.Since.IsZero() {
		add("since", q.Since.UTC().Format(time.RFC3339Nano))
	}
	if !q.Before.IsZero() {
		add("before", q.Before.UTC().Format(time.RFC3339Nano))
	}
	if q.Latest {
		add("latest", "true")
	}
	if q.Limit > 0 {
		add("limit", strconv.Itoa(q.Limit))
	}
	return r
}

// Ordered reads a part of a list of removed jobs, in the order that q requests.
func (h *History) Ordered(ctx context.Context, q api.OrderedQuery) (*api.OrderedPage, error) {
	r := h.get("/v1/jobs")
	for name, values := range q.Values() {
		for _, v := range values {
			r = r.Param(name, v)
		}
	}
	out := &api.OrderedPage{}
	return out, h.ask(ctx, r, out)
}

// OwnsCode reports whether a user has sent the code that has the checksum.
func (h *History) OwnsCode(ctx context.Context, user, sha256 string) (bool, error) {
	to := h.CodeURL(sha256)
	to.RawQuery = url.Values{"user": {user}}.Encode()
	ctx, cancel := context.WithTimeout(ctx, historyTimeout)
	defer cancel()
	resp, err := h.Do(ctx, http.MethodHead, to, nil)
	if apierrors.IsNotFound(err) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	return true, resp.Body.Close()
}

// PutCode sends a folder of code of a user to the controller. size is in bytes.
func (h *History) PutCode(ctx context.Context, user, sha256 string, size int64, r io.Reader) error {
	to := h.CodeURL(sha256)
	to.RawQuery = url.Values{"user": {user}}.Encode()
	resp, err := h.Do(ctx, http.MethodPut, to, &sized{r, size})
	if err != nil {
		return err
	}
	return resp.Body.Close()
}

// Job reads all data about a job. framework is the UID of a job, or the name of a Framework, which means the last job with that name. If the history
// has no such job, Job returns a NotFound error of the API.
func (h *History) Job(ctx context.Context, framework string) (*api.JobDetail, error) {
	out := &api.JobDetail{}
	if err := h.ask(ctx, h.get("/v1/jobs/"+path(framework)), out); err != nil {
		return nil, err
	}
	return out, nil
}

// Usage reads for how long jobs held GPUs.
func (h *History) Usage(ctx context.Context, q api.UsageQuery) (*api.Usage, error) {
	r := h.get("/v1/usage")
	for name, value := range map[string]string{"user": q.User, "vc": q.VirtualCluster, "type": q.Type, "by": strings.Join(q.By, ",")} {
		if value != "" {
			r = r.Param(name, value)
		}
	}
	for name, at := range map[string]time.Time{"since": q.Since, "until": q.Until} {
		if !at.IsZero() {
			r = r.Param(name, at.UTC().Format(time.RFC3339))
		}
	}
	out := &api.Usage{}
	return out, h.ask(ctx, r, out)
}

// GPUs reads the utilization of a machine's GPUs. If the utilization isn't measured, the error is a NotFound error of the API.
func (h *History) GPUs(ctx context.Context, node string) ([]api.GPU, error) {
	var out []api.GPU
	return out, h.ask(ctx, h.get("/v1/machines/"+path(node, "gpus")), &out)
}

// Use reads the resources that the containers of jobs on a machine use. If the use isn't measured, the error is a NotFound error of the API.
func (h *History) Use(ctx context.Context, node string) ([]logapi.Use, error) {
	var out []logapi.Use
	return out, h.ask(ctx, h.get("/v1/machines/"+path(node, "use")), &out)
}

// Delete removes all finished jobs with the name of a Framework, and their logs. It returns how many jobs it removed. If the history has no such job,
// the error is a NotFound error of the API.
func (h *History) Delete(ctx context.Context, framework string) (jobs int, err error) {
	out := api.Deletion{}
	err = h.ask(ctx, h.request(http.MethodDelete, "/v1/jobs/"+path(framework)), &out)
	return out.Jobs, err
}

// Events reads the events that the history keeps of a job and its pods.
func (h *History) Events(ctx context.Context, framework string) ([]api.Event, error) {
	var out []api.Event
	return out, h.ask(ctx, h.get("/v1/jobs/"+path(framework, "events")), &out)
}

// Log opens the stored end of a finished task's log. truncated reports whether the beginning of the log is missing.
func (h *History) Log(ctx context.Context, key api.LogKey) (log io.ReadCloser, truncated bool, err error) {
	r := h.get("/v1/jobs/"+path(key.Framework, "logs")).Param("role", key.Role).
		Param("task", strconv.Itoa(int(key.Task))).Param("attempt", strconv.Itoa(int(key.Attempt))).
		Param("taskAttempt", strconv.Itoa(int(key.TaskAttempt)))
	if key.UID != "" {
		r = r.Param("uid", key.UID)
	}
	resp, err := h.Do(ctx, http.MethodGet, r.URL(), nil)
	if err != nil {
		return nil, false, err
	}
	return resp.Body, resp.Header.Get("X-Pai-Truncated") == "true", nil
}

// Page reads a page of a container's log from the agent of its machine, through the controller. The caller closes the response's body. If no agent
// keeps the log, the error is a NotFound error of the API. While the agent is restarted, the error is ErrAway.
func (h *History) Page(ctx context.Context, node, uid, container string, query url.Values) (*http.Response, error) {
	to := h.get("/v1/machines/" + path(node, "logs", uid, container)).URL()
	to.RawQuery = query.Encode()
	return h.Do(ctx, http.MethodGet, to, nil)
}

// Archive returns a copy of the whole archive of jobs, an SQLite file, and the size of the copy in bytes. The caller closes the copy.
func (h *History) Archive(ctx context.Context) (io.ReadCloser, int64, error) {
	ctx = kube.WithPatience(ctx, archiveTimeout) // it is copied before the first byte is sent
	resp, err := h.Do(ctx, http.MethodGet, h.get("/v1/archive").URL(), nil)
	if err != nil {
		return nil, 0, err
	}
	if resp.ContentLength < 0 {
		_ = resp.Body.Close()
		return nil, 0, errors.New("the job controller doesn't say how large its archive is")
	}
	return resp.Body, resp.ContentLength, nil
}

// PutBack adds jobs and files from a copy that are missing in the archive, and returns how many it added. size is in bytes.
func (h *History) PutBack(ctx context.Context, r io.Reader, size int64) (*api.Import, error) {
	ctx = kube.WithPatience(ctx, archiveTimeout) // it is added before the answer begins
	resp, err := h.Do(ctx, http.MethodPut, h.get("/v1/archive").URL(), &sized{r, size})
	if err != nil {
		return nil, err
	}
	defer func() { _ = resp.Body.Close() }()
	out := &api.Import{}
	if err := json.NewDecoder(resp.Body).Decode(out); err != nil {
		return nil, fmt.Errorf("read the job controller's answer: %w", err)
	}
	return out, nil
}

// sized is a request body of known size.
type sized struct {
	io.Reader
	size int64
}

// Size returns the size of the body in bytes.
func (s *sized) Size() int64 { return s.size }

// CodeURL returns the URL of a folder of code in the controller's API, for calls of Do.
func (h *History) CodeURL(sha256 string) *url.URL { return h.get("/v1/code/" + path(sha256)).URL() }

// Do sends one request to the controller. The caller closes the body of the response. If the response has a failed status, Do returns an error;
// status 404 becomes a NotFound error of the API.
func (h *History) Do(ctx context.Context, method string, to *url.URL, body io.Reader) (*http.Response, error) {
	req, err := http.NewRequestWithContext(ctx, method, to.String(), body)
	if err != nil {
		return nil, err
	}
	if sized, ok := body.(interface{ Size() int64 }); ok {
		req.ContentLength = sized.Size() // net/http knows the sizes of buffers only
	}
	resp, err := h.http.Do(req)
	if err != nil {
		return nil, h.offline(err)
	}
	if resp.StatusCode < http.StatusMultipleChoices {
		return resp, nil
	}
	defer func() { _ = resp.Body.Close() }()
	text, _ := io.ReadAll(io.LimitReader(resp.Body, maxError))
	err = apierrors.NewGenericServerResponse(resp.StatusCode, method, schema.GroupResource{Resource: "services"}, service, string(text), 0, true)
	if method == http.MethodHead && resp.StatusCode == http.StatusNotFound {
		return nil, err // the response doesn't show which part failed, but the next request will
	}
	return nil, understand(err, text)
}

func (h *History) get(suffix string) *rest.Request { return h.request(http.MethodGet, suffix) }

func (h *History) request(method, suffix string) *rest.Request {
	if h.at != nil {
		return kube.Direct(h.at, h.http, method, suffix)
	}
	return h.client.Verb(method).Namespace(kube.SystemNamespace).Resource("services").Name(service).SubResource("proxy").Suffix(suffix)
}

func (h *History) ask(ctx context.Context, r *rest.Request, out any) error {
	ctx, cancel := context.WithTimeout(ctx, historyTimeout)
	defer cancel()
	result := r.Do(ctx)
	body, _ := result.Raw()
	if err := result.Error(); err != nil {
		return h.offline(understand(err, body))
	}
	if err := json.Unmarshal(body, out); err != nil {
		return fmt.Errorf("read the job controller's answer: %w", err)
	}
	return nil
}

// offline converts a failed connection to the controller into the error that the API server's proxy would return.
func (h *History) offline(err error) error {
	if failed, ok := errors.AsType[*net.OpError](err); ok && h.at != nil {
		return away{noController("none of its pods is ready: " + failed.Error())}
	}
	return err
}

// understand converts a failed response to an error. It distinguishes failures of the controller from failures of the API server.
func understand(err error, body []byte) error {
	var said api.Error
	spoke := json.Unmarshal(body, &said) == nil && said.Code != "" && said.Message != ""
	switch {
	case spoke && apierrors.IsNotFound(err):
		// This message differs from the API server's message, which can also mean that there is no such API.
		return &apierrors.StatusError{ErrStatus: metav1.Status{
			Status: metav1.StatusFailure, Code: http.StatusNotFound, Reason: metav1.StatusReasonNotFound, Message: "the job controller's history: " + said.Message,
		}}
	case spoke && apierrors.IsForbidden(err):
		secret := api.TokenSecret
		if strings.Contains(said.Message, api.AuditTokenSecret) {
			secret = api.AuditTokenSecret
		}
		return hint.Wrap(&closed{"your account may not read the Secret " + secret + " in the namespace " + kube.SystemNamespace}, remedyRight)
	case apierrors.IsForbidden(err):
		return hint.Wrap(&closed{"your account may not connect to the job controller (" + lacks(err) + ")"}, remedyRight)
	case spoke && said.Code == api.CodeBusy:
		return hint.Errorf("try again when that has ended", "ask the job controller: %s", said.Message)
	case spoke && said.Code == api.CodeElsewhere:
		return fmt.Errorf("%w: ask the job controller: %s", ErrElsewhere, said.Message)
	case spoke && apierrors.IsConflict(err):
		return hint.Errorf("the history marks a job that is gone from the cluster as finished within ten minutes; try again then", "ask the job controller: %s", said.Message)
	case spoke && apierrors.IsMethodNotSupported(err):
		return hint.Errorf("it is older than this paictl; update it: paictl service start -n job-controller", "ask the job controller: %s", said.Message)
	case spoke && apierrors.IsInternalError(err):
		return hint.Wrap(fmt.Errorf("%w: %s", errFailing, said.Message), "see its log: paictl service logs -n job-controller")
	case spoke && apierrors.IsServiceUnavailable(err):
		return away{fmt.Errorf("ask the job controller: %s", said.Message)}
	case spoke && (said.Code == "BadRequest" || said.Code == "TooLarge"):
		return &RefusedError{fmt.Errorf("ask the job controller: %s", said.Message)}
	case spoke:
		return fmt.Errorf("ask the job controller: %s", said.Message)
	case apierrors.IsNotFound(err):
		return noController("it isn't installed")
	case apierrors.IsServiceUnavailable(err), apierrors.IsTimeout(err), apierrors.IsServerTimeout(err), errors.Is(err, context.DeadlineExceeded):
		return away{noController("none of its pods is ready")}
	}
	return fmt.Errorf("ask the job controller: %w", err)
}

// lacks returns the right that the user doesn't have. It is the part of the API server's text after the user's name.
func lacks(err error) string {
	text := err.Error()
	if i := strings.Index(text, " cannot "); i >= 0 {
		return text[i+1:]
	}
	return text
}

func noController(why string) error {
	return hint.Wrap(fmt.Errorf("%w: %s", ErrNoController, why), remedyController)
}
