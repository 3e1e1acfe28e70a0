package clients

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/retry"

	fv1 "github.com/openpai/paictl/pkg/framework/v1"
	"github.com/openpai/paictl/pkg/job/jobtest"
	"github.com/openpai/paictl/pkg/kube"
	"github.com/openpai/paictl/pkg/protocol"
	"github.com/openpai/paictl/pkg/runtime/report"
	"github.com/openpai/paictl/pkg/runtime/rules"
)

// kubelet runs what the simulated nodes are given: the commands of the job file, as processes of this machine. It answers for their logs.
type kubelet struct {
	t    testing.TB
	c    *kube.Cluster
	mu   sync.Mutex
	runs map[types.UID]*running
}

// running is the program of a pod.
type running struct {
	name   string
	cancel context.CancelFunc
	mu     sync.Mutex
	lines  []string // each with the time of its end
	more   chan struct{}
	over   bool
}

func newKubelet(t testing.TB, c *kube.Cluster) *kubelet {
	k := &kubelet{t: t, c: c, runs: map[types.UID]*running{}}
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	done := make(chan struct{})
	go func() { defer close(done); k.work(ctx) }()
	t.Cleanup(func() { cancel(); <-done })
	return k
}

// lookEvery is how often it looks at its pods.
const lookEvery = 100 * time.Millisecond

func (k *kubelet) work(ctx context.Context) {
	for ctx.Err() == nil {
		if list, err := k.c.Client.CoreV1().Pods(kube.JobNamespace).List(ctx, metav1.ListOptions{}); err == nil {
			k.look(ctx, list.Items)
		}
		select {
		case <-ctx.Done():
		case <-time.After(lookEvery):
		}
	}
}

// look starts the programs of pods that run, and ends those of pods that are gone.
func (k *kubelet) look(ctx context.Context, pods []corev1.Pod) {
	k.mu.Lock()
	defer k.mu.Unlock()
	there := map[types.UID]bool{}
	for i := range pods {
		p := &pods[i]
		there[p.UID] = p.DeletionTimestamp == nil
		if p.Status.Phase != corev1.PodRunning || k.runs[p.UID] != nil || p.DeletionTimestamp != nil {
			continue
		}
		inner, cancel := context.WithCancel(ctx)
		r := &running{name: p.Name, cancel: cancel, more: make(chan struct{})}
		k.runs[p.UID] = r
		go k.run(inner, p, r)
	}
	for uid, r := range k.runs {
		if !there[uid] {
			r.cancel()
		}
	}
}

func (k *kubelet) run(ctx context.Context, p *corev1.Pod, r *running) {
	f := jobtest.Framework(k.t, k.c, p.Labels[fv1.LabelFramework])
	file, _ := protocol.ParseMasked("job.yaml", []byte(f.Annotations[fv1.AnnotationConfig]))
	for i := range file.Roles {
		if file.Roles[i].Name != p.Annotations[fv1.AnnotationTaskRole] {
			continue
		}
		cmd := exec.CommandContext(ctx, "sh", "-c", file.Roles[i].Command.Reveal())
		cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
		cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
		cmd.WaitDelay = time.Second
		cmd.Dir, cmd.Stdout, cmd.Stderr = k.t.TempDir(), r, r
		_ = cmd.Run()
		r.end()
		if ctx.Err() == nil {
			k.ended(ctx, p, r, cmd.ProcessState.ExitCode())
		}
	}
}

// ended writes the status of a pod as a kubelet does, with the report that the runtime of jobs would leave.
func (k *kubelet) ended(ctx context.Context, p *corev1.Pod, r *running, code int) {
	exit := rules.Exit{Code: code, UserLog: []byte(r.text())}
	match := rules.Builtin().ClassifyExit(exit)
	message := ""
	if code != 0 {
		message = string(report.Encode(report.New(exit, match)))
	}
	_ = retry.RetryOnConflict(retry.DefaultBackoff, func() error {
		now, err := k.c.Client.CoreV1().Pods(p.Namespace).Get(ctx, p.Name, metav1.GetOptions{})
		if err != nil || now.UID != p.UID {
			return err
		}
		now.Status.Phase = corev1.PodSucceeded
		if code != 0 {
			now.Status.Phase = corev1.PodFailed
		}
		for i := range now.Status.ContainerStatuses {
			now.Status.ContainerStatuses[i].State = corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{
				ExitCode: int32(match.Code), Message: message, StartedAt: *now.Status.StartTime, FinishedAt: metav1.Now()}}
		}
		_, err = k.c.Client.CoreV1().Pods(p.Namespace).UpdateStatus(ctx, now, metav1.UpdateOptions{})
		return err
	})
}

// Write takes what the program writes.
func (r *running) Write(b []byte) (int, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for s := bufio.NewScanner(bytes.NewReader(b)); s.Scan(); {
		r.lines = append(r.lines, time.Now().UTC().Format(time.RFC3339Nano)+" "+s.Text()+"\n")
	}
	close(r.more)
	r.more = make(chan struct{})
	return len(b), nil
}

func (r *running) end() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.over = true
	close(r.more)
	r.more = make(chan struct{})
}

func (r *running) text() (out string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, l := range r.lines {
		_, text, _ := strings.Cut(l, " ")
		out += text // with the new line at its end
	}
	return out
}

// before answers for logs, as the API server does with a kubelet behind it, and leaves all else to next.
func (k *kubelet) before(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		parts := strings.Split(strings.Trim(req.URL.Path, "/"), "/")
		if len(parts) != 7 || parts[6] != "log" {
			next.ServeHTTP(w, req)
			return
		}
		p, err := k.c.Client.CoreV1().Pods(parts[3]).Get(req.Context(), parts[5], metav1.GetOptions{})
		k.mu.Lock()
		var r *running
		if err == nil {
			r = k.runs[p.UID]
		}
		k.mu.Unlock()
		if r == nil {
			next.ServeHTTP(w, req) // which says what is missing
			return
		}
		r.serve(w, req)
	})
}

func (r *running) serve(w http.ResponseWriter, req *http.Request) {
	q, sent := req.URL.Query(), 0
	if n, err := strconv.Atoi(q.Get("tailLines")); err == nil {
		r.mu.Lock()
		sent = max(0, len(r.lines)-n)
		r.mu.Unlock()
	}
	for {
		r.mu.Lock()
		lines, more, over := r.lines[sent:], r.more, r.over
		r.mu.Unlock()
		sent += len(lines)
		for _, l := range lines {
			if q.Get("timestamps") != "true" {
				_, l, _ = strings.Cut(l, " ")
			}
			_, _ = io.WriteString(w, l)
		}
		w.(http.Flusher).Flush()
		if over || q.Get("follow") != "true" {
			return
		}
		select {
		case <-more:
		case <-req.Context().Done():
			return
		}
	}
}

// front is the API server with this kubelet behind it, as a kubeconfig.
func (k *kubelet) front() string {
	h, err := jobtest.Handler(k.c.Config, jobtest.Services{})
	require.NoError(k.t, err, fmt.Sprint(k.c.Config.Host))
	return jobtest.Kubeconfig(k.t, k.before(h))
}
