// Package servertest runs a whole server in a test, with a real API server and a real job history. In: a cluster. Out: the address of the server,
// signed-in users, responses.
package servertest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/yaml"

	actionsv1 "github.com/openpai/paictl/pkg/alerthandler/v1"
	"github.com/openpai/paictl/pkg/job/api"
	"github.com/openpai/paictl/pkg/job/archive"
	historyserver "github.com/openpai/paictl/pkg/job/controller/server"
	"github.com/openpai/paictl/pkg/job/jobtest"
	fv1 "github.com/openpai/paictl/pkg/job/v1"
	"github.com/openpai/paictl/pkg/kube"
	"github.com/openpai/paictl/pkg/people"
	v1 "github.com/openpai/paictl/pkg/people/v1"
	"github.com/openpai/paictl/pkg/secret"
	"github.com/openpai/paictl/pkg/server"
	"github.com/openpai/paictl/pkg/server/assembly"
	"github.com/openpai/paictl/pkg/server/settings"
	"github.com/openpai/paictl/test/output"
)

// Options configures the server, and replaces parts of the server.
type Options struct {
	// History replaces the job controller. If History is nil, the server uses a real history with an empty archive, but no controller runs.
	History http.Handler
	// Logs replaces the agents that store logs. If Logs is nil, no machine has an agent. It isn't used if History is set.
	Logs historyserver.Logs
	// Scheduler replaces the scheduler. If Scheduler is nil, the cluster has no scheduler.
	Scheduler http.Handler
	Settings  *settings.Settings
	// AccessFile is the file with the password of proxied services.
	AccessFile string
	// Credentials is the folder with the secrets of sign-in providers.
	Credentials string
	// Address is called with the server's host and port before the server starts. It may be nil.
	Address func(host string, port int)
	// API changes the configuration of clients of the API server.
	API func(*rest.Config)
	// BuiltIn holds job templates for all users.
	BuiltIn []v1.TemplateSpec
}

// Server is a running server.
type Server struct {
	*assembly.Assembly
	// URL is the address of the server, over TLS. Client trusts the server's certificate.
	URL    string
	Client *http.Client
	TLS    *httptest.Server
	// ProxyURL is the address of the pages of other services.
	ProxyURL string
	// Store is the archive of the history. It is nil if the test has set Options.History.
	Store archive.Store
	// History serves the API of the job controller.
	History http.Handler
	// Printed contains all output of the server: its log and the audit log.
	Printed     *output.Buffer
	t           testing.TB
	description *description
}

// Password is the password of all people in tests.
const Password = "correct horse battery"

// Teams is the configuration of a scheduler with two virtual clusters. Each virtual cluster has one machine.
const Teams = `physicalCluster:
  cellTypes:
    NODE: {childCellType: G, childCellNumber: 2, isNodeLevel: true}
  physicalCells:
    - {cellType: NODE, cellAddress: gpu-1}
    - {cellType: NODE, cellAddress: gpu-2}
virtualClusters:
  speech:
    virtualCells: [{cellType: NODE, cellNumber: 1}]
  vision:
    virtualCells: [{cellType: NODE, cellNumber: 1}]
`

