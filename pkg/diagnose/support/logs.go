package support

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"path"
	"slices"
	"strings"
	"sync"

	corev1 "k8s.io/api/core/v1"

	v1 "github.com/openpai/paictl/pkg/job/v1"
	"github.com/openpai/paictl/pkg/kube"
)

type podLogs struct {
	namespace, pod, node string
	containers           []containerLog
}

type containerLog struct {
	name     string
	previous bool // a container before the last restart ran as well
}

// rememberLogs records a pod whose logs the bundle should include. It skips the pods of jobs that aren't in Options.Jobs, because the logs of a job
// belong to the job's user.
func (b *bundle) rememberLogs(o map[string]any) {
	var pod corev1.Pod
	text, err := json.Marshal(o)
	if err != nil || json.Unmarshal(text, &pod) != nil {
		return
	}
	if pod.Namespace == kube.JobNamespace && pod.Labels[v1.LabelFramework] != "" && !b.isNamed(o) {
		return
	}
	p := podLogs{namespace: pod.Namespace, pod: pod.Name, node: pod.Spec.NodeName}
	for _, c := range slices.Concat(pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses) {
		if c.State.Waiting != nil && c.RestartCount == 0 {
			continue // it hasn't run yet
		}
		p.containers = append(p.containers, containerLog{c.Name, c.RestartCount > 0})
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.pods = append(b.pods, p)
}

// silentAfter is the number of successive failed logs after which the remaining logs of a machine are skipped.
const silentAfter = 2

func (b *bundle) logs(ctx context.Context) {
	if b.o.Cluster == nil {
		b.archive.missing(PartLogs, b.o.ClusterErr)
		return
	}
	ctx, cancel := context.WithTimeoutCause(ctx, b.o.Limits.Logs, fmt.Errorf("not finished within %s", b.o.Limits.Logs))
	defer cancel()
	silent := &silence{count: map[string]int{}}
	var all []func()
	slices.SortFunc(b.pods, func(a, c podLogs) int { return strings.Compare(a.namespace+"/"+a.pod, c.namespace+"/"+c.pod) })
	n := 0
	for _, p := range b.pods {
		for _, c := range p.containers {
			all = append(all, func() { b.log(ctx, p, c.name, false, silent) })
			n++
			if c.previous {
				all = append(all, func() { b.log(ctx, p, c.name, true, silent) })
			}
		}
	}
	if !b.wants(PartKubernetes) {
		b.archive.missing(PartLogs, errors.New("the list of pods belongs to the part kubernetes, which was left out"))
	}
	if len(b.o.Jobs) == 0 {
		b.archive.note("Logs and environment of users' jobs are left out, except for jobs named with --job USER/NAME.")
	}
	inParallel(b.o.Limits.Parallel, all)
	if ctx.Err() == nil {
		b.progress(PartLogs, fmt.Sprintf("done, %d containers", n))
	}
}

func (b *bundle) log(ctx context.Context, p podLogs, container string, previous bool, silent *silence) {
	name, what := path.Join(PartLogs, p.namespace, p.pod, container+".log"), "Log of container "+container+" of pod "+p.pod
	if previous {
		name, what = path.Join(PartLogs, p.namespace, p.pod, container+".previous.log"), what+", before its last restart"
	}
	if silent.is(p.node) {
		b.archive.missing(name, fmt.Errorf("%s did not answer for other logs", p.node))
		return
	}
	ctx, cancel := context.WithTimeoutCause(ctx, b.o.Limits.Log, fmt.Errorf("not read to its end within %s", b.o.Limits.Log))
	defer cancel()
	o := &corev1.PodLogOptions{Container: container, Previous: previous, Timestamps: true}
	if b.o.Since > 0 && !previous { // the output before a container stopped may be older
		seconds := max(int64(b.o.Since.Seconds()), 1)
		o.SinceSeconds = &seconds
	}
	b.archive.log(name, what, b.o.Limits.Head, b.o.Limits.Tail, func(w io.Writer) error {
		body, err := b.o.Cluster.Client.CoreV1().Pods(p.namespace).GetLogs(p.pod, o).Stream(ctx)
		if err == nil {
			_, err = io.Copy(w, body)
			_ = body.Close() // opened for reading only
		}
		if ctx.Err() != nil {
			err = context.Cause(ctx)
		}
		silent.note(p.node, ctx.Err() != nil)
		return err
	})
}

// silence counts the successive logs that each machine failed to send in time.
type silence struct {
	mu    sync.Mutex
	count map[string]int
}

func (s *silence) is(node string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.count[node] >= silentAfter
}

func (s *silence) note(node string, timedOut bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.count[node]++
	if !timedOut {
		s.count[node] = 0
	}
}
