package job

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/openpai/paictl/pkg/cmdutil"
	"github.com/openpai/paictl/pkg/job"
	"github.com/openpai/paictl/pkg/job/logs"
	v1 "github.com/openpai/paictl/pkg/job/v1"
	"github.com/openpai/paictl/pkg/kube"
	"github.com/openpai/paictl/pkg/ui/iostreams"
)

// oneTask is an API server with a job of one task, without a network: time doesn't pass while a part
// of it works.
type oneTask struct {
	lines int
	ended atomic.Bool // the job
}

func (a *oneTask) RoundTrip(r *http.Request) (*http.Response, error) {
	path := r.URL.Path
	name := v1.ObjectName("ann", "train")
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "p", Namespace: kube.JobNamespace, UID: "p", Labels: map[string]string{v1.LabelTaskRole: "worker", v1.LabelTaskIndex: "0"}},
		Status: corev1.PodStatus{ContainerStatuses: []corev1.ContainerStatus{{Name: "app", State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{}}}}}}
	switch {
	case r.URL.Query().Get("watch") != "":
		return answered(http.StatusOK, ""), nil // watches end
	case strings.HasSuffix(path, "/log"):
		a.ended.Store(true)
		var log strings.Builder
		for i := range a.lines {
			fmt.Fprintf(&log, "2026-01-02T03:04:05.%09dZ line %d\n", i, i)
		}
		resp := answered(http.StatusOK, "")
		resp.Body = io.NopCloser(&body{r.Context(), strings.NewReader(log.String())})
		return resp, nil
	case strings.HasSuffix(path, "/frameworks/"+name):
		f := &v1.Framework{ObjectMeta: metav1.ObjectMeta{Name: name, UID: "f", Labels: map[string]string{v1.LabelUser: "ann"}, Annotations: map[string]string{v1.AnnotationJobName: "train"}},
			Spec:   v1.FrameworkSpec{ExecutionType: v1.ExecutionStart, TaskRoles: []v1.TaskRole{{Name: "worker", TaskNumber: 1}}},
			Status: &v1.FrameworkStatus{State: v1.AttemptRunning}}
		if a.ended.Load() {
			f.Status.State = v1.Completed
			f.Status.AttemptStatus.CompletionStatus = &v1.FrameworkAttemptCompletionStatus{CompletionStatus: &v1.CompletionStatus{}}
		}
		return object(f), nil
	case strings.HasSuffix(path, "/pods"):
		return object(&corev1.PodList{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "PodList"}, Items: []corev1.Pod{*pod}}), nil
	case strings.HasSuffix(path, "/pods/p"):
		pod.TypeMeta = metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"}
		return object(pod), nil
	}
	return answered(http.StatusNotFound, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"NotFound","code":404}`), nil
}

// body is one that ends when its request does.
type body struct {
	ctx context.Context //nolint:containedctx // a request's
	io.Reader
}

func (s *body) Read(p []byte) (int, error) {
	if err := s.ctx.Err(); err != nil {
		return 0, err
	}
	return s.Reader.Read(p)
}

func object(v any) *http.Response {
	text, _ := json.Marshal(v)
	return answered(http.StatusOK, string(text))
}

func answered(code int, text string) *http.Response {
	return &http.Response{StatusCode: code, Header: http.Header{"Content-Type": {"application/json"}}, Body: io.NopCloser(strings.NewReader(text))}
}

// slowly is a terminal that takes its time for each line.
type slowly struct{ out bytes.Buffer }

func (s *slowly) Write(p []byte) (int, error) {
	time.Sleep(time.Minute)
	return s.out.Write(p)
}

// bubbled are jobs without connections, which a bubble of synctest doesn't wait for.
type bubbled struct {
	Jobs
	c *job.Client
}

func (b bubbled) Follow(ctx context.Context, j *job.Job, seen func(*job.Detail) (more bool), problem func(error)) error {
	return b.c.Follow(ctx, j, seen, problem)
}

func (b bubbled) Logs(ctx context.Context, j *job.Job, o logs.Options, give func(logs.Line) error) error {
	return logs.Lines(ctx, b.c, j, o, give)
}

func (b bubbled) Detail(ctx context.Context, j *job.Job) (*job.Detail, error) {
	return b.c.Detail(ctx, j)
}

func (b bubbled) Explain(err error) error { return err }

func TestWatchShowsAllThatWasPrintedHoweverSlowTheTerminal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		config := &rest.Config{Host: "http://api", QPS: -1, Transport: &oneTask{lines: 5000}}
		client, err := kubernetes.NewForConfig(config)
		require.NoError(t, err)
		c, err := job.New(&kube.Cluster{Config: config, Client: client})
		require.NoError(t, err)
		j, err := c.Resolve(t.Context(), "ann", "train")
		require.NoError(t, err)
		out, stderr := &slowly{}, &bytes.Buffer{}
		require.NoError(t, watch(t.Context(), &cmdutil.Factory{IO: &iostreams.IOStreams{Out: out, Err: stderr}}, bubbled{c: c}, j, followOptions{until: job.Phase.Done}, false))
		lines := strings.Split(strings.TrimSpace(out.out.String()), "\n")
		assert.Len(t, lines, 5000)
		assert.Equal(t, "line 4999", lines[len(lines)-1])
		assert.NotContains(t, stderr.String(), "warning")
	})
}