// Prepare creates the objects that a server needs in a cluster. These objects include the scheduler's configuration with two virtual clusters.
// Prepare may be called again.
func Prepare(t testing.TB, c *kube.Cluster) {
	t.Helper()
	jobtest.Prepare(t, c)
	d, err := people.Open(c.Config, people.Options{})
	require.NoError(t, err)
	require.NoError(t, d.Prepare(t.Context()))
	defineActions(t, c)
	core := c.Client.CoreV1()
	_, err = core.ConfigMaps(kube.SystemNamespace).Create(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "scheduler-configuration"}, Data: map[string]string{"hivedscheduler.yaml": Teams}}, metav1.CreateOptions{})
	if !apierrors.IsAlreadyExists(err) {
		require.NoError(t, err)
	}
	for _, name := range []string{"gpu-1", "gpu-2"} {
		n, err := core.Nodes().Create(t.Context(), &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"pai-worker": "true"}}}, metav1.CreateOptions{})
		if apierrors.IsAlreadyExists(err) {
			continue
		}
		require.NoError(t, err)
		n.Status.Capacity = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("8"), corev1.ResourceMemory: resource.MustParse("32Gi")}
		n.Status.Allocatable = n.Status.Capacity
		_, err = core.Nodes().UpdateStatus(t.Context(), n, metav1.UpdateOptions{})
		require.NoError(t, err)
	}
	patch := []byte(`{"data":{"scheduler-name":"pai-scheduler"}}`)
	_, err = core.ConfigMaps(kube.SystemNamespace).Patch(t.Context(), api.ConfigMap, "application/merge-patch+json", patch, metav1.PatchOptions{})
	require.NoError(t, err)
}

// defineActions creates the definition of Actions, which is part of the chart alert-handler.
func defineActions(t testing.TB, c *kube.Cluster) {
	t.Helper()
	client, err := dynamic.NewForConfig(c.Config)
	require.NoError(t, err)
	definition := &unstructured.Unstructured{}
	require.NoError(t, yaml.Unmarshal(actionsv1.CRD, &definition.Object))
	resource := schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}
	if _, err = client.Resource(resource).Create(t.Context(), definition, metav1.CreateOptions{}); !apierrors.IsAlreadyExists(err) {
		require.NoError(t, err)
	}
	require.Eventually(t, func() bool {
		_, err := client.Resource(actionsv1.Actions).List(t.Context(), metav1.ListOptions{})
		return err == nil
	}, time.Minute, 20*time.Millisecond)
}

// Ended writes a job to the archive. The job has succeeded, and its Framework is deleted.
func (s *Server) Ended(user, vc, name string, at time.Time) {
	s.t.Helper()
	when := metav1.NewTime(at.Truncate(time.Second))
	code := fv1.CompletionStatus{Phrase: "Succeeded", Type: fv1.CompletionType{Name: "Succeeded"}}
	f := &fv1.Framework{ObjectMeta: metav1.ObjectMeta{Name: fv1.ObjectName(user, name), UID: types.UID(fmt.Sprintf("%s-%s-%d", user, name, at.Unix())), CreationTimestamp: when,
		Labels: map[string]string{fv1.LabelUser: user, fv1.LabelVC: vc}, Annotations: map[string]string{fv1.AnnotationJobName: name, fv1.AnnotationConfig: "name: " + name}},
		Spec: fv1.FrameworkSpec{ExecutionType: fv1.ExecutionStart},
		Status: &fv1.FrameworkStatus{StartTime: when, RunTime: &when, CompletionTime: &when, TransitionTime: when, State: fv1.Completed,
			AttemptStatus: fv1.FrameworkAttemptStatus{StartTime: when, CompletionTime: &when, CompletionStatus: &fv1.FrameworkAttemptCompletionStatus{CompletionStatus: &code}}}}
	require.NoError(s.t, s.Store.SaveJob(s.t.Context(), f))
	require.NoError(s.t, s.Store.MarkDeleted(s.t.Context(), f))
}

// Start runs a server until the test ends. It returns when the server is ready.
func Start(t testing.TB, c *kube.Cluster, o Options) *Server {
	t.Helper()
	s := &Server{Printed: &output.Buffer{}, t: t, description: &description{}}
	if o.Settings == nil {
		o.Settings = settings.Default()
	}
	if o.History == nil {
		var err error
		s.Store, err = archive.Open(t.Context(), archive.Options{Path: filepath.Join(t.TempDir(), "archive.db")})
		require.NoError(t, err)
		t.Cleanup(func() { _ = s.Store.Close() }) // a test may have closed it
		o.History = historyserver.New(historyserver.Options{Store: s.Store, Logs: o.Logs, Ready: func(context.Context) error { return nil }, Metrics: prometheus.NewRegistry(),
			Token: func() string { return jobtest.Token }, AuditToken: func() string { return jobtest.AuditToken }, Log: slog.New(slog.DiscardHandler)}).Handler()
	}
	s.History = o.History
	urls := map[string]http.Handler{"history": o.History, "scheduler": o.Scheduler}
	at := func(name string) string {
		h := urls[name]
		if h == nil {
			h = http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				http.Error(w, "no server is running", http.StatusServiceUnavailable)
			})
		}
		srv := httptest.NewServer(h)
		t.Cleanup(srv.Close)
		return srv.URL
	}
	log := slog.New(slog.NewJSONHandler(s.Printed, nil))
	config := rest.CopyConfig(c.Config)
	config.QPS, config.Burst = 200, 400
	if o.API != nil {
		o.API(config)
	}
	s.TLS = httptest.NewUnstartedServer(nil)
	pages := httptest.NewUnstartedServer(nil)
	port := func(of *httptest.Server) int { return of.Listener.Addr().(*net.TCPAddr).Port }
	if o.Address != nil {
		o.Address(s.TLS.Listener.Addr().(*net.TCPAddr).IP.String(), port(s.TLS))
	}
	own := *o.Settings // other servers of the test have other ports
	o.Settings = &own
	own.Proxy.Port = port(pages)
	if len(own.Door) > 0 {
		own.Port = port(s.TLS)
	}
	var err error
	s.Assembly, err = assembly.New(assembly.Options{Config: config, Settings: o.Settings, BuiltIn: o.BuiltIn, HistoryURL: at("history"), SchedulerURL: at("scheduler"), AccessFile: o.AccessFile, Credentials: o.Credentials, SystemNamespace: kube.SystemNamespace,
		Audit: s.Printed, Log: log})
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(context.Background()) //nolint:usetesting // the parts end after the connections
	ended := make(chan error, 1)
	go func() { ended <- assembly.Together(ctx, s.Parts()...) }()
	s.TLS.Config, s.TLS.EnableHTTP2 = s.Server.HTTP(s.Server), true
	s.TLS.StartTLS()
	pages.Config, pages.EnableHTTP2 = s.Proxy.HTTP(s.Proxy), true
	pages.StartTLS()
	s.URL, s.ProxyURL, s.Client = s.TLS.URL, pages.URL, s.TLS.Client()
	t.Cleanup(func() {
		pages.CloseClientConnections()
		pages.Close()
		s.TLS.CloseClientConnections()
		s.TLS.Close()
		cancel()
		<-ended
	})
	deadline := time.Now().Add(time.Minute)
	for err = s.Ready(); err != nil; err = s.Ready() {
		select {
		case e := <-ended:
			t.Fatalf("the server ended: %v", e)
		case <-time.After(20 * time.Millisecond):
		}
		require.True(t, time.Now().Before(deadline), "the server isn't ready: %v", err)
	}
	return s
}

// Group creates or changes a group, and waits until the server has received the change.
func (s *Server) Group(name string, change func(*v1.GroupSpec)) {
	s.t.Helper()
	g := &v1.Group{Spec: v1.GroupSpec{Name: name}}
	if change != nil {
		change(&g.Spec)
	}
	_, err := s.People.PutGroup(s.t.Context(), g)
	require.NoError(s.t, err)
	s.Eventually("the group is known", func() bool {
		known, err := s.People.Group(name)
		return err == nil && equality.Semantic.DeepEqual(known.Spec.VirtualClusters, g.Spec.VirtualClusters)
	})
}

// Person adds a person to the cluster and to groups. For an existing person, it only replaces the groups.
func (s *Server) Person(name string, groups ...string) {
	s.t.Helper()
	_, err := s.People.Add(s.t.Context(), people.NewUser{Name: name, Groups: groups, Password: secret.String(Password), TakeOver: true}) // a test may have created their jobs before
	if errors.Is(err, people.ErrExists) {                                                                                                // another test that shares the cluster has added them
		_, err = s.People.Update(s.t.Context(), name, func(u *v1.UserSpec) error { u.Groups = groups; return nil })
	}
	require.NoError(s.t, err)
	s.Eventually("the person is known", func() bool { _, err := s.People.Person(name); return err == nil })
}

// Eventually waits a short time until a function returns true.
func (s *Server) Eventually(what string, ok func() bool) {
	s.t.Helper()
	require.Eventually(s.t, ok, 20*time.Second, 10*time.Millisecond, what)
}

// SignIn signs in a person as OpenPAI's clients do, and returns the token.
func (s *Server) SignIn(name string) string {
	s.t.Helper()
	a := s.Do("POST", "/api/v2/authn/basic/login", "", fmt.Sprintf(`{"username":%q,"password":%q}`, name, Password))
	require.Equal(s.t, http.StatusOK, a.Status, a.Body)
	return a.JSON()["token"].(string)
}

// Answer is a response of the server.
type Answer struct {
	Status int
	Header http.Header
	Body   string
	t      testing.TB
}

// JSON returns the decoded body, which must be an object.
func (a *Answer) JSON() map[string]any {
	a.t.Helper()
	out := map[string]any{}
	require.NoError(a.t, json.Unmarshal([]byte(a.Body), &out), a.Body)
	return out
}

// Into decodes the body into out.
func (a *Answer) Into(out any) {
	a.t.Helper()
	require.NoError(a.t, json.Unmarshal([]byte(a.Body), out), a.Body)
}

// Code returns the error code in the body.
func (a *Answer) Code() string {
	code, _ := a.JSON()["code"].(string)
	return code
}

// Do sends a request and returns the response. If the token is "", the request contains no token.
func (s *Server) Do(method, path, token, body string, headers ...string) *Answer {
	s.t.Helper()
	r, a := s.ask(method, s.URL+path, token, body, headers...)
	s.described(r, a)
	return a
}

// DoPage is like Ask, but requests the pages of other services.
func (s *Server) DoPage(method, path, token, body string, headers ...string) *Answer {
	s.t.Helper()
	_, a := s.ask(method, s.ProxyURL+path, token, body, headers...)
	return a
}

func (s *Server) ask(method, at, token, body string, headers ...string) (*http.Request, *Answer) {
	s.t.Helper()
	r, err := http.NewRequestWithContext(s.t.Context(), method, at, strings.NewReader(body))
	require.NoError(s.t, err)
	if token != "" {
		r.Header.Set("Authorization", "Bearer "+token)
	}
	for i := 0; i+1 < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	resp, err := s.Client.Do(r)
	require.NoError(s.t, err)
	defer func() { _ = resp.Body.Close() }()
	if resp.Header.Get("Content-Type") == server.MediaEvents {
		return r, &Answer{resp.StatusCode, resp.Header, "", s.t} // streams don't end; see Watch
	}
	text, err := io.ReadAll(resp.Body)
	require.NoError(s.t, err)
	return r, &Answer{resp.StatusCode, resp.Header, string(text), s.t}
}

// Submit submits a small job.
func (s *Server) Submit(token, name, vc string) *Answer {
	s.t.Helper()
	return s.Do("POST", "/api/v2/jobs", token, JobFile(name, vc), "Content-Type", "text/yaml")
}

// JobFile returns the file of a small job.
func JobFile(name, vc string) string {
	text := "protocolVersion: 2\nname: " + name + "\ntype: job\nprerequisites: [{name: i, type: dockerimage, uri: 'busybox:1'}]\n" +
		"taskRoles: {Worker_1: {instances: 1, dockerImage: i, resourcePerInstance: {cpu: 1, memoryMB: 64, gpu: 1}, commands: ['echo hello']}}\n"
	if vc != "" {
		text += "defaults: {virtualCluster: " + vc + "}\n"
	}
	return text
}
